package formatcounts_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
	"archivist/pkg/kernel/table/tabletest"
	"archivist/pkg/objects/aip"
	"archivist/pkg/objects/aip/aiptest"
	"archivist/pkg/objects/formats"
	"archivist/pkg/objects/inventory"
	"archivist/pkg/objects/ocfl"
	"archivist/pkg/views/formatcounts"
)

const ark = "ark:/99999/fk4x"

// stored is a stored object with its rows.
type stored struct {
	*testing.T
	root  *aiptest.Root
	rows  *tabletest.Fake
	table *table.Table
	ids   int
}

func newStored(t *testing.T) *stored {
	fake := tabletest.New()
	return &stored{T: t, root: aiptest.New(t), rows: fake, table: tabletest.Table(fake)}
}

func (w *stored) id() string { w.ids++; return fmt.Sprint("tx", w.ids) }

// version stores a version, with the media types of its files, and records it.
func (w *stored) version(n int, files map[string]string) {
	w.Helper()
	var all []ocfl.File
	var entries []aip.Entry
	bytesOf := int64(0)
	for name, kind := range files {
		f := aiptest.File("producer/"+name, name)
		all, bytesOf = append(all, f), bytesOf+f.Size
		f.Data, f.Source = nil, "in the work bucket"
		entries = append(entries, aip.Entry{File: f, MediaType: kind})
	}
	var list bytes.Buffer
	err := aip.WriteList(&list, iter.Seq2[aip.Entry, error](func(yield func(aip.Entry, error) bool) {
		for _, e := range entries {
			if !yield(e, nil) {
				return
			}
		}
	}))
	if err != nil {
		w.Fatal(err)
	}
	w.root.Put(ark, append(all, aiptest.File(aip.ListName, list.String()))...)

	rows := inventory.Store{Table: w.table}
	r := inventory.Record{Actor: "ada", Job: fmt.Sprint("J-", n),
		Object: inventory.Object{ARK: ark, Collection: "maps", HeadOf: n},
		Versions: []inventory.Version{{Number: n, Job: fmt.Sprint("J-", n), Files: len(files), Bytes: bytesOf,
			Created: 1}}}
	put, err := rows.Prepare(w.Context(), r, 1000)
	if err != nil {
		w.Fatal(err)
	}
	tx := w.table.Begin(w.id())
	if err := errors.Join(put(tx), tx.Commit(w.Context())); err != nil {
		w.Fatal(err)
	}
}

// identify identifies the files of a version as TIFF, and ".odd" ones as two formats.
func (w *stored) identify(n int, signatures string) {
	w.Helper()
	maker := &formats.Maker{Store: formats.Store{Table: w.table, Derived: w.root.Derived}, Root: w.root.Root,
		Signatures: signatures, NewID: w.id, Now: func() time.Time { return time.UnixMilli(0) },
		Identify: func(_ context.Context, name string, _ io.ReaderAt, _ int64) ([]formats.Match, error) {
			switch {
			case strings.HasSuffix(name, ".tif"):
				return []formats.Match{{ID: "fmt/353", Name: "TIFF", MediaType: "image/tiff"}}, nil
			case strings.HasSuffix(name, ".odd"):
				return []formats.Match{{ID: "fmt/353", Name: "TIFF", MediaType: "image/tiff"}, {ID: "x-fmt/111"}}, nil
			}
			return []formats.Match{{ID: formats.Unknown}}, nil
		}}
	if _, err := maker.Version(w.Context(), ark, n, time.Unix(1, 0)); err != nil {
		w.Fatal(err)
	}
}

func (w *stored) source() formatcounts.Source {
	return formatcounts.Source{Inventory: inventory.Store{Table: w.table}, Root: w.root.Root, Derived: w.root.Derived}
}

// wants compares what is counted of the object.
func (w *stored) wants(want formatcounts.Counts) {
	w.Helper()
	got, err := w.source().Read(w.Context(), ark)
	if err != nil {
		w.Fatal(err)
	}
	got.Formats = got.Sorted()
	if !reflect.DeepEqual(got.Counts, want) {
		w.Errorf("counted are %+v\nwant %+v", got.Counts, want)
	}
}

var given = formatcounts.Counts{Objects: 1, Files: 4, Bytes: 26, Formats: []formatcounts.Format{
	{MediaType: "image/tiff", Files: 2, Bytes: 13},
	{MediaType: "text/plain", Files: 1, Bytes: 8},
	{Files: 1, Bytes: 5}}}

var found = formatcounts.Counts{Objects: 1, Identified: 1, Files: 4, Bytes: 26, Formats: []formatcounts.Format{
	{ID: "fmt/353", MediaType: "image/tiff", Name: "TIFF", Files: 3, Bytes: 18},
	{ID: formats.Unknown, Files: 1, Bytes: 8},
	{ID: "x-fmt/111", Files: 1, Bytes: 5}}}

// firstFiles are files of 26 bytes: the content of each is its name.
var firstFiles = map[string]string{"map.tif": "Image/TIFF", "ma.tif": "image/tiff; x=y", "note.txt": "text/plain",
	"a.odd": "?"}

// TestSource: until the files of a version are identified, the media types of its list of files
// count; then the formats that were found. A new version is counted instead of the one before.
func TestSource(t *testing.T) {
	w := newStored(t)
	w.wants(formatcounts.Counts{})
	w.version(1, firstFiles)
	w.wants(given)
	w.identify(1, "V1")
	w.wants(found)
	w.version(2, map[string]string{"b.tif": ""})
	w.wants(formatcounts.Counts{Objects: 1, Files: 1, Bytes: 5, Formats: []formatcounts.Format{{Files: 1, Bytes: 5}}})
}

// TestSourceBefore: of formats that were identified before their bytes were kept, the stored
// pages tell these; if one is gone, the list of files counts.
func TestSourceBefore(t *testing.T) {
	w := newStored(t)
	w.version(1, firstFiles)
	w.identify(1, "V1")
	for _, row := range w.rows.All() {
		if strings.HasPrefix(row["pk"].(*types.AttributeValueMemberS).Value, "FORMATS#") {
			for _, name := range []string{"sized", "bytes", "unknown_bytes"} {
				delete(row, name)
			}
			for _, f := range row["formats"].(*types.AttributeValueMemberL).Value {
				delete(f.(*types.AttributeValueMemberM).Value, "bytes")
			}
			if err := w.table.Rows.Put(row).Run(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	w.wants(found)
	w.root.Twin.Before = func(op, key string) int {
		if op == "GET object" && strings.Contains(key, "formats/") {
			return http.StatusNotFound
		}
		return 0
	}
	w.wants(given)
}

// TestSourceMany: files behind the first of a long list are counted without their formats.
func TestSourceMany(t *testing.T) {
	w := newStored(t)
	files := map[string]string{}
	for n := range formatcounts.MaxListed + 3 {
		files[fmt.Sprintf("%04d", n)] = "text/plain"
	}
	w.version(1, files)
	n := int64(formatcounts.MaxListed)
	w.wants(formatcounts.Counts{Objects: 1, Files: n + 3, Bytes: 4 * (n + 3), Formats: []formatcounts.Format{
		{MediaType: "text/plain", Files: n, Bytes: 4 * n}, {ID: formatcounts.Others, Files: 3, Bytes: 12}}})
}

// TestSourceFails: a storage that does not answer is tried again later; an object whose list of
// files is gone is counted without formats, as nothing else helps.
func TestSourceFails(t *testing.T) {
	w := newStored(t)
	w.version(1, firstFiles)
	answer := http.StatusServiceUnavailable
	w.root.Twin.Before = func(op, key string) int {
		if op == "GET object" {
			return answer
		}
		return 0
	}
	if _, err := w.source().Read(t.Context(), ark); err == nil || fault.Is(err, fault.NotFound) {
		t.Errorf("%v", err)
	}
	answer = http.StatusNotFound
	w.wants(formatcounts.Counts{Objects: 1, Files: 4, Bytes: 26, Formats: []formatcounts.Format{
		{ID: formatcounts.Others, Files: 4, Bytes: 26}}})
}
