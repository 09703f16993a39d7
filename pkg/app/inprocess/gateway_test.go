package inprocess

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
)

// TestProxyRequest: a path reaches the function as the client sent it, as from API Gateway.
func TestProxyRequest(t *testing.T) {
	const path = "/v1/objects/a%2Fb%20c%3Fd%25"
	if in := proxyRequest(httptest.NewRequest("GET", path+"?q=%2F", nil), nil); in.Path != path ||
		in.MultiValueQueryStringParameters["q"][0] != "/" {
		t.Errorf("the event has the path %s and the query %v", in.Path, in.MultiValueQueryStringParameters)
	}
}

// TestUnreadableBody: a body that ends early is no large one.
func TestUnreadableBody(t *testing.T) {
	for status, body := range map[int]io.Reader{
		http.StatusBadRequest:            iotest.ErrReader(io.ErrUnexpectedEOF),
		http.StatusRequestEntityTooLarge: strings.NewReader(strings.Repeat("x", largestRequest+1)),
	} {
		got := httptest.NewRecorder()
		(&gateway{}).ServeHTTP(got, httptest.NewRequest("POST", "/v1/batches", body))
		if got.Code != status {
			t.Errorf("the answer is %d instead of %d: %s", got.Code, status, got.Body)
		}
	}
}
