package doctor_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/guregu/dynamo/v2"

	"archivist/pkg/events/event"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/ingest/workspace"
	"archivist/pkg/kernel/table"
	"archivist/pkg/objects/ocfl"
	"archivist/pkg/objects/replica"
	"archivist/pkg/revisions/runner"
)

// damage is one way in which a world can be wrong.
type damage struct {
	name string
	do   func(w *world)
	// finds returns the findings, as "invariant subject".
	finds    func(w *world) []string
	repaired bool
}

// listedAs are findings about the rows under which the second job is listed.
func listedAs(w *world, invariant string) (found []string) {
	for _, it := range w.Rows.All() {
		var row table.Owned
		if err := dynamo.UnmarshalItem(it, &row); err != nil {
			w.Fatal(err)
		}
		if row.Owner == w.second && strings.HasPrefix(row.PK, "NAMED#") {
			found = append(found, invariant+" "+row.Key().String())
		}
	}
	return found
}

func one(invariant string, subject func(w *world) string) func(w *world) []string {
	return func(w *world) []string { return []string{invariant + " " + subject(w)} }
}

// Subjects.
func second(w *world) string  { return "job:" + w.second }
func failed(w *world) string  { return "job:" + w.failed }
func running(w *world) string { return "job:" + w.running }
func held(w *world) string    { return "job:" + w.held }
func batch(w *world) string   { return "batch:" + batchOf(w.second) }
func active(w *world) string  { return "batch:" + batchOf(w.running) }
func object(w *world) string  { return w.object }
func op(w *world) string      { return "operation:" + w.operation }
func row(pk, sk string) func(*world) string {
	return func(*world) string { return key(pk, sk).String() }
}

func version(w *world, n int) table.Key { return key("OBJECT#"+w.object, fmt.Sprintf("V#%06d", n)) }
func objectKey(w *world) table.Key      { return key("OBJECT#"+w.object, "OBJECT") }
func lockOf(w *world) string            { return "LOCK#ark#" + w.Job(w.running).Primary }

func lastEvent(w *world, job string) table.Key {
	return event.Key(event.Subject{Type: event.Job, ID: job}, w.Job(job).Version)
}

// ofSettled are the damages of a world whose jobs have ended.
var ofSettled = []damage{
	{"a job in no state", func(w *world) { w.set(jobKey(w.second), "job_state", str("Lost")) },
		one("state", second), false},
	{"a batch in no state", func(w *world) { w.set(batchKey(w.second), "batch_state", str("Lost")) },
		one("state", batch), false},
	{"an object that cannot be read", func(w *world) { w.set(objectKey(w), "head_version", str("x")) },
		func(w *world) []string {
			return []string{"unreadable " + objectKey(w).String(), "unreadable " + w.object}
		}, false},
	{"a job's place in the index work", func(w *world) { w.set(jobKey(w.failed), "place", str("due#0")) },
		one("index-place", failed), true},
	{"a job without its place in the index work", func(w *world) { w.set(jobKey(w.failed), "ranking", nil) },
		one("index-place", failed), true},
	{"a job's place in the index list", func(w *world) { w.set(jobKey(w.second), "shelf", str("jobs#maps")) },
		one("index-place", second), true},
	{"a batch's place in the index list", func(w *world) { w.set(batchKey(w.second), "since", str("0")) },
		one("index-place", batch), true},
	{"an object's place in the index list", func(w *world) { w.set(objectKey(w), "since", str("0")) },
		one("index-place", object), true},
	{"a job that counts twice", func(w *world) { w.set(countKey(w.second), "n_completed", num(2)) },
		one("batch-counts", batch), true},
	{"a job that counts in another class", func(w *world) {
		w.set(countKey(w.second), "n_completed", num(0))
		w.set(countKey(w.second), "n_held", num(1))
	}, one("batch-counts", batch), true},
	{"bytes that are not counted", func(w *world) {
		w.set(countKey(w.second), "n_bytes", num(1))
	}, one("batch-counts", batch), true},
	{"counts that are gone", func(w *world) { w.drop(countKey(w.second)) }, one("batch-counts", batch), true},
	{"a batch that is gone", func(w *world) { w.drop(batchKey(w.second)) }, one("batch-row", batch), false},
	{"a batch and its counts that are gone", func(w *world) {
		w.drop(batchKey(w.second))
		w.drop(countKey(w.second))
	}, one("batch-row", batch), false},
	{"a job that is gone", func(w *world) { w.drop(jobKey(w.second)) },
		func(w *world) []string {
			return append([]string{"job-row " + batch(w)}, listedAs(w, "reservation-owner")...)
		}, false},
	{"a batch that expects more", func(w *world) { w.set(batchKey(w.second), "expected", num(2)) },
		one("batch-sum", batch), false},
	{"a Completed batch with a failed job", func(w *world) {
		w.set(batchKey(w.failed), "batch_state", str("Completed"))
	}, func(w *world) []string {
		b := "batch:" + batchOf(w.failed)
		return []string{"batch-open-jobs " + b, "event-state " + b}
	}, false},
	{"a Deleted batch with an open job", func(w *world) {
		w.set(batchKey(w.second), "batch_state", str("Deleted"))
		w.set(batchKey(w.second), "due_ms", num(w.now.UnixMilli()))
		w.set(jobKey(w.second), "job_state", str("Held"))
	}, func(w *world) []string {
		return []string{"batch-open-jobs " + batch(w), "event-state " + batch(w), "index-place " + batch(w),
			"event-state " + second(w), "held-reason " + second(w), "index-place " + second(w)}
	}, false},
	{"an event that is gone", func(w *world) {
		w.drop(event.Key(event.Subject{Type: event.Job, ID: w.second}, 3))
	}, func(w *world) []string {
		return []string{"event-gap " + event.Key(event.Subject{Type: event.Job, ID: w.second}, 4).String(),
			"log-event " + w.placed(event.Key(event.Subject{Type: event.Job, ID: w.second}, 3))}
	}, false},
	{"the last event of a job that is gone", func(w *world) { w.drop(lastEvent(w, w.second)) },
		func(w *world) []string {
			return []string{"event-last " + second(w), "log-event " + w.placed(lastEvent(w, w.second))}
		}, false},
	{"the last event of a batch that is gone", func(w *world) {
		b := w.BatchRow(batchOf(w.second))
		w.drop(event.Key(event.Subject{Type: event.Batch, ID: b.Batch.ID}, b.Version))
	}, one("event-last", batch), false},
	{"an object without its event", func(w *world) { w.set(objectKey(w), "version", num(7)) },
		one("event-last", object), false},
	{"a profile without its event", func(w *world) { w.set(key("COLLECTION#bench", "COLLECTION"), "version", num(7)) },
		one("event-last", func(*world) string { return "collection:bench" }), false},
	{"a state without its event", func(w *world) { w.set(jobKey(w.deleted), "job_state", str("Failed")) },
		func(w *world) []string {
			d := "job:" + w.deleted
			return []string{"event-state " + d, "index-place " + d, "batch-counts batch:" + batchOf(w.deleted)}
		}, false},
	{"an event under another number", func(w *world) {
		k := event.Key(event.Subject{Type: event.Job, ID: w.second}, 2)
		w.set(k, "version", num(9))
	}, func(w *world) []string {
		return []string{"event-key " + event.Key(event.Subject{Type: event.Job, ID: w.second}, 2).String()}
	}, false},
	{"a slot of no job", func(w *world) { w.insert(key("SLOT", "none"), "owned_by", str("none")) },
		one("reservation-owner", row("SLOT", "none")), true},
	{"space of a job that has none", func(w *world) {
		w.insert(key("SPACE", w.second), "owned_by", str(w.second), "bytes", num(5))
	}, one("reservation-owner", func(w *world) string { return "SPACE/" + w.second }), true},
	{"a lock of a job that has ended", func(w *world) {
		w.insert(key("LOCK#ark#x", "LOCK"), "owned_by", str(w.second))
	},
		one("reservation-owner", row("LOCK#ark#x", "LOCK")), true},
	{"a place in line of a job that has ended", func(w *world) {
		w.insert(key("LOCK#ark#x", "WAITS#"+w.second), "owned_by", str(w.second))
	}, one("reservation-owner", func(w *world) string { return "LOCK#ark#x/WAITS#" + w.second }), true},
	{"a job under an ARK that is not its", func(w *world) {
		w.insert(key("NAMED#ark#x", "1#"+w.second), "owned_by", str(w.second))
	}, one("reservation-owner", func(w *world) string { return "NAMED#ark#x/1#" + w.second }), true},
	{"a job under the submitter of a job that is gone", func(w *world) {
		w.insert(key("NAMED#submitter#bench#me", "1#none"), "owned_by", str("none"))
	}, one("reservation-owner", row("NAMED#submitter#bench#me", "1#none")), true},
	{"a batch under the submitter of a batch that is gone", func(w *world) {
		w.insert(key("NAMED#batch#submitter#bench#me", "1#none"), "owned_by", str("none"))
	}, one("reservation-owner", row("NAMED#batch#submitter#bench#me", "1#none")), true},
	{"a batch under a state in which it is not", func(w *world) {
		batch := w.Job(w.second).Batch
		w.insert(key("NAMED#batch#state#bench#Held", "1#"+batch), "owned_by", str(batch))
	}, one("reservation-owner", func(w *world) string {
		return "NAMED#batch#state#bench#Held/1#" + w.Job(w.second).Batch
	}), true},
	{"a job under a message that it does not have", func(w *world) {
		w.set(key("NAMED#message#bench", w.Job(w.failed).ListSK), "said", str("all is well"))
	}, one("job-named", failed), true},
	{"a job of another collection in the list of all", func(w *world) {
		w.set(listOfAll(w, w.failed), "coll", str("other"))
	}, one("job-named", failed), true},
	{"a job that is not in the list of all", func(w *world) { w.drop(listOfAll(w, w.failed)) },
		one("job-named", failed), true},
	{"lists of all collections that may lack something", func(w *world) {
		w.set(key("LEASE#clock", "SWEEP"), "lists_whole", nil)
	}, one("lists-whole", row("LEASE#clock", "SWEEP")), true},
	{"a Completed job without a version", func(w *world) { w.set(jobKey(w.second), "ocfl_version", nil) },
		one("completed-version", second), false},
	{"a Completed job whose newest version has no row", func(w *world) { w.drop(version(w, 2)) },
		func(w *world) []string {
			return []string{"completed-recorded " + second(w), "storage-recorded " + w.object,
				"version-row " + w.object}
		}, true},
	{"a first version without a row", func(w *world) { w.drop(version(w, 1)) }, func(w *world) []string {
		return []string{"completed-recorded job:" + w.first, "storage-recorded " + w.object, "version-row " + w.object}
	}, true},
	{"a job with two versions", func(w *world) { w.set(version(w, 2), "job", str(w.first)) },
		one("version-twice", object), false},
	{"versions without their object's row", func(w *world) { w.drop(objectKey(w)) }, func(w *world) []string {
		return []string{"storage-recorded " + w.object, "version-row " + w.object}
	}, true},
	{"an object without its reservation", func(w *world) { w.drop(key("ARK#"+w.object, "ARK")) },
		func(w *world) []string {
			out := []string{"storage-recorded " + w.object}
			for _, id := range []string{"A", "B", "C"} {
				out = append(out, "local-id "+key("LOCAL#bench#"+id, "LOCAL").String())
			}
			return out
		}, true},
	{"an object without one of its local ids", func(w *world) { w.drop(key("LOCAL#bench#B", "LOCAL")) },
		one("storage-recorded", object), true},
	{"a local id of another object", func(w *world) {
		w.insert(key("ARK#ark:/99999/other", "ARK"), "job", str("other"))
		w.set(key("LOCAL#bench#B", "LOCAL"), "ark", str("ark:/99999/other"))
	}, one("storage-recorded", object), false},
	{"a local id of no object", func(w *world) {
		w.insert(key("LOCAL#bench#X", "LOCAL"), "ark", str("ark:/99999/other"))
	}, one("local-id", row("LOCAL#bench#X", "LOCAL")), false},
	{"an object that is not stored", func(w *world) {
		for _, name := range w.S3.Names("storage/" + ocfl.Prefix(w.object)) {
			w.unstore(strings.TrimPrefix(name, "storage/"))
		}
	}, one("object-stored", object), false},
	{"a Completed job whose version is neither recorded nor stored", func(w *world) {
		w.drop(version(w, 2))
		for _, name := range w.S3.Names("storage/" + ocfl.Prefix(w.object)) {
			w.unstore(strings.TrimPrefix(name, "storage/"))
		}
	}, func(w *world) []string {
		return []string{"completed-stored " + second(w), "object-stored " + w.object, "version-row " + w.object}
	}, false},
	{"an older root inventory", func(w *world) {
		text, _ := w.S3.Object("storage/" + w.below("v1/inventory.json"))
		w.store(w.below("inventory.json"), string(text))
	}, func(w *world) []string {
		return []string{"storage-recorded " + w.object, "storage-stale " + w.object, "storage-uncommitted " + w.object,
			"storage-uncommitted " + w.object}
	}, false},
	{"a root inventory that cannot be read", func(w *world) { w.store(w.below("inventory.json"), "{") },
		one("storage-readable", func(w *world) string { return ocfl.Prefix(w.object) }), false},
	{"a root inventory that is gone", func(w *world) { w.unstore(w.below("inventory.json")) },
		func(w *world) []string {
			return []string{"object-stored " + w.object, "storage-no-inventory " + ocfl.Prefix(w.object)}
		}, false},
	{"an inventory at the place of another object", func(w *world) {
		text, _ := w.S3.Object("storage/" + w.below("inventory.json"))
		w.store(ocfl.Prefix("ark:/99999/other")+"0=ocfl_object_1.1", "")
		w.store(ocfl.Prefix("ark:/99999/other")+"inventory.json", string(text))
	}, one("storage-place", object), false},
	{"a stale sidecar", func(w *world) { w.store(w.below("inventory.json.sha512"), "0000 inventory.json\n") },
		one("storage-stale", object), true},
	{"no sidecar", func(w *world) { w.unstore(w.below("inventory.json.sha512")) }, one("storage-stale", object), true},
	{"no inventory of the newest version", func(w *world) { w.unstore(w.below("v2/inventory.json")) },
		one("storage-differing", object), true},
	{"another inventory of the newest version", func(w *world) { w.store(w.below("v2/inventory.json"), "{}") },
		one("storage-differing", object), true},
	{"another sidecar of the newest version", func(w *world) { w.store(w.below("v2/inventory.json.sha512"), "0") },
		one("storage-differing", object), true},
	{"no declaration", func(w *world) { w.unstore(w.below("0=ocfl_object_1.1")) },
		one("storage-undeclared", object), true},
	{"content that is gone", func(w *world) { w.unstore(w.content(w.first)) }, one("storage-missing", object), false},
	{"an older inventory that is gone", func(w *world) { w.unstore(w.below("v1/inventory.json")) },
		one("storage-missing", object), false},
	{"content that no inventory names", func(w *world) {
		w.store(w.below("v2/content/"+w.deleted+".1/producer/x"), "x")
	}, one("storage-unnamed", object), true},
	{"content by an unknown job that no inventory names", func(w *world) {
		w.store(w.below("v1/content/unknown.1/producer/x"), "x")
	}, one("storage-unnamed", object), false},
	{"content that no inventory names while other content is gone", func(w *world) {
		w.unstore(w.content(w.first))
		w.store(w.below("v2/content/"+w.deleted+".1/producer/x"), "x")
	}, func(w *world) []string {
		return []string{"storage-missing " + w.object, "storage-unnamed " + w.object}
	}, false},
	{"a version that was never committed", func(w *world) {
		w.store(w.below("v3/content/"+w.deleted+".1/producer/x"), "x")
		w.store(w.below("v3/inventory.json"), "{}")
	}, func(w *world) []string {
		return []string{"storage-uncommitted " + w.object, "storage-uncommitted " + w.object}
	}, true},
	{"a foreign key below an object", func(w *world) { w.store(w.below("notes.txt"), "x") },
		one("storage-foreign", object), false},
	{"a key of no object", func(w *world) { w.store("notes.txt", "x") },
		one("storage-key", func(*world) string { return "notes.txt" }), false},
	{"an object that was never committed", func(w *world) {
		w.store(ocfl.Prefix("ark:/99999/other")+"0=ocfl_object_1.1", "")
		w.store(ocfl.Prefix("ark:/99999/other")+"v1/content/"+w.deleted+".1/producer/x", "x")
	}, one("storage-uncommitted", func(*world) string { return ocfl.Prefix("ark:/99999/other") }), true},
	{"an object that was only declared", func(w *world) {
		w.store(ocfl.Prefix("ark:/99999/other")+"0=ocfl_object_1.1", "")
	}, one("storage-uncommitted", func(*world) string { return ocfl.Prefix("ark:/99999/other") }), false},
	{"work files of a job that has ended", func(w *world) {
		w.putKey(w.Stages.Work.Bucket, workspace.FileKey(w.second, 1), "x")
	}, one("work-files", second), true},
	{"work files of a failed and of a deleted job without space", func(w *world) {
		w.putKey(w.Stages.Work.Bucket, workspace.FileKey(w.failed, 1), "x") // it can continue with them
		w.putKey(w.Stages.Work.Bucket, workspace.FileKey(w.deleted, 1), "x")
	}, one("work-files", func(w *world) string { return "job:" + w.deleted }), true},
	{"work files of a job that is not known", func(w *world) {
		w.putKey(w.Stages.Work.Bucket, workspace.FileKey("unknown", 1), "x")
	}, one("work-files", func(*world) string { return "job:unknown" }), false},
	{"a key of nobody in the work bucket", func(w *world) {
		for _, k := range []string{"notes.txt", replica.Quarantine + "R1/file", replica.Notes + "a.json",
			runner.Prefix + "maps/1/index/000001-x/result"} {
			w.putKey(w.Stages.Work.Bucket, k, "x")
		}
	}, one("work-key", func(*world) string { return "notes.txt" }), false},
	{"a row of an unknown kind", func(w *world) { w.insert(key("NOTES", "1")) },
		one("row-kind", row("NOTES", "1")), false},
	{"a row that expires", func(w *world) { w.set(jobKey(w.second), "gone", num(w.now.Unix()+60)) },
		one("row-expires", func(w *world) string { return jobKey(w.second).String() }), true},
	{"a row of a later release", func(w *world) { w.set(jobKey(w.second), "schema_no", num(99)) },
		func(w *world) []string {
			found := []string{"unreadable " + jobKey(w.second).String(), "unreadable " + countKey(w.second).String()}
			found = append(found, listedAs(w, "unreadable")...) // nor can those be checked under which it is listed
			return found
		}, false},
	{"a job under another key", func(w *world) { w.set(jobKey(w.second), "id", str("other")) },
		func(w *world) []string { return []string{"row-key job:other"} }, false},
	{"a pending mail that nobody sends", func(w *world) {
		w.insert(key("MAIL#"+batchOf(w.second), "queued#1"), "id", str(batchOf(w.second)),
			"batch_id", str(batchOf(w.second)), "due_ms", num(w.now.Add(-time.Hour).UnixMilli()))
	}, func(w *world) []string { return []string{"index-place " + batch(w), "overdue " + batch(w)} }, false},
	{"a receipt of an unknown operation", func(w *world) {
		w.insert(key("ACT#unknown", "job:"+w.second), "id", str(w.second), "gone", num(w.now.Unix()+60))
	}, one("receipt-operation", func(w *world) string { return "ACT#unknown/job:" + w.second }), true},
	{"a hold of an unknown batch", func(w *world) {
		w.insert(key("HOLD", "batch#unknown"), "hold_id", str("unknown"), "hold_scope", str("batch"))
	}, one("hold-target", func(*world) string { return "batch:unknown" }), true},
	{"a hold under another key", func(w *world) {
		w.insert(key("HOLD", "collection#maps"), "hold_id", str("bench"), "hold_scope", str("collection"))
	}, one("row-key", func(*world) string { return "collection:bench" }), false},
}

// ofBusy are the damages of a world in which jobs run and wait.
var ofBusy = []damage{
	{"a slot without its row", func(w *world) { w.drop(key("SLOT", w.running)) },
		one("reservation-missing", running), true},
	{"space without its row", func(w *world) { w.drop(key("SPACE", w.running)) },
		one("reservation-missing", running), true},
	{"a lock without its row", func(w *world) { w.drop(key(lockOf(w), "LOCK")) },
		one("reservation-missing", running), true},
	{"a place in line without its row", func(w *world) { w.drop(key(lockOf(w), "WAITS#"+w.running)) },
		one("reservation-missing", running), true},
	{"a job that is not listed under its local id", func(w *world) {
		job := w.Job(w.running)
		w.drop(key("NAMED#local#two", job.ListSK))
	}, one("job-named", running), true},
	{"another size of the space", func(w *world) { w.set(key("SPACE", w.running), "bytes", num(7)) },
		one("reservation-bytes", running), true},
	{"a lock of another collection", func(w *world) { w.set(key(lockOf(w), "LOCK"), "coll", str("other")) },
		one("reservation-row", running), true},
	{"a lock of two jobs", func(w *world) { w.set(key(lockOf(w), "LOCK"), "owned_by", str(w.failed)) },
		func(w *world) []string {
			return []string{"reservation-owner " + running(w), "reservation-owner " + lockOf(w) + "/LOCK"}
		}, false},
	{"a running job without a slot", func(w *world) {
		w.set(jobKey(w.running), "has_slot", nil)
		w.drop(key("SLOT", w.running))
	}, one("job-slot", running), false},
	{"a running job at no place", func(w *world) {
		w.set(jobKey(w.running), "place", nil)
		w.set(jobKey(w.running), "holder", nil)
	}, one("index-place", running), true},
	{"a running job that is never due", func(w *world) { w.set(jobKey(w.running), "due_ms", nil) },
		func(w *world) []string { return []string{"due " + running(w), "index-place " + running(w)} }, false},
	{"a waiting job without a turn", func(w *world) {
		w.set(jobKey(w.waits[1]), "turn", nil)
		w.set(jobKey(w.waits[1]), "ranking", nil)
	}, one("job-turn", func(w *world) string { return "job:" + w.waits[1] }), false},
	{"a batch that is never due", func(w *world) { w.set(batchKey(w.running), "due_ms", nil) },
		func(w *world) []string { return []string{"due " + active(w), "index-place " + active(w)} }, false},
	{"a batch that is not sealed", func(w *world) { w.set(batchKey(w.running), "sealed", nil) },
		one("batch-sealed", active), false},
	{"a Held job without a hold", func(w *world) { w.set(jobKey(w.held), "held_by", nil) },
		one("held-reason", held), false},
	{"an operation at no place", func(w *world) { w.set(key("OPERATION#"+w.operation, "OPERATION"), "place", nil) },
		one("index-place", op), true},
	{"an operation without its event", func(w *world) {
		w.set(key("OPERATION#"+w.operation, "OPERATION"), "version", num(9))
	}, one("event-last", op), false},
	{"a pause without its event", func(w *world) { w.set(key("QUEUE#ingest", "QUEUE"), "version", num(9)) },
		one("event-last", row("QUEUE#ingest", "QUEUE")), false},
	{"items of an operation that is gone", func(w *world) { w.drop(key("OPERATION#"+w.operation, "OPERATION")) },
		func(w *world) []string {
			return []string{"receipt-operation ACT#" + w.operation + "/job:" + w.failed}
		}, true},
	{"nothing is swept", func(w *world) { w.now = w.now.Add(3 * time.Hour) }, func(w *world) []string {
		return []string{"overdue " + running(w), "overdue " + active(w), "overdue " + op(w), "overdue batch:" +
			batchOf(w.held), "overdue " + w.waiting()}
	}, false},
}

func unrepaired(f queue.Finding) bool { return !f.Repaired }

// repairs fails unless a run with repair repairs all that it finds. What an earlier repair
// of the run has corrected as well is not found.
func (w *world) repairs(want []string) {
	w.Helper()
	found, err := w.doctor().All(w.Context(), true)
	if err != nil || len(found) == 0 {
		w.Fatalf("%d findings, %v", len(found), err)
	}
	for _, f := range found {
		if !f.Repaired || !slices.Contains(want, f.Invariant+" "+f.Subject) {
			w.Errorf("%+v", f)
		}
	}
}

// TestDamage: each damage is found as what it is, and nothing else is. What can be repaired
// is clean afterwards, and what cannot be stays a finding.
func TestDamage(t *testing.T) {
	for _, set := range []struct {
		name  string
		world func(*testing.T) *world
		all   []damage
	}{{"settled", settled, ofSettled}, {"busy", busy, ofBusy}, {"log", logged, ofLog},
		{"components", lined, ofComponents}, {"research", researched, ofResearch},
		{"revisions", queued, ofRevisions}, {"uploads", uploading, ofUploads},
		{"tokens", tokened, ofTokens}} {
		for _, d := range set.all {
			t.Run(set.name+"/"+d.name, func(t *testing.T) {
				t.Parallel()
				w := set.world(t)
				d.do(w)
				want := d.finds(w)
				for _, f := range w.finds(false, want...) {
					if f.Repaired {
						t.Errorf("it was repaired: %+v", f)
					}
				}
				if d.repaired {
					w.repairs(want)
					w.finds(false)
					return
				}
				before := w.S3.Names("")
				if !slices.ContainsFunc(w.finds(true, want...), unrepaired) {
					t.Error("all was repaired")
				}
				// A request of the stage that was cut off may still arrive.
				late := func(name string) bool {
					return strings.Contains(name, "/content/"+w.running) && !slices.Contains(before, name)
				}
				if after := slices.DeleteFunc(w.S3.Names(""), late); !slices.Equal(before, after) {
					t.Errorf("the keys were %q, are %q", before, after)
				}
			})
		}
	}
}

// TestOtherInventory: the storage root has another inventory of the newest version than the recorded one, so content
// was replaced. The doctor does not make the two agree: the row keeps its digest, a person is told to restore the
// content, and keys that only the lost inventory may name are kept.
func TestOtherInventory(t *testing.T) {
	w := settled(t)
	w.set(objectKey(w), "inventory_digest", str("of the lost inventory"))
	w.store(w.below("v2/content/"+w.deleted+".1/producer/x"), "x")
	row, keys := w.Rows.Row(objectKey(w)), w.S3.Names("")
	for _, repair := range []bool{false, true} {
		for _, f := range w.finds(repair, "storage-recorded "+w.object, "storage-unnamed "+w.object) {
			if f.Repaired || f.Invariant == "storage-recorded" && !strings.HasPrefix(f.Command, "restore the objects") {
				t.Errorf("repair %v: %+v", repair, f)
			}
		}
	}
	if after := w.S3.Names(""); !slices.Equal(keys, after) {
		t.Errorf("the keys were %q, are %q", keys, after)
	}
	if after := w.Rows.Row(objectKey(w)); !reflect.DeepEqual(row, after) {
		t.Errorf("the row was %v, is %v", row, after)
	}
}

// TestManyMissingJobs: the finding about missing jobs lists the first ten, and says how many more there are.
func TestManyMissingJobs(t *testing.T) {
	w := newWorld(t)
	ids, missing := w.jobs(15), 0
	for _, c := range []struct {
		missing int
		says    string
	}{{10, ": 1 2 3 4 5 6 7 8 9 10"}, {11, ": 1 2 3 4 5 6 7 8 9 10 and 1 more"},
		{14, ": 1 2 3 4 5 6 7 8 9 10 and 4 more"}} {
		for ; missing < c.missing; missing++ {
			w.drop(jobKey(ids[missing]))
		}
		for _, f := range w.finds(false, "job-row batch:"+batchOf(ids[0])) {
			if !strings.HasSuffix(f.Evidence, c.says) {
				t.Errorf("%d are missing: %s", missing, f.Evidence)
			}
		}
	}
}
