package histories_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"archivist/pkg/components/histories"
	"archivist/pkg/events/envelope"
	"archivist/pkg/ingest/provenance"
)

var update = flag.Bool("update", false, "write the expected documents again")

var writer = histories.Writer{Archive: provenance.Archive{NAAN: "99999", Version: "v1.2.3"}}

const ark = "ark:/99999/fk4tq65d6k"

// golden compares a document with the expected one.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is another (run with -update if that is meant):\n%s", path, got)
	}
}

// TestHistory: the whole history of an object that was stored, changed and reindexed.
func TestHistory(t *testing.T) {
	local := []string{"notes & more"}
	about := envelope.Ref{Type: "Object", ID: ark}
	log := []envelope.Event{
		{ID: "e1", Version: 1, Type: "object.create", Time: 1_800_000_000_000, Subject: about,
			Context: envelope.Context{Actor: "ada"}, Detail: []byte(`{"version":1,"job":"j1"}`)},
		{ID: "e1.1", Version: 1, Type: "version.create", Time: 1_800_000_000_000,
			Subject: envelope.Ref{Type: "Version", ID: ark + "/v1"}, Context: envelope.Context{Actor: "ada"}},
		{ID: "e2", Version: 2, Type: "object.modify", Time: 1_800_000_100_000, Subject: about,
			Context: envelope.Context{Actor: "ada"}, Detail: []byte(`{"version":2,"job":"j2"}`)},
		{ID: "e3", Version: 3, Type: "object.modify", Time: 1_800_000_200_000, Subject: about,
			Context: envelope.Context{Actor: "operator@example.org"}, Detail: []byte(`{"version":2}`)},
		{ID: "e4", Version: 4, Type: "object.modify", Action: envelope.Delete, Outcome: "failure",
			Time: 1_800_000_300_000, Subject: about, Context: envelope.Context{Actor: "<&>"}},
		{ID: "c1", Version: 5, Type: "object.modify", Time: 1_800_000_310_000, Subject: about,
			Context: envelope.Context{Actor: "ada"}, Detail: []byte(`{"version":3,"job":"j3","change":"correction"}`)},
		{ID: "c2", Version: 6, Type: "object.modify", Time: 1_800_000_320_000, Subject: about,
			Context: envelope.Context{Actor: "ada"}, Detail: []byte(`{"version":4,"job":"j4","change":"withdraw"}`)},
		{ID: "c3", Version: 6, Type: "object.modify", Time: 1_800_000_321_000, Subject: about,
			Context: envelope.Context{Actor: "ada"}, Detail: []byte(`{"version":5,"job":"j4","change":"place-legal-hold"}`)},
		{ID: "c4", Version: 6, Type: "object.modify", Time: 1_800_000_322_000, Subject: about,
			Context: envelope.Context{Actor: "ada"},
			Detail:  []byte(`{"version":6,"job":"j4","change":"retain","retainUntil":"2036-12-31"}`)},
		{ID: "c5", Version: 6, Type: "object.modify", Time: 1_800_000_323_000, Subject: about,
			Context: envelope.Context{Actor: "ada"}, Detail: []byte(`{"version":7,"job":"j4","change":"lift-legal-hold"}`)},
		{ID: "c6", Version: 6, Type: "object.modify", Time: 1_800_000_324_000, Subject: about,
			Context: envelope.Context{Actor: "ada"},
			Detail:  []byte(`{"version":8,"job":"j4","change":"embargo","embargoUntil":"2036-12-31"}`)},
		{ID: "c7", Version: 6, Type: "object.modify", Time: 1_800_000_325_000, Subject: about,
			Context: envelope.Context{Actor: "ada"}, Detail: []byte(`{"version":9,"job":"j4","change":"lift-embargo"}`)},
		{ID: "r1", Version: 7, Type: "object.repair", Time: 1_800_000_330_000, Subject: about,
			Context: envelope.Context{Actor: "ada"},
			Detail:  []byte(`{"repair":"j5","keys":["v1/content/j1.1/a.txt"],"more":2,"reason":"good bytes came"}`)},
		{ID: "r2", Version: 8, Type: "object.repair", Outcome: "failure", Time: 1_800_000_340_000, Subject: about,
			Context: envelope.Context{Actor: "operator@example.org"},
			Detail:  []byte(`{"repair":"r","key":"a/b","inCopy":true,"reason":"a bad disk","problem":"it is not restored"}`)},
		{ID: "e5", Version: 9, Type: "derivative.create", Time: 1_800_000_400_000, Subject: about,
			Context: envelope.Context{Component: "derivatives"}},
	}
	var doc bytes.Buffer
	if err := writer.History(&doc, ark, local, log); err != nil {
		t.Fatal(err)
	}
	golden(t, "history.xml", doc.Bytes())

	log[0].Detail = []byte("{")
	err := writer.History(&doc, ark, local, log)
	if err == nil || !strings.Contains(err.Error(), "event 1 of "+ark) {
		t.Errorf("an event that cannot be read gives %v", err)
	}
}
