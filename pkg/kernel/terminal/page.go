package terminal

import (
	"fmt"
	"io"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"
)

// Page is the output of a command: for people if it has a width, else for programs, in lines
// whose values are separated by tabs. Width is in columns. The writer should be a Screen if
// people read it, since it makes or removes the marks of styles.
type Page struct {
	io.Writer
	Width int
}

// ForPeople reports whether the page is read by people.
func (p Page) ForPeople() bool { return p.Width > 0 }

// indent is where the values of fields begin. The longest names of fields fit in front of
// them.
const indent = 15

// narrowest is the smallest width in which texts are broken into lines.
const narrowest = 20

// Fields prints pairs of a name and a value, leaving out those without a value. Values are one
// line each for programs, so a value has no line break or tab. Errors of the writer are not
// reported.
func (p Page) Fields(pairs ...string) {
	for i := 0; i+1 < len(pairs); i += 2 {
		name, value := pairs[i], Printable(pairs[i+1])
		switch {
		case value == "":
		case p.ForPeople():
			p.field(name, value)
		default:
			fmt.Fprintf(p, "%s\t%s\n", name, value)
		}
	}
}

// field prints a name, and next to it a value in as many lines as needed.
func (p Page) field(name, value string) {
	lines := strings.Split(text.WrapSoft(value, max(narrowest, p.Width-indent)), "\n")
	for i, line := range lines {
		if i > 0 {
			name = ""
		}
		fmt.Fprintf(p, "%s%s\n", Bold.Of(text.Pad(name, indent, ' ')), strings.TrimRight(line, " "))
	}
}

// Lines prints a text, for people in lines that fit the terminal. Each line begins with
// indent, whose width counts.
func (p Page) Lines(indent, value string) {
	value = Printable(value)
	if p.ForPeople() {
		value = text.WrapSoft(value, max(narrowest, p.Width-len(indent)))
	}
	for line := range strings.SplitSeq(value, "\n") {
		fmt.Fprintln(p, indent+strings.TrimRight(line, " "))
	}
}
