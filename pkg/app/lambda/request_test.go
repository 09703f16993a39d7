package lambda

import (
	"context"
	"log/slog"
	"net/http"
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

// verified takes the token "good" only.
type verified struct{}

// Verify returns whose token it is.
func (verified) Verify(_ context.Context, token string) (access.Identity, error) {
	if token != "good" {
		return access.Identity{}, access.Refused("the token has expired; get a new one")
	}
	return access.Identity{Subject: "4711"}, nil
}

// TestTokenIsVerifiedAgain: the API verifies the token of each call, whatever the authorizer has said before: its
// answer may be minutes old.
func TestTokenIsVerifiedAgain(t *testing.T) {
	function := served((&api.API{Authenticator: verified{}, Log: slog.New(slog.DiscardHandler)}).Handler())
	for token, status := range map[string]int{"good": http.StatusForbidden, "bad": http.StatusUnauthorized,
		"": http.StatusUnauthorized} {
		var in lambdaevents.APIGatewayProxyRequest
		sample(t, "api.request.json", &in)
		in.RequestContext.Authorizer = map[string]any{"principalId": "4711"}
		in.MultiValueHeaders = map[string][]string{"Host": {"api.example.org"}}
		if token != "" {
			in.MultiValueHeaders["Authorization"] = []string{"Bearer " + token}
		}
		out, err := function.Handle(t.Context(), in)
		if err != nil || out.StatusCode != status {
			t.Errorf("the token %q: %d %s, %v", token, out.StatusCode, out.Body, err)
		}
	}
}

// TestBaseOf: the path of the stage is what the gateway says, and nothing that the request says.
func TestBaseOf(t *testing.T) {
	for _, row := range []struct{ path, whole, want string }{{"/console/", "/prod/console/", "/prod"}, {"/x", "/x", ""},
		{"/base/x", "/base/x", ""}, {"/x", "", ""}, {"/x", "/other", ""},
		{"/console", "/prod/console/", "/prod"}, {"/", "/prod", "/prod"}, {"/", "/prod/", "/prod"}, {"/", "/", ""},
		{"/", "", ""}} {
		in := lambdaevents.APIGatewayProxyRequest{Path: row.path,
			Headers: map[string]string{"X-Forwarded-Prefix": "/evil"}}
		in.RequestContext.Path = row.whole
		if got := baseOf(in); got != row.want {
			t.Errorf("%+v: %q", row, got)
		}
	}
}
