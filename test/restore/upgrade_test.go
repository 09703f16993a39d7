package restore

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/kernel/table/tabletest"
)

// dump is a system in the middle of its work, as an earlier release left it. How it
// was made is in testdata/make_test.go.txt.
type dump struct {
	Now      int64             // milliseconds
	Source   string            // URL
	Messages []queue.Message   // of its executions
	Rows     []map[string]any  // of the table
	Objects  map[string]string // of the buckets, by name, in Base64
}

func readDump(t *testing.T, name string) (d dump) {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	in, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	lines := json.NewDecoder(in)
	lines.UseNumber()
	lines.DisallowUnknownFields()
	if err := lines.Decode(&d); err != nil {
		t.Fatal(err)
	}
	return d
}

// attribute is a value of a row.
func attribute(v any) types.AttributeValue {
	switch x := v.(type) {
	case string:
		return &types.AttributeValueMemberS{Value: x}
	case json.Number:
		return &types.AttributeValueMemberN{Value: x.String()}
	case bool:
		return &types.AttributeValueMemberBOOL{Value: x}
	case []any:
		list := &types.AttributeValueMemberL{}
		for _, e := range x {
			list.Value = append(list.Value, attribute(e))
		}
		return list
	case map[string]any:
		m := &types.AttributeValueMemberM{Value: tabletest.Item{}}
		for name, e := range x {
			m.Value[name] = attribute(e)
		}
		return m
	}
	panic("an attribute of an unknown type")
}

// load puts the system of a dump onto twins, with this release.
func (w *world) load(d dump) {
	w.Helper()
	for name, data := range d.Objects {
		body, err := base64.StdEncoding.DecodeString(data)
		if err != nil {
			w.Fatal(err)
		}
		rec := httptest.NewRecorder()
		w.twin.ServeHTTP(rec, httptest.NewRequest(http.MethodPut, (&url.URL{Path: "/" + name}).String(),
			bytes.NewReader(body)))
		if rec.Code != http.StatusOK {
			w.Fatalf("%s: %s", name, rec.Body)
		}
	}
	var rows []tabletest.Item
	for _, row := range d.Rows {
		rows = append(rows, attribute(row).(*types.AttributeValueMemberM).Value)
	}
	w.now = time.UnixMilli(d.Now).Add(time.Minute)
	w.gone["/missing.txt"] = true
	w.texts = map[string]string{"mrt-erc.txt": "who: Anna\nwhat: parked\nwhere: id of Storing\n"}
	w.deploy(rows)
	ids := 0
	w.m.Queue.NewID = func() string { // none that the dump has
		ids++
		return fmt.Sprintf("01M7ZBMEYHBB62YP7R%08d", ids)
	}
	w.m.Scheduler.Leases.NewID = w.m.Queue.NewID
	w.s.MailFrom = "archive@example.org"
}

// TestUpgrade: this release finishes the work that the release before left unfinished,
// whether the messages of the old executions arrive or not.
func TestUpgrade(t *testing.T) {
	for name, arrives := range map[string]func(n int) bool{
		"all messages arrive": func(int) bool { return true },
		"none":                func(int) bool { return false },
		"half":                func(n int) bool { return n%2 == 0 },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1)
			d := readDump(t, "testdata/955446c.json.gz")
			w.load(d)
			before := w.stored()
			for n, m := range d.Messages {
				if !arrives(n) {
					continue
				}
				machine, id := queue.MachineJob, m.Job
				if m.Batch != "" {
					machine, id = queue.MachineBatch, m.Batch
				}
				if err := w.m.Start(t.Context(), machine, queue.ExecutionName(id, m.Exec), m); err != nil {
					t.Fatal(err)
				}
			}
			w.rest()
			w.upgraded(d, before)
			w.now = w.now.Add(2 * time.Hour)
			w.rest() // work files past their retention are removed
			w.reindex()
			w.made = 1000
			w.expect("", 1)
			ark, err := w.s.Inventory.ByLocalID(t.Context(), "maps", "known")
			if err != nil || ark == "" {
				t.Fatalf("the object's local id is lost: %v", err)
			}
			w.expect(ark, 3, "known")
		})
	}
}

// upgraded checks where each job of the dump ended, and what is stored.
func (w *world) upgraded(d dump, before map[string]place) {
	w.Helper()
	after, jobs := w.stored(), 0
	for job, at := range before {
		if after[job] != at {
			w.Errorf("job %s was stored as %+v, is as %+v", job, at, after[job])
		}
	}
	for _, j := range w.jobs() {
		at, stored := after[j.Job.ID]
		failed := strings.HasSuffix(j.URL, "/missing.txt")
		jobs++
		elsewhere := stored && at != place{j.Primary, j.ObjectVersion}
		if failed != (j.State == ingest.Failed) || !failed && (stored == j.NoChange || elsewhere) {
			w.Errorf("job %s of %s is %s as %s v%d, stored as %+v: %s", j.Job.ID, j.URL, j.State, j.Primary,
				j.ObjectVersion, at, j.Message)
		}
	}
	if jobs < 60 {
		w.Errorf("there are %d jobs", jobs)
	}
	w.invariants("SLOT", "LOCK#", "MAIL#")
}
