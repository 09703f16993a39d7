package command

import (
	"bytes"
	"encoding/json"
	"io"
	"reflect"
	"slices"
	"strings"

	"archivist/pkg/kernel/terminal"
)

// FieldNames are the names that the fields of a struct have in JSON, in their order, with those of embedded
// structs. They come from the wire types, so new fields of the API are available at once.
func FieldNames(t reflect.Type) (names []string) {
	for _, f := range reflect.VisibleFields(t) {
		if name := jsonName(f); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// jsonName is the name of a field in JSON, "" if it has none.
func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	if f.Anonymous || !f.IsExported() || name == "-" {
		return ""
	}
	return name
}

// chosen is a struct of which only some fields are printed. These are always present, even if empty: omitempty
// of the wire type does not count, so that scripts can rely on them.
type chosen struct {
	of    reflect.Value
	names []string
}

// MarshalJSON writes the fields in the requested order, which encoding/json cannot do with a map. The names are
// known to exist (chooseFields).
func (c chosen) MarshalJSON() ([]byte, error) {
	fields := reflect.VisibleFields(c.of.Type())
	var out bytes.Buffer
	out.WriteByte('{')
	for i, name := range c.names {
		at := slices.IndexFunc(fields,
			func(f reflect.StructField) bool { return jsonName(f) == name })
		field := c.of.FieldByIndex(fields[at].Index)
		if isList(field) && field.IsNil() {
			field = reflect.MakeSlice(field.Type(), 0, 0) // [], not null
		}

		if i > 0 {
			out.WriteByte(',')
		}

		out.WriteString(`"` + name + `":`)
		if err := NewEncoder(&out).Encode(field.Interface()); err != nil {
			return nil, err
		}
	}

	out.WriteByte('}')
	return out.Bytes(), nil
}

// isList reports whether a value is an array in JSON. A slice of bytes is text (base64), and json.RawMessage is
// what it contains.
func isList(v reflect.Value) bool {
	return v.Kind() == reflect.Slice && v.Type().Elem().Kind() != reflect.Uint8
}

// choose selects the fields of a struct, or of each struct of a slice. A nil slice becomes [], not null.
func choose(v any, names []string) any {
	value := reflect.ValueOf(v)
	if value.Kind() != reflect.Slice {
		return chosen{value, names}
	}
	list := []chosen{}
	for i := range value.Len() {
		list = append(list, chosen{value.Index(i), names})
	}
	return list
}

// Print prints a struct, or a slice of structs, as indented JSON with the chosen fields, or else by text. text
// may be nil if JSON is known to be asked for. v has the type of which Prints returns an empty value.
func (a *App) Print(v any, text func(terminal.Page)) error {
	if a.JSON == nil {
		text(a.Page())
		return nil
	}
	enc := NewEncoder(a.Out)
	enc.SetIndent("", "  ")
	return enc.Encode(choose(v, a.JSON))
}

// Show returns what prints one thing, as the request for it has returned it: for people by text, or as JSON.
//
//	return command.Show(a, showRun)(a.Client.Run(a.Ctx, c.Component, c.ID))
func Show[T any](a *App, text func(terminal.Page, T)) func(T, error) error {
	return func(got T, err error) error {
		if err != nil {
			return err
		}
		return a.Print(got, func(p terminal.Page) { text(p, got) })
	}
}

// Rows is a text for Show: a table.
func Rows[T any](columns ...terminal.Column[T]) func(terminal.Page, []T) {
	return func(p terminal.Page, list []T) { terminal.Table(p, list, columns...) }
}

// PrintLine prints a struct as one line of JSON (JSON Lines), for commands whose output has no end. Only if JSON
// is asked for.
func (a *App) PrintLine(to io.Writer, v any) error {
	return NewEncoder(to).Encode(choose(v, a.JSON))
}

// NewEncoder writes JSON without HTML escapes: an & in a URL stays readable.
func NewEncoder(to io.Writer) *json.Encoder {
	enc := json.NewEncoder(to)
	enc.SetEscapeHTML(false)
	return enc
}

// Page is the output of a command as text.
func (a *App) Page() terminal.Page { return terminal.Page{Writer: a.Screen, Width: a.Out.Width} }
