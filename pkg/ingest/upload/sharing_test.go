package upload_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"archivist/pkg/ingest/upload"
)

// TestSharing: a script may send what the signed requests for whole files and for parts need, and nothing else than
// PUT: no page lists, reads or removes what is in the bucket.
func TestSharing(t *testing.T) {
	b := newBed(t)
	large := strings.Repeat("x", 4*mib)
	row := b.open("", "one", large)
	may := upload.Sharing([]string{"https://repository.example.org"})
	sends := b.list(row.ID, "one", large)
	if len(sends[0].Put.Headers) == 0 || len(sends[1].Parts.Next) == 0 {
		t.Fatalf("%+v", sends)
	}
	for name := range sends[0].Put.Headers {
		if !slices.Contains(may.Headers, name) {
			t.Errorf("a script may not send the header %s", name)
		}
	}
	if !slices.Contains(may.Headers, "content-type") || !slices.Equal(may.Methods, []string{http.MethodPut}) ||
		!slices.Equal(may.Origins, []string{"https://repository.example.org"}) {
		t.Errorf("%+v", may)
	}
}
