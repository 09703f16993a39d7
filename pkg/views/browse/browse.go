// Package browse lists all objects by title, by date, by creator and by collection.
//
// Each of these lists is a partition of the table. An object has rows in them, and one row
// of its own that names them:
//
//	BROWSE#{by}    {order}#{ark}#{value}   an entry
//	OBJECT#{ark}   BROWSE                  the keys of the object's entries
//
// The entries follow the events of objects (Handler). They are made from the object's row,
// never from an event. One transaction removes those that are not right any more, adds those
// that are missing, and writes the row that names them, on the condition that no other has
// written it. So a list never has an old entry beside the new one, whatever is repeated or
// dies.
package browse

import (
	"bytes"
	"context"
	"encoding/base32"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	"golang.org/x/text/collate"
	"golang.org/x/text/language"

	"archivist/pkg/events/consumer"
	"archivist/pkg/events/event"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
	"archivist/pkg/objects/inventory"
	"archivist/pkg/views/search"
)

// Name of the consumer, and of its handler.
const Name = "browse"

// Lists.
const (
	ByTitle      = "title"
	ByDate       = "date"       // and by title within a date
	ByCreator    = "creator"    // an object is listed once for each creator; by title within one
	ByCollection = "collection" // and by title within one
)

// Lists are all of them.
var Lists = []string{ByTitle, ByDate, ByCreator, ByCollection}

// MaxCreators is how many creators an object is listed by, the first.
const MaxCreators = 20

// Limits of the texts that order a list, in characters: a sort key has at most 1,024 bytes.
const (
	orderedBy = 60
	thenBy    = 20
)

// keyBytes are the bytes of a collation key per character, at most: some characters stand for a whole
// phrase. The beginning of a key keeps the order.
const keyBytes = 4

// MaxLimit is how many entries a page has at most.
const MaxLimit = 50

// Entry is an object in a list. Value is what it is listed by: "" at the end of a list, for
// objects that have none.
type Entry struct {
	table.Head
	Owner string `dynamo:"owned_by"` // the object's ARK
	Value string `dynamo:"listed_by,omitempty"`
}

// place is the row that names an object's entries. Its key is that of the object, so there is one. Its
// revision is what serializes updates of an object: two that run at once cannot both commit.
type place struct {
	table.Head
	Entries []key `dynamo:"entries"`
}

// key is the place of an entry in a list: the name of the list, and the sort key of the entry.
type key struct {
	By    string `dynamo:"list_by"`
	Order string `dynamo:"list_order"`
}

func keyOf(e Entry) key { return key{strings.TrimPrefix(e.PK, partition("")), e.SK} }

func (k key) table() table.Key { return table.Key{PK: partition(k.By), SK: k.Order} }

// partition is the key of the partition that has a list. Each list is one partition: so DynamoDB
// returns it in the order of the sort keys, and a page is one query.
func partition(by string) string { return "BROWSE#" + by }

func placeKey(ark string) table.Key {
	return table.Key{PK: event.Subject{Type: event.Object, ID: ark}.Key().PK, SK: "BROWSE"}
}

// Definition of the consumer that keeps the lists.
func Definition() consumer.Definition {
	return consumer.Definition{
		Name:        Name,
		Version:     1,
		Description: "Lists objects by title, date, creator and collection.",
		Filter:      "Object+Create|Modify|Modify_Metadata|Add|Remove|Delete|Install",
		Target:      consumer.Target{Handler: Name},
		MaxDepth:    consumer.AnyDepth,
		Order:       consumer.OrderSubject,
		Coalesce:    &consumer.Coalesce{},
		Batch:       50,
		Concurrency: 4,
		Start:       consumer.StartHorizon,
		Required:    true,
	}
}

// Store keeps and reads the lists. NewID makes the ids of transactions.
type Store struct {
	Table *table.Table
	NewID func() string
}

// named reads the row that names an object's entries; one that is missing has the rev 0.
func (s Store) named(ctx context.Context, ark string) (place, error) {
	k := placeKey(ark)
	p := place{Head: table.Head{PK: k.PK, SK: k.SK}}
	err := s.Table.Get(ctx, k, &p)
	if fault.Is(err, fault.NotFound) {
		err = nil
	}
	return p, err
}

// should are the entries of an object as its row is now: none if there is no such object.
func (s Store) should(ctx context.Context, ark string) ([]Entry, error) {
	o, err := inventory.Store{Table: s.Table}.Object(ctx, ark)
	if fault.Is(err, fault.NotFound) {
		return nil, nil
	}

	if err != nil {
		return nil, err
	}
	return entries(o), nil
}

// entries are those that an object should have, each once. The sort key is {order}#{ark}#{hash of the
// value}: the ARK makes it unique among objects, and the hash (FNV-1a, 32 bits) tells apart two
// creators of one object whose first characters are the same. An object that has no title, date or
// creator is listed at the end.
func entries(o *inventory.Object) (out []Entry) {
	add := func(by, value, order string) {
		sum := fnv.New32a()
		sum.Write([]byte(value))
		e := Entry{
			Head: table.Head{PK: partition(by),
				SK: fmt.Sprintf("%s#%s#%08x", order, o.ARK, sum.Sum32())},
			Owner: o.ARK,
			Value: value,
		}
		if !slices.ContainsFunc(out, func(other Entry) bool { return other.Key() == e.Key() }) {
			out = append(out, e)
		}
	}

	title := order(o.Title, thenBy)
	add(ByTitle, o.Title, order(o.Title, orderedBy))
	add(ByDate, o.When, day(o.When)+"#"+title)
	for _, who := range creators(o.Who) {
		add(ByCreator, who, order(who, orderedBy)+"#"+title)
	}

	add(ByCollection, o.Collection, collection(o.Collection)+title)
	return out
}

// creators are the creators of a summary, which separates them as ERC does. They are in the order in
// which they are named, each once, MaxCreators at most. It is never empty: without a creator it is
// [""].
func creators(summary string) (out []string) {
	for who := range strings.SplitSeq(summary, ";") {
		who = strings.TrimSpace(who)
		if who != "" && !slices.Contains(out, who) && len(out) < MaxCreators {
			out = append(out, who)
		}
	}
	if len(out) == 0 {
		out = []string{""}
	}
	return out
}

// What a sort key begins with: entries without a value are the last.
const (
	some = "1"
	none = "2"
)

// collection is what the sort keys of a collection's entries begin with. Names of collections have no
// "#", so this is a prefix of one collection only. The names are ordered by their bytes, not by the
// collation.
func collection(name string) string { return some + name + "#" }

// day orders dates: by the first day of ISO 8601, or year, in the text. Texts without one
// are at the end, among each other in the order of words.
func day(text string) string {
	if d := search.Day(text); d != "" {
		return some + d
	}
	return none + encode(collator().key(text, thenBy))
}

// order is the place of a text: by the Unicode Collation Algorithm with its root table, on the level of
// letters, so cases and diacritics make no difference; numbers by their value. most is how many
// characters count. A text that is blank is at the end, as if there were none.
func order(text string, most int) string {
	if strings.TrimSpace(text) == "" {
		return none
	}
	return some + encode(collator().key(text, most))
}

// sorting makes collation keys. It is not safe for concurrent use. So each caller makes its own.
type sorting struct{ *collate.Collator }

func collator() sorting {
	return sorting{collate.New(language.Und, collate.Loose,
		collate.Numeric)}
}

// key of the first characters of a text. White space counts as one blank. The key has at most keyBytes
// bytes for each character; it is cut there, which keeps the order of all but texts that differ only
// after the cut.
func (s sorting) key(text string, most int) []byte {
	text = strings.Join(strings.Fields(text), " ")
	n := 0
	for at := range text {
		if n == most {
			text = text[:at]
			break
		}
		n++
	}

	key := s.KeyFromString(&collate.Buffer{}, text)
	return key[:min(len(key), keyBytes*most)]
}

// encoding keeps the order of the bytes that it encodes.
var encoding = base32.HexEncoding.WithPadding(base32.NoPadding)

// encode makes bytes of a collation key to text that sorts alike: a sort key is a string of DynamoDB,
// which has to be valid UTF-8.
func encode(key []byte) string { return encoding.EncodeToString(key) }

// Page is what Read reads: the next entries of a list. Its zero value is refused: By is one of Lists.
type Page struct {
	// By is the list. From begins with the first entry that is not before that text; "" is the
	// beginning. In is a collection, for the entries of that one in the list ByCollection; it excludes
	// From. Cursor is that of the page before, "" at the beginning: use it with the same other fields.
	By, From, In, Cursor string
	// Begins limits the list by title, or that of a collection, to titles that begin with this text, in the order's
	// sense: cases and diacritics make no difference, and a number is one whole. It excludes From.
	Begins string
	// Day limits the list by date to those that begin with this text, e.g. 1851-07. It excludes From.
	Day string
	// Limit is how many entries to return at most; what is not from 1 to MaxLimit is MaxLimit.
	Limit int
}

// check refuses what no list can answer. The error is an Invalid that names the parameter of the API.
func (p Page) check() error {
	switch {
	case !slices.Contains(Lists, p.By):
		return fault.New(fault.Invalid, "by: found %q; expected one of %s", p.By,
			strings.Join(Lists, ", "))
	case p.In != "" && p.By != ByCollection:
		return fault.New(fault.Invalid,
			"collection: only the list by collection can be limited to one; "+
				"search for collection:%s to combine it with others", p.In)
	case p.In != "" && p.From != "":
		return fault.New(fault.Invalid, "give a collection or from, not both")
	case p.Begins != "" && (p.From != "" || p.By != ByTitle && p.In == ""):
		return fault.New(fault.Invalid,
			"title: only the list by title, or that of a collection, can be limited to it")
	case p.Day != "" && (p.From != "" || p.By != ByDate):
		return fault.New(fault.Invalid, "date: only the list by date can be limited to it")
	}
	return nil
}

// from is the least sort key of a page that begins with a text. A date and a collection are in the sort
// key as they are; titles and creators are there as collation keys.
func (p Page) from() string {
	switch {
	case p.By == ByDate:
		return some + p.From
	case p.By == ByCollection:
		return some + p.From
	}
	return order(p.From, orderedBy)
}

// Read returns a page of a list, and the cursor of the next, "" at the end. The entries are read
// consistently; but an entry can be of an object that has been deleted since, or is listed by an older
// title, until the consumer has handled the event. The error is an Invalid for a page that no list can
// answer, or one of the table.
func (s Store) Read(ctx context.Context, p Page) (page []Entry, next string, err error) {
	if err := p.check(); err != nil {
		return nil, "", err
	}

	if p.Limit <= 0 || p.Limit > MaxLimit {
		p.Limit = MaxLimit
	}

	q := table.Query{PK: partition(p.By), Limit: p.Limit, Cursor: p.Cursor}
	begin := p.begin()
	switch {
	case p.Begins != "":
		// A title that begins with a text is not before the text.
		q.From, q.To = begin.prefix+encode(begin.key), begin.prefix+"~"
	case p.Day != "":
		q.Prefix = some + p.Day
	case p.In != "":
		q.Prefix = collection(p.In)
	case p.From != "":
		// "~" is after all characters that a sort key begins with: "1" and "2".
		q.From, q.To = p.from(), "~"
	}

	next, err = s.Table.Page(ctx, q, &page)
	if p.Begins != "" {
		if end := slices.IndexFunc(page, func(e Entry) bool { return !begin.has(e.SK) }); end >= 0 {
			page, next = page[:end], ""
		}
	}
	return page, next, err
}

// beginning is what the sort keys begin with of titles that begin with a text: a prefix, and the encoded key of the
// title, which begins with the bytes of key.
type beginning struct {
	prefix string
	key    []byte
}

// begin is the beginning that the page is limited to.
func (p Page) begin() beginning {
	if p.In != "" {
		return beginning{collection(p.In) + some, collator().key(p.Begins, thenBy)}
	}
	return beginning{some, collator().key(p.Begins, orderedBy)}
}

// has reports whether a sort key begins so.
func (b beginning) has(sk string) bool {
	rest, ok := strings.CutPrefix(sk, b.prefix)
	title, _, _ := strings.Cut(rest, "#")
	key, err := encoding.DecodeString(title)
	return ok && err == nil && bytes.HasPrefix(key, b.key)
}
