package workflow

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"archivist/pkg/kernel/fault"
)

// Limits of parameters.
const (
	MaxParameters = 20

	// Bytes of a value. All that are set have at most MaxSet as JSON: they are part of the row of the run,
	// of its event and of its job.
	MaxParameter = 1 << 10
	MaxSet       = 4 << 10
	maxOptions   = 50
)

// forms are the texts of the types, and what they are called.
var forms = map[Type]struct {
	form *regexp.Regexp
	name string
}{
	Integer: {regexp.MustCompile(`^(0|-?[1-9][0-9]{0,17})$`), "a whole number"},
	Number:  {regexp.MustCompile(`^-?(0|[1-9][0-9]{0,17})(\.[0-9]{1,18})?$`), "a number such as 2.5"},
	Boolean: {regexp.MustCompile(`^(true|false)$`), "true or false"},
}

// refuses says what a value has to be, "" if it is that.
func (p Parameter) refuses(value string) string {
	form := forms[p.Type]
	switch {
	case len(p.Options) > 0 && !slices.Contains(p.Options, value):
		return "one of " + strings.Join(p.Options, ", ")
	case len(value) > MaxParameter:
		return fmt.Sprintf("at most %d bytes", MaxParameter)
	case strings.ContainsRune(value, 0):
		return "text without a character NUL"
	case form.form != nil && !form.form.MatchString(value):
		return form.name
	}
	return ""
}

// Values are the values of all parameters of the task, if these are set: the others have their defaults. An
// Invalid says what is wrong with those that are set, or which is missing.
func (t *Task) Values(set map[string]string) (map[string]string, error) {
	known := slices.Sorted(maps.Keys(t.Parameters))
	for _, name := range slices.Sorted(maps.Keys(set)) {
		p, is := t.Parameters[name]
		if !is {
			return nil, fault.New(fault.Invalid,
				"parameters.%s: the task %s has no such parameter; it has %s",
				clip(name), t.Name, said(known))
		}

		if want := p.refuses(set[name]); want != "" {
			return nil, fault.New(fault.Invalid,
				"parameters.%s: found %q; expected %s", name, clip(set[name]), want)
		}
	}

	if len(set) > 0 && len(asJSON(set)) > MaxSet {
		return nil, fault.New(fault.Invalid,
			"parameters: they have more than %d bytes together", MaxSet)
	}

	values := map[string]string{}
	for _, name := range known {
		value, is := set[name]
		switch standard := t.Parameters[name].Default; {
		case is:
			values[name] = value
		case standard == nil:
			return nil, fault.New(fault.Invalid,
				"parameters.%s is missing: the task %s has no default for it", name,
				t.Name)
		default:
			values[name] = *standard
		}
	}
	return values, nil
}

// said is a list of names, for people.
func said(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// parameters reads the parameters of a task, by name. Defaults and options are read as variables are:
// numbers, true and false are the text that is written.
func (s *source) parameters(n *node) map[string]Parameter {
	return pairs(s, "parameters", n, MaxParameters, func(name string, v *node) Parameter {
		p := Parameter{Type: String}
		var standard, options *node
		s.fields(name, v, map[string]func(*node){
			"type": func(v *node) {
				p.Type = Type(s.choice("type", v, string(String), string(Integer), string(Number), string(Boolean)))
			},
			"default":     func(v *node) { standard = v },
			"options":     func(v *node) { options = v },
			"description": func(v *node) { p.Description = s.text("description", v, maxText) },
		})

		if options != nil { // read when the type is known
			for _, v := range s.entries("options", options, maxOptions) {
				p.Options = append(p.Options, s.value(name+".options", v, Parameter{Type: p.Type}))
			}
		}

		if standard != nil {
			value := s.value(name+".default", standard, p)
			p.Default = &value
		}
		return p
	})
}

// value reads a value of a parameter.
func (s *source) value(key string, n *node, p Parameter) string {
	value := s.variable(key, n, MaxParameter)
	if want := p.refuses(value); want != "" && value == n.text && n.scalar() && n.kind != empty {
		s.refuse(n, "%s: %s: expected %s", key, n.said(), want)
	}
	return value
}

// parametersAlone checks what follows from the parameters of a task and its other keys.
func (d *draft) parametersAlone() {
	t := &d.task
	if len(t.Parameters) > 0 && !t.OnDemand && t.Manual == "" {
		d.refuse("parameters",
			"parameters are set when the task is started by hand, and its triggers do not have manual")
	}

	for _, name := range slices.Sorted(maps.Keys(t.Parameters)) {
		_, env := t.Env[name]
		_, secret := t.Secrets[name]
		switch {
		case env || secret:
			d.refuse("parameters", "parameters: %s is in env or secrets, too", name)
		case t.Parameters[name].Default != nil:
		case len(t.Schedules) > 0, t.OnCommit && t.Manual == "":
			d.refuse("parameters", "parameters.%s: nobody sets it if commits or schedules start the task, so it "+
				"needs a default", name)
		}
	}
}
