package revision_test

import (
	"context"
	"testing"

	"archivist/pkg/kernel/bucket/buckettest"
	"archivist/pkg/revisions/archive"
	"archivist/pkg/revisions/revision"
	"archivist/pkg/revisions/runner"
)

// keeping is an archive of which an old history is kept until it is asked for its newest revision.
type keeping struct {
	*repository // the old history
	now         *repository
	asked       int
}

func (k *keeping) Head(ctx context.Context) (int64, error) {
	k.asked++
	k.repository = k.now
	return k.now.Head(ctx)
}

// TestOldHistoryIsKept: what is kept of a repository is not what is planned if its history has changed, and a
// revision that is as it was notified needs no question.
func TestOldHistoryIsKept(t *testing.T) {
	old := (&repository{}).add(2, "[{name: old, command: x}]")
	now := (&repository{}).add(2, "[{name: new, command: x}]")
	now.commits[0].id, now.commits[1].id = "new-1", "new-2"
	for name, transaction := range map[string]string{"the transaction is known": "new-1", "it is not": ""} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.archive("maps", old, 1)
			k := &keeping{repository: old, now: now}
			w.store.Open = func(context.Context, archive.Location) (archive.Source, error) { return k, nil }
			_, err := w.store.Notify(t.Context(), "maps", revision.Notice{Revision: 1, Transaction: transaction}, anna)
			w.must(err)
			w.pass("maps")
			w.want(w.running(), "maps/1/new")
			_, err = w.store.Notify(t.Context(), "maps", revision.Notice{Revision: 2, Transaction: "new-2"}, anna)
			w.must(err)
			asked := k.asked
			w.pass("maps")
			w.want(w.running(), "maps/1/new", "maps/2/new")
			if k.asked != asked {
				t.Errorf("the archive was asked for a revision that is as it was notified")
			}
		})
	}
}

// TestHistoryChangesBehindPlan: files of another history are never given to a task.
func TestHistoryChangesBehindPlan(t *testing.T) {
	w := newWorld(t)
	r := (&repository{}).add(1, "[{name: a, command: x}]")
	w.archive("maps", r, 1)
	w.notify("maps", 1)
	w.pass("maps")
	w.want(w.running(), "maps/1/a")
	r.commits[0].id = "another"
	_, buckets := buckettest.Open(t, "work")
	for _, e := range w.begun {
		begun, err := revision.Control{Store: w.store, Work: buckets[0]}.Begin(t.Context(), e.Input().Attempt, e.Exec)
		w.must(err)
		if begun.Result == nil || begun.Result.End != runner.Broken {
			t.Fatalf("it begins: %+v", begun)
		}
		const want = "the files of the revision cannot be read: revision 1 was notified as t1 and is another"
		if begun.Result.Reason != want {
			t.Errorf("found %q, want %q", begun.Result.Reason, want)
		}
	}
}
