package states

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
)

// value reads from the JSON value that a state was given, or from its context object. Values
// are what decode makes. An error is a *failure. It changes neither of them, since other
// states may have the same values.
type value func(data, context any) (any, error)

// of is what is read, which is the data if the definition does not say. A nil value is a
// field that is not in the definition.
func (v value) of(data, context any) (any, error) {
	if v == nil {
		return data, nil
	}
	return v(data, context)
}

// path is a path of a definition: "$" or "$$", then names and indexes.
type path struct{ value }

// target is where a state puts its result: the zero value replaces the state's input. Without
// names and discard, the result replaces the input ("$").
type target struct {
	discard bool     // ResultPath is null
	names   []string // of the fields, the outermost first
}

// template is a payload template: a field whose name ends in ".$" gets the value of a path or of an
// intrinsic function.
type template struct{ value }

// A path has no wildcards, filters or slices: it leads to one value.
var (
	pathForm = regexp.MustCompile(`^\$\$?(\.[\pL_][\pL\pN_-]*|\[\d{1,9}\])*$`)
	stepForm = regexp.MustCompile(`\.[^.\[]+|\[\d+\]`)
	callForm = regexp.MustCompile(`^(States\.\w+)\((.*)\)$`)
)

// intrinsics are the intrinsic functions that definitions may use.
var intrinsics = map[string]func(any) (any, error){
	"States.StringToJson": func(in any) (any, error) {
		text, ok := in.(string)
		out, err := decode([]byte(text))
		if !ok || err != nil {
			return nil, &failure{intrinsicFailure,
				"States.StringToJson was not given JSON in a string"}
		}
		return out, nil
	},
	"States.JsonToString": func(in any) (any, error) { return encode(in) },
}

// parsePath reads a path. A path that leads nowhere fails the state with States.Runtime, as
// on Step Functions.
func parsePath(text string) (value, error) {
	if !pathForm.MatchString(text) {
		return nil, fmt.Errorf("the path %q is not supported: paths have names and indexes", text)
	}

	steps := stepForm.FindAllString(text, -1)
	return func(data, context any) (any, error) {
		at := data
		if strings.HasPrefix(text, "$$") {
			at = context
		}

		for _, step := range steps {
			var found bool
			at, found = descend(at, step)
			if !found {
				cause := "the JSONPath '" + text + "' could not be found in the input"
				return nil, &failure{runtimeFailure, cause}
			}
		}
		return at, nil
	}, nil
}

// descend goes one step of a path, ".name" or "[index]". It reports false for a step that leads
// nowhere.
func descend(at any, step string) (any, bool) {
	if name, isName := strings.CutPrefix(step, "."); isName {
		fields, _ := at.(map[string]any)
		out, found := fields[name]
		return out, found
	}

	items, _ := at.([]any)
	i, err := strconv.Atoi(strings.Trim(step, "[]"))
	if err != nil || i >= len(items) {
		return nil, false
	}
	return items[i], true
}

// UnmarshalJSON reads a path. So a definition with a path of another form is refused when it
// is added.
func (p *path) UnmarshalJSON(text []byte) (err error) {
	var s string
	if err = json.Unmarshal(text, &s); err != nil {
		return err
	}
	p.value, err = parsePath(s)
	return err
}

// UnmarshalJSON reads a ResultPath, which is null or names fields.
func (p *target) UnmarshalJSON(text []byte) error {
	var s *string
	if err := json.Unmarshal(text, &s); err != nil {
		return err
	}

	if s == nil {
		p.discard = true
		return nil
	}

	if !pathForm.MatchString(*s) || strings.HasPrefix(*s, "$$") || strings.Contains(*s, "[") {
		return fmt.Errorf("the path %q is not supported: a result goes to named fields", *s)
	}

	for _, step := range stepForm.FindAllString(*s, -1) {
		p.names = append(p.names, step[1:])
	}
	return nil
}

// put is the state's input with the result in its place. Objects on the way that are not
// there are made.
func (p target) put(input, result any) (any, error) {
	if p.discard {
		return input, nil
	}
	return insert(input, p.names, result)
}

// insert copies what it changes: others may have the same values. A field that is there and
// no object is a failure.
func insert(at any, names []string, result any) (any, error) {
	if len(names) == 0 {
		return result, nil
	}

	fields, ok := at.(map[string]any)
	if !ok && at != nil {
		cause := "the result has no place in the input: no field " + names[0]
		return nil, &failure{"States.ResultPathMatchFailure", cause}
	}

	changed := make(map[string]any, len(fields)+1)
	for name, field := range fields {
		changed[name] = field
	}

	field, err := insert(fields[names[0]], names[1:], result)
	changed[names[0]] = field
	return changed, err
}

// UnmarshalJSON reads a payload template.
func (t *template) UnmarshalJSON(text []byte) error {
	v, err := decode(text)
	if err != nil {
		return err
	}
	t.value, err = compile(v)
	return err
}

// compile makes a template of a JSON value. Texts of it are only read as paths in fields
// whose names end in ".$".
func compile(v any) (value, error) {
	switch v := v.(type) {
	case map[string]any:
		return compileObject(v)
	case []any:
		return compileArray(v)
	}
	return func(_, _ any) (any, error) { return v, nil }, nil
}

// compileObject makes a template of an object: each field is compiled, and its name loses the
// ".$".
func compileObject(object map[string]any) (value, error) {
	fields := map[string]value{}
	for key, v := range object {
		name, read := strings.CutSuffix(key, ".$")
		part := compile
		if read {
			part = compileExpression
		}

		field, err := part(v)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}

		if fields[name] != nil {
			return nil, fmt.Errorf("%s: the field is there twice", name)
		}

		fields[name] = field
	}
	return func(data, context any) (any, error) {
		out := make(map[string]any, len(fields))
		for name, field := range fields {
			v, err := field(data, context)
			if err != nil {
				return nil, err
			}
			out[name] = v
		}
		return out, nil
	}, nil
}

// compileArray makes a template of an array. Paths in it are only within objects.
func compileArray(array []any) (value, error) {
	items := make([]value, len(array))
	for i, v := range array {
		item, err := compile(v)
		if err != nil {
			return nil, fmt.Errorf("[%d]: %w", i, err)
		}
		items[i] = item
	}
	return func(data, context any) (any, error) {
		out := make([]any, len(items))
		for i, item := range items {
			v, err := item(data, context)
			if err != nil {
				return nil, err
			}
			out[i] = v
		}
		return out, nil
	}, nil
}

// compileExpression reads what a field gets whose name ends in ".$": a path, or a function of one.
func compileExpression(v any) (value, error) {
	text, _ := v.(string)
	call := callForm.FindStringSubmatch(text)
	if call == nil {
		return parsePath(text)
	}

	function := intrinsics[call[1]]
	if function == nil {
		return nil, fmt.Errorf("the intrinsic function %s is not supported", call[1])
	}

	argument, err := parsePath(call[2])
	if err != nil {
		return nil, err
	}
	return func(data, context any) (any, error) {
		in, err := argument(data, context)
		if err != nil {
			return nil, err
		}
		return function(in)
	}, nil
}

// decode reads one JSON value. Numbers stay as they are written. A number beyond a float64
// passes through a machine unchanged.
func decode(text []byte) (out any, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err = d.Decode(&out); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("more follows after the JSON value")
	}
	return out, nil
}

// most is the largest text that passes from state to state, in bytes (Step Functions Developer
// Guide, "Service quotas": 256 KiB).
const most = 256 << 10

// encode writes a JSON value. What is too large is a failure that a catcher can match only by
// its own name.
func encode(v any) (string, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return "", &failure{runtimeFailure, err.Error()}
	}

	if out.Len() > most+1 {
		return "", &failure{dataLimit,
			fmt.Sprintf("data of %d bytes is larger than %d", out.Len()-1, most)}
	}
	return strings.TrimSuffix(out.String(), "\n"), nil
}
