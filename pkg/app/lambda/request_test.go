package lambda

import (
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	lambdaevents "github.com/aws/aws-lambda-go/events"

	"archivist/pkg/api"
	"archivist/pkg/aws/cloudwatch"
	"archivist/pkg/events/event"
	"archivist/pkg/kernel/access"
)

// served is the function of the API with these routes.
func served(routes http.Handler) *API {
	return &API{Routes: routes, Now: time.Now, Metrics: &cloudwatch.Metrics{}, Log: slog.New(slog.DiscardHandler)}
}

// TestRequestID: the events of a request name the id that API Gateway gave it, and keep the
// software's version.
func TestRequestID(t *testing.T) {
	var o event.Origin
	function := served(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		o = event.OriginOf(r.Context())
	}))
	ctx := event.From(t.Context(), event.Origin{Version: "v1"})
	_, err := function.Handle(ctx, lambdaevents.APIGatewayProxyRequest{HTTPMethod: "GET", Path: "/",
		RequestContext: lambdaevents.APIGatewayProxyRequestContext{RequestID: "gateway-1"}})
	if err != nil || o.Request != "gateway-1" || o.Version != "v1" {
		t.Errorf("%+v, %v", o, err)
	}
}

// TestKeyOfRequest: with which key a call came is what the gateway says. What the request says does not count.
func TestKeyOfRequest(t *testing.T) {
	key := access.Identity{Grants: []access.Grant{{Role: access.Researcher, Of: "jingles"}}}
	function := served((&api.API{Keys: map[string]access.Identity{"a1b2c3d4e5": key},
		Log: slog.New(slog.DiscardHandler)}).Handler())
	for id, says := range map[string]string{"a1b2c3d4e5": "the caller has researcher:jingles",
		"other": "the API key has no role", "": "the call does not say who makes it"} {
		status := http.StatusForbidden
		if id == "" {
			status = http.StatusUnauthorized
		}
		var in lambdaevents.APIGatewayProxyRequest
		sample(t, "api.request.json", &in)
		in.RequestContext.Identity.APIKeyID = id
		in.Headers["x-api-key"] = "a1b2c3d4e5"
		in.MultiValueHeaders["x-api-key"] = []string{"a1b2c3d4e5"}
		out, err := function.Handle(t.Context(), in)
		if err != nil || out.StatusCode != status || !strings.Contains(out.Body, says) {
			t.Errorf("the key %q: %d %s, %v", id, out.StatusCode, out.Body, err)
		}
	}
}
