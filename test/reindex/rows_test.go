package reindex

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"archivist/pkg/kernel/table/tabletest"
)

func text(v types.AttributeValue) string {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return v.Value
	case *types.AttributeValueMemberN:
		return v.Value
	case *types.AttributeValueMemberL:
		all := make([]string, len(v.Value))
		for i, one := range v.Value {
			all[i] = text(one)
		}
		return fmt.Sprintf("%q", all)
	}
	return ""
}

// each gives the inventory's rows with their keys: of objects, versions, local ids
// and reservations.
func (w *world) each(do func(pk, sk string, row tabletest.Item)) {
	for _, row := range w.rows.All() {
		pk, sk := text(row["pk"]), text(row["sk"])
		kind, _, _ := strings.Cut(pk, "#")
		if slices.Contains([]string{"OBJECT", "LOCAL", "ARK"}, kind) && !strings.HasPrefix(sk, "EV#") {
			do(pk, sk, row)
		}
	}
}

// inventory is the rows of the stored objects, except those in without, by their keys and
// without their bookkeeping.
func (w *world) inventory(without map[string]bool) map[string]string {
	out := map[string]string{}
	w.each(func(pk, sk string, row tabletest.Item) {
		ark := text(row["ark"])
		if reserved, is := strings.CutPrefix(pk, "ARK#"); is {
			ark = reserved
		}
		o := w.objects[ark]
		id, local := "", strings.HasPrefix(pk, "LOCAL#")
		if o != nil && local {
			id = strings.TrimPrefix(pk, "LOCAL#"+o.collection+"#")
		}
		if o == nil || without[ark] || local && !slices.Contains(o.ids, id) {
			return // reserved by a job that failed before its version was stored
		}
		is := ark + " "
		for _, name := range slices.Sorted(maps.Keys(row)) {
			if !slices.Contains([]string{"rev", "wid", "version"}, name) {
				is += fmt.Sprintf("%s=%q ", name, text(row[name]))
			}
		}
		out[pk+"/"+sk] = is
	})
	return out
}

// equal fails unless the rows are the same as before, except those of spoiled objects.
func (w *world) equal(before, after map[string]string, spoiled map[string]bool) {
	w.Helper()
	for key, row := range before {
		if ark, _, _ := strings.Cut(row, " "); !spoiled[ark] && after[key] != row {
			w.Errorf("%s was %s, is %s", key, row, after[key])
		}
	}
	for key := range after {
		if before[key] == "" {
			w.Errorf("%s is new", key)
		}
	}
}

// forget deletes all rows of the inventory.
func (w *world) forget() {
	w.Helper()
	w.each(func(pk, sk string, _ tabletest.Item) {
		if err := w.s.Queue.Table.Rows.Delete("pk", pk).Range("sk", sk).Run(w.Context()); err != nil {
			w.Fatal(err)
		}
	})
}
