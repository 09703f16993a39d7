package states

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// flow is a state machine, or the processor of a Map state. It is not changed once it was
// parsed, so executions share it.
type flow struct {
	start  string
	states map[string]*state
}

// state is one of a definition. Which fields belong to which type is in fieldsOf. The names
// of the fields are those of the Amazon States Language, by which they are decoded.
type state struct {
	Type, Comment, Next, Default string
	End                          bool
	Resource                     string
	Parameters, ItemSelector     template
	ResultSelector               template
	ItemsPath, OutputPath        path
	ResultPath                   target
	TimeoutSeconds               *int64
	TimeoutSecondsPath           path
	Retry                        []retrier
	Catch                        []catcher
	Choices                      []choice
	Seconds                      *int64
	SecondsPath                  path
	Result                       json.RawMessage
	Error, Cause                 string
	ErrorPath, CausePath         path
	MaxConcurrency               int
	ItemProcessor                json.RawMessage
	processor                    *flow
}

// retrier is an entry of Retry. Nil means the default of the language.
type retrier struct {
	ErrorEquals     []string
	IntervalSeconds *float64
	MaxAttempts     *int
	BackoffRate     *float64
	MaxDelaySeconds *float64
	JitterStrategy  string
}

// catcher is an entry of Catch.
type catcher struct {
	ErrorEquals []string
	ResultPath  target
	Next        string
}

// longestTask is the default time-out of a task, in seconds (Developer Guide, "Task workflow
// state").
const longestTask = 99_999_999

// choice is an entry of Choices, with one of the two comparisons that definitions use.
type choice struct {
	Variable      path
	StringEquals  *string
	BooleanEquals *bool
	Next          string
}

// fieldsOf are the fields that a state of a type may have, besides Type and Comment.
var fieldsOf = map[string][]string{
	"Task": {"Resource", "Parameters", "ResultSelector", "ResultPath", "OutputPath",
		"TimeoutSeconds",
		"TimeoutSecondsPath", "Retry", "Catch", "Next", "End"},
	"Map": {"ItemsPath", "MaxConcurrency", "ItemSelector", "ItemProcessor", "ResultSelector",
		"ResultPath",
		"OutputPath", "Retry", "Catch", "Next", "End"},
	"Choice":  {"Choices", "Default"},
	"Wait":    {"Seconds", "SecondsPath", "Next", "End"},
	"Pass":    {"Parameters", "Result", "ResultPath", "OutputPath", "Next", "End"},
	"Succeed": {},
	"Fail":    {"Error", "ErrorPath", "Cause", "CausePath"},
}

// parse reads and checks a definition, or the processor of a Map state. at is the place of
// the text, for messages: the machine's name, then "States", names and fields.
func parse(text []byte, at string) (*flow, error) {
	var d struct {
		Comment, StartAt string
		ProcessorConfig  struct{ Mode string }
		States           map[string]json.RawMessage
	}

	if err := strictly(text, &d); err != nil {
		return nil, fmt.Errorf("%s: %w", at, err)
	}

	if mode := d.ProcessorConfig.Mode; mode != "" && mode != "INLINE" {
		return nil, fmt.Errorf("%s.ProcessorConfig.Mode: %s is not supported", at, mode)
	}

	f := &flow{d.StartAt, map[string]*state{}}
	for _, name := range slices.Sorted(maps.Keys(d.States)) {
		path := at + ".States." + name
		s, err := parseState(d.States[name], path)
		if err != nil {
			return nil, err
		}
		if err = s.check(path); err != nil {
			return nil, err
		}
		f.states[name] = s
	}
	return f, f.connected(at)
}

// parseState reads the fields of a state, one after the other, so that an error names its
// field. A field that the language has and this interpreter has not is refused, not ignored.
func parseState(text []byte, at string) (*state, error) {
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(text, &raw); err != nil {
		return nil, fmt.Errorf("%s: %w", at, err)
	}

	s := &state{}
	if err := json.Unmarshal(raw["Type"], &s.Type); err != nil || fieldsOf[s.Type] == nil {
		return nil, fmt.Errorf("%s.Type: %s is not supported", at, raw["Type"])
	}

	// In the order of the names, so that the same definition has the same error.
	for _, field := range slices.Sorted(maps.Keys(raw)) {
		if field != "Type" && field != "Comment" && !slices.Contains(fieldsOf[s.Type], field) {
			return nil, fmt.Errorf("%s.%s: a state of the type %s with it is not supported", at,
				field, s.Type)
		}

		one, err := json.Marshal(map[string]json.RawMessage{field: raw[field]})
		if err != nil {
			return nil, fmt.Errorf("%s.%s: %w", at, field, err)
		}
		if err := strictly(one, s); err != nil {
			return nil, fmt.Errorf("%s.%s: %w", at, field, err)
		}
	}

	if s.Type != "Map" {
		return s, nil
	}

	var err error
	s.processor, err = parse(s.ItemProcessor, at+".ItemProcessor")
	return s, err
}

// strictly decodes JSON whose fields are all known. It is how a field that has another type
// or name is noticed, instead of being left at zero.
func strictly(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	return d.Decode(into)
}

// check says what is wrong in a state by itself. The first thing that is wrong is the error,
// with the place.
func (s *state) check(at string) error {
	for _, wrong := range []error{s.checkNeeds(), s.checkNumbers(), s.checkLists()} {
		if wrong != nil {
			return fmt.Errorf("%s%w", at, wrong)
		}
	}
	return nil
}

// checkNeeds says which field is missing, or is one too many.
func (s *state) checkNeeds() error {
	leads := slices.Contains(fieldsOf[s.Type], "Next")
	switch {
	case leads && (s.Next == "") != s.End:
		return errors.New(": it needs one of Next and End")
	case s.Type == "Task" && (resources[s.Resource].call == nil || s.Parameters.value == nil):
		return fmt.Errorf(".Resource: %q is not supported, or has no Parameters", s.Resource)
	case s.Type == "Wait" && (s.Seconds == nil) == (s.SecondsPath.value == nil):
		return errors.New(": it needs one of Seconds and SecondsPath")
	case s.Type == "Choice" && len(s.Choices) == 0:
		return errors.New(".Choices: there is none")
	}
	return nil
}

// checkNumbers says which number is out of its bounds.
func (s *state) checkNumbers() error {
	switch {
	case s.TimeoutSeconds != nil && s.TimeoutSecondsPath.value != nil:
		return errors.New(".TimeoutSeconds: there is TimeoutSecondsPath, too")
	case s.TimeoutSeconds != nil && outside(*s.TimeoutSeconds, 1), s.Seconds != nil &&
		outside(*s.Seconds, 0):
		return fmt.Errorf(": a number of seconds is too small, or more than %d", longestTask)
	case s.MaxConcurrency < 0:
		return errors.New(".MaxConcurrency: it is negative")
	}
	return nil
}

// outside reports whether a number of seconds is none that Step Functions accepts.
func outside(seconds, least int64) bool { return seconds < least || seconds > longestTask }

// checkLists says what is wrong in the choices, retriers and catchers.
func (s *state) checkLists() error {
	for i, c := range s.Choices {
		if c.Variable.value == nil || (c.StringEquals == nil) == (c.BooleanEquals == nil) {
			return fmt.Errorf(".Choices[%d]: it needs a Variable, and one of StringEquals and BooleanEquals", i)
		}
	}

	for i, r := range s.Retry {
		if err := r.check(i == len(s.Retry)-1); err != nil {
			return fmt.Errorf(".Retry[%d]: %w", i, err)
		}
	}

	for i, c := range s.Catch {
		if err := checkNames(c.ErrorEquals, i == len(s.Catch)-1); err != nil {
			return fmt.Errorf(".Catch[%d]: %w", i, err)
		}
	}
	return nil
}

// check says what is wrong in a retrier.
func (r retrier) check(last bool) error {
	switch {
	case r.IntervalSeconds != nil && *r.IntervalSeconds < 1, r.MaxDelaySeconds != nil &&
		*r.MaxDelaySeconds < 1,
		r.BackoffRate != nil && *r.BackoffRate < 1, r.MaxAttempts != nil && *r.MaxAttempts < 0:
		return errors.New("a number is too small")
	case !slices.Contains([]string{"", "FULL", "NONE"}, r.JitterStrategy):
		return fmt.Errorf("the JitterStrategy %s is not supported", r.JitterStrategy)
	}
	return checkNames(r.ErrorEquals, last)
}

// checkNames says what is wrong in the error names of a retrier or catcher. States.ALL "must
// appear alone in the ErrorEquals array and must appear in the last" one (Amazon States Language,
// "Errors").
func checkNames(names []string, last bool) error {
	if len(names) == 0 || slices.Contains(names, anyError) && (len(names) > 1 || !last) {
		return errors.New("ErrorEquals needs names, and States.ALL stands alone and last")
	}
	return nil
}

// leads are the states that may follow.
func (s *state) leads() (names []string) {
	for _, c := range s.Choices {
		names = append(names, c.Next)
	}

	for _, c := range s.Catch {
		names = append(names, c.Next)
	}

	for _, name := range []string{s.Next, s.Default} {
		if name != "" {
			names = append(names, name)
		}
	}
	return names
}

// connected reports transitions that lead nowhere, and states that are never reached. Step
// Functions refuses both as MISSING_TRANSITION_TARGET (API reference,
// "ValidateStateMachineDefinition"). The states of a Map's processor are a flow of their own.
func (f *flow) connected(at string) error {
	// The states are visited from the first one on, each once.
	reached, open := map[string]bool{}, []string{f.start}
	for len(open) > 0 {
		name := open[0]
		open = open[1:]
		if reached[name] {
			continue
		}

		s := f.states[name]
		if s == nil {
			return fmt.Errorf("%s: a transition leads to %q, which does not exist", at, name)
		}

		reached[name] = true
		open = append(open, s.leads()...)
	}

	var lost []string
	for name := range f.states {
		if !reached[name] {
			lost = append(lost, name)
		}
	}

	if len(lost) > 0 {
		slices.Sort(lost)
		return fmt.Errorf("%s.States: never reached: %s", at, strings.Join(lost, ", "))
	}
	return nil
}
