package doctor_test

import (
	"strings"
	"testing"
	"time"

	"archivist/pkg/ingest/upload"
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
	{"a file of no upload", func(w *world) { w.insert(key("UPLOAD#gone", "FILE#"+sumOfUploaded)) },
		one("upload-file", func(*world) string { return "upload:gone" }), true},
	{"a key of no upload", func(w *world) { w.insert(key("UPLOADKEY#k", "KEY"), "upload_id", str("gone")) },
		one("upload-key", func(*world) string { return "upload:gone" }), true},
	{"an upload in no state", func(w *world) { w.set(key("UPLOAD#"+w.second, "UPLOAD"), "upload_state", str("Lost")) },
		one("state", func(w *world) string { return "upload:" + w.second }), false},
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
