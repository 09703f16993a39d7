package doctor_test

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"archivist/pkg/ingest/queue"
	"archivist/pkg/ingest/upload"
	"archivist/pkg/kernel/table/tabletest"
)

// sumOfUploaded is the SHA-256 by which files of uploads are named here.
var sumOfUploaded = strings.Repeat("0f", 32)

// uploads is the store of a world's uploads.
func (w *world) uploads() *upload.Store {
	q := w.doctor().Queue
	return &upload.Store{Table: q.Table, Work: w.Stages.Work.Bucket, Now: q.Now, NewID: q.NewID, Batch: q.Batch,
		Quota: 1 << 40, Keep: 7 * 24 * time.Hour, Part: upload.DefaultPart,
		Failed: func(_ string, err error) { w.Error(err) }}
}

// uploading is a world with an upload that is open, and one that was removed.
func uploading(t *testing.T) *world {
	w := newWorld(t)
	s := w.uploads()
	open := func(note string) string {
		row, err := s.Open(w.Context(), upload.Request{Collection: "bench", Files: 1, Bytes: 5, Note: note, Key: note})
		if err != nil {
			w.Fatal(err)
		}
		if _, err := s.List(w.Context(), row.ID, []upload.Listed{{Sum: sumOfUploaded, Size: 5}}); err != nil {
			w.Fatal(err)
		}
		return row.ID
	}
	w.second, w.failed = open("stays"), open("goes")
	if _, err := s.Discard(w.Context(), w.failed, "ann", "a test"); err != nil {
		w.Fatal(err)
	}
	w.advance(3 * 24 * time.Hour)
	if err := s.Sweep(w.Context(), w.now.Add(time.Minute)); err != nil {
		w.Fatal(err)
	}
	return w
}

// ofUploads are the damages of a world with uploads: second stays, failed is removed.
var ofUploads = []damage{
	{"a wrong count of uploads", func(w *world) { w.set(key("UPLOADS#bench", "QUOTA"), "n_bytes", num(7)) },
		one("upload-quota", func(*world) string { return "collection:bench" }), true},
	{"no count of uploads", func(w *world) { w.drop(key("UPLOADS#bench", "QUOTA")) },
		one("upload-quota", func(w *world) string { return "upload:" + w.second }), true},
	{"an upload that is not listed", func(w *world) { w.drop(key("UPLOADS#bench", "UPLOAD#"+w.second)) },
		func(w *world) []string {
			return []string{"upload-listed upload:" + w.second, "upload-quota collection:bench"}
		}, true},
	{"a list with no upload", func(w *world) { w.insert(key("UPLOADS#bench", "UPLOAD#gone"), "n_bytes", num(7)) },
		one("upload-listed", func(*world) string { return "upload:gone" }), true},
	{"a file of no upload", func(w *world) { w.insert(key("UPLOAD#gone", "FILE#"+sumOfUploaded)) },
		one("upload-file", func(*world) string { return "upload:gone" }), true},
	{"a key of no upload", func(w *world) { w.insert(key("UPLOADKEY#k", "KEY"), "upload_id", str("gone")) },
		one("upload-key", func(*world) string { return "upload:gone" }), true},
	{"an upload in no state", func(w *world) { w.set(key("UPLOAD#"+w.second, "UPLOAD"), "upload_state", str("Lost")) },
		one("state", func(w *world) string { return "upload:" + w.second }), false},
	{"an upload without its file", func(w *world) { w.set(key("UPLOAD#"+w.second, "UPLOAD"), "n_stored", num(1)) },
		one("upload-stored", func(w *world) string { return "upload:" + w.second }), false},
	{"an upload that nobody sweeps", func(w *world) { w.advance(9 * 24 * time.Hour) },
		one("overdue", func(w *world) string { return "upload:" + w.second }), false},
	{"an object of an unknown upload", func(w *world) {
		w.putKey(w.Stages.Work.Bucket, "uploads/bench/unknown/"+sumOfUploaded, "x")
	}, one("upload-object", func(*world) string { return "uploads/bench/unknown/" + sumOfUploaded }), false},
	{"an object of a removed upload", func(w *world) {
		w.putKey(w.Stages.Work.Bucket, "uploads/bench/"+w.failed+"/"+sumOfUploaded, "x")
	}, one("upload-object", func(w *world) string { return "uploads/bench/" + w.failed + "/" + sumOfUploaded }), true},
	{"an object of another collection's upload", func(w *world) {
		w.putKey(w.Stages.Work.Bucket, "uploads/other/"+w.second+"/"+sumOfUploaded, "x")
	}, one("upload-object", func(w *world) string { return "uploads/other/" + w.second + "/" + sumOfUploaded }), false},
}

// TestUploadsStored: files that are stored are no finding; files that are gone are, as long as somebody needs them: the
// upload is open, or the batch that has it can still be worked on.
func TestUploadsStored(t *testing.T) {
	w := uploading(t)
	row := key("UPLOAD#"+w.second, "UPLOAD")
	w.set(row, "n_stored", num(1))
	at := "uploads/bench/" + w.second + "/" + sumOfUploaded
	w.putKey(w.Stages.Work.Bucket, at, "hello")
	w.finds(false)
	if err := w.Stages.Work.Bucket.Delete(w.Context(), at); err != nil {
		t.Fatal(err)
	}
	finding := "upload-stored upload:" + w.second
	w.finds(false, finding)

	w.set(row, "upload_state", str("Submitted"))
	w.set(row, "batch_id", str("gone"))
	w.finds(false)
	w.set(row, "batch_id", str(w.BatchOf(w.failing()).ID)) // its job can be requeued
	w.finds(false, finding)
	w.set(row, "batch_id", str(w.BatchOf(w.Submit("a.txt")).ID)) // it has completed
	w.finds(false)
}

// quota is how many bytes are counted of the uploads.
func (w *world) quota() string {
	n, _ := w.Rows.Row(key("UPLOADS#bench", "QUOTA"))["n_bytes"].(*types.AttributeValueMemberN)
	return n.Value
}

// TestUploadsOfLateIndex: uploads that no index has yet are counted, and a count that is made again has them.
func TestUploadsOfLateIndex(t *testing.T) {
	w := uploading(t)
	w.set(key("UPLOADS#bench", "QUOTA"), "n_bytes", num(7))
	for _, wrong := range []int{1, 0} {
		w.Rows.Lag = func() int { return 1000 }
		found, err := w.doctor().All(w.Context(), true)
		of := slices.DeleteFunc(found, func(f queue.Finding) bool { return f.Invariant != "upload-quota" })
		if err != nil || len(of) != wrong || w.quota() != "5" {
			t.Errorf("%+v, %v: counted are %s bytes, expected 5", of, err, w.quota())
		}
	}
	w.Rows.Lag = nil
	w.finds(false)
}

// TestUploadsWhileCounted: a count that is made again does not replace one that has changed meanwhile.
func TestUploadsWhileCounted(t *testing.T) {
	w := uploading(t)
	w.set(key("UPLOADS#bench", "QUOTA"), "n_bytes", num(7))
	meanwhile := sync.OnceFunc(func() {
		_, err := w.uploads().Open(w.Context(), upload.Request{Collection: "bench", Files: 1, Bytes: 3})
		if err != nil {
			t.Error(err)
		}
		if got := w.quota(); got != "10" {
			t.Errorf("the quota has %s bytes, expected 10: the 7 that were wrong, and the 3 of the new upload", got)
		}
	})
	client := &tabletest.Client{DynamoDBAPI: w.Rows, Do: func(op string, call func() error) error {
		if op == "PutItem" || op == "TransactWriteItems" {
			meanwhile()
		}
		return call()
	}}
	found, err := w.through(client).All(w.Context(), true)
	if err != nil || len(found) != 1 || found[0].Repaired || w.quota() != "10" {
		t.Errorf("%+v, %v: counted are %s bytes", found, err, w.quota())
	}
	w.repairs([]string{"upload-quota collection:bench"})
	w.finds(false)
	if got := w.quota(); got != "8" {
		t.Errorf("counted are %s bytes, expected 8", got)
	}
}
