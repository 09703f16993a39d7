package lambda

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	lambdaevents "github.com/aws/aws-lambda-go/events"
	"github.com/awslabs/aws-lambda-go-api-proxy/core"
	"github.com/awslabs/aws-lambda-go-api-proxy/httpadapter"

	"archivist/pkg/api"
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

// TestKeyOfRequest: with which key a call came is what the gateway says. What the request says does not count.
func TestKeyOfRequest(t *testing.T) {
	const said = `{"identity": {"apiKeyId": "a1b2c3d4e5"}}`
	answers := (&api.API{Keys: map[string]api.Access{"a1b2c3d4e5": {Role: api.Researcher, Project: "jingles"}},
		Log: slog.New(slog.DiscardHandler)}).Handler()
	gateway := httpadapter.New(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answers.ServeHTTP(w, requested(r))
	}))
	for id, says := range map[string]string{"a1b2c3d4e5": "the API key has the role researcher",
		"other": "the API key has no role", "": "the API key has no role"} {
		var in lambdaevents.APIGatewayProxyRequest
		sample(t, "api.request.json", &in)
		in.RequestContext.Identity.APIKeyID = id
		in.Headers["x-api-key"] = "a1b2c3d4e5"
		in.MultiValueHeaders["x-api-key"] = []string{"a1b2c3d4e5"}
		in.MultiValueHeaders[core.APIGwContextHeader] = []string{said}
		out, err := gateway.ProxyWithContext(t.Context(), in)
		if err != nil || out.StatusCode != http.StatusForbidden || !strings.Contains(out.Body, says) {
			t.Errorf("the key %q: %d %s, %v", id, out.StatusCode, out.Body, err)
		}
	}
}
