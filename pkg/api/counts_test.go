package api_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// aCount matches the description of a property that counts, and says that it can be absent what excuses it.
var (
	aCount    = regexp.MustCompile(`(?i)^([a-z ]+: )?(the |how )?(number of|total|bytes|size|findings|rows and files|many)`)
	canBeGone = regexp.MustCompile(`Absent|By default|[Ii]f it|has none|While it runs|Of a pair that is due|With final|` +
		`Reports from before`)
)

// settings are counts that a person sets: without one, the default counts.
var settings = []string{"Consumer.batch", "Consumer.concurrency", "Consumer.retries", "Consumer.window"}

// TestCountsAreThere: a count of an answer is there also if it is 0: without it, nobody could tell "none" from "not
// known". One that can be absent says what that means.
func TestCountsAreThere(t *testing.T) {
	counts := 0
	answered(document(t), func(schema, field string, property object, required bool) {
		text, _ := property["description"].(string)
		if !aCount.MatchString(text) || !isNumber(property["type"]) {
			return
		}
		counts++
		name := schema + "." + field
		if !required && !canBeGone.MatchString(text) && !slices.Contains(settings, name) {
			t.Errorf("%s can be absent, and does not say when: %q", name, text)
		}
	})
	if counts < 50 {
		t.Errorf("only %d counts were found", counts)
	}
}

// isNumber reports whether the type of a property is a number, or a number or null.
func isNumber(kind any) bool {
	all, many := kind.([]any)
	if !many {
		all = []any{kind}
	}
	return slices.Contains(all, any("integer")) || slices.Contains(all, any("number"))
}

// answered calls each for the properties of the schemas of successful answers.
func answered(doc object, each func(schema, field string, property object, required bool)) {
	schemas, seen := doc["components"].(object)["schemas"].(object), map[string]bool{}
	var walk func(s object)
	walk = func(s object) {
		if items, is := s["items"].(object); is {
			walk(items)
		}
		if of, is := s["additionalProperties"].(object); is {
			walk(of)
		}
		ref, _ := s["$ref"].(string)
		name := ref[strings.LastIndex(ref, "/")+1:]
		if name == "" || seen[name] {
			return
		}
		seen[name] = true
		schema := schemas[name].(object)
		walk(schema)
		required, _ := schema["required"].([]any)
		fields, _ := schema["properties"].(object)
		for field, p := range fields {
			each(name, field, p.(object), slices.Contains(required, any(field)))
			walk(p.(object))
		}
	}
	operationsOf(doc, func(_ string, op object) {
		for status, answer := range op["responses"].(object) {
			content, _ := answer.(object)["content"].(object)
			for _, c := range content {
				if schema, is := c.(object)["schema"].(object); is && status[0] == '2' {
					walk(schema)
				}
			}
		}
	})
}
