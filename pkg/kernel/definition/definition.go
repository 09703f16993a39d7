// Package definition reads and checks what people define in files of JSON or YAML: consumers and
// components.
//
// What is checked here is the form: sizes, names, unknown fields, numbers out of bounds. What
// the values mean is checked by the package of what is defined. Each refusal is an Invalid
// that names the field, what it was, and what is expected.
package definition

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/goccy/go-yaml"

	"archivist/pkg/kernel/fault"
)

// Names are the names of what is defined. They are parts of keys of rows, of URLs and of the
// names of metrics, so they need no escape there.
var Names = regexp.MustCompile(`^[a-z][a-z0-9-]{0,49}$`)

// Functions are ARNs of Lambda functions. With a version or an alias, or without. Other
// partitions (aws-cn, aws-us-gov) count.
var Functions = regexp.MustCompile(`^arn:aws[a-z-]*:lambda:[a-z0-9-]+:\d{12}:function:[A-Za-z0-9_-]+(:[A-Za-z0-9_$-]+)?$`)

// MaxDescription is how long a description may be, in characters; it is shown in lists.
const MaxDescription = 1000

// CheckDescription refuses a description that is too long.
func CheckDescription(text string) error {
	if n := utf8.RuneCountInString(text); n > MaxDescription {
		return fault.New(fault.Invalid,
			"description: %d characters; at most %d are accepted", n, MaxDescription)
	}
	return nil
}

// Parse reads a definition of at most so many bytes from JSON or YAML. Unknown and repeated
// fields, and more than one document, are an Invalid. It does not check the values.
//
// What begins with { is JSON; all else is read as YAML, and made JSON first, so that both
// follow the same rules of field names and types. Anchors and aliases are refused before
// that, since a few of them can stand for gigabytes.
func Parse[T any](data []byte, most int) (d T, err error) {
	switch {
	case len(data) > most:
		return d, fault.New(fault.Invalid, "the definition has %d bytes; at most %d are accepted",
			len(data), most)
	case bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")):
	case aliases.Match(data):
		return d, fault.New(fault.Invalid,
			"the definition has a YAML anchor or alias; write the value itself")
	case len(documents.FindAllIndex(data, -1)) > 0:
		return d, fault.New(fault.Invalid, "more than one definition; apply one at a time")
	default:
		if data, err = yaml.YAMLToJSON(data); err != nil {
			return d, fault.New(fault.Invalid, "the definition is neither JSON nor YAML: %s",
				firstLine(err.Error()))
		}
	}

	if err := json.Unmarshal(data, &d, json.RejectUnknownMembers(true)); err != nil {
		return d, fault.New(fault.Invalid, "the definition cannot be read: %s",
			goTypes.ReplaceAllString(err.Error(), ""))
	}
	return d, nil
}

// goTypes is what the library says about types of this program.
var goTypes = regexp.MustCompile(`^json: |(cannot|unable to) unmarshal JSON \w+ into Go [\w.]+: `)

// aliases are YAML anchors and aliases at the beginning of a value. A text in quotes is not
// affected, because it begins with the quote.
var aliases = regexp.MustCompile(`(?m)(^|[:\-\[,]\s)\s*[&*][A-Za-z0-9_]`)

// documents are the separators of YAML documents, behind the beginning.
var documents = regexp.MustCompile(`\n---(\s|$)`)

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// Choice refuses a value that is not one of a field's. What was given is repeated in the
// message, shortened.
func Choice(field, value string, of ...string) error {
	if slices.Contains(of, value) {
		return nil
	}
	return fault.New(fault.Invalid, "%s: %q: expected %s", field, Clip(value, 60),
		strings.Join(of, ", "))
}

// Check makes checks in order, and returns the first error.
func Check(checks ...func() error) error {
	for _, check := range checks {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// Within refuses a number outside of a field's bounds. Both bounds are allowed values.
func Within(field string, value, least, most int) error {
	if value >= least && value <= most {
		return nil
	}
	return fault.New(fault.Invalid, "%s: %d: expected %d to %d", field, value, least, most)
}

// Clip shortens a text that is repeated in a message. most is in bytes; a character that it
// would cut is left out.
func Clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
