package api_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/events/envelope"
	"archivist/pkg/events/event"
	"archivist/pkg/ingest/collection"
)

// TestEventTypes: the documented types are those in the source.
func TestEventTypes(t *testing.T) {
	named := regexp.MustCompile(`"((?:batch|job|object|collection|queue|storage|operation|consumer|component|derivative|epoch|project|episode|clip|lease|archive|revision|task|upload|token)\.[a-z-]+)"`)
	seen := map[string]bool{}
	for _, dir := range []string{"ingest/queue", "objects/inventory", "ingest/collection", "events/consumer",
		"events/eventlog", "components/component", "views/derivatives", "objects/replica", "research",
		"revisions/revision", "ingest/upload", "ingest/token"} {
		files, err := filepath.Glob("../" + dir + "/*.go")
		if err != nil || len(files) == 0 {
			t.Fatal(files, err)
		}
		for _, file := range files {
			src, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			for _, m := range named.FindAllStringSubmatch(string(src), -1) {
				if kind, _ := envelope.KindOf(m[1]); kind.Subject == event.Item.String() {
					continue // the history of an item has its events in another form
				}
				seen[m[1]] = true
				if !slices.Contains(v1.EventTypes, m[1]) {
					t.Errorf("%s: the event %s is not documented", file, m[1])
				}
			}
		}
	}
	for _, kind := range v1.EventTypes {
		if !seen[kind] {
			t.Errorf("nothing writes the event %s", kind)
		}
	}
}

// TestEventDetails: stored details have the documented form, without additional fields.
func TestEventDetails(t *testing.T) {
	c, q := serve(t, through)
	strict := func(e v1.Event, into any) {
		t.Helper()
		d := json.NewDecoder(bytes.NewReader(e.Detail))
		d.DisallowUnknownFields()
		if err := d.Decode(into); err != nil {
			t.Errorf("%s: %s: %v", e.Type, e.Detail, err)
		}
	}
	accepted, err := c.Submit(t.Context(), good, "")
	if err != nil {
		t.Fatal(err)
	}
	var change v1.StateChange
	strict(page[v1.Event](t, c, "/v1/batches/"+accepted.ID+"/events").Items[0], &change)
	if change.To != v1.Pending {
		t.Errorf("%+v", change)
	}
	record(t, q, 1, "J-1")
	var recorded v1.ObjectRecord
	strict(page[v1.Event](t, c, "/v1/objects/99999/fk4x/events").Items[0], &recorded)
	if recorded.Version != 1 || recorded.Job != "J-1" || len(recorded.LocalIDs) != 1 {
		t.Errorf("%+v", recorded)
	}
	profiles := collection.Store{Table: q.Table, NewID: q.NewID}
	for _, p := range []collection.Profile{{Title: "t"},
		{Callback: collection.Callback{URL: "https://example.org/", Secret: "archivist/x"}}} {
		if err := profiles.Put(t.Context(), "maps", p, collection.By{Actor: "me"}, 0); err != nil {
			t.Fatal(err)
		}
	}
	events := page[v1.Event](t, c, "/v1/collections/maps/events").Items
	var first, second v1.Profile
	strict(events[0], &first)
	strict(events[1], &second)
	if first.Title != "t" || first.Callback != nil || second.Callback == nil || second.Callback.Mode != "required" {
		t.Errorf("%+v, %+v", first, second)
	}
}
