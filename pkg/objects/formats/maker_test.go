package formats

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
	"archivist/pkg/kernel/table/tabletest"
	"archivist/pkg/objects/aip/aiptest"
)

const ark = "ark:/99999/fk4x"

// world has one stored object.
type world struct {
	*testing.T
	root *aiptest.Root
	rows *tabletest.Fake
	ids  int
}

func newWorld(t *testing.T, files int) *world {
	w := &world{T: t, root: aiptest.New(t), rows: tabletest.New()}
	producer := map[string]string{"none.xyz": "?", "odd.tif": "tiff, but odd"}
	for n := range files {
		producer[fmt.Sprintf("%04d.tif", n)] = "tiff"
	}
	w.root.Store(ark, producer, aiptest.System("maps", "", "", ""))
	return w
}

func (w *world) id() string { w.ids++; return fmt.Sprint("tx", w.ids) }

func through(_ string, call func() error) error { return call() }

func (w *world) table(do func(op string, call func() error) error) *table.Table {
	return tabletest.Through(w.rows, do)
}

// identify finds tiff by the beginning of the content.
func identify(_ context.Context, name string, content io.ReaderAt, size int64) ([]Match, error) {
	text := make([]byte, size)
	if _, err := content.ReadAt(text, 0); err != nil && err != io.EOF {
		return nil, err
	}
	if !strings.HasPrefix(string(text), "tiff") {
		return []Match{{ID: Unknown, Warning: "no match: " + name}}, nil
	}
	m := Match{ID: "fmt/353", Name: "TIFF", Version: "6", Basis: "byte match"}
	if len(text) > 4 {
		m.Warning = "odd"
	}
	return []Match{m}, nil
}

// maker makes results; each look at the clock takes a second.
func (w *world) maker(tb *table.Table) *Maker {
	now := time.UnixMilli(0)
	return &Maker{Store: Store{Table: tb, Derived: w.root.Derived}, NewID: w.id,
		Now:  func() time.Time { now = now.Add(time.Second); return now },
		Root: w.root.Root, Identify: identify, Signatures: "V1"}
}

const never = 1 << 60

func soon(seconds int64) time.Time { return time.Unix(seconds, 0) }

// check compares the results with what is wanted for so many files.
func (w *world) check(files int) {
	w.Helper()
	m := w.maker(w.table(through))
	tiffs := int64(4*files + len("tiff, but odd"))
	want := Result{Version: 1, Signatures: "V1", Files: files + 2, Unknown: 1, Warnings: 2, Typed: true,
		Formats: []Count{{ID: "fmt/353", Name: "TIFF 6", Files: files + 1, Bytes: tiffs}},
		Sized:   true, Bytes: tiffs + 1, UnknownBytes: 1}
	got, err := m.Result(w.Context(), ark, 1)
	if err != nil || !reflect.DeepEqual(got, want) {
		w.Errorf("got %+v, %v; want %+v", got, err, want)
	}
	seen := map[string]bool{}
	for number := 0; ; {
		p, next, err := m.Page(w.Context(), ark, 1, number)
		if err != nil || p.Object != ark || p.Version != 1 || p.Signatures != "V1" {
			w.Fatalf("page %d: %+v, %v", number, p, err)
		}
		for _, f := range p.Files {
			if seen[f.Path] || len(f.SHA512) != 128 || f.Size == 0 || len(f.Matches) != 1 {
				w.Errorf("page %d lists %+v", number, f)
			}
			seen[f.Path] = true
		}
		if next == 0 {
			break
		}
		number = next
	}
	if len(seen) != files+2 || !seen["producer/none.xyz"] {
		w.Errorf("%d files are listed, want %d", len(seen), files+2)
	}
}

// TestVersion: every file is listed once, on pages; a second call does no work.
func TestVersion(t *testing.T) {
	const files = 25
	w := newWorld(t, files)
	m := w.maker(w.table(through))
	m.most = 20
	if _, err := m.Result(t.Context(), ark, 1); !fault.Is(err, fault.NotFound) {
		t.Errorf("before: %v", err)
	}
	if _, err := m.Version(t.Context(), ark, 1, soon(never)); err != nil {
		t.Fatal(err)
	}
	w.check(files)
	gets := w.root.Twin.Calls["GET object"]
	if r, err := m.Version(t.Context(), ark, 1, soon(never)); err != nil || r.Files != files+2 ||
		w.root.Twin.Calls["GET object"] != gets {
		t.Errorf("again: %+v, %v", r, err)
	}
	for _, number := range []int{-1, 2} {
		if _, _, err := m.Page(t.Context(), ark, 1, number); !fault.Is(err, fault.Invalid) {
			t.Errorf("page %d: %v", number, err)
		}
	}
	if _, err := m.Version(t.Context(), ark, 2, soon(never)); !fault.Is(err, fault.NotFound) {
		t.Errorf("a version that there is not: %v", err)
	}
	m.Signatures = "V2"
	if r, err := m.Version(t.Context(), ark, 1, soon(never)); err != nil || r.Signatures != "V2" || r.Files != files+2 {
		t.Errorf("with other signatures: %+v, %v", r, err)
	}
}

// TestTime: calls that have too little time return an Unavailable, and the next one continues.
func TestTime(t *testing.T) {
	w := newWorld(t, 10)
	tb := w.table(through)
	for calls := int64(1); ; calls++ {
		_, err := w.maker(tb).Version(t.Context(), ark, 1, soon(calls))
		if err == nil {
			if calls < 4 {
				t.Errorf("all was done in %d calls", calls)
			}
			break
		}
		if !fault.Is(err, fault.Unavailable) || calls > 20 {
			t.Fatalf("call %d: %v", calls, err)
		}
	}
	w.check(10)
}

// TestCrash: a call that dies before or after any request is repeated, and the result is the same.
func TestCrash(t *testing.T) {
	tabletest.Crashes(t, 10, func(t *testing.T, m *tabletest.Mortal) {
		w := newWorld(t, 3)
		w.root.Twin.Before = m.Status
		_, err := w.maker(w.table(m.Do)).Version(t.Context(), ark, 1, soon(never))
		w.root.Twin.Before = nil
		if m.Dead() != (err != nil) {
			t.Fatalf("died %v, %v", m.Dead(), err)
		}
		if _, err := w.maker(w.table(through)).Version(t.Context(), ark, 1, soon(never)); err != nil {
			t.Fatal(err)
		}
		w.check(3)
	})
}

// TestTwo: two calls work on the same version with different page sizes. One of them gives up, and the
// result lists every file once.
func TestTwo(t *testing.T) {
	w := newWorld(t, 10)
	other := false
	tb := w.table(func(op string, call func() error) error {
		if op != "GetItem" && !other {
			other = true
			_, err := w.maker(w.table(through)).Version(t.Context(), ark, 1, soon(4))
			if !fault.Is(err, fault.Unavailable) {
				t.Errorf("the other call: %v", err)
			}
		}
		return call()
	})
	if _, err := w.maker(tb).Version(t.Context(), ark, 1, soon(never)); !fault.Is(err, fault.Unavailable) {
		t.Errorf("the call that was overtaken: %v", err)
	}
	if _, err := w.maker(w.table(through)).Version(t.Context(), ark, 1, soon(never)); err != nil {
		t.Error(err)
	}
	w.check(10)
}

// TestReplaced: a file that is replaced while it is read is tried again later.
func TestReplaced(t *testing.T) {
	w := newWorld(t, 1)
	w.root.Twin.Before = func(op, key string) int {
		if op == "GET object" && strings.HasSuffix(key, ".tif") {
			return http.StatusPreconditionFailed
		}
		return 0
	}
	_, err := w.maker(w.table(through)).Version(t.Context(), ark, 1, soon(never))
	if !fault.Is(err, fault.Unavailable) {
		t.Errorf("got %v", err)
	}
}

// TestMany: a version of very many formats lists the first, and counts the others.
func TestMany(t *testing.T) {
	var r Result
	for n := range 2 * mostFormats {
		r.add(File{Matches: []Match{{ID: fmt.Sprint("fmt/", n)}}})
	}
	if len(r.Formats) != mostFormats || r.More != mostFormats || r.Files != 2*mostFormats {
		t.Errorf("%d formats, %d more of %d files", len(r.Formats), r.More, r.Files)
	}
}
