package lambda

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"archivist/pkg/aws/cloudwatch"
	"archivist/pkg/console"
	"archivist/pkg/events/event"
)

// API is the function of the API: its routes, with a log line for each request.
type API struct {
	Routes  http.Handler
	Now     func() time.Time
	Metrics *cloudwatch.Metrics
	Log     *slog.Logger
}

// Handle answers a request. It returns an error if the event is none: Lambda logs it, and API
// Gateway answers with the status 502. The log line has no query and no body, which can have
// secrets.
func (a *API) Handle(ctx context.Context,
	in events.APIGatewayProxyRequest) (events.APIGatewayProxyResponse, error) {
	started := a.Now()
	ctx = console.WithBase(requested(ctx, in.RequestContext), baseOf(in))
	r, err := newRequest(ctx, in)
	if err != nil {
		return events.APIGatewayProxyResponse{}, err
	}

	w := newAnswer()
	a.Routes.ServeHTTP(w, r)
	_ = a.Metrics.Put(ctx) // the log has what was lost
	a.Log.Info("request", "method", r.Method, "path", r.URL.Path, "status", w.status,
		"ms", a.Now().Sub(started).Milliseconds())
	return w.response(), nil
}

// requested is the context of a request, with its id, which the events of its changes name. It is
// the id that API Gateway returns in the header x-amzn-RequestId. What the authorizer has said is
// not used: the API verifies each token itself.
func requested(ctx context.Context, gateway events.APIGatewayProxyRequestContext) context.Context {
	o := event.OriginOf(ctx)
	o.Request = gateway.RequestID
	return event.From(ctx, o)
}

// baseOf is the path under which the gateway serves a request, e.g. "/prod": what the path that the client sent has
// before that of the request. Under a domain of one's own, both have it. A slash at the end of only one of them
// makes no difference.
func baseOf(in events.APIGatewayProxyRequest) string {
	base, served := strings.CutSuffix(strings.TrimSuffix(in.RequestContext.Path, "/"), strings.TrimSuffix(in.Path, "/"))
	if !served {
		return ""
	}
	return base
}
