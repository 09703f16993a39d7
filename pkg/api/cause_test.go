package api_test

import (
	"net/http"
	"reflect"
	"strings"
	"testing"

	"archivist/pkg/events/envelope"
	"archivist/pkg/events/event"
)

// TestCauseOfRequest: the events of a request have the cause that its header names. A header that
// cannot be one is refused, and nothing is changed.
func TestCauseOfRequest(t *testing.T) {
	c, q := serve(t, through)
	put := func(title string, causes ...string) int {
		body := strings.NewReader(`{"title": "` + title + `"}`)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, c.URL+"/v1/collections/maps", body)
		if err != nil {
			t.Fatal(err)
		}
		req.Header[envelope.CauseHeader] = causes
		req.Header.Set("Content-Type", "application/json")
		resp, err := c.HTTP.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		return resp.StatusCode
	}
	cause := envelope.Cause{Event: "01M7.0", Root: "01M6.0", Depth: 2, Components: []string{"api", "a robot"}}
	for i, causes := range [][]string{nil, {cause.Encode()}, {"depth=1"}, {cause.Encode(), cause.Encode()}} {
		want := http.StatusOK
		if i >= 2 {
			want = http.StatusUnprocessableEntity
		}
		if got := put(strings.Repeat("x", i+1), causes...); got != want {
			t.Errorf("%q: status %d, expected %d", causes, got, want)
		}
	}
	rows, _, err := event.Page(t.Context(), q.Table, event.Subject{Type: event.Collection, ID: "maps"}, "")
	if err != nil || len(rows) != 2 {
		t.Fatalf("%d events, %v", len(rows), err)
	}
	if !reflect.DeepEqual(rows[0].Cause, envelope.Cause{}) || !reflect.DeepEqual(rows[1].Cause, cause) {
		t.Errorf("causes %+v and %+v", rows[0].Cause, rows[1].Cause)
	}
}
