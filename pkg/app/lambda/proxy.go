package lambda

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/aws/aws-lambda-go/events"
)

// newRequest is the request that an event of a REST API is about ("Lambda proxy integrations
// in API Gateway", input format): to https://DOMAIN/PATH, from the client's address without a
// port. The path is without the stage, and percent-encoded as the client sent it; keys and
// values of the query are decoded. It returns an error if the event is no request.
func newRequest(ctx context.Context, in events.APIGatewayProxyRequest) (*http.Request, error) {
	body := []byte(in.Body)
	if in.IsBase64Encoded {
		var err error
		body, err = base64.StdEncoding.DecodeString(in.Body)
		if err != nil {
			return nil, fmt.Errorf("lambda: the body of an event is not base64: %w", err)
		}
	}

	target := "https://" + in.RequestContext.DomainName + "/" + strings.TrimPrefix(in.Path, "/")
	if query := severalOf(in.MultiValueQueryStringParameters,
		in.QueryStringParameters); len(query) > 0 {
		target += "?" + url.Values(query).Encode()
	}

	r, err := http.NewRequestWithContext(ctx, strings.ToUpper(in.HTTPMethod), target,
		bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("lambda: an event is no request: %w", err)
	}

	for name, values := range severalOf(in.MultiValueHeaders, in.Headers) {
		for _, v := range values {
			r.Header.Add(name, v)
		}
	}

	if r.Host == "" { // an emulator leaves the domain out; API Gateway never does
		r.Host = r.Header.Get("Host")
	}
	r.RemoteAddr, r.RequestURI = in.RequestContext.Identity.SourceIP, r.URL.RequestURI()
	return r, nil
}

// severalOf are the values by name. An event that somebody made by hand can have only the last
// value of each.
func severalOf(several map[string][]string, last map[string]string) map[string][]string {
	if len(several) > 0 {
		return several
	}
	out := make(map[string][]string, len(last))
	for name, v := range last {
		out[name] = []string{v}
	}
	return out
}

// answer collects what a handler writes. It is sent as a whole, so a status can be replaced until
// then: as when a handler panics after it.
type answer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func newAnswer() *answer { return &answer{header: http.Header{}, status: http.StatusOK} }

// Header is what is sent before the body.
func (a *answer) Header() http.Header { return a.header }

// WriteHeader sets the status.
func (a *answer) WriteHeader(status int) { a.status = status }

// Write appends to the body. What has no type gets that of its first bytes.
func (a *answer) Write(p []byte) (int, error) {
	if a.header.Get("Content-Type") == "" {
		a.header.Set("Content-Type", http.DetectContentType(p))
	}
	return a.body.Write(p)
}

// response is the answer for API Gateway (the same document, output format). Bytes that are
// no text are base64. The header is sent as the list of all values of each name, because one
// value per name would lose some.
func (a *answer) response() events.APIGatewayProxyResponse {
	out := events.APIGatewayProxyResponse{
		StatusCode:        a.status,
		MultiValueHeaders: a.header,
		Body:              a.body.String(),
	}
	if !utf8.Valid(a.body.Bytes()) {
		out.Body, out.IsBase64Encoded = base64.StdEncoding.EncodeToString(a.body.Bytes()), true
	}
	return out
}
