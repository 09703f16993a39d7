package main

import (
	"bytes"
	"encoding/json"
	"io"
	"reflect"
	"slices"
	"strings"

	"archivist/pkg/terminal"
)

// fieldNames are the names that the fields of a struct have in JSON, in their order.
func fieldNames(t reflect.Type) (names []string) {
	for _, f := range reflect.VisibleFields(t) {
		if name := jsonName(f); name != "" {
			names = append(names, name)
		}
	}
	return names
}

func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	if f.Anonymous || !f.IsExported() || name == "-" {
		return ""
	}
	return name
}

// chosen is a struct of which only some fields are printed. They are always there,
// also when they are empty.
type chosen struct {
	of    reflect.Value
	names []string
}

// MarshalJSON writes the fields in the order in which they were asked for.
func (c chosen) MarshalJSON() ([]byte, error) {
	fields := reflect.VisibleFields(c.of.Type())
	var out bytes.Buffer
	out.WriteByte('{')
	for i, name := range c.names {
		at := slices.IndexFunc(fields, func(f reflect.StructField) bool { return jsonName(f) == name })
		field := c.of.FieldByIndex(fields[at].Index)
		if isList(field) && field.IsNil() {
			field = reflect.MakeSlice(field.Type(), 0, 0) // [], not null
		}
		value, err := json.Marshal(field.Interface())
		if err != nil {
			return nil, err
		}
		if i > 0 {
			out.WriteByte(',')
		}
		out.WriteString(`"` + name + `":`)
		out.Write(value)
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}

// isList reports whether a value is an array in JSON.
func isList(v reflect.Value) bool {
	return v.Kind() == reflect.Slice && v.Type().Elem().Kind() != reflect.Uint8
}

// choose makes what is printed as JSON of a struct, or of each struct of a slice.
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

// print prints a struct, or a slice of structs, as JSON or as text.
func (a *app) print(v any, text func(terminal.Page)) error {
	if a.json == nil {
		text(a.page())
		return nil
	}
	enc := json.NewEncoder(a.out)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(choose(v, a.json))
}

// printLine prints a struct as one line of JSON.
func (a *app) printLine(to io.Writer, v any) error {
	enc := json.NewEncoder(to)
	enc.SetEscapeHTML(false)
	return enc.Encode(choose(v, a.json))
}

// page is the output of a command as text.
func (a *app) page() terminal.Page { return terminal.Page{Writer: a.screen, Width: a.out.Width} }
