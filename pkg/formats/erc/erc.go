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
	"maps"
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

// Absent reports whether a value means that there is none: it is empty, or only one of the
// kernel's codes (Kernel Metadata, "coded values").
func Absent(v string) bool {
	switch strings.TrimSpace(v) {
	case "", "(:unas)", "(:unkn)", "(:unav)", "(:null)":
		return true
	}
	return false
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
			more = append(more, strings.Split(oneLine(v), ";")...)
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

// merge adds the values that are new and not absent. The order is that in which they came
// first.
func merge(to *[]string, values []string) {
	had := map[string]bool{}
	for _, v := range *to {
		had[v] = true
	}

	for _, v := range values {
		v = strings.TrimSpace(v)
		if !Absent(v) && !had[v] {
			had[v] = true
			*to = append(*to, v)
		}
	}
}

// Or fills each element that k does not have from less. Identifiers add up. An element is
// taken as a whole from one of them, so that no mixture of two descriptions arises.
func (k Kernel) Or(less Kernel) Kernel {
	out := Kernel{
		Who:  or(k.Who, less.Who),
		What: or(k.What, less.What),
		When: or(k.When, less.When),
	}

	out.Where = slices.Clone(k.Where)
	merge(&out.Where, less.Where)
	if len(k.More)+len(less.More) > 0 {
		out.More = maps.Clone(less.More)
		if out.More == nil {
			out.More = map[string][]string{}
		}
		maps.Copy(out.More, k.More)
	}
	return out
}

func or(a, b []string) []string {
	if len(a) > 0 {
		return a
	}
	return b
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
