package lambda

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	awslambda "github.com/aws/aws-lambda-go/lambda"
)

// invoke calls the function with routes as Lambda does, with the JSON of an event.
func invoke(t *testing.T, routes http.HandlerFunc, event string) (string, error) {
	t.Helper()
	out, err := awslambda.NewHandler(served(routes).Handle).Invoke(t.Context(), []byte(event))
	return string(out), err
}

// TestProxiedRequests: a request is what API Gateway's event says, whatever a client can send.
func TestProxiedRequests(t *testing.T) {
	for _, c := range []struct{ event, want string }{
		{`"path": "/v1/batches", "httpMethod": "GET"`, `GET /v1/batches [/v1/batches]`},
		{`"path": "v1", "httpMethod": "post"`, `POST /v1 [/v1]`},
		{`"path": ""`, `GET / [/]`},
		{`"path": "/v1/"`, `GET /v1/ [/v1/]`},
		{`"path": "//v1/../x"`, `GET //v1/../x [//v1/../x]`},
		{`"path": "/v1", "requestContext": {"path": "/prod/v1", "stage": "prod"}`, `GET /v1 [/v1]`},
		// The path is percent-encoded, the query is not.
		{`"path": "/a%2Fb%20c%3Fd%23e%25f"`, `GET /a%2Fb%20c%3Fd%23e%25f [/a/b c?d#e%f]`},
		{`"path": "/a+b%2Bc"`, `GET /a+b%2Bc [/a+b+c]`},
		{`"path": "/a b"`, `GET /a%20b [/a b]`},
		{`"path": "/%C3%A9"`, `GET /%C3%A9 [/é]`},
		{`"path": "/é"`, `GET /%C3%A9 [/é]`},
		{`"path": "/", "multiValueQueryStringParameters": {"state": ["b", "a", "b"]}`,
			`GET /?state=b&state=a&state=b [/] state=[b a b]`},
		{`"path": "/", "multiValueQueryStringParameters": {"q": ["a b+c%20&d=é"]}, "queryStringParameters": {"q": "x"}`,
			`GET /?q=a+b%2Bc%2520%26d%3D%C3%A9 [/] q=[a b+c%20&d=é]`},
		{`"path": "/", "multiValueQueryStringParameters": {"a[]&": [""]}`, `GET /?a%5B%5D%26= [/] a[]&=[]`},
		{`"path": "/", "queryStringParameters": {"q": "last"}`, `GET /?q=last [/] q=[last]`},
		{`"path": "/", "multiValueQueryStringParameters": null, "queryStringParameters": null`, `GET / [/]`},
		// Names of headers are in any case. Without the map of all values there is the one of the last.
		{`"path": "/", "multiValueHeaders": {"x-API-key": ["k"], "Host": ["h"]}, "headers": {"x-API-key": "last"}`,
			`GET / [/] Host: [h] X-Api-Key: [k] at h from `},
		{`"path": "/", "multiValueHeaders": {"cookie": ["a=1", "b=2; c=é"]}`, `GET / [/] Cookie: [a=1 b=2; c=é]`},
		{`"path": "/", "multiValueHeaders": null, "headers": {"accept": "*/*"}`, `GET / [/] Accept: [*/*]`},
		{`"path": "/", "headers": null`, `GET / [/]`},
		{`"path": "/", "requestContext": {"domainName": "api.example.org", "identity": {"sourceIp": "192.0.2.1"}}`,
			`GET / [/] at api.example.org from 192.0.2.1`},
		{`"path": "/", "requestContext": {"domainName": "127.0.0.1:4566", "identity": {"sourceIp": "2001:db8::1"}}`,
			`GET / [/] at 127.0.0.1:4566 from 2001:db8::1`},
		{`"path": "/", "body": null`, `GET / [/]`},
		{`"path": "/", "httpMethod": "PUT", "body": ""`, `PUT / [/]`},
		{`"path": "/", "httpMethod": "PUT", "body": "", "isBase64Encoded": true`, `PUT / [/]`},
		{`"path": "/", "httpMethod": "PUT", "body": "{\"é\": 1}"`, `PUT / [/] 9 bytes {"é": 1}`},
		{`"path": "/", "httpMethod": "PUT", "body": "AP8=", "isBase64Encoded": true`, "PUT / [/] 2 bytes \x00\xff"},
		{`"path": "/", "httpMethod": "HEAD"`, `HEAD / [/]`},
	} {
		got := ""
		_, err := invoke(t, func(_ http.ResponseWriter, r *http.Request) { got = seen(r) }, "{"+c.event+"}")
		if err != nil || got != c.want {
			t.Errorf("%s:\n got %s, %v\nwant %s", c.event, got, err, c.want)
		}
	}
}

// seen is what a handler sees of a request.
func seen(r *http.Request) string {
	out := fmt.Sprintf("%s %s [%s]", r.Method, r.RequestURI, r.URL.Path)
	for name, values := range r.URL.Query() {
		out += fmt.Sprintf(" %s=%v", name, values)
	}
	for _, name := range []string{"Accept", "Cookie", "Host", "X-Api-Key"} {
		if values := r.Header[name]; values != nil {
			out += fmt.Sprintf(" %s: %v", name, values)
		}
	}
	if r.Host != "" {
		out += " at " + r.Host + " from " + r.RemoteAddr
	}
	body, err := io.ReadAll(r.Body)
	if err != nil || int64(len(body)) != r.ContentLength {
		return fmt.Sprintf("%d bytes of %d, %v", len(body), r.ContentLength, err)
	}
	if len(body) > 0 {
		out += fmt.Sprintf(" %d bytes %s", len(body), body)
	}
	return out
}

// TestProxiedAnswers: API Gateway gets the status, all values of headers, and the bytes that a handler wrote.
func TestProxiedAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		want    string
	}{
		"nothing": {func(http.ResponseWriter, *http.Request) {},
			`{"statusCode":200,"headers":null,"multiValueHeaders":{},"body":""}`},
		"text": {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "é") },
			`{"statusCode":200,"headers":null,"multiValueHeaders":{"Content-Type":["text/plain; charset=utf-8"]},"body":"é"}`},
		"several writes": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(w, "<html>")
			_, _ = w.Write([]byte{0xff})
		}, `{"statusCode":201,"headers":null,"multiValueHeaders":{"Content-Type":["text/html; charset=utf-8"]},` +
			`"body":"PGh0bWw+/w==","isBase64Encoded":true}`},
		"binary": {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte{0x00, 0xff, 0xfe}) },
			`{"statusCode":200,"headers":null,"multiValueHeaders":{"Content-Type":["application/octet-stream"]},` +
				`"body":"AP/+","isBase64Encoded":true}`},
		"a type": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("content-type", "application/problem+json")
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, "{}")
		}, `{"statusCode":404,"headers":null,"multiValueHeaders":{"Content-Type":["application/problem+json"]},"body":"{}"}`},
		"cookies": {func(w http.ResponseWriter, _ *http.Request) {
			http.SetCookie(w, &http.Cookie{Name: "a", Value: "1"})
			http.SetCookie(w, &http.Cookie{Name: "b", Value: "2"})
			w.WriteHeader(http.StatusNoContent)
		}, `{"statusCode":204,"headers":null,"multiValueHeaders":{"Set-Cookie":["a=1","b=2"]},"body":""}`},
		"a status that is replaced": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusCreated)
			w.WriteHeader(http.StatusInternalServerError)
		}, `{"statusCode":500,"headers":null,"multiValueHeaders":{},"body":""}`},
	} {
		for _, method := range []string{"GET", "HEAD"} { // without the body on its way to the client
			got, err := invoke(t, c.handler, `{"path": "/", "httpMethod": "`+method+`"}`)
			if err != nil || got != c.want {
				t.Errorf("%s of %s:\n got %s, %v\nwant %s", method, name, got, err, c.want)
			}
		}
	}
}

// TestInvalidEvents: what is no request reaches no handler, and the error says why.
func TestInvalidEvents(t *testing.T) {
	for event, want := range map[string]string{
		`{"path": "/", "body": "AP8", "isBase64Encoded": true}`: "the body of an event is not base64: illegal base64 data",
		`{"path": "/%zz"}`:                                       `parse "https:///%zz": invalid URL escape "%zz"`,
		`{"path": "/a\nb"}`:                                      "invalid control character in URL",
		`{"path": "/", "httpMethod": "G T"}`:                     `net/http: invalid method "G T"`,
		`{"path": "/", "requestContext": {"domainName": "a b"}}`: `invalid character " " in host name`,
		`{"path": 1}`:                                            "cannot unmarshal number",
	} {
		got, err := invoke(t, func(http.ResponseWriter, *http.Request) { t.Errorf("%s is answered", event) }, event)
		if err == nil || !strings.Contains(err.Error(), want) || got != "" {
			t.Errorf("%s: %q, %v", event, got, err)
		}
	}
}

// TestPanicOfHandler: Lambda gets to know of a panic, and ends the process. (The routes of the API answer panics
// themselves.)
func TestPanicOfHandler(t *testing.T) {
	defer func() {
		if p := recover(); p != "broken" {
			t.Errorf("the panic is %v", p)
		}
	}()
	out, err := invoke(t, func(http.ResponseWriter, *http.Request) { panic("broken") }, `{"path": "/"}`)
	t.Errorf("%s, %v", out, err)
}
