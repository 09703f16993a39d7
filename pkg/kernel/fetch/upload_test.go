package fetch_test

import (
	"net/url"
	"strings"
	"testing"

	"archivist/pkg/kernel/fetch"
)

// TestUploadAccess: the files of an upload are requested for its own submission only, whatever hosts are allowed.
func TestUploadAccess(t *testing.T) {
	u, err := url.Parse("upload://01M7ZBMEYHBB62YP6RY21T1GQ7/" + strings.Repeat("0", 64))
	if err != nil {
		t.Fatal(err)
	}
	for upload, says := range map[string]string{"01M7ZBMEYHBB62YP6RY21T1GQ7": "", "": "has no upload",
		"01M7ZBMEYHBB62YP6RY21T1GQ8": "is not that of the submission"} {
		why := fetch.Access{Upload: upload, Allow: []string{"example.org"}}.Refused(u)
		if (why == "") != (says == "") || !strings.Contains(why, says) {
			t.Errorf("%q: %q; expected %q", upload, why, says)
		}
	}
}
