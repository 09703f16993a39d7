package console

import (
	"regexp"
	"slices"
	"strings"

	"archivist/pkg/kernel/fault"
)

// saying matches what an error says of a field: its name, a colon, and the rest up to the next one.
var saying = regexp.MustCompile(`(?:^|; )(?:(?:body|query|path)\.)?([a-zA-Z]+(?:\.[a-zA-Z]+)*)(?:\[\d+\])?: `)

// faultsOf is what an error says of fields: by the names that these have in the form, and what it says besides.
func faultsOf(err error, fields map[string]string) (of map[string]string, other string) {
	text := err.Error()
	of = map[string]string{}
	found := slices.DeleteFunc(saying.FindAllStringSubmatchIndex(text, -1), func(at []int) bool {
		return fields[text[at[2]:at[3]]] == ""
	})
	if len(found) == 0 {
		return of, plain(text)
	}
	for i, at := range found {
		end := len(text)
		if i+1 < len(found) {
			end = found[i+1][0]
		}
		of[fields[text[at[2]:at[3]]]] = plain(text[at[1]:end])
	}
	return of, plain(strings.TrimPrefix(text[:found[0][0]], "validation failed"))
}

// plain is what the API says of a request, for people who have filled in a form: how a value does
// not fit the schema is said in words, and where the API has it is left out.
func plain(text string) string {
	if usedKey.MatchString(text) {
		return "This form was sent already, with something else in it. That was done, and nothing " +
			"more. Send it again to do this, too."
	}
	text = strings.TrimPrefix(text, "validation failed; ")
	text = located.ReplaceAllString(text, "$1")
	for _, s := range schemaSays {
		text = s.text.ReplaceAllString(text, s.plain)
	}
	return text
}

// usedKey matches the refusal of a form that was sent before, with something else in it. It names
// the batch or the operation that was made then, if one was.
var usedKey = regexp.MustCompile(
	`was used (?:with|for) another request(?:.*?(batch|operation) ([0-9A-Za-z-]+))?`)

// sentBefore reports whether an error says that a form was sent before, with something else in it.
func sentBefore(err error) bool {
	return fault.Is(err, fault.Conflict) && usedKey.MatchString(err.Error())
}

// madeBefore is the page of the batch or operation that such a form has made, below /console/; ""
// if it has made none.
func madeBefore(err error) string {
	found := usedKey.FindStringSubmatch(err.Error())
	if found == nil || found[1] == "" {
		return ""
	}
	return subjectPage(title(found[1]), found[2])
}

// located matches where a value was in a request. ofPath matches one in the path of an address.
var (
	located = regexp.MustCompile(`(^|; )(?:body|query|path)\.`)
	ofPath  = regexp.MustCompile(`(?:^|; )path\.`)
)

// schemaSays are the texts of the checks of a schema, and how they are said to people.
var schemaSays = []struct {
	text  *regexp.Regexp
	plain string
}{
	{regexp.MustCompile(`expected length <= (\d+)`),
		"it is too long: at most $1 characters are possible"},
	{regexp.MustCompile(`expected length >= 1\b`), "it is empty; write something"},
	{regexp.MustCompile(`found "";`), "it is empty;"},
	{regexp.MustCompile(`expected length >= (\d+)`),
		"it is too short: at least $1 characters are needed"},
	{regexp.MustCompile(`expected value to be one of "([^"]*)"`), "expected one of $1"},
	{regexp.MustCompile(`expected number <= (\d+)`), "expected a number of at most $1"},
	{regexp.MustCompile(`expected number >= (\d+)`), "expected a number of at least $1"},
	{regexp.MustCompile(`expected array length <= (\d+)`), "at most $1 values are possible"},
	{regexp.MustCompile(`expected array length >= (\d+)`), "at least $1 values are needed"},
	{regexp.MustCompile(`expected required property (\S+) to be present`), "$1 is missing"},
	{regexp.MustCompile(`expected string to be RFC 3986 uri: [^;]*`),
		"expected an address, e.g. https://example.org/a.pdf"},
	{regexp.MustCompile(`expected string to be RFC 5322 email: [^;]*`),
		"expected an address of mail, e.g. ann@example.org"},
	{regexp.MustCompile(`expected string to match pattern \^\[A-Za-z0-9\]\[A-Za-z0-9\._-\]\{0,99\}\$`),
		"expected at most 100 letters, digits and . _ -, of which a letter or a digit is the first"},
	{regexp.MustCompile(`expected string to match pattern`), "expected another form:"},
}
