package lambda

import (
	"log/slog"
	"net/http"
	"time"

	"github.com/awslabs/aws-lambda-go-api-proxy/core"

	"archivist/pkg/api"
	"archivist/pkg/cloudwatch"
	"archivist/pkg/event"
)

// API is the function of the API: its routes, with a log line for each request.
type API struct {
	Routes  http.Handler
	Now     func() time.Time
	Metrics *cloudwatch.Metrics
	Log     *slog.Logger
}

// ServeHTTP answers a request.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	started := a.Now()
	answer := &statusWriter{ResponseWriter: w, status: http.StatusOK}
	a.Routes.ServeHTTP(answer, requested(r))
	_ = a.Metrics.Put(r.Context()) // the log has what was lost
	a.Log.Info("request", "method", r.Method, "path", r.URL.Path, "status", answer.status,
		"ms", a.Now().Sub(started).Milliseconds())
}

// requested is the request with its id, which the events of its changes name, and with the id of its API
// key. The first is the id that API Gateway returns in the header x-amzn-RequestId. The second is there
// where a method requires a key; API Gateway has verified it ("API Gateway mapping template and access
// logging variable reference").
func requested(r *http.Request) *http.Request {
	gateway, known := core.GetAPIGatewayContextFromContext(r.Context())
	if !known {
		return r
	}
	o := event.OriginOf(r.Context())
	o.Request = gateway.RequestID
	return r.WithContext(api.WithKey(event.From(r.Context(), o), gateway.Identity.APIKeyID))
}

// statusWriter keeps the status of a response.
type statusWriter struct {
	http.ResponseWriter
	status int
}

// WriteHeader writes and keeps the status.
func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}
