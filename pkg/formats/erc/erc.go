// Package erc reads descriptions of objects from the forms in which depositors put them
// into a package: an Electronic Resource Citation (ERC) in ANVL, Dublin Core in XML, and
// DataCite in XML.
//
// All of them become a [Kernel]: who, what, when and where (Kernel Metadata and
// Electronic Resource Citations, draft-kunze-erc), and the other elements of Dublin
// Core. [Kernel.Or] merges two descriptions; one of them has precedence.
//
// Only a text that cannot be read at all is an error; elements that are not known are left out.
package erc

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"archivist/pkg/formats/anvl"
)

// Kernel is a description: each element with its values in order, each once. The four of the
// kernel are of one line each. Values have no blanks at their ends, and are not absent.
type Kernel struct {
	Who   []string `json:"who,omitempty"`
	What  []string `json:"what,omitempty"`
	When  []string `json:"when,omitempty"`
	Where []string `json:"where,omitempty"` // identifiers
	// More has the other elements by their names in Dublin Core, e.g. "rights". It is nil if
	// there are none; their values may have several lines.
	More map[string][]string `json:"more,omitempty"`
}

// Elements are the names of Dublin Core that the kernel does not have, in the order of
// DCMES 1.1.
var Elements = []string{"subject", "description", "publisher", "contributor", "type", "format",
	"source", "language",
	"relation", "coverage", "rights"}

// code is one of the kernel's standardized codes, which stand where a value would.
type code struct {
	name string
	// says: it tells something about the value, e.g. that nobody knows it. So it takes the place
	// of a value of an earlier description. The others tell that there is no value yet.
	says bool
}

// codes are all of them (Kernel Metadata, "Special Kernel Standardized Value Codes"; DataCite
// Metadata Schema, "Standard values for unknown information").
var codes = []code{
	{"(:unac)", false}, // it cannot be accessed for now
	{"(:unas)", false}, // none is assigned, e.g. untitled
	{"(:unav)", false}, // none is available, it may be unknown
	{"(:tba)", false},  // it is assigned or announced later
	{"(:unkn)", true},  // it is known to be unknown, e.g. anonymous
	{"(:unal)", true},  // it is not allowed, and left out intentionally
	{"(:unap)", true},  // it does not apply
	{"(:none)", true},  // there was none, and there will be none
	{"(:null)", true},  // it is empty, and that has a meaning
	{"(:etal)", true},  // they are too many to list
}

// codeOf is the code that a value is, in any case of its letters; nil if it is none. A code with
// more text behind it is a value.
func codeOf(v string) *code {
	v = strings.TrimSpace(v)
	i := slices.IndexFunc(codes, func(c code) bool { return strings.EqualFold(c.name, v) })
	if i < 0 {
		return nil
	}
	return &codes[i]
}

// Absent reports whether a value means that there is none: it is empty, or only one of the
// kernel's codes.
func Absent(v string) bool { return strings.TrimSpace(v) == "" || codeOf(v) != nil }

// none reports whether an element has no value: it is empty, or has only codes.
func none(values []string) bool {
	return !slices.ContainsFunc(values, func(v string) bool { return !Absent(v) })
}

// breaks matches line breaks and the blanks around them.
var breaks = regexp.MustCompile(`[ \t]*[\t\n\r\x{85}\x{2028}\x{2029}][ \t\n\r\x{85}\x{2028}\x{2029}]*`)

// oneLine joins the lines of a value with blanks.
func oneLine(v string) string { return strings.TrimSpace(breaks.ReplaceAllString(v, " ")) }

// Add adds new values to an element: "who", "what", "when", "where", or one of Elements.
// Other elements are left out, and so are values that mean that there is none. The
// identifiers of a "where" are separated by ";". The name may be in any case.
func (k *Kernel) Add(name string, values ...string) {
	name = strings.ToLower(name)
	to := map[string]*[]string{"who": &k.Who, "what": &k.What, "when": &k.When,
		"where": &k.Where}[name]
	if to == nil && !slices.Contains(Elements, name) {
		return
	}

	var more []string
	for _, v := range values {
		switch {
		case name == "where":
			more = append(more, identifiers(v)...)
		case to != nil:
			more = append(more, oneLine(v))
		default:
			more = append(more, v)
		}
	}

	if to == nil {
		if k.More == nil {
			k.More = map[string][]string{}
		}
		all := k.More[name]
		merge(&all, more)
		if all != nil {
			k.More[name] = all
		}
		return
	}

	merge(to, more)
}

// identifiers are those of a "where". A code is none.
func identifiers(v string) []string {
	return slices.DeleteFunc(strings.Split(oneLine(v), ";"), Absent)
}

// merge adds the values that are new, in the order in which they came first. Of codes only one
// is kept that says something, and only while there is no value.
func merge(to *[]string, values []string) {
	had := map[string]bool{}
	for _, v := range *to {
		had[v] = true
	}

	for _, v := range values {
		v = strings.TrimSpace(v)
		c := codeOf(v)
		switch {
		case v == "" || had[v] || c != nil && (!c.says || len(*to) > 0):
			continue
		case c != nil:
			v = c.name
		case len(*to) == 1 && codeOf((*to)[0]) != nil:
			*to = nil
		}
		had[v] = true
		*to = append(*to, v)
	}
}

// Or fills each element of which k has no value from less. Identifiers add up. An element is
// taken as a whole from one of them, so that no mixture of two descriptions arises. A value of
// less takes the place of a code: both describe the same version.
func (k Kernel) Or(less Kernel) Kernel { return k.with(less, true) }

// After fills each element of which k says nothing from that of an earlier version. A code that
// says something, e.g. (:unkn), withdraws the earlier value.
func (k Kernel) After(earlier Kernel) Kernel { return k.with(earlier, false) }

// with takes the elements of other that k lacks, and those of k else. codesYield: a code of k
// yields to a value of other.
func (k Kernel) with(other Kernel, codesYield bool) Kernel {
	or := func(own, others []string) []string {
		if len(own) == 0 || codesYield && none(own) && !none(others) {
			return others
		}
		return own
	}

	out := Kernel{Who: or(k.Who, other.Who), What: or(k.What, other.What), When: or(k.When, other.When)}
	out.Where = slices.Clone(k.Where)
	merge(&out.Where, other.Where)
	for _, name := range Elements {
		if values := or(k.More[name], other.More[name]); len(values) > 0 {
			if out.More == nil {
				out.More = map[string][]string{}
			}
			out.More[name] = values
		}
	}
	return out
}

// synonyms are the kernel's names of elements of Dublin Core (Kernel Metadata, "ERC
// and Dublin Core").
var synonyms = map[string]string{"creator": "who", "title": "what", "date": "when",
	"identifier": "where"}

// ReadERC reads an ERC record in ANVL, also its short form "erc: who|what|when|where". Parts
// of the short form beyond the fourth are left out.
func ReadERC(r io.Reader) (Kernel, error) {
	elements, err := anvl.Read(r)
	if err != nil {
		return Kernel{}, fmt.Errorf("erc: %w", err)
	}

	c := collector{}
	for _, e := range elements {
		if !strings.EqualFold(e.Name, "erc") {
			c.add(e.Name, e.Value)
			continue
		}
		for i, v := range strings.Split(e.Value, "|") {
			if names := []string{"who", "what", "when", "where"}; i < len(names) {
				c.add(names[i], v)
			}
		}
	}
	return c.kernel(), nil
}

// collector gathers the values of each element, to be added together, as there may
// be very many.
type collector map[string][]string

func (c collector) add(name, value string) {
	name = strings.ToLower(name)
	if kernel, has := synonyms[name]; has {
		name = kernel
	}
	c[name] = append(c[name], value)
}

// Elements are independent, so the order of the map does not matter.
func (c collector) kernel() Kernel {
	var k Kernel
	for name, values := range c {
		k.Add(name, values...)
	}
	return k
}
