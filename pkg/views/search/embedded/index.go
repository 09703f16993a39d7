package embedded

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/blevesearch/bleve/v2"
	"github.com/blevesearch/bleve/v2/analysis/analyzer/custom"
	"github.com/blevesearch/bleve/v2/analysis/analyzer/keyword"
	"github.com/blevesearch/bleve/v2/analysis/tokenizer/unicode"
	"github.com/blevesearch/bleve/v2/index/scorch"
	"github.com/blevesearch/bleve/v2/index/scorch/mergeplan"
	"github.com/blevesearch/bleve/v2/mapping"
	"github.com/blevesearch/bleve/v2/util"

	"archivist/pkg/views/search"
)

// format is the version of the mapping below. An index of an older format must be rebuilt. Raise
// it with each change of the mapping or of search.Body: the row has the format that its files
// were written with. A field that is only added needs none: the next writer adds it (extended),
// and what was written before has nothing there.
const format = 2

// words is the analyzer of texts that are normal already (search.Normal): it only splits
// them, by Unicode's rules.
const words = "words"

// Names in the folder of an index. The list of its segments is a file of bolt: it is the only
// file that changes.
const (
	storeName = "store"
	listName  = "root.bolt"
)

// Names of fields that no query names.
const (
	anyName      = "any"
	dayName      = "day"
	titleName    = "titlekey"
	kindName     = "kind"
	modifiedName = "modified"
)

// fields is how the index keeps the fields of search.Body. No field is stored: a result has only ids,
// and the API reads the objects' rows. What is sorted by, or counted as a facet, needs values by
// document (DocValues).
func fields() (*mapping.IndexMappingImpl, error) {
	m := bleve.NewIndexMapping()
	m.IndexDynamic, m.StoreDynamic, m.DocValuesDynamic = false, false, false
	err := m.AddCustomAnalyzer(words,
		map[string]any{"type": custom.Name, "tokenizer": unicode.Name})
	if err != nil {
		return nil, err
	}

	field := func(analyzer string, sorted bool) *mapping.FieldMapping {
		f := bleve.NewTextFieldMapping()
		f.Analyzer, f.Store, f.IncludeInAll, f.DocValues = analyzer, false, false, sorted
		f.IncludeTermVectors = analyzer == words // for words that follow each other
		return f
	}

	doc := bleve.NewDocumentStaticMapping()
	for _, name := range []string{search.FieldTitle, search.FieldCreator, search.FieldDate,
		search.FieldFile, anyName} {
		doc.AddFieldMappingsAt(name, field(words, false))
	}

	for _, name := range []string{search.FieldARK, search.FieldID, search.FieldFormat} {
		doc.AddFieldMappingsAt(name, field(keyword.Name, false))
	}

	for _, name := range []string{search.FieldCollection, dayName, titleName, kindName} {
		doc.AddFieldMappingsAt(name, field(keyword.Name, true))
	}

	modified := bleve.NewNumericFieldMapping()
	modified.Store, modified.IncludeInAll, modified.DocValues = false, false, true
	doc.AddFieldMappingsAt(modifiedName, modified)
	m.DefaultMapping = doc
	return m, nil
}

// stored is a document with the names of the fields. A document without a day has no such field, so
// that it is sorted last and no range of days finds it. Numbers are float64 in bleve: milliseconds
// since 1970 are exact in it.
func stored(b search.Body) map[string]any {
	out := map[string]any{search.FieldARK: b.ARK, search.FieldCollection: b.Collection,
		search.FieldTitle:   b.Title,
		search.FieldCreator: b.Creator, search.FieldDate: b.Date, search.FieldFile: b.File,
		search.FieldID: b.ID, search.FieldFormat: b.Format, kindName: b.Kind,
		anyName: b.Any, titleName: b.TitleKey, modifiedName: float64(b.Modified)}
	if b.Day != "" {
		out[dayName] = b.Day
	}
	return out
}

// create makes an empty index in a folder that does not exist.
func create(dir string) (bleve.Index, error) {
	m, err := fields()
	if err != nil {
		return nil, err
	}
	return bleve.NewUsing(dir, m, scorch.Name, scorch.Name, nil)
}

// extended opens an index to write to it, with the fields of this release. The mapping is stored
// in the index: that of an earlier release lacks fields, which bleve would pass over.
func extended(dir string) (bleve.Index, error) {
	x, err := bleve.Open(dir)
	if err != nil {
		return nil, err
	}

	m, err := fields()
	if err != nil {
		return nil, errors.Join(err, x.Close())
	}
	is, err := json.Marshal(x.Mapping())
	if err != nil {
		return nil, errors.Join(err, x.Close())
	}
	should, err := json.Marshal(m)
	if err != nil || bytes.Equal(is, should) {
		return x, err
	}

	if err := errors.Join(x.SetInternal(util.MappingInternalKey, should), x.Close()); err != nil {
		return nil, err
	}
	return bleve.Open(dir)
}

// apply changes the index, and merges segments if there are many. The changes become one batch, which
// bleve writes as a whole. A document that is removed need not be there.
func apply(ctx context.Context, x bleve.Index, changes []change) error {
	b := x.NewBatch()
	for _, c := range changes {
		if c.document == nil {
			b.Delete(c.ark)
			continue
		}
		if err := b.Index(c.ark, stored(c.document.Body())); err != nil {
			return fmt.Errorf("search: index %s: %w", c.ark, err)
		}
	}

	if err := x.Batch(b); err != nil {
		return fmt.Errorf("search: write the index: %w", err)
	}

	inner, err := x.Advanced()
	if err != nil {
		return err
	}
	// Small segments are merged, so that a search reads few: here, not in the background.
	return inner.(*scorch.Scorch).ForceMerge(ctx, &mergeplan.DefaultMergePlanOptions)
}

// folder is the target of a copy. The files that are known already are not written. They are immutable
// segments, which the snapshot before has under the same name.
type folder struct {
	dir   string
	known map[string]bool // by the last part of the name
	names map[string]bool // of all files of the copy
}

// GetWriter implements index.Directory. It must not be called concurrently: it notes the name. A file
// that is there already is an error.
func (f folder) GetWriter(path string) (io.WriteCloser, error) {
	f.names[path] = true
	if f.known[filepath.Base(path)] {
		return discard{}, nil
	}
	to := filepath.Join(f.dir, path)
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return nil, err
	}
	return os.OpenFile(to, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
}

// discard is the file of what is not copied. (For a segment, bleve would accept nil, but not
// for the other files.)
type discard struct{}

// Write drops p.
func (discard) Write(p []byte) (int, error) { return len(p), nil }

// Close does nothing.
func (discard) Close() error { return nil }

// change is an object's document, nil to remove it.
type change struct {
	ark      string
	document *search.Document
}
