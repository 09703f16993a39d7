package lambda

import (
	"context"
	"net/http"
	"testing"

	lambdaevents "github.com/aws/aws-lambda-go/events"
	"github.com/awslabs/aws-lambda-go-api-proxy/core"

	"archivist/pkg/event"
)

// TestRequestID: the events of a request name the id that API Gateway gave it, and keep the
// software's version.
func TestRequestID(t *testing.T) {
	ctx := event.From(context.Background(), event.Origin{Version: "v1"})
	plain, err := http.NewRequestWithContext(ctx, http.MethodGet, "/", nil)
	if err != nil {
		t.Fatal(err)
	}
	if o := event.OriginOf(requested(plain).Context()); o.Request != "" || o.Version != "v1" {
		t.Errorf("without a gateway: %+v", o)
	}
	accessor := core.RequestAccessor{}
	through, err := accessor.EventToRequestWithContext(ctx, lambdaevents.APIGatewayProxyRequest{HTTPMethod: "GET",
		Path: "/", RequestContext: lambdaevents.APIGatewayProxyRequestContext{RequestID: "gateway-1"}})
	if err != nil {
		t.Fatal(err)
	}
	if o := event.OriginOf(requested(through).Context()); o.Request != "gateway-1" || o.Version != "v1" {
		t.Errorf("behind the gateway: %+v", o)
	}
}
