package upload_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"archivist/pkg/events/event"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/upload"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/fetch"
)

// TestUpload: files are listed, sent and verified, small ones at once and large ones in parts; equal ones once. The
// upload can be claimed when all are there, and not before.
func TestUpload(t *testing.T) {
	b := newBed(t)
	large := strings.Repeat("0123456789abcdef", 3*mib/16) + "end"
	row := b.open("", "one", "", large)
	b.refused(b.claim(row.ID, listed("one").Sum, "B"), fault.Invalid, "stored are 0")
	sends := b.list(row.ID, "one", "", "one", large)
	if len(sends) != 3 || sends[0].Put == nil || sends[1].Put == nil || sends[2].Put != nil ||
		sends[2].Parts.Count != 4 || len(sends[2].Parts.Next) != 4 || len(sends[2].Parts.Stored) != 0 {
		t.Fatalf("%+v", sends)
	}
	if got := b.stored(row.ID, "one", large, "unknown"); !strings.Contains(got[0], "send it") ||
		!strings.Contains(got[1], "part 1 of 4 is missing") || !strings.Contains(got[2], "list it first") {
		t.Errorf("%q", got)
	}
	for i, content := range []string{"one", "", large} {
		b.send(sends[i], content)
	}
	if got := b.stored(row.ID, "one", "", large); slices.Max(got) != "" {
		t.Fatalf("%q", got)
	}
	row = b.row(row.ID)
	if row.ListedFiles != 3 || row.StoredFiles != 3 || row.StoredBytes != row.Bytes {
		t.Fatalf("%+v", row)
	}
	for _, s := range b.list(row.ID, "one", large) {
		if !s.Stored || s.Put != nil || s.Parts != nil {
			t.Errorf("a stored file is asked for: %+v", s)
		}
	}
	b.refused(b.claim(row.ID, "", "B"), fault.Invalid, "3 files")
	if err := b.claim(row.ID, listed("one").Sum, "B"); err != nil {
		t.Fatal(err)
	}
	b.refused(b.claim(row.ID, listed("one").Sum, "C"), fault.Invalid, "batch B has it")
	if data, _ := b.S3.Object("work/uploads/maps/" + row.ID + "/" + listed(large).Sum); string(data) != large {
		t.Errorf("%d bytes are stored of the large file", len(data))
	}
}

// TestResume: a client that was interrupted lists its files again, and sends only what is missing: a small file that it
// had sent without telling so is there, and so are the parts of a large one.
func TestResume(t *testing.T) {
	b := newBed(t)
	large := strings.Repeat("x", 4*mib)
	row := b.open("key", "one", "two", large)
	sends := b.list(row.ID, "one", "two", large)
	b.send(sends[0], "one")
	parts := *sends[2].Parts
	sends[2].Parts.Next = parts.Next[1:3]
	b.send(sends[2], large)
	page, err := b.Files(t.Context(), row.ID, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range page.Items {
		want := map[string]int64{listed("one").Sum: 3, listed("two").Sum: 0, listed(large).Sum: 2 * mib}[f.Sum]
		if f.Stored || f.Uploaded != want {
			t.Errorf("%+v, expected %d bytes", f, want)
		}
	}

	again := b.open("key", "one", "two", large)
	if again.ID != row.ID {
		t.Fatalf("the same request opens %s, expected %s", again.ID, row.ID)
	}
	sends = b.list(row.ID, "one", "two", large)
	if !sends[0].Stored || sends[1].Stored || !slices.Equal(sends[2].Parts.Stored, []int{2, 3}) {
		t.Fatalf("%+v", sends)
	}
	if n := b.send(sends[0], "one") + b.send(sends[1], "two") + b.send(sends[2], large); n != 3 {
		t.Errorf("%d requests were sent, expected 3", n)
	}
	for _, s := range b.list(row.ID, "one", "two", large) { // what is complete is verified without being asked
		if !s.Stored {
			t.Errorf("%+v", s)
		}
	}
	if row := b.row(row.ID); row.StoredFiles != 3 {
		t.Errorf("%+v", row)
	}
}

// TestManyParts: an answer has at most 100 parts of a file, and 200 in all; asking again gives the next ones.
func TestManyParts(t *testing.T) {
	b := newBed(t)
	b.Quota = 1 << 40
	files := []upload.Listed{{Sum: listed("a").Sum, Size: 150 * mib}, {Sum: listed("b").Sum, Size: 150 * mib},
		{Sum: listed("c").Sum, Size: 150 * mib}}
	row, err := b.Open(t.Context(), upload.Request{Collection: "maps", Files: 3, Bytes: 450 * mib})
	if err != nil {
		t.Fatal(err)
	}
	sends, err := b.List(t.Context(), row.ID, files)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []int{100, 100, 0} {
		if got := len(sends[i].Parts.Next); got != want {
			t.Errorf("file %d has %d requests, expected %d", i, got, want)
		}
	}
	if sends, err = b.List(t.Context(), row.ID, files[2:]); err != nil || len(sends[0].Parts.Next) != 100 {
		t.Errorf("%+v, %v", sends, err)
	}
}

// TestBounds: what no upload can have is refused before anything is stored.
func TestBounds(t *testing.T) {
	b, ctx := newBed(t), t.Context()
	for name, in := range map[string]upload.Request{"no files": {}, "too many": {Files: upload.MaxFiles + 1},
		"less than nothing": {Files: 1, Bytes: -1}, "too large": {Files: 1, Bytes: 2*upload.MaxSize + 1},
		"note": {Files: 1, Note: "a\nb\x00"}} {
		in.Collection = "maps"
		if _, err := b.Open(ctx, in); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	row := b.open("", "one", "two")
	sum := listed("one").Sum
	for name, files := range map[string][]upload.Listed{
		"none":        {},
		"upper case":  {{Sum: strings.ToUpper(sum), Size: 3}},
		"short":       {{Sum: sum[:62], Size: 3}},
		"path":        {{Sum: "../" + sum[3:], Size: 3}},
		"negative":    {{Sum: sum, Size: -1}},
		"too large":   {{Sum: sum, Size: upload.MaxSize + 1}},
		"two sizes":   {{Sum: sum, Size: 3}, {Sum: sum, Size: 4}},
		"more bytes":  {{Sum: sum, Size: 7}},
		"more files":  {listed("1"), listed("2"), listed("3")},
		"over a 100+": slices.Repeat([]upload.Listed{listed("one")}, 101),
	} {
		if _, err := b.List(ctx, row.ID, files); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if row := b.row(row.ID); row.ListedFiles != 0 || row.ListedBytes != 0 {
		t.Errorf("refused files are listed: %+v", row)
	}
	b.list(row.ID, "one")
	_, err := b.List(ctx, row.ID, []upload.Listed{{Sum: sum, Size: 2}})
	b.refused(err, fault.Invalid, "has one size")
	_, err = b.Stored(ctx, row.ID, []string{"x"})
	b.refused(err, fault.Invalid, "SHA-256")
	_, err = b.List(ctx, "unknown", []upload.Listed{listed("one")})
	b.refused(err, fault.NotFound, "unknown")
	b.refused(b.claim("unknown", "", "B"), fault.Invalid, "payload.upload")
	_, err = b.Claim(ctx, "photos", row.ID, "")
	b.refused(err, fault.Invalid, "of the collection photos")
}

// TestOtherContent: a file that has changed after its digest was computed is refused by the storage, and is not stored.
func TestOtherContent(t *testing.T) {
	b := newBed(t)
	row := b.open("", "before")
	put := b.list(row.ID, "before")[0].Put
	if got := b.try(put.URL, put.Headers, "after!"); got != http.StatusBadRequest {
		t.Errorf("answered %d", got)
	}
	if got := b.stored(row.ID, "before"); got[0] == "" {
		t.Error("it counts as stored")
	}
}

// TestQuota: what uploads may have together is reserved when they are opened, and given back when they are removed.
func TestQuota(t *testing.T) {
	b := newBed(t)
	synctest.Test(t, func(t *testing.T) {
		b.T = t
		half := strings.Repeat("y", 6*mib)
		row := b.open("", half)
		_, err := b.Open(t.Context(), upload.Request{Collection: "maps", Files: 1, Bytes: 5 * mib})
		b.refused(err, fault.Conflict, "1 upload")
		if _, err := b.Open(t.Context(), upload.Request{Collection: "photos", Files: 1, Bytes: 5 * mib}); err != nil {
			t.Error(err)
		}
		if _, err := b.Discard(t.Context(), row.ID, "ann", "not needed"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Hour)
		b.sweep()
		if !b.gone(row) {
			t.Error("the discarded upload is not removed")
		}
		if b.open("", half).ID == row.ID {
			t.Error("it is the same")
		}
	})
}

// TestKeyIsFree: what has ended gives its key to the next upload, so that its removal takes nothing from that one.
func TestKeyIsFree(t *testing.T) {
	b := newBed(t)
	synctest.Test(t, func(t *testing.T) {
		b.T = t
		row := b.open("again", "x")
		if _, err := b.Discard(t.Context(), row.ID, "ann", "not needed"); err != nil {
			t.Fatal(err)
		}
		next := b.open("again", "x")
		time.Sleep(3 * time.Hour)
		b.sweep()
		if next.ID == row.ID || !b.gone(row) || b.open("again", "x").ID != next.ID {
			t.Errorf("%s, then %s", row.ID, next.ID)
		}
	})
}

// TestKeyMoves: a request that says so opens another upload if a batch has the one with its key, and the key names that
// one from then on: also after the older one is removed. One that is open is returned in any case, and one that has
// expired in none.
func TestKeyMoves(t *testing.T) {
	b := newBed(t)
	synctest.Test(t, func(t *testing.T) {
		b.T = t
		again := func() *upload.Upload {
			row, err := b.Open(t.Context(), upload.Request{Collection: "maps", Files: 1, Bytes: 3, Key: "key",
				Meaning: []byte("one"), Again: true})
			if err != nil {
				t.Fatal(err)
			}
			return row
		}
		first := again()
		b.send(b.list(first.ID, "one")[0], "one")
		b.stored(first.ID, "one")
		if got := again(); got.ID != first.ID {
			t.Errorf("an open upload is passed over: %s", got.ID)
		}
		if err := b.claim(first.ID, "", "B"); err != nil {
			t.Fatal(err)
		}
		if got := b.open("key", "one"); got.ID != first.ID {
			t.Errorf("a submitted one is passed over: %s", got.ID)
		}
		next := again()
		b.list(next.ID, "one")
		b.batches["B"] = ingest.BatchCompleted
		time.Sleep(3 * time.Hour) // of the bubble: until the sweep may remove its files
		b.sweep()
		if next.ID == first.ID || !b.gone(first) || again().ID != next.ID || b.open("key", "one").ID != next.ID {
			t.Errorf("%s, then %s, then %s", first.ID, next.ID, again().ID)
		}
		_, err := b.Open(t.Context(), upload.Request{Collection: "maps", Files: 1, Key: "key", Again: true})
		b.refused(err, fault.Conflict, next.ID)
		time.Sleep(b.Keep) // it is not swept yet
		last := again()
		b.sweep()
		if last.ID == next.ID || b.open("key", "one").ID != last.ID || b.row(next.ID).State != upload.Expired {
			t.Errorf("%s, then %s: %s", next.ID, last.ID, b.row(next.ID).State)
		}
	})
}

// TestExpiry: an upload that nobody submits ends, and is removed when no signed request can bring a file any more; its
// key opens a new one then.
func TestExpiry(t *testing.T) {
	b := newBed(t)
	synctest.Test(t, func(t *testing.T) {
		b.T = t
		large := strings.Repeat("z", 3*mib)
		row := b.open("key", "one", "two", large)
		time.Sleep(b.Keep - time.Minute)
		sends := b.list(row.ID, "one", "two", large)
		b.send(sends[0], "one")
		sends[2].Parts.Next = sends[2].Parts.Next[:1]
		b.send(sends[2], large)
		time.Sleep(time.Minute)
		_, err := b.List(t.Context(), row.ID, []upload.Listed{listed("one")})
		b.refused(err, fault.Conflict, "has expired")
		b.refused(b.claim(row.ID, listed("one").Sum, "B"), fault.Invalid, "has expired")
		b.sweep()
		if got := b.row(row.ID); got.State != upload.Expired {
			t.Fatalf("%+v", got)
		}
		time.Sleep(50 * time.Minute)
		b.put(sends[1].Put.URL, sends[1].Put.Headers, "two") // late, and still accepted
		b.sweep()
		if b.gone(row) {
			t.Fatal("it is removed while requests may come")
		}
		time.Sleep(30 * time.Minute)
		if got := b.try(sends[1].Put.URL, sends[1].Put.Headers, "two"); got != http.StatusForbidden {
			t.Errorf("a request after its time is answered %d", got)
		}
		time.Sleep(time.Hour)
		b.sweep()
		if !b.gone(row) {
			t.Fatalf("%q is left", b.S3.Names("work/"))
		}
		none := func() bool { t.Error("a multipart upload is left"); return false }
		if _, err := b.Work.AbortAll(t.Context(), "", none); err != nil {
			t.Error(err)
		}
		if again := b.open("key", "other"); again.ID == row.ID {
			t.Error("the key still has the removed upload")
		}
	})
}

// TestSubmitted: a submitted upload stays as long as its batch needs its files: also while that has failed.
func TestSubmitted(t *testing.T) {
	for _, ends := range []ingest.BatchState{ingest.BatchCompleted, ingest.BatchDeleted, ""} {
		b := newBed(t)
		synctest.Test(t, func(t *testing.T) {
			b.T = t
			row := b.filled("one")
			if err := b.claim(row.ID, "", "B"); err != nil {
				t.Fatal(err)
			}
			for _, state := range []ingest.BatchState{ingest.BatchPending, ingest.BatchHeld, ingest.BatchProcessing,
				ingest.BatchFailed, ingest.BatchProcessing, ingest.BatchReporting} {
				b.batches["B"] = state
				for range 3 {
					time.Sleep(20 * 24 * time.Hour)
					b.sweep()
				}
				if names := b.S3.Names("work/uploads/"); len(names) != 1 || b.row(row.ID).State != upload.Submitted {
					t.Fatalf("%s: %q", state, names)
				}
			}
			_, err := b.Discard(t.Context(), row.ID, "ann", "no")
			b.refused(err, fault.Conflict, "batch cancel B")
			b.batches["B"] = ends
			if ends == "" {
				delete(b.batches, "B")
			}
			time.Sleep(time.Hour)
			b.sweep()
			if !b.gone(row) {
				t.Errorf("%q: not removed", ends)
			}
			rows, _, err := event.Page(t.Context(), b.Table, event.Subject{Type: event.Upload, ID: row.ID}, "")
			var types []string
			for _, e := range rows {
				types = append(types, e.Type)
			}
			if got := strings.Join(types, " "); err != nil || got != "upload.opened upload.submitted upload.removed" {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}

// TestKeys: the key of a request gives the same upload, also when it is submitted; with another request it is a
// conflict.
func TestKeys(t *testing.T) {
	b := newBed(t)
	row := b.open("key", "one")
	b.send(b.list(row.ID, "one")[0], "one")
	b.stored(row.ID, "one")
	if err := b.claim(row.ID, "", "B"); err != nil {
		t.Fatal(err)
	}
	if again := b.open("key", "one"); again.ID != row.ID || again.Batch != "B" {
		t.Errorf("%+v", again)
	}
	_, err := b.Open(t.Context(), upload.Request{Collection: "maps", Files: 1, Key: "key"})
	b.refused(err, fault.Conflict, row.ID)
	if page, err := b.Of(t.Context(), "maps", ""); err != nil || len(page.Items) != 1 {
		t.Errorf("%+v, %v", page, err)
	}
}

// TestTransport: a job reads the files of its own collection's upload, whatever the URL says.
func TestTransport(t *testing.T) {
	b := newBed(t)
	row := b.filled("the content")
	url := "upload://" + row.ID + "/" + listed("the content").Sum
	get := func(collection, allowed string) (string, error) {
		c := fetch.New(fetch.Guard{}, func() float64 { return 0 }).With(fetch.Access{
			Upload: allowed, Allow: []string{"x"},
			Uploads: upload.Transport(b.Work, collection, row.ID)})
		var text strings.Builder
		err := c.Get(t.Context(), url, nil, func(body fetch.Stream) error {
			buffer := make([]byte, 100)
			for {
				n, err := body.Read(buffer)
				text.Write(buffer[:n])
				if err != nil {
					return nil
				}
			}
		})
		return text.String(), err
	}
	if text, err := get("maps", row.ID); text != "the content" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	text, err := get("photos", row.ID)
	b.refused(err, fault.Invalid, "404")
	if text != "" {
		t.Errorf("an upload of another collection: %q", text)
	}
	_, err = get("maps", "ANOTHER")
	b.refused(err, fault.Invalid, "is not that of the submission")
}
