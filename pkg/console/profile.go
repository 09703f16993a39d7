package console

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"archivist/pkg/kernel/fault"
)

// schema is what a JSON Schema of the API says of a value.
type schema struct {
	Type        any                `json:"type"` // a text, or several of which one is null
	Description string             `json:"description"`
	Enum        []any              `json:"enum"`
	Ref         string             `json:"$ref"`
	Properties  map[string]*schema `json:"properties"`
	Items       *schema            `json:"items"`
	MaxLength   int                `json:"maxLength"`
	Minimum     *float64           `json:"minimum"`
	Maximum     *float64           `json:"maximum"`
	Format      string             `json:"format"`
}

// schemas are those of the OpenAPI document, by their names. It is large, so it is read once.
type schemas struct {
	mu sync.Mutex
	of map[string]*schema
}

// read reads them.
func (s *schemas) read(v *visit) (map[string]*schema, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of != nil {
		return s.of, nil
	}
	var doc struct {
		Components struct {
			Schemas map[string]*schema `json:"schemas"`
		} `json:"components"`
	}
	if err := v.api.Call(v.Context(), http.MethodGet, "/openapi.json", nil, &doc); err != nil {
		return nil, err
	}
	s.of = doc.Components.Schemas
	return s.of, nil
}

// profileField is a field of the form of a profile.
type profileField struct {
	Name  string // its path, e.g. callback.url
	Group string // the first part of the path, if it has several
	Help  string
	// Kind is text, number, yes, choice, day, lines (one text each), or json (one object each line).
	Kind   string
	Values []string // of a choice
	Most   int      // characters of a text
	Min    string
	Max    string
	Value  string
	// Was is what the profile had here when the form was made.
	Was string
	// Differs: somebody else has changed the profile meanwhile, and it has Stored here, not
	// Value. Both: they have changed this field. Taken: only they have, and Value is theirs,
	// before it was Before.
	Differs, Both, Taken bool
	Stored, Before       string
}

// profiled adds the form of the profile: with what was sent, or with the profile as it is.
func (c *Console) profiled(v *visit, p *collection, sent url.Values) error {
	all, err := c.schemas.read(v)
	if err != nil {
		return err
	}
	raw, err := json.Marshal(p.Is.Profile)
	if err != nil {
		return err
	}
	p.Was = sumOf(string(raw))
	var is map[string]any
	if err := json.Unmarshal(raw, &is); err != nil {
		return err
	}
	p.Fields = formFields(all, all["Profile"], "", is)
	for i := range p.Fields {
		f := &p.Fields[i]
		f.Was = f.Value
		if sent != nil {
			f.Value, f.Was = sent.Get(f.Name), sent.Get(wasField+f.Name)
		}
	}
	return nil
}

// wasField begins the names of the fields of a form that have what the profile had when it was
// made.
const wasField = "was:"

// compared notes in the fields of a form that was sent what the profile has now, where that
// differs, and returns how many these are. A field that only somebody else has changed gets their
// value, and says what it was: so what they did is not overwritten by somebody who has not
// touched it.
func compared(sent, now []profileField) (differ, taken int) {
	for i := range sent {
		f := &sent[i]
		f.Stored = now[i].Value
		theirs := linesAs(f.Was) != linesAs(f.Stored)
		mine := linesAs(f.Was) != linesAs(f.Value)
		switch {
		case linesAs(f.Value) == linesAs(f.Stored):
		case mine:
			f.Differs, f.Both = true, theirs
			differ++
		default:
			f.Taken, f.Before, f.Value = true, f.Was, f.Stored
			taken++
		}
		f.Was = f.Stored
	}
	return differ, taken
}

// linesAs is a text with the ends of its lines as they are stored, not as forms send them.
func linesAs(text string) string {
	return strings.TrimSpace(strings.ReplaceAll(text, "\r\n", "\n"))
}

// formFields are the fields of a value with a schema, the simple ones first.
func formFields(all map[string]*schema, s *schema, prefix string,
	is map[string]any) (fields []profileField) {
	var groups []profileField
	for _, name := range sortedNames(s) {
		of := s.Properties[name]
		path := prefix + name
		if ref := refOf(all, of); ref != nil {
			inner, _ := is[name].(map[string]any)
			groups = append(groups, formFields(all, ref, path+".", inner)...)
			continue
		}
		f := fieldOf(of)
		f.Name, f.Group, f.Value = path, strings.TrimSuffix(prefix, "."), textOf(is[name])
		fields = append(fields, f)
	}
	return append(fields, groups...)
}

// sortedNames are the names of the properties of an object. The title comes first.
func sortedNames(s *schema) (names []string) {
	if s == nil {
		return nil
	}
	for name := range s.Properties {
		if !strings.HasPrefix(name, "$") {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		if first := "title"; a == first || b == first {
			return strings.Compare(strconv.FormatBool(b == first), strconv.FormatBool(a == first))
		}
		return strings.Compare(a, b)
	})
	return names
}

// refOf is the schema of an object that a schema refers to, nil if it refers to none.
func refOf(all map[string]*schema, s *schema) *schema {
	_, name, is := strings.Cut(s.Ref, "#/components/schemas/")
	if !is {
		return nil
	}
	return all[name]
}

// is reports whether a schema has a type.
func (s *schema) is(kind string) bool {
	switch t := s.Type.(type) {
	case string:
		return t == kind
	case []any:
		return slices.Contains(t, any(kind))
	}
	return false
}

// fieldOf is the field of a value that is no object.
func fieldOf(s *schema) profileField {
	f := profileField{Kind: "text", Help: s.Description, Most: max(s.MaxLength, 1)}
	if s.MaxLength == 0 {
		f.Most = 2048
	}
	switch {
	case s.is("array") && s.Items != nil && s.Items.Ref != "":
		f.Kind = "json"
	case s.is("array"):
		f.Kind = "lines"
	case s.is("boolean"):
		f.Kind = "yes"
	case s.is("integer"):
		f.Kind = "number"
		f.Min, f.Max = bound(s.Minimum), bound(s.Maximum)
	case len(s.Enum) > 0:
		f.Kind = "choice"
		for _, e := range s.Enum {
			f.Values = append(f.Values, textOf(e))
		}
	case s.Format == "date":
		f.Kind = "day"
	}
	return f
}

// bound is a bound of a number, "" if there is none.
func bound(n *float64) string {
	if n == nil {
		return ""
	}
	return strconv.FormatFloat(*n, 'f', -1, 64)
}

// textOf is a value as a form has it: lists have one item in each line.
func textOf(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case string:
		return v
	case bool:
		if v {
			return "yes"
		}
		return ""
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case []any:
		lines := make([]string, len(v))
		for i, item := range v {
			lines[i] = textOf(item)
		}
		return strings.Join(lines, "\n")
	}
	data, _ := json.Marshal(value) // it was made of JSON
	return string(data)
}

// profileFrom is the profile of a form. Empty fields are left out: they have their defaults then.
func profileFrom(fields []profileField, sent url.Values) (map[string]any, error) {
	out := map[string]any{}
	for _, f := range fields {
		value, err := f.read(strings.TrimSpace(sent.Get(f.Name)))
		if err != nil {
			return nil, err
		}
		if value == nil {
			continue
		}
		in, parts := out, strings.Split(f.Name, ".")
		for _, part := range parts[:len(parts)-1] {
			if _, there := in[part]; !there {
				in[part] = map[string]any{}
			}
			in = in[part].(map[string]any)
		}
		in[parts[len(parts)-1]] = value
	}
	return out, nil
}

// read reads what was written into a field, nil for nothing.
func (f profileField) read(text string) (any, error) {
	if text == "" {
		return nil, nil
	}
	switch f.Kind {
	case "yes":
		return true, nil
	case "number":
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, fault.New(fault.Invalid, "%s: found %q; expected a whole number", f.Name,
				cut(text))
		}
		return n, nil
	case "lines", "json":
		var all []any
		for line := range strings.FieldsFuncSeq(text, func(r rune) bool {
			return r == '\n' ||
				r == '\r'
		}) {
			var item any = strings.TrimSpace(line)
			if f.Kind == "json" {
				if err := json.Unmarshal([]byte(line), &item); err != nil {
					return nil, fault.New(fault.Invalid, `%s: found %q; expected JSON in each line, e.g. {"host": "…"}`,
						f.Name, cut(line))
				}
			}
			all = append(all, item)
		}
		return all, nil
	}
	return text, nil
}
