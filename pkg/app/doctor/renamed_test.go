package doctor_test

import (
	"flag"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

var update = flag.Bool("update", false, "write testdata/renamed.txt")

// TestRenamedAttributes: the doctor finds each attribute that other rows depend on, if it gets another name in a row:
// the rules read rows by the types that write them, so nothing is taken for missing there. testdata/renamed.txt has one
// attribute of a kind of rows in a line; those that only describe something are not in it.
func TestRenamedAttributes(t *testing.T) {
	seen := map[string]bool{}
	for _, w := range []*world{settled(t), busy(t)} {
		w.sweep()
		w.unswept = true
		kinds := map[string]bool{}
		for _, row := range w.Rows.All() {
			pk, _, _ := strings.Cut(textOf(row, "pk"), "#")
			sk, _, _ := strings.Cut(textOf(row, "sk"), "#")
			kind := pk + "/" + sk
			if strings.Contains(sk, "-") { // the id of a job
				kind = pk
			}
			if kinds[kind] {
				continue
			}
			kinds[kind] = true
			for attribute := range row {
				if attribute == "pk" || attribute == "sk" {
					continue
				}
				changed := maps.Clone(row)
				changed[attribute+"_x"] = changed[attribute]
				delete(changed, attribute)
				w.put(changed)
				found, err := w.doctor().All(t.Context(), false)
				if err != nil {
					t.Fatal(err)
				}
				if len(found) > 0 {
					seen[kind+" "+attribute] = true
				}
				w.put(row)
			}
		}
	}

	const file = "testdata/renamed.txt"
	got := strings.Join(slices.Sorted(maps.Keys(seen)), "\n") + "\n"
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || got != string(want) {
		t.Errorf("%v: found are:\n%s", err, got)
	}
}

func textOf(row map[string]types.AttributeValue, name string) string {
	return row[name].(*types.AttributeValueMemberS).Value
}
