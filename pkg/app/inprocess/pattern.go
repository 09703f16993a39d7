package inprocess

import (
	"slices"
	"strings"
)

// matches reports whether an event pattern of EventBridge selects a value ("Amazon
// EventBridge event patterns"). It knows what package filter writes: equal values, prefix,
// exists, anything-but and $or. Both are decoded JSON. The pattern has been found valid; else
// it panics.
func matches(pattern, value any) bool {
	fields, isObject := pattern.(map[string]any)
	if !isObject {
		return anyOf(pattern.([]any), value)
	}

	// One of its objects has to have all that the pattern asks for.
	if list, isList := value.([]any); isList {
		return slices.ContainsFunc(list, func(v any) bool { return matches(pattern, v) })
	}

	// All fields of a pattern have to match; a value that is no object has none of them.
	object, _ := value.(map[string]any)
	for name, p := range fields {
		if name == "$or" {
			if !slices.ContainsFunc(p.([]any), func(x any) bool { return matches(x, value) }) {
				return false
			}
			continue
		}
		if !matches(p, object[name]) {
			return false
		}
	}
	return true
}

// anyOf reports whether one of the conditions selects a value, or one of the values of a list.
func anyOf(conditions []any, value any) bool {
	values, isList := value.([]any)
	if !isList {
		values = []any{value}
	}

	for _, c := range conditions {
		for _, v := range values {
			if selects(c, v) {
				return true
			}
		}
	}
	return false
}

// selects reports whether a condition selects a single value. Nil is a field that is not
// there. A field that is null counts as not there.
func selects(condition, value any) bool {
	test, isTest := condition.(map[string]any)
	if !isTest {
		return condition == value
	}

	text, isText := value.(string)
	if there, ok := test["exists"].(bool); ok {
		return there == (value != nil)
	}

	if prefix, ok := test["prefix"].(string); ok {
		return isText && strings.HasPrefix(text, prefix)
	}

	switch but := test["anything-but"].(type) {
	case string:
		return isText && text != but
	case []any:
		return isText && !anyOf(but, value)
	case map[string]any:
		return isText && !anyOfPrefixes(but["prefix"], text)
	}
	return false
}

// anyOfPrefixes reports whether a text begins with a prefix, or with one of a list.
func anyOfPrefixes(prefixes any, text string) bool {
	one, isText := prefixes.(string)
	if isText {
		return strings.HasPrefix(text, one)
	}
	for _, p := range prefixes.([]any) {
		if strings.HasPrefix(text, p.(string)) {
			return true
		}
	}
	return false
}

// valid reports whether a pattern has only what matches knows. What is not known must not
// match too much in silence, so it is refused when the rule is made.
func valid(pattern any) bool {
	fields, isObject := pattern.(map[string]any)
	if !isObject {
		_, isList := pattern.([]any)
		return isList
	}

	for name, p := range fields {
		alternatives, isList := p.([]any)
		if name == "$or" && !isList {
			return false
		}

		for _, x := range alternatives {
			if name == "$or" && !valid(x) || name != "$or" && !known(x) {
				return false
			}
		}

		if !isList && !valid(p) {
			return false
		}
	}
	return true
}

// known reports whether selects knows a condition.
func known(condition any) bool {
	test, isTest := condition.(map[string]any)
	if !isTest {
		return true
	}

	_, exists := test["exists"].(bool)
	_, prefix := test["prefix"].(string)
	switch but := test["anything-but"].(type) {
	case string, []any:
		return len(test) == 1
	case map[string]any:
		return len(test) == 1 && but["prefix"] != nil
	}
	return len(test) == 1 && (exists || prefix)
}
