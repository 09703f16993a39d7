// Package formatcounts counts the files and bytes of each collection by their formats.
//
// What is counted are the producer's files of the newest version of each object, also of one that is
// withdrawn: its files stay stored. A collection has a row of counts, and an object one of what was counted
// of it:
//
//	FORMATCOUNTS    {collection}     the files and bytes of a collection
//	OBJECT#{ark}    FORMATCOUNTS     those that were counted of an object
//
// The counts follow the events of objects, and those of the component that identifies formats. What is
// counted of an object is made from what is stored (Source), never from an event. One transaction takes
// away what was counted before, adds what there is now, and writes the object's row, on the condition that
// no other has written it. So an object is counted once, whatever is repeated, reordered or dies.
package formatcounts

import (
	"cmp"
	"context"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"archivist/pkg/events/consumer"
	"archivist/pkg/events/event"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
	"archivist/pkg/objects/formats"
	"archivist/pkg/views/history"
	"archivist/pkg/views/search"
)

// Name of the consumer, and of its handler.
const Name = "format-counts"

// Definition of the consumer that counts. It selects what the search index follows, since that
// has formats, too. A failure is one of the table or of the storage, never of one object, so
// the cursor waits for its end.
func Definition() consumer.Definition {
	return consumer.Definition{
		Name:        Name,
		Version:     1,
		Description: "Counts files and bytes by format.",
		Filter:      search.Definition().Filter,
		Target:      consumer.Target{Handler: Name},
		MaxDepth:    consumer.AnyDepth,
		Order:       consumer.OrderSubject,
		Coalesce:    &consumer.Coalesce{},
		Batch:       mostObjects,
		Concurrency: 1,
		OnFailure:   consumer.Block,
		Start:       consumer.StartHorizon,
		Required:    true,
	}
}

// mostObjects is how many objects one transaction counts: so the row of a collection, which
// each changes, is written once for them.
const mostObjects = 25

// MaxFormats is how many formats a collection has, beside Others. Media types may be given by
// depositors, so there can be any number of them.
const MaxFormats = 500

// Others stands for formats that are not named, since there are too many, and for files that
// were not looked at.
const Others = search.OtherFormats

// Format is how many files have a format, and their bytes. ID is that of PRONOM,
// formats.Unknown for files of which none is known, Others, or "" for files that are not
// identified: their media type is the one that the depositor has given, or that of the name, ""
// if there is none.
type Format struct {
	ID        string `dynamo:"format_id,omitempty"`
	MediaType string `dynamo:"media_type,omitempty"`
	Name      string `dynamo:"format_name,omitempty"` // in words
	Files     int64  `dynamo:"files"`
	Bytes     int64  `dynamo:"bytes"`
}

// key tells formats apart.
type key struct{ id, mediaType string }

func (f Format) key() key { return key{f.ID, f.MediaType} }

// Counts are files and bytes, of all formats and of each. A file that has several formats is in
// each of these, and once in Files and Bytes.
type Counts struct {
	Objects    int64    `dynamo:"objects"`
	Identified int64    `dynamo:"identified_objects"` // of Objects: their files were looked at for formats
	Files      int64    `dynamo:"files"`
	Bytes      int64    `dynamo:"bytes"`
	Formats    []Format `dynamo:"formats,omitempty"` // in no order
}

// longest are the bytes of a media type, and of a name, at most. A row has MaxFormats of both.
const (
	longestType = 255
	longestName = 100
)

// count adds files of a format. It returns the format as it was counted: one that is not there,
// of more than most formats, is one of Others.
func (c *Counts) count(f Format, most int) Format {
	f.MediaType, f.Name = cut(f.MediaType, longestType), cut(f.Name, longestName)
	i := c.at(f)
	if i < 0 && c.named() >= most {
		f.ID, f.MediaType, f.Name = Others, "", ""
		i = c.at(f)
	}
	if i < 0 {
		c.Formats = append(c.Formats, f)
		return f
	}
	is := &c.Formats[i]
	is.Files += f.Files
	is.Bytes += f.Bytes
	is.Name = cmp.Or(f.Name, is.Name)
	return f
}

// named is how many formats have a row of their own.
func (c *Counts) named() int {
	n := len(c.Formats)
	if c.at(Format{ID: Others}) >= 0 {
		n--
	}
	return n
}

func (c *Counts) at(f Format) int {
	return slices.IndexFunc(c.Formats, func(is Format) bool { return is.key() == f.key() })
}

// Add adds counts, and returns their formats as they were counted.
func (c *Counts) Add(more Counts) (as []Format) {
	c.Objects += more.Objects
	c.Identified += more.Identified
	c.Files += more.Files
	c.Bytes += more.Bytes
	sum := Counts{}
	for _, f := range more.Formats {
		sum.count(c.count(f, MaxFormats), MaxFormats+1)
	}
	return sum.Formats
}

// remove takes counts away that Add has counted so. A format without files is dropped.
func (c *Counts) remove(less Counts) {
	c.Objects -= less.Objects
	c.Identified -= less.Identified
	c.Files -= less.Files
	c.Bytes -= less.Bytes
	for _, f := range less.Formats {
		if i := c.at(f); i >= 0 {
			c.Formats[i].Files -= f.Files
			c.Formats[i].Bytes -= f.Bytes
		}
	}
	c.Formats = slices.DeleteFunc(c.Formats, func(f Format) bool { return f.Files <= 0 })
}

// cut shortens a text to at most n bytes, between characters.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}

// Total is the row of a collection.
type Total struct {
	table.Head
	Counts
}

// Collection is the name of the collection.
func (t *Total) Collection() string { return t.SK }

const totals = "FORMATCOUNTS"

func totalKey(collection string) table.Key { return table.Key{PK: totals, SK: collection} }

// Share is what was counted of an object: the row of the object, whose revision serializes its
// updates. Without an object it has counts of 0, and no row.
type Share struct {
	table.Head
	Collection string `dynamo:"coll"`
	Version    int    `dynamo:"ocfl_version"`
	Counts
}

func shareKey(ark string) table.Key {
	return table.Key{PK: event.Subject{Type: event.Object, ID: ark}.Key().PK, SK: totals}
}

// Store keeps and reads the counts: the consumer's handler. NewID makes the ids of
// transactions. Reading needs the Table only.
type Store struct {
	Table *table.Table
	NewID func() string
	// Read returns what is to be counted of an object; one that does not exist has no Version. An
	// error is one of the table, of S3, or of the end of the call.
	Read func(ctx context.Context, ark string) (Share, error)
}

// Handle counts the objects that the events are about, as they are now. Every error is
// Unavailable: no event is to blame for it, and the same call may succeed later.
func (s Store) Handle(ctx context.Context, b consumer.Batch) ([]consumer.Failure, error) {
	var arks []string
	for _, e := range b.Events {
		if ark := history.ObjectOf(e.Event); ark != "" && !slices.Contains(arks, ark) {
			arks = append(arks, ark)
		}
	}

	for some := range slices.Chunk(arks, mostObjects) {
		if err := s.count(ctx, some); err != nil {
			return nil, fault.New(fault.Unavailable, "format counts: %w", err)
		}
	}
	return nil, nil
}

// count counts objects in one transaction, or each in its own if that would be too large.
func (s Store) count(ctx context.Context, arks []string) error {
	err := s.Table.Again(ctx, "the counts of formats", func() error { return s.update(ctx, arks) })
	if len(arks) == 1 || !fault.Is(err, fault.Invalid) {
		return err
	}
	for i := range arks {
		if err := s.count(ctx, arks[i:i+1]); err != nil {
			return err
		}
	}
	return nil
}

// update is one try to count objects. It reads what was counted before it reads the objects: so
// a state that is older than what another call has counted meanwhile cannot be committed.
func (s Store) update(ctx context.Context, arks []string) error {
	was, err := s.shares(ctx, arks)
	if err != nil {
		return err
	}

	tx := s.Table.Begin(s.NewID())
	rows := map[string]*Total{}
	changed := false
	for i, ark := range arks {
		is, err := s.Read(ctx, ark)
		if err != nil {
			return err
		}
		if was[i].same(is) {
			continue
		}
		if err := s.move(ctx, rows, &was[i], is); err != nil {
			return err
		}
		was[i].put(tx)
		changed = true
	}

	for _, t := range rows {
		tx.InsertOrSave(t)
	}
	if !changed {
		return nil
	}
	return tx.Commit(ctx)
}

// shares reads what was counted of objects, in their order; of one that was not counted the Rev
// is 0.
func (s Store) shares(ctx context.Context, arks []string) ([]Share, error) {
	keys := make([]table.Key, len(arks))
	for i, ark := range arks {
		keys[i] = shareKey(ark)
	}
	found, err := s.Table.Many(ctx, keys)
	if err != nil {
		return nil, err
	}

	all := make([]Share, len(arks))
	for i, k := range keys {
		all[i].PK, all[i].SK = k.PK, k.SK
		if raw, there := found[k]; there {
			if err := raw.Decode(&all[i]); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// same reports whether nothing has changed of an object.
func (s *Share) same(is Share) bool {
	return s.Version == is.Version && s.Collection == is.Collection &&
		reflect.DeepEqual(s.Counts, is.Counts)
}

// move replaces what was counted of an object, in it and in the rows of its collections. These
// are read once, and only if their counts change.
func (s Store) move(ctx context.Context, rows map[string]*Total, was *Share, is Share) error {
	if was.Collection != is.Collection || !reflect.DeepEqual(was.Counts, is.Counts) {
		if was.Version > 0 {
			t, err := s.row(ctx, rows, was.Collection)
			if err != nil {
				return err
			}
			t.remove(was.Counts)
		}
		if is.Version > 0 {
			t, err := s.row(ctx, rows, is.Collection)
			if err != nil {
				return err
			}
			is.Formats = t.Add(is.Counts)
		}
	}
	was.Collection, was.Version, was.Counts = is.Collection, is.Version, is.Counts
	return nil
}

// row reads the row of a collection, once; one that is missing is begun.
func (s Store) row(ctx context.Context, rows map[string]*Total, collection string) (*Total, error) {
	if t := rows[collection]; t != nil {
		return t, nil
	}
	t, err := s.Total(ctx, collection)
	if err == nil {
		rows[collection] = &t
	}
	return &t, err
}

// put writes what was counted of an object, or removes the row of one that is gone.
func (s *Share) put(tx *table.Tx) {
	switch {
	case s.Version > 0:
		tx.InsertOrSave(s)
	case s.Rev > 0:
		tx.Remove(s)
	}
}

// Total reads the counts of a collection. One in which nothing was counted has counts of 0, and
// the Rev 0.
func (s Store) Total(ctx context.Context, collection string) (Total, error) {
	k := totalKey(collection)
	t := Total{Head: table.Head{PK: k.PK, SK: k.SK}}
	err := s.Table.Get(ctx, k, &t)
	if fault.Is(err, fault.NotFound) {
		err = nil
	}
	return t, err
}

// MaxCollections is how many collections are added up by All, the first by name.
const MaxCollections = 300

// All adds up the counts of all collections; cut is true if there are more than were read. It
// costs one query for each hundred collections, or for less if their rows are large.
func (s Store) All(ctx context.Context) (sum Counts, cut bool, err error) {
	all, cut, err := s.totals(ctx, MaxCollections)
	for _, t := range all {
		sum.Add(t.Counts)
	}
	return sum, cut, err
}

// totals reads the rows of collections, at most so many, in the order of their names.
func (s Store) totals(ctx context.Context, most int) (all []Total, cut bool, err error) {
	q := table.Query{PK: totals}
	for {
		var page []Total
		q.Limit = min(most-len(all), 100)
		if q.Cursor, err = s.Table.Page(ctx, q, &page); err != nil {
			return nil, false, err
		}
		all = append(all, page...)
		if q.Cursor == "" || len(all) >= most {
			return all, q.Cursor != "", nil
		}
	}
}

// Sorted are the formats, those of most bytes first.
func (c Counts) Sorted() []Format {
	return slices.SortedFunc(slices.Values(c.Formats), func(a, b Format) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(b.Files, a.Files),
			strings.Compare(a.MediaType, b.MediaType), strings.Compare(a.ID, b.ID))
	})
}

// Known reports whether a format is one that PRONOM has.
func (f Format) Known() bool { return f.ID != "" && f.ID != formats.Unknown && f.ID != Others }
