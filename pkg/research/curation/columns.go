package curation

import (
	"fmt"
	"strconv"
	"strings"
)

// column is a column of a CSV file: how its text becomes a part of a record.
type column struct {
	name string
	set  func(r *Record, text string) error
}

// columns are the columns that there are, in the order in which messages name them. Their names are
// those of the fields of Record in JSON.
var columns = []column{
	{"source", func(r *Record, text string) error { r.Source = text; return nil }},
	{"id", func(r *Record, text string) error { r.ID = text; return nil }},
	{"title", func(r *Record, text string) error { r.Title = text; return nil }},
	{"url", func(r *Record, text string) error { r.URL = text; return nil }},
	{"size", func(r *Record, text string) (err error) { r.Size, err = number(text); return err }},
	{"sha256", func(r *Record, text string) error { r.SHA256 = text; return nil }},
	{"withdrawn", setWithdrawn},
	{"priority", func(r *Record, text string) error {
		n, err := number(text)
		priority := int(n)
		r.Priority = &priority
		return err
	}},
	{"curated", func(r *Record, text string) (err error) {
		r.Curated, err = ParseTime(text)
		return err
	}},
	{"initial", func(r *Record, text string) (err error) {
		r.Initial, err = ParseTime(text)
		return err
	}},
}

// fields are the names of the fields of a record or a message, for messages, separated by commas.
func fields(of any) string {
	var names []string
	if _, ok := of.(*Message); ok {
		names = []string{"project", "kind"}
	}
	for _, c := range columns {
		names = append(names, c.name)
	}
	return strings.Join(names, ", ")
}

// number reads a whole number.
func number(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("found %q; expected a whole number", clip(text))
	}
	return n, nil
}

// setWithdrawn takes only the two words: "yes" or "1" taken for false would bring back what is
// withdrawn.
func setWithdrawn(r *Record, text string) error {
	switch text {
	case "true", "false":
		r.Withdrawn = text == "true"
		return nil
	}
	return fmt.Errorf("found %q; expected true or false", clip(text))
}
