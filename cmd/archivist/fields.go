package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"archivist/pkg/terminal"
)

// chooseFields selects the fields to print as JSON. An unknown name is refused before any
// request to the API.
func (a *app) chooseFields(given string, command any) error {
	if given == "" {
		return nil
	}
	p, is := command.(printer)
	if !is {
		return usage("this command prints no JSON")
	}
	names := fieldNames(reflect.TypeOf(p.prints()))
	if given == "all" {
		a.json = names
		return nil
	}
	for name := range strings.SplitSeq(given, ",") {
		name = strings.TrimSpace(name)
		if !slices.Contains(names, name) {
			return usage("--json: there is no field %q; expected some of %s", name, strings.Join(names, ", "))
		}
		a.json = append(a.json, name)
	}
	return nil
}

// askForNames removes a --json without a value, which requests the names of the fields.
func askForNames(args []string) ([]string, bool) {
	for i, arg := range args {
		last := i == len(args)-1
		if arg == "--" {
			break
		}
		if arg == "--json=" || arg == "--json" && (last || strings.HasPrefix(args[i+1], "-")) {
			return slices.Delete(slices.Clone(args), i, i+1), true
		}
	}
	return args, false
}

// listFields lists the fields of a command, even if its other arguments are missing.
func (a *app) listFields(k *kong.Context, err error) int {
	var wrong *kong.ParseError
	if errors.As(err, &wrong) {
		k = wrong.Context
	}
	p, is := target(k).(printer)
	if !is {
		return a.end(usage("this command prints no JSON"))
	}
	fmt.Fprintln(a.errors, "Specify fields for --json, separated by commas, or all:")
	for _, name := range fieldNames(reflect.TypeOf(p.prints())) {
		fmt.Fprintln(a.errors, "  "+name)
	}
	return exitUsage
}

// fieldNames are the names that the fields of a struct have in JSON, in their order.
// They come from the wire types, so new fields of the API are available at once.
func fieldNames(t reflect.Type) (names []string) {
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

// chosen is a struct of which only some fields are printed. These are always present, even
// if empty, so that scripts can rely on them.
type chosen struct {
	of    reflect.Value
	names []string
}

// MarshalJSON writes the fields in the requested order.
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
		if i > 0 {
			out.WriteByte(',')
		}
		out.WriteString(`"` + name + `":`)
		if err := encoder(&out).Encode(field.Interface()); err != nil {
			return nil, err
		}
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}

// isList reports whether a value is an array in JSON.
func isList(v reflect.Value) bool {
	return v.Kind() == reflect.Slice && v.Type().Elem().Kind() != reflect.Uint8
}

// choose selects the fields of a struct, or of each struct of a slice.
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
	enc := encoder(a.out)
	enc.SetIndent("", "  ")
	return enc.Encode(choose(v, a.json))
}

// printLine prints a struct as one line of JSON.
func (a *app) printLine(to io.Writer, v any) error {
	return encoder(to).Encode(choose(v, a.json))
}

// encoder writes JSON without HTML escapes: an & in a URL stays readable.
func encoder(to io.Writer) *json.Encoder {
	enc := json.NewEncoder(to)
	enc.SetEscapeHTML(false)
	return enc
}

// page is the output of a command as text.
func (a *app) page() terminal.Page { return terminal.Page{Writer: a.screen, Width: a.out.Width} }
