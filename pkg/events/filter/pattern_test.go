package filter_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"pgregory.net/rapid"

	"archivist/pkg/events/envelope"
	"archivist/pkg/events/filter"
	"archivist/pkg/kernel/table/tabletest"
)

// matcher says whether an event, as EventBridge delivers it, matches a pattern.
type matcher func(t *rapid.T, pattern, event string) bool

// TestPatternAgrees: on random filters and events, the filter and its pattern select the
// same events, by a matcher written from the description of the patterns.
func TestPatternAgrees(t *testing.T) { agrees(t, matchesPattern) }

// TestPatternAgreesWithEmulator: likewise by the matcher of the local AWS.
func TestPatternAgreesWithEmulator(t *testing.T) {
	endpoint := os.Getenv(tabletest.EndpointVariable)
	if endpoint == "" {
		t.Skip("no EventBridge to compare with: set " + tabletest.EndpointVariable + " to MiniStack (make test does)")
	}
	client := eventbridge.New(eventbridge.Options{Region: "us-east-1", BaseEndpoint: &endpoint,
		Credentials: credentials.NewStaticCredentialsProvider("local", "local", "")})
	agrees(t, func(t *rapid.T, pattern, event string) bool {
		out, err := client.TestEventPattern(t.Context(),
			&eventbridge.TestEventPatternInput{EventPattern: &pattern, Event: aws.String(event)})
		if err != nil {
			t.Fatalf("the pattern %s: %v", pattern, err)
		}
		if own := matchesPattern(t, pattern, event); own != out.Result {
			t.Fatalf("the matcher of this test says %t of %s and %s", own, pattern, event)
		}
		return out.Result
	})
}

func agrees(t *testing.T, matches matcher) {
	selected, others, without := 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		text := drawFilter(t)
		f, err := filter.Compile(text)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := filter.Compile(f.String()); err != nil || again.String() != f.String() {
			t.Fatalf("%q is %s, read again %s, %v", text, f, again, err)
		}
		pattern, err := f.Pattern()
		if err != nil {
			without++
			return
		}
		for range 10 {
			e := drawEvent(t)
			if f.Match(e) {
				selected++
			} else {
				others++
			}
			if delivered := asDelivered(t, e); matches(t, pattern, delivered) != f.Match(e) {
				t.Fatalf("%s selects %t; its pattern %s does not agree on %s", f, f.Match(e), pattern, delivered)
			}
		}
	})
	if selected == 0 || others == 0 || without == 0 {
		t.Errorf("%d events selected, %d not, %d filters without a pattern: one of these was not tested",
			selected, others, without)
	}
}

// Few values, so that filters and events often have the same.
var (
	someTypes   = []string{"Object", "Job", "Collection"}
	someActions = []string{"create", "modify", "delete"}
	someValues  = []string{"a", "ab", "b:c/d", "b, {c}"}
)

func drawFilter(t *rapid.T) string {
	names := func(t *rapid.T, some []string, label string) string {
		name := rapid.SampledFrom(append([]string{"*"}, some...))
		return strings.Join(rapid.SliceOfN(name, 1, 2).Draw(t, label), "|")
	}
	clause := rapid.Custom(func(t *rapid.T) string {
		text := names(t, someTypes, "types") + "+" + names(t, someActions, "actions")
		terms := rapid.SliceOfN(rapid.Custom(drawTerm), 0, 2).Draw(t, "terms")
		if len(terms) == 0 {
			return text
		}
		return text + "{" + strings.Join(terms, ",") + "}"
	})
	return strings.Join(rapid.SliceOfN(clause, 1, 3).Draw(t, "clauses"), ":")
}

func drawTerm(t *rapid.T) string {
	not := rapid.SampledFrom([]string{"", "!"}).Draw(t, "not")
	names := []string{"id", "parent", "actor", "component", "property", "type", "outcome"}
	name := rapid.SampledFrom(names).Draw(t, "name")
	if name == "outcome" {
		return not + name + "=" + rapid.SampledFrom([]string{"success", "failure"}).Draw(t, "outcome")
	}
	value := rapid.Custom(func(t *rapid.T) string {
		end := rapid.SampledFrom([]string{"", "*"}).Draw(t, "end")
		return `"` + rapid.SampledFrom(someValues).Draw(t, "value") + `"` + end
	})
	return not + name + "=" + strings.Join(rapid.SliceOfN(value, 1, 2).Draw(t, "values"), "|")
}

func drawEvent(t *rapid.T) envelope.Event {
	some := func(label string) string { return rapid.SampledFrom(someValues).Draw(t, label) }
	perhaps := func(label string) string {
		return rapid.SampledFrom(append([]string{""}, someValues...)).Draw(t, label)
	}
	e := envelope.Event{
		ID: "1", Version: 1,
		Subject: envelope.Ref{Type: rapid.SampledFrom(someTypes).Draw(t, "subject"), ID: some("id")},
		Type:    some("type"), Action: rapid.SampledFrom(someActions).Draw(t, "action"), Schema: 1,
		Outcome:    rapid.SampledFrom([]string{"success", "failure"}).Draw(t, "outcome"),
		Properties: rapid.SliceOfNDistinct(rapid.SampledFrom(someValues), 0, 2, rapid.ID).Draw(t, "properties"),
		Context:    envelope.Context{Actor: perhaps("actor"), Component: perhaps("component")},
	}
	for _, id := range rapid.SliceOfN(rapid.SampledFrom(someValues), 0, 2).Draw(t, "parents") {
		e.Parents = append(e.Parents, envelope.Ref{Type: "Collection", ID: id})
	}
	return e
}

// asDelivered is the event as rules see it on a bus.
func asDelivered(t *rapid.T, e envelope.Event) string {
	b, err := json.Marshal(map[string]any{"version": "0", "id": "1", "account": "123456789012", "region": "us-east-1",
		"time": time.UnixMilli(0).UTC().Format(time.RFC3339), "resources": []string{},
		"source": filter.Source, "detail-type": e.Type, "detail": e})
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// matchesPattern is a matcher of its own, of the part of the patterns that is used (source:
// Amazon EventBridge User Guide, "Comparison operators for use in event patterns"). All
// fields of a pattern must match, and of $or one alternative. A field matches if one of its
// values in the event, which are several in an array, matches one of the pattern's.
func matchesPattern(t *rapid.T, pattern, event string) bool {
	var p, e map[string]any
	if err := json.Unmarshal([]byte(pattern), &p); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(event), &e); err != nil {
		t.Fatal(err)
	}
	return matchesObject(t, p, []any{e})
}

// matchesObject matches the values that are at one path of the event.
func matchesObject(t *rapid.T, pattern map[string]any, values []any) bool {
	if len(pattern) == 0 {
		t.Fatal("an empty object in a pattern is refused by EventBridge")
	}
	for name, want := range pattern {
		below := valuesAt(values, name)
		switch want := want.(type) {
		case map[string]any:
			if !matchesObject(t, want, below) {
				return false
			}
		case []any:
			matches := func(w any) bool { return matchesValue(t, w, below) }
			if name == "$or" {
				matches = func(w any) bool { return matchesObject(t, w.(map[string]any), values) }
			}
			if !slices.ContainsFunc(want, matches) {
				return false
			}
		default:
			t.Fatalf("%v in a pattern is neither an object nor an array", want)
		}
	}
	return true
}

func valuesAt(values []any, name string) (below []any) {
	for _, v := range values {
		object, _ := v.(map[string]any)
		switch found := object[name].(type) {
		case nil:
		case []any:
			below = append(below, found...)
		default:
			below = append(below, found)
		}
	}
	return below
}

func matchesValue(t *rapid.T, want any, values []any) bool {
	operator, ok := want.(map[string]any)
	if !ok {
		return slices.Contains(values, want)
	}
	for name, operand := range operator {
		switch name {
		case "exists":
			return operand.(bool) == (len(values) > 0)
		case "prefix":
			begins := func(v any) bool { return strings.HasPrefix(v.(string), operand.(string)) }
			return slices.ContainsFunc(values, begins)
		case "anything-but":
			return slices.ContainsFunc(values, func(v any) bool { return anythingBut(t, operand, v.(string)) })
		}
	}
	t.Fatalf("the operator %v is not known", operator)
	return false
}

func anythingBut(t *rapid.T, operand any, v string) bool {
	if list, ok := operand.([]any); ok {
		return !slices.Contains(list, any(v))
	}
	prefixes, ok := operand.(map[string]any)["prefix"].([]any)
	if !ok {
		t.Fatalf("the operand %v of anything-but is not known", operand)
	}
	return !slices.ContainsFunc(prefixes, func(p any) bool { return strings.HasPrefix(v, p.(string)) })
}

// TestPattern: patterns as they are written, and what no pattern can say.
func TestPattern(t *testing.T) {
	for text, want := range map[string]string{
		"All+All":     `{"source":["archivist"]}`,
		"Item+Create": `{"detail":{"action":["create"],"subject":{"type":["Object"]}},"source":["archivist"]}`,
		"Item+All:Job+Delete": `{"detail":{"$or":[{"subject":{"type":["Object"]}},` +
			`{"action":["delete"],"subject":{"type":["Job"]}}]},"source":["archivist"]}`,
		"*+*{parent=maps, !actor=a|b}": `{"detail":{"context":{"actor":[{"anything-but":["a","b"]},{"exists":false}]},` +
			`"parents":{"id":["maps"]}},"source":["archivist"]}`,
		"Item+All{!parent=maps}":                         "anything-but also selects events with one more",
		"Item+All{id=a*, !id=ab}":                        "no pattern for two terms about id in one clause",
		"Item+All{!id=a*|b}":                             "no pattern for !id with values with and without an asterisk",
		"Item|Bitstream+All":                             "no pattern for File",
		"Item|Collection+Add|Remove":                     "no pattern for Collection+Add",
		"Item+All{id=" + strings.Repeat("x", 2000) + "}": "characters; EventBridge allows 2048",
	} {
		f, err := filter.Compile(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		got, err := f.Pattern()
		if err != nil && strings.Contains(err.Error(), want) {
			continue
		}
		if got != want || err != nil {
			t.Errorf("%s: %s, %v; expected %s", text, got, err, want)
		}
	}
}
