package api_test

import (
	"strings"
	"testing"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/collection"
	"archivist/pkg/kernel/fault"
)

// TestCheckAgrees: the check of a manifest says what later steps do: where a collection requires digests, a list of
// manifests needs none of its own; the rows of an update name their objects.
func TestCheckAgrees(t *testing.T) {
	c, q := serve(t, through)
	profiles := collection.Store{Table: q.Table, NewID: q.NewID}
	if err := profiles.Put(t.Context(), "strict", collection.Profile{RequireDigest: true},
		collection.By{Actor: "me"}, 0); err != nil {
		t.Fatal(err)
	}
	undigested := strings.NewReplacer("md5 | 900150983cd24fb0d6963f7d28e17f72", " | ")
	for name, k := range map[string]struct {
		manifest, mode string
		accepted       bool
	}{
		"manifests without digests": {undigested.Replace(batchManifest), "", true},
		"files without digests":     {undigested.Replace(fileBatch), "", false},
		"an object without digests": {undigested.Replace(objectManifest), "", false},
		"an update":                 {fileBatch, ingest.ModeUpdate, true},
		"an update of nothing":      {strings.Replace(fileBatch, "| one |", "| |", 1), ingest.ModeUpdate, false},
	} {
		in := v1.BatchCheck{BatchRequest: v1.BatchRequest{Collection: "strict", Mode: k.mode}, Manifest: k.manifest}
		out, err := c.CheckBatch(t.Context(), in)
		if err != nil || out.Accepted != k.accepted || !k.accepted && len(out.Problems) == 0 {
			t.Errorf("%s: %+v, %v", name, out, err)
		}
	}
	// The id that stands for an upload to be made is none that there is.
	in := v1.BatchCheck{BatchRequest: v1.BatchRequest{Collection: "maps", Payload: v1.Payload{
		Upload: strings.Repeat("0", 26), Filename: "a", File: strings.Repeat("a", 64)}}}
	if out, err := c.CheckBatch(t.Context(), in); !fault.Is(err, fault.Invalid) {
		t.Errorf("an upload that is not there: %+v, %v", out, err)
	}
}
