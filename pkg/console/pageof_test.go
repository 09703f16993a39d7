package console

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
)

// TestBeside: a list leads back page by page, to the first one, or as far as the address has the cursors.
func TestBeside(t *testing.T) {
	const last = mostBack + 4
	for pages, far := range map[int]int{3: 3, last: mostBack} {
		at, before := "?clip=7", ""
		visitAt := func() (string, string, *visit) {
			v := &visit{Request: httptest.NewRequest(http.MethodGet, "/"+at, nil)}
			n, _ := strconv.Atoi(v.field("from"))
			before, behind := v.beside("from", strconv.Itoa(n+1))
			return before, behind, v
		}
		for range pages {
			_, at, _ = visitAt()
		}
		for n := range far {
			before, _, _ = visitAt()
			if before == "" {
				t.Fatalf("of %d pages, %s leads to none before it", pages, at)
			}
			at = before
			if _, _, v := visitAt(); v.field("clip") != "7" || len(v.URL.RawQuery) > 200 ||
				v.field("from") != strconv.Itoa(pages-1-n) && pages-1-n > 0 {
				t.Errorf("of %d pages, %d back is %s", pages, n+1, at)
			}
		}
		if before, _, _ := visitAt(); before != "" {
			t.Errorf("of %d pages, %s leads to %s", pages, at, before)
		}
	}
}
