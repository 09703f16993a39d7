package lambda

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"archivist/pkg/api"
	"archivist/pkg/aws/cloudwatch"
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
	r, err := newRequest(requested(ctx, in.RequestContext), in)
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

// requested is the context of a request, with its id, which the events of its changes name, and
// with the id of its API key. The first is the id that API Gateway returns in the header
// x-amzn-RequestId. The second is there where a method requires a key; API Gateway has verified
// it ("API Gateway mapping template and access logging variable reference").
func requested(ctx context.Context, gateway events.APIGatewayProxyRequestContext) context.Context {
	o := event.OriginOf(ctx)
	o.Request = gateway.RequestID
	return api.WithKey(event.From(ctx, o), gateway.Identity.APIKeyID)
}
