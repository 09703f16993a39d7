package inprocess

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/aws/aws-lambda-go/events"

	"archivist/pkg/api"
)

// gateway is the API Gateway in front of the function of the API: it checks keys and calls
// the function with a proxy event ("Lambda proxy integrations in API Gateway"). It has no
// usage plans and no throttling.
type gateway struct {
	functions *functions
	keys      map[string]string // ids by values; nil: none is needed
	calls     atomic.Int64
}

// largestRequest is the most that a gateway takes, in bytes ("Amazon API Gateway quotas").
const largestRequest = 10 << 20

// ServeHTTP answers a request. An answer of the gateway itself has the form that infra gives
// it (gateway responses): a problem document (RFC 9457).
func (g *gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// The id is returned also by a refusal, as API Gateway does.
	id := strconv.FormatInt(g.calls.Add(1), 10)
	w.Header().Set("x-amzn-RequestId", id)
	key, valid := g.keys[r.Header.Get("x-api-key")]
	if g.keys != nil && !valid && !isOpen(r.URL.Path) {
		g.refuse(w, "INVALID_API_KEY", "Forbidden")
		return
	}

	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, largestRequest))
	if err != nil {
		name := "DEFAULT_4XX" // the client is gone, or what it sends is not HTTP
		if _, large := errors.AsType[*http.MaxBytesError](err); large {
			name = "REQUEST_TOO_LARGE"
		}
		g.refuse(w, name, err.Error())
		return
	}

	in := proxyRequest(r, body)
	in.RequestContext.RequestID, in.RequestContext.Identity.APIKeyID = id, key
	payload, err := json.Marshal(in)
	if err != nil {
		g.refuse(w, "DEFAULT_5XX", err.Error())
		return
	}

	out, err := g.invoke(r.Context(), payload)
	switch {
	case errors.Is(err, errTimedOut):
		g.refuse(w, "INTEGRATION_TIMEOUT", "Endpoint request timed out")
		return
	case err != nil:
		// API Gateway does not tell its clients why, and neither does this.
		g.functions.log.Error("the API has no answer", "request", id, "path", r.URL.Path, "error", err)
		g.refuse(w, "INTEGRATION_FAILURE", "Internal server error")
		return
	}
	answerWith(w, out)
}

// errTimedOut is the error of an invocation that lasted too long.
var errTimedOut = errors.New("the function timed out")

// invoke calls the function. Each way in which it gives no answer is an error.
func (g *gateway) invoke(ctx context.Context, payload []byte) (out events.APIGatewayProxyResponse, err error) {
	a, err := g.functions.invoke(ctx, fnAPI, payload)
	switch {
	case err != nil:
		return out, err
	case a.failed != nil && a.failed.Type == timedOut:
		return out, errTimedOut
	case a.failed != nil:
		return out, fmt.Errorf("%s: %s", a.failed.Type, a.failed.Message)
	}
	return out, json.Unmarshal(a.out, &out)
}

// proxyRequest is a request as the function gets it: its path percent-encoded, its query
// decoded. Bodies are base64, because answers of any kind may be bytes. The client's address
// is without its port.
func proxyRequest(r *http.Request, body []byte) events.APIGatewayProxyRequest {
	address, _, _ := net.SplitHostPort(r.RemoteAddr)
	in := events.APIGatewayProxyRequest{
		Resource:                        "/{proxy+}",
		Path:                            r.URL.EscapedPath(),
		HTTPMethod:                      r.Method,
		MultiValueHeaders:               r.Header.Clone(),
		MultiValueQueryStringParameters: r.URL.Query(),
		Body:                            base64.StdEncoding.EncodeToString(body),
		IsBase64Encoded:                 true,
	}

	in.MultiValueHeaders["Host"] = []string{r.Host}
	in.RequestContext.DomainName, in.RequestContext.Stage = r.Host, "prod"
	in.RequestContext.Identity.SourceIP = address
	return in
}

// answerWith writes the function's answer. A header with a single value wins over those with
// several.
func answerWith(w http.ResponseWriter, out events.APIGatewayProxyResponse) {
	for name, values := range out.MultiValueHeaders {
		w.Header()[name] = values
	}

	for name, v := range out.Headers {
		w.Header().Set(name, v)
	}

	body := []byte(out.Body)
	if out.IsBase64Encoded {
		body, _ = base64.StdEncoding.DecodeString(out.Body)
	}

	w.WriteHeader(out.StatusCode)
	_, _ = w.Write(body) // the client may be gone
}

// refuse writes an answer of the gateway itself.
func (g *gateway) refuse(w http.ResponseWriter, name, detail string) {
	p := api.Gateway[name]
	p.Detail = detail
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p)
}

// isOpen reports whether a path needs no key, as infra has it. They are the description of
// the API, and where one signs in.
func isOpen(path string) bool {
	return path == "/v1/sign-in" || path == "/openapi.json" || path == "/openapi.yaml" || path == "/docs" ||
		strings.HasPrefix(path, "/docs/")
}
