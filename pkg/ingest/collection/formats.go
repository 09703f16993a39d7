package collection

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/objects/formats"
)

// Formats says which formats of files are taken. An entry is an id of PRONOM ("fmt/353"), formats.Unknown, a media type
// ("image/tiff"), or all media types of a kind ("image/*").
type Formats struct {
	Refuse []string `dynamo:"refused_formats,omitempty" json:"refuse,omitempty"` // a file of one of them fails its job
	Accept []string `dynamo:"accepted_formats,omitempty" json:"accept,omitempty"`
	Warn   []string `dynamo:"warned_formats,omitempty" json:"warn,omitempty"`  // it is taken, with a warning
	Others Verdict  `dynamo:"other_formats,omitempty" json:"others,omitempty"` // "" = Accepted
}

// Verdict is what is done with a file of a format.
type Verdict string

// What is done with a file.
const (
	Accepted Verdict = "accept"
	Warned   Verdict = "warn"
	Refused  Verdict = "refuse"
)

// MaxFormats is how many entries each list of a profile may have.
const MaxFormats = 200

var formatEntry = regexp.MustCompile(`^((x-)?fmt/[0-9]{1,6}|[a-z]+/(\*|[a-z0-9][a-z0-9.+-]*))$`)

// check returns an Invalid for an entry that no format can have.
func (f *Formats) check() error {
	if f == nil {
		return nil
	}

	for name, list := range map[string][]string{"refuse": f.Refuse, "accept": f.Accept, "warn": f.Warn} {
		if len(list) > MaxFormats {
			return fault.New(fault.Invalid,
				"formats.%s: %d entries; at most %d are accepted", name, len(list),
				MaxFormats)
		}
		for _, entry := range list {
			if entry != formats.Unknown && !formatEntry.MatchString(entry) {
				return fault.New(fault.Invalid,
					"formats.%s: %q: expected an id of PRONOM such as fmt/353, %s, a "+
						"media type such as image/tiff, or image/*", name, entry, formats.Unknown)
			}
		}
	}
	if !slices.Contains([]Verdict{"", Accepted, Warned, Refused}, f.Others) {
		return fault.New(fault.Invalid,
			"formats.others: %q: expected accept, warn or refuse", f.Others)
	}
	return nil
}

// Judge says what is done with a file of some formats, and why as a part of a sentence. Of several formats that a file
// can have, one that is refused counts first, then one that is accepted.
func (f *Formats) Judge(matches []formats.Match) (v Verdict, why string) {
	if f == nil {
		return Accepted, ""
	}
	if len(matches) == 0 {
		matches = []formats.Match{{ID: formats.Unknown}}
	}

	for _, list := range []struct {
		entries []string
		verdict Verdict
	}{{f.Refuse, Refused}, {f.Accept, Accepted}, {f.Warn, Warned}} {
		for _, m := range matches {
			if slices.ContainsFunc(list.entries, func(entry string) bool { return isFormat(entry, m) }) {
				return list.verdict, told(m, list.verdict)
			}
		}
	}

	if f.Others == "" {
		return Accepted, ""
	}
	return f.Others, told(matches[0], f.Others)
}

func isFormat(entry string, m formats.Match) bool {
	kind, all := strings.CutSuffix(entry, "/*")
	return entry == m.ID || entry == m.MediaType || all && strings.HasPrefix(m.MediaType, kind+"/")
}

// told says what is done with a format.
func told(m formats.Match, v Verdict) string {
	what := "its format is " + strings.TrimSpace(m.Name+" "+m.Version) + " (" + m.ID + ")"
	if m.ID == formats.Unknown {
		what = "its format is not known (" + formats.Unknown + ")"
	}
	does := map[Verdict]string{Accepted: "accepts", Warned: "does not recommend", Refused: "refuses"}[v]
	return fmt.Sprintf("%s, which the collection %s", what, does)
}
