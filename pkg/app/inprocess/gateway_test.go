package inprocess

import (
	"net/http/httptest"
	"testing"
)

// TestProxyRequest: a path reaches the function as the client sent it, as from API Gateway.
func TestProxyRequest(t *testing.T) {
	const path = "/v1/objects/a%2Fb%20c%3Fd%25"
	if in := proxyRequest(httptest.NewRequest("GET", path+"?q=%2F", nil), nil); in.Path != path ||
		in.MultiValueQueryStringParameters["q"][0] != "/" {
		t.Errorf("the event has the path %s and the query %v", in.Path, in.MultiValueQueryStringParameters)
	}
}
