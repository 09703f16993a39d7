package api_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/events/event"
	"archivist/pkg/ingest"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/objects/aip/aiptest"
	"archivist/pkg/objects/inventory"
	"archivist/pkg/views/statistics"
)

// TestMostAddresses: a submission has at most 20 addresses.
func TestMostAddresses(t *testing.T) {
	c, _ := serve(t, through)
	in := good
	for n := range ingest.MaxMails {
		in.Notification = append(in.Notification, fmt.Sprintf("a%d@example.org", n))
	}
	if _, err := c.Submit(t.Context(), in, "20"); err != nil || ingest.MaxMails != 20 {
		t.Errorf("%d addresses: %v", ingest.MaxMails, err)
	}
	in.Notification = append(in.Notification, "more@example.org")
	if _, err := c.Submit(t.Context(), in, "21"); !fault.Is(err, fault.Invalid) {
		t.Errorf("one more: %v", err)
	}
}

// TestFilesInPages: pages of a version's files have each of them once, its system files at the end.
func TestFilesInPages(t *testing.T) {
	a, client, root := kept(t)
	files := map[string]string{}
	for n := range 1003 {
		files[fmt.Sprintf("%04d.txt", n)] = "x"
	}
	stored := root.Store("ark:/99999/fk4y", files, aiptest.System("maps", "y", "", ""))
	put, err := a.Inventory.Prepare(t.Context(), inventory.Record{Job: "J-2", Object: inventory.Object{ARK: stored.ID,
		Collection: "maps", LocalIDs: []string{"y"}, HeadOf: 1, Digest: stored.Digest}}, 1000)
	if err != nil {
		t.Fatal(err)
	}
	tx := a.Queue.Table.Begin(a.Queue.NewID())
	if err := errors.Join(put(tx), tx.Commit(t.Context())); err != nil {
		t.Fatal(err)
	}
	seen, pages := map[string]int{}, 0
	for cursor := ""; pages == 0 || cursor != ""; pages++ {
		path := "/v1/objects/99999/fk4y/versions/1/files"
		if cursor != "" {
			path += "?cursor=" + cursor
		}
		p := page[v1.File](t, client, path)
		for _, f := range p.Items {
			seen[f.Path]++
			if strings.HasPrefix(f.Path, "system/") && p.Cursor != "" {
				t.Errorf("%s is not on the last page", f.Path)
			}
		}
		cursor = p.Cursor
	}
	for path, n := range seen {
		if n != 1 {
			t.Errorf("%s is listed %d times", path, n)
		}
	}
	if len(seen) != len(files)+len(stored.SystemFiles(1)) || pages != 2 {
		t.Errorf("%d of %d files in %d pages", len(seen), len(files)+len(stored.SystemFiles(1)), pages)
	}
}

// TestNotRecorded: a version that is stored, but not recorded yet, is not shown.
func TestNotRecorded(t *testing.T) {
	_, client, root := kept(t)
	root.Store("ark:/99999/fk4x", map[string]string{"new.txt": "new"}, aiptest.System("maps", "x", "", ""))
	if files, err := client.Files(t.Context(), "ark:/99999/fk4x", 2); !fault.Is(err, fault.NotFound) {
		t.Errorf("%d files, %v", len(files), err)
	}
	if files, err := client.Files(t.Context(), "ark:/99999/fk4x", 1); err != nil || len(files) == 0 {
		t.Errorf("the version before: %d files, %v", len(files), err)
	}
}

// TestNewestVersion: a process that knows an object's inventory shows the version that is stored and
// recorded later.
func TestNewestVersion(t *testing.T) {
	a, client, root := kept(t)
	if _, err := client.Files(t.Context(), "ark:/99999/fk4x", 1); err != nil {
		t.Fatal(err)
	}
	stored := root.Store("ark:/99999/fk4x", map[string]string{"new.txt": "new"}, aiptest.System("maps", "x", "", ""))
	put, err := a.Inventory.Prepare(t.Context(), inventory.Record{Job: "J-2", Object: inventory.Object{ARK: stored.ID,
		Collection: "maps", LocalIDs: []string{"x"}, HeadOf: 2, Digest: stored.Digest}}, 2000)
	if err != nil {
		t.Fatal(err)
	}
	tx := a.Queue.Table.Begin(a.Queue.NewID())
	if err := errors.Join(put(tx), tx.Commit(t.Context())); err != nil {
		t.Fatal(err)
	}
	files, err := client.Files(t.Context(), "ark:/99999/fk4x", 2)
	if err != nil || len(files) == 0 || files[0].Path != "producer/new.txt" {
		t.Errorf("%+v, %v", files, err)
	}
}

// TestDaysOfAMonth: without a first day the counts are those of 30 days.
func TestDaysOfAMonth(t *testing.T) {
	a, client, _ := kept(t)
	o, err := a.Inventory.Object(t.Context(), "ark:/99999/fk4x")
	if err != nil {
		t.Fatal(err)
	}
	to := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for _, days := range []int{-30, -29, 0, 1} {
		at := to.AddDate(0, 0, days).UnixMilli()
		if err := a.Inventory.Disseminated(t.Context(), o, 1, "producer/b.txt", a.Queue.NewID, at); err != nil {
			t.Fatal(err)
		}
	}
	b := eventsOf(t, a, event.Subject{Type: event.File, ID: "ark:/99999/fk4x/v1/producer/b.txt"})
	counter := statistics.Counter{Table: a.Queue.Table, NewID: a.Queue.NewID}
	if _, err := counter.Handle(t.Context(), b); err != nil || len(b.Events) != 4 {
		t.Fatal(len(b.Events), err)
	}
	var got []string
	for _, s := range page[v1.Statistics](t, client, "/v1/statistics?collection=maps&to=2026-11-30").Items {
		for _, d := range s.Days {
			got = append(got, d.Date)
		}
	}
	if text := strings.Join(got, " "); text != "2026-11-01 2026-11-30" {
		t.Errorf("the days are %s", text)
	}
}
