package inprocess

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
)

// TestOrigins: scripts of the origins pass the gateway as on AWS: a preflight needs no token, an answer of the
// gateway itself can be read if there is one origin, and the console is for no script. Files can be sent to the work
// bucket only.
func TestOrigins(t *testing.T) {
	const one, two, strange = "https://repository.example.org", "http://localhost:3000", "https://evil.example.org"
	settings := quick()
	settings.Index = &NoIndex{}
	token := "Bearer " + demanding(t, &settings, map[string]string{"reader": "viewer"})["reader"]
	for _, origins := range [][]string{{one}, {one, two}} {
		own := settings
		own.Origins = origins
		w := begin(t, own)
		byGateway := ""
		if len(origins) == 1 {
			byGateway = one
		}
		s3 := noEndpoint
		for _, c := range []struct {
			method, url, origin, token, asks string
			status                           int
			allowed                          string
		}{
			{"OPTIONS", APIURL + "/v1/queue", one, "", "GET", 204, one},
			{"GET", APIURL + "/v1/queue", one, token, "", 200, one},
			{"GET", APIURL + "/v1/queue", one, "", "", 401, byGateway},
			{"GET", APIURL + "/v1/queue", strange, "", "", 401, byGateway}, // a browser compares it
			{"GET", APIURL + "/v1/queue", strange, token, "", 200, ""},
			{"OPTIONS", APIURL + "/v1/queue", strange, "", "GET", 405, ""},
			{"GET", APIURL + "/console", one, "", "", 303, ""},
			{"OPTIONS", APIURL + "/console", one, "", "GET", 401, byGateway},
			{"OPTIONS", s3 + "/work/uploads/x", one, "", "PUT", 204, one},
			{"OPTIONS", s3 + "/work/uploads/x", strange, "", "PUT", 0, ""},
			{"GET", s3 + "/work/uploads/x", one, "", "", 0, ""},
			{"OPTIONS", s3 + "/storage/x", one, "", "PUT", 0, ""},
		} {
			r, err := http.NewRequestWithContext(t.Context(), c.method, c.url, nil)
			w.must(err)
			r.Header.Set("Origin", c.origin)
			if c.token != "" {
				r.Header.Set("Authorization", c.token)
			}
			if c.asks != "" {
				r.Header.Set("Access-Control-Request-Method", c.asks)
			}
			client := w.HTTP()
			client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
			resp, err := client.Do(r)
			w.must(err)
			text, err := io.ReadAll(resp.Body)
			w.must(errors.Join(err, resp.Body.Close()))
			if c.status != 0 && resp.StatusCode != c.status || c.status == 0 && resp.StatusCode < 300 ||
				resp.Header.Get("Access-Control-Allow-Origin") != c.allowed {
				t.Errorf("%d origins, %+v: %d %v %s", len(origins), c, resp.StatusCode, resp.Header, text)
			}
		}
	}

	settings.Origins = []string{"*"}
	if _, err := Start(settings); err == nil || !strings.Contains(err.Error(), "origins") {
		t.Errorf("any origin: %v", err)
	}
}
