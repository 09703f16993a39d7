package restore

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"archivist/pkg/kernel/table/schema"
)

// TestDocumentedTable: the table that docs/restore.md creates is the one that the code uses.
func TestDocumentedTable(t *testing.T) {
	text, err := os.ReadFile("../../docs/restore.md")
	if err != nil {
		t.Fatal(err)
	}
	_, from, _ := strings.Cut(string(text), "--global-secondary-indexes '")
	indexes, _, found := strings.Cut(from, "'\n")
	var got []struct {
		IndexName  string
		KeySchema  []struct{ AttributeName, KeyType string }
		Projection struct {
			ProjectionType   string
			NonKeyAttributes []string
		}
	}
	if err := json.Unmarshal([]byte(indexes), &got); err != nil || !found || len(got) != len(schema.Indexes) {
		t.Fatalf("the indexes are %q, %v", indexes, err)
	}
	for i, want := range schema.Indexes {
		ix := got[i]
		if ix.IndexName != want.Name || ix.KeySchema[0].AttributeName != want.PK ||
			ix.KeySchema[1].AttributeName != want.SK || !slices.Equal(ix.Projection.NonKeyAttributes, want.Include) {
			t.Errorf("the document creates the index %+v, ours is %+v", ix, want)
		}
		if !strings.Contains(string(text), " "+want.PK+" "+want.SK) {
			t.Errorf("%s and %s are not among the attributes", want.PK, want.SK)
		}
	}
	if !strings.Contains(string(text), "AttributeName="+schema.TTL) {
		t.Error("the document sets another time to live")
	}
}
