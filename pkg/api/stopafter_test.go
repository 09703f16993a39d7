package api_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	v1 "archivist/pkg/api/v1"
)

// TestStopAfterFailures: a submission can say after how many failures it is to be cancelled,
// from 1 to as many jobs as a batch can have. Anything else is refused.
func TestStopAfterFailures(t *testing.T) {
	c, q := serve(t, through)
	submit := func(n int) (int, string) {
		resp, text := ask(t, "POST", c.URL+"/v1/batches", fmt.Sprintf(
			`{"collection":"maps","payload":{"url":"https://example.org/a"},"stopAfterFailures":%d}`, n))
		return resp.StatusCode, text
	}
	for _, n := range []int{-1, 0, 100_000} {
		if status, text := submit(n); status != 422 || !strings.Contains(text, "stopAfterFailures") {
			t.Errorf("%d: %d %s", n, status, text)
		}
	}
	for _, n := range []int{1, 99_999} {
		status, text := submit(n)
		var out v1.Accepted
		if err := json.Unmarshal([]byte(text), &out); err != nil || status != 202 {
			t.Fatalf("%d: %d %s, %v", n, status, text, err)
		}
		if b, err := q.Batch(t.Context(), out.ID); err != nil || b.StopAfter != n {
			t.Errorf("%d: the batch has %d, %v", n, b.StopAfter, err)
		}
	}
}
