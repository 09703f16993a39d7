package inprocess

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/aws/aws-lambda-go/events"

	"archivist/pkg/api"
)

// gateway is the API Gateway in front of the function of the API: it asks the authorizer, and calls
// the function with a proxy event ("Lambda proxy integrations in API Gateway"). It has no
// throttling, and keeps no answers of the authorizer.
type gateway struct {
	functions *functions
	tokens    bool     // calls need one
	origins   []string // of pages whose scripts may call the API
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
	if refusal := g.refusal(r); refusal != "" {
		g.refuse(w, refusal, "")
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
	in.RequestContext.RequestID = id
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

// refusal is as what the gateway refuses a request because of its token, "" if it does not ("Use API Gateway Lambda
// authorizers").
func (g *gateway) refusal(r *http.Request) string {
	token := r.Header.Get("Authorization")
	switch {
	case !g.tokens || isOpen(r.Method, r.URL.Path) || g.isPreflight(r):
		return ""
	case token == "":
		return "UNAUTHORIZED"
	}

	payload, err := json.Marshal(events.APIGatewayCustomAuthorizerRequest{
		Type:               "TOKEN",
		AuthorizationToken: token,
		MethodArn:          arn("execute-api", "process/prod/"+r.Method+r.URL.EscapedPath()),
	})
	if err != nil {
		return "AUTHORIZER_FAILURE"
	}
	a, err := g.functions.invoke(r.Context(), fnAuthorizer, payload)
	switch {
	case err == nil && a.failed == nil:
		return ""
	case err == nil && a.failed.Message == "Unauthorized":
		return "UNAUTHORIZED"
	}
	return "AUTHORIZER_FAILURE"
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

// refuse writes an answer of the gateway itself. detail is that of a problem that has none of its own.
func (g *gateway) refuse(w http.ResponseWriter, name, detail string) {
	p := api.Gateway[name]
	p.Detail = cmp.Or(p.Detail, detail)
	if p.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	if len(g.origins) == 1 {
		w.Header().Set("Access-Control-Allow-Origin", g.origins[0])
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p)
}

// isPreflight reports whether the function answers a request without a token, as one that asks for what scripts may do.
func (g *gateway) isPreflight(r *http.Request) bool {
	return len(g.origins) > 0 && r.Method == http.MethodOptions && !isOfConsole(r.URL.Path)
}

// isOfConsole reports whether a path is one of the console.
func isOfConsole(path string) bool { return path == "/console" || strings.HasPrefix(path, "/console/") }

// isOpen reports whether a path needs no token, as infra has it. They are the description of
// the API, where one signs in, ARKs, and the console, which has sessions, with what leads to it.
func isOpen(method, path string) bool {
	exact := []string{"/", "/v1/sign-in", "/openapi.json", "/openapi.yaml", "/docs"}
	switch {
	case isOfConsole(path):
		return method == http.MethodGet || method == http.MethodPost
	case method != http.MethodGet:
		return false
	}
	return slices.Contains(exact, path) || strings.HasPrefix(path, "/docs/") ||
		strings.HasPrefix(path, api.ARKPath)
}
