package envelope

import (
	"fmt"
	"net/url"
	"strconv"
	"unicode/utf8"
)

// CauseHeader is the header of a request to the API that names the event because of which it is
// made. A consumer outside of the system sends it, so that a chain of causes is not broken, and the
// depth limit ends a cycle that goes through it.
const CauseHeader = "Archivist-Cause"

// Limits of a Cause that comes from outside. MaxDepth is as much as any consumer accepts.
const (
	MaxDepth = 50
	// maxCauseName is in bytes, of an id.
	maxCauseName = 200
	// maxMaker is in bytes, of the name of a component: longer than any is. A row keeps some dozens of whole chains.
	maxMaker = 64
	// maxComponents: each event of a chain has a maker, and one that asked for it.
	maxComponents = 2*MaxDepth + 1
)

// Encode is the cause as the value of CauseHeader, "" for none, e.g.
// "component=derivatives&depth=1&event=01M7…GQ7.0&root=01M7…GQ7.0".
func (c Cause) Encode() string {
	if c.Event == "" {
		return ""
	}
	v := url.Values{"event": {c.Event}, "root": {c.Root}, "depth": {strconv.Itoa(c.Depth)}}
	for _, name := range c.Components {
		v.Add("component", name)
	}
	return v.Encode()
}

// DecodeCause reads the value of CauseHeader. "" is no cause. It comes from outside, and is stored
// in events, so it is checked: only known fields, each once but component, text without control
// characters, a depth that its components show, and as many of these as an event can have. The error says what was
// expected.
func DecodeCause(text string) (c Cause, err error) {
	if text == "" {
		return c, nil
	}

	v, err := url.ParseQuery(text)
	if err != nil {
		return c, fmt.Errorf("expected event=…&root=…&depth=…&component=…: %w", err)
	}

	c.Depth, err = strconv.Atoi(v.Get("depth"))
	if err != nil || c.Depth < 0 || c.Depth > MaxDepth {
		return Cause{}, fmt.Errorf("depth: %q: expected 0 to %d", v.Get("depth"), MaxDepth)
	}

	c.Event, c.Root, c.Components = v.Get("event"), v.Get("root"), v["component"]
	for name, values := range v {
		if name != "component" && (len(values) != 1 || !causeFields[name]) {
			return Cause{},
				fmt.Errorf("%q: expected event, root and depth once each, and component", name)
		}
		for _, value := range values {
			if !causeName(value, mostOf(name)) {
				return Cause{}, fmt.Errorf("%s: expected 1 to %d bytes of text", name, mostOf(name))
			}
		}
	}

	if err := c.check(); err != nil {
		return Cause{}, err
	}
	return c, nil
}

// check refuses what no chain of causes has.
func (c Cause) check() error {
	switch {
	case c.Event == "" || c.Root == "" || len(c.Components) > maxComponents:
		return fmt.Errorf("expected an event, a root, and at most %d components", maxComponents)
	case c.Depth > len(c.Components):
		return fmt.Errorf("depth: %d, with %d components: each event of the chain has at least one",
			c.Depth, len(c.Components))
	}
	return nil
}

// mostOf is how many bytes the value of a field has at most.
func mostOf(field string) int {
	if field == "component" {
		return maxMaker
	}
	return maxCauseName
}

// causeFields are the fields of CauseHeader that are given once.
var causeFields = map[string]bool{"event": true, "root": true, "depth": true}

// causeName reports whether a text can be an id, or the name of a component.
func causeName(s string, most int) bool {
	if s == "" || len(s) > most || !utf8.ValidString(s) {
		return false
	}
	for _, r := range s {
		if r < ' ' || r == 0x7f {
			return false
		}
	}
	return true
}
