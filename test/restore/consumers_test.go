package restore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/guregu/dynamo/v2"

	"archivist/pkg/events/consumer"
	"archivist/pkg/events/event"
	"archivist/pkg/events/eventlog"
	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/bucket/buckettest"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
	"archivist/pkg/kernel/table/tabletest"
)

// reader is a table with its log and two consumers: "awake" has handled all that was placed,
// "behind" is paused.
type reader struct {
	t       *testing.T
	rows    *tabletest.Fake
	log     *eventlog.Log
	run     *consumer.Runtime
	now     time.Time
	ids     int
	handled map[string]int // "consumer event", of this table
}

// newReader is a deployment on rows, with the archive of events.
func newReader(t *testing.T, rows []tabletest.Item, archive *bucket.Bucket, now time.Time, ids int) *reader {
	r := &reader{t: t, rows: tabletest.New(), now: now, ids: ids, handled: map[string]int{}}
	tb := tabletest.Table(r.rows)
	clock := func() time.Time { return r.now }
	newID := func() string { r.ids++; return fmt.Sprintf("ID%06d", r.ids) }
	for _, row := range rows {
		if err := tb.Rows.Put(row).Run(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	r.log = &eventlog.Log{Table: tb, Bucket: archive, Now: clock, NewID: newID, Readers: 1}
	r.run = &consumer.Runtime{Store: &consumer.Store{Table: tb, Log: r.log, Now: clock, NewID: newID,
		Handlers: []string{"note"}}, Handlers: map[string]consumer.Handler{"note": consumer.HandlerFunc(r.note)}}
	return r
}

func (r *reader) note(_ context.Context, b consumer.Batch) ([]consumer.Failure, error) {
	for _, e := range b.Events {
		r.handled[b.Consumer+" "+e.ID]++
	}
	return nil, nil
}

// happen writes events of a collection, and their places unless the relay is stopped.
func (r *reader) happen(n int, relay bool) {
	r.t.Helper()
	s := event.Subject{Type: event.Collection, ID: "maps"}
	var newest []event.Row
	q := table.Query{PK: s.Key().PK, Prefix: event.Prefix, Desc: true, Limit: 1}
	_, err := r.log.Table.Page(r.t.Context(), q, &newest)
	version := int64(0)
	for _, e := range newest {
		version = e.Version
	}
	for i := range n {
		tx := r.log.Table.Begin(r.log.NewID())
		if err == nil {
			err = event.Append(tx, s, version+int64(i)+1, event.New{Type: "collection.held", Component: "test",
				Time: r.now.UnixMilli(), Detail: map[string]string{"reason": "a reason"}})
		}
		if err == nil {
			err = tx.Commit(r.t.Context())
		}
	}
	if err == nil && relay {
		_, err = r.log.Place(r.t.Context(), []event.Subject{s})
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

// works runs a consumer.
func (r *reader) works(name string) error {
	_, err := r.run.Run(r.t.Context(), name, "maps", r.now.Add(time.Minute))
	return err
}

// lost are the events of the table that a consumer has handled neither here nor before.
func (r *reader) lost(name string, before *reader) (out []string) {
	r.t.Helper()
	for _, row := range r.rows.All() {
		var e event.Row
		if err := dynamo.UnmarshalItem(row, &e); err != nil || e.ID == "" || e.SubjectType != "Collection" {
			continue
		}
		if r.handled[name+" "+e.ID]+before.handled[name+" "+e.ID] == 0 {
			out = append(out, fmt.Sprint(e.Version, " ", e.ID))
		}
	}
	return out
}

var because = consumer.By{Actor: "ann", Reason: "restored"}

// brokenReader is a table with consumers, and the same restored to an earlier moment, but the cursor of
// "awake" to a later one: DynamoDB does not document that transactions are restored as a whole. The
// archive has files of the time between.
func brokenReader(t *testing.T) (old, restored *reader) {
	_, buckets := buckettest.Open(t, "events")
	old = newReader(t, nil, &buckets[0], time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC), 0)
	var errs []error
	for _, name := range []string{"awake", "behind"} {
		_, err := old.run.Store.Apply(t.Context(), consumer.Definition{Name: name, Filter: "Collection+*",
			Target: consumer.Target{Handler: "note"}, Start: consumer.StartHorizon}, because)
		errs = append(errs, err)
	}
	old.happen(2, true)
	errs = append(errs, old.works("awake"), old.works("behind"),
		old.run.Store.Pause(t.Context(), "behind", because))
	old.happen(3, true)
	errs = append(errs, old.works("awake"))
	backup := old.rows.All()
	old.now = old.now.Add(24 * time.Hour)
	old.happen(3, true)
	old.now = old.now.Add(24 * time.Hour)
	errs = append(errs, old.works("awake"), old.log.ArchiveTo(t.Context(), "maps", 8))
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	for i, row := range backup {
		if k := keyOf(row); k.PK == "CONSUMER#awake" && k.SK == "CURSOR#maps" {
			backup[i] = old.rows.Row(k)
		}
	}
	return old, newReader(t, backup, &buckets[0], old.now, 1000)
}

// TestConsumersAfterRestore: after the table was restored consumers stop, with an error that says what
// to do; after the steps of docs/restore.md they go on, and no event is lost.
func TestConsumersAfterRestore(t *testing.T) {
	old, r := brokenReader(t)
	r.happen(1, false) // the relay is stopped
	epoch, err := r.log.RaiseEpoch(t.Context(), eventlog.By{Actor: "ann", Reason: "restored"})
	if err != nil || epoch != 2 {
		t.Fatalf("epoch %d, %v", epoch, err)
	}
	if err := r.run.Store.Resume(t.Context(), "behind", because); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"awake", "behind"} {
		if err := r.works(name); !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), "consumer reset") {
			t.Errorf("%s: %v", name, err)
		}
		if err := r.run.Store.Reset(t.Context(), name, "", consumer.AtCursor, because); err != nil {
			t.Fatal(err)
		}
	}
	r.happen(3, true)
	for _, name := range []string{"awake", "behind"} {
		if err := r.works(name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if lost := r.lost(name, old); len(lost) > 0 {
			t.Errorf("%s has not handled %q", name, lost)
		}
	}
	if n := len(r.handled); n != 4+7 {
		t.Errorf("%d events were handled after the restore: %v", n, r.handled)
	}
	if err := r.log.ArchiveTo(t.Context(), "maps", 9); err != nil {
		t.Error(err)
	}
	v, err := r.log.Verify(t.Context(), "", r.now.Add(time.Hour))
	if err != nil || len(v.Findings) > 0 || v.Cursor != "" {
		t.Errorf("the archive: %+v, %v", v, err)
	}
}
