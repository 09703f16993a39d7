package search

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/blevesearch/bleve/v2/analysis/char/asciifolding"
	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// Document is what is indexed of an object. Texts are as they were given. It is made by a Reader and
// not changed afterwards. Any list may be empty.
type Document struct {
	ARK        string
	Collection string
	Titles     []string
	Creators   []string
	Dates      []string
	LocalIDs   []string
	Files      []string // paths, MaxFiles at most
	More       []string // other texts of the description
	// Formats are what the formats of its files are called: media types, and ids of PRONOM. Kinds
	// has one name of each format: its media type, or the id of one that has none. MaxFormats of
	// either at most.
	Formats, Kinds []string
	Version        int64 // of the object's newest event
	Modified       int64 // milliseconds since 1970
}

// Normal is a text as it is indexed and searched for: letters and digits whatever their case (Unicode
// case folding), without diacritics, in compatible forms (Unicode NFKD); all others are one blank. So "Café_No.2.TIF"
// is "cafe no 2 tif", and is found by each of its parts. Latin letters that Unicode does not take apart are
// those that they are made of: "Łódź" is "lodz", and "Straße" and "STRASSE" are "strasse". Combining
// marks that take space (Mc), as vowels of Indic scripts do, are parts of words.
func Normal(text string) string {
	var b strings.Builder
	blank := false
	for _, r := range norm.NFKD.String(folded(text)) {
		switch {
		case unicode.Is(unicode.Mn, r):
		case unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.Is(unicode.Mc, r):
			if blank && b.Len() > 0 {
				b.WriteByte(' ')
			}
			blank = false
			b.WriteRune(r)
		default:
			blank = true
		}
	}
	return b.String()
}

// latin takes Latin letters apart, as Lucene's ASCIIFoldingFilter does.
var latin = asciifolding.New()

// folded is a text in lower case, with plain Latin letters. What a letter is made of can be in upper case again, and
// a compatible form can be one of these letters: so it is done in this order, and then once more.
func folded(text string) string {
	for range 2 {
		text = string(latin.Filter([]byte(cases.Fold().String(norm.NFKD.String(text)))))
	}
	return cases.Fold().String(text)
}

// Body is a document as both kinds of indexes store it. The names are the names of fields. The names
// are stored in indexes: a change of them, or of what a field has, needs a new format of the embedded
// index, and a rebuild of each.
type Body struct {
	ARK        string   `json:"ark"`
	Collection string   `json:"collection"`
	Title      []string `json:"title,omitempty"` // normal, like the texts below
	Creator    []string `json:"creator,omitempty"`
	Date       []string `json:"date,omitempty"`
	File       []string `json:"file,omitempty"`
	Any        []string `json:"any,omitempty"` // all words
	ID         []string `json:"id,omitempty"`  // local ids, as they are
	Format     []string `json:"format,omitempty"`
	Kind       []string `json:"kind,omitempty"` // one name of each format: these are counted
	Day        string   `json:"day,omitempty"`  // the first date, see Day
	TitleKey   string   `json:"titlekey"`
	Modified   int64    `json:"modified"`
}

// keyLength limits the key of a title, in bytes. It keeps the stored key small; titles that are the
// same up to there are ordered by the ARK.
const keyLength = 100

// Body makes the stored form of a document. Day is that of the first of the dates that has one; a
// document without a day has none, and is last in the order by date. Any has the words of all other
// fields and of the ARK and the collection, so that a word without a field is looked for in one place.
func (d *Document) Body() Body {
	b := Body{
		ARK:        d.ARK,
		Collection: d.Collection,
		ID:         d.LocalIDs,
		Format:     d.Formats,
		Kind:       d.Kinds,
		Modified:   d.Modified,
		Title:      normal(d.Titles),
		Creator:    normal(d.Creators),
		Date:       normal(d.Dates),
		File:       normal(d.Files),
	}

	dated := slices.IndexFunc(d.Dates, func(text string) bool { return Day(text) != "" })
	if dated >= 0 {
		b.Day = Day(d.Dates[dated])
	}

	for _, texts := range [][]string{b.Title, b.Creator, b.Date, normal(d.LocalIDs), normal(d.More),
		b.File,
		{Normal(d.ARK), Normal(d.Collection)}} {
		b.Any = append(b.Any, texts...)
	}

	b.TitleKey = afterAll
	if len(b.Title) > 0 {
		b.TitleKey = cut(b.Title[0], keyLength)
	}
	return b
}

// afterAll sorts after the key of any title: it is the last code point of the planes of
// characters.
const afterAll = "\U0010FFFD"

// normal makes texts normal. One without a letter or a digit is left out; the result is never nil.
func normal(texts []string) []string {
	out := make([]string, 0, len(texts))
	for _, t := range texts {
		if n := Normal(t); n != "" {
			out = append(out, n)
		}
	}
	return out
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

// days matches a date of ISO 8601, or a year, in a text. Digits before or after it make it another
// number, e.g. "18512".
var days = regexp.MustCompile(`(?:^|[^0-9])([0-9]{4}(?:-(?:0[1-9]|1[0-2])(?:-(?:0[1-9]|[12][0-9]|3[01]))?)?)(?:[^0-9]|$)`)

// Day is the first date of ISO 8601, or year of four digits, in a text: "circa 1851" is
// 1851. It is "" if there is none.
func Day(text string) string {
	m := days.FindStringSubmatch(text)
	if m == nil {
		return ""
	}
	return m[1]
}
