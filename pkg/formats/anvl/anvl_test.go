package anvl

import (
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestRead(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"folded values are joined by a blank", "what: Notes\n upon\n\tthe memoir\n", "what=Notes upon the memoir"},
		{"a value may begin on the second line", "what:\n Notes\n", "what=Notes"},
		{"comments and empty lines", "# a comment\n\nwho: A\n  \n", "who=A"},
		{"a byte order mark", "\ufeffwho: A\n", "who=A"},
		{"CRLF", "who: A\r\nwhat: B\r\n", "who=A|what=B"},
		{"CR alone", "who: A\rwhat: B\r", "who=A|what=B"},
		{"no line break at the end", "who: A", "who=A"},
		{"line separators of Unicode are characters", "who: A\u2028B\u0085C\n", "who=A\u2028B\u0085C"},
	} {
		got, err := Read(strings.NewReader(c.text))
		var said []string
		for _, e := range got {
			said = append(said, e.Name+"="+e.Value)
		}
		if s := strings.Join(said, "|"); err != nil || s != c.want {
			t.Errorf("%s: got %q, %v, want %q", c.name, s, err, c.want)
		}
	}
	for text, says := range map[string]string{
		" continues nothing":    "line 1 continues",
		"who: A\nno colon":      "line 2 has no colon",
		"who: A\rwhat: caf\xe9": "line 2 is not UTF-8",
	} {
		if _, err := Read(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q gave %v, expected that %s", text, err, says)
		}
	}
}

// TestRoundTrip: what is written is read the same, whatever it is and however long;
// what a line cannot carry is refused, never changed.
func TestRoundTrip(t *testing.T) {
	check := func(t *rapid.T, value string) {
		in := []Element{{"who", value}, {"what", "after"}}
		var b strings.Builder
		err := Write(&b, in...)
		if why := Carries(value); (err != nil) != (why != "") {
			t.Fatalf("%.100q: %q, but writing gave %v", value, why, err)
		}
		if err != nil {
			return
		}
		if value == "" {
			in = in[1:]
		}
		if got, err := Read(strings.NewReader(b.String())); err != nil || !reflect.DeepEqual(got, in) {
			t.Fatalf("%.100q became %.200q, %v", value, got, err)
		}
	}
	hostile := rapid.SampledFrom([]string{"\n", "\r", "\r\n", "\u0085", "\u2028", "\u2029", "\v", "\x00", " ", "\t",
		"\u00a0", ":", "#", "%0a", "\ufeff", "\ufffe", "\xff", "e\u0301", "\U0010ffff", strings.Repeat("x", 70_000)})
	rapid.Check(t, func(t *rapid.T) {
		var b strings.Builder
		for range rapid.IntRange(0, 6).Draw(t, "parts") {
			b.WriteString(rapid.OneOf(hostile, rapid.String()).Draw(t, "part"))
		}
		check(t, b.String())
	})
}

// FuzzRead: what is read can be written, and is the same when it is read again.
func FuzzRead(f *testing.F) {
	f.Add("who: Anna\nwhat: Letters\n  of Anna\n# a comment\nwhen: 1851%0A\n")
	f.Add("erc: Anna | Letters | 1851 | ark:/99999/fk4x\n")
	f.Fuzz(func(t *testing.T, text string) {
		all, err := Read(strings.NewReader(text))
		if err != nil {
			return
		}
		for _, e := range all {
			if Carries(e.Value) != "" || Carries(e.Name) != "" {
				return // it is refused before it is written
			}
		}
		var b strings.Builder
		if err := Write(&b, all...); err != nil {
			return
		}
		again, err := Read(strings.NewReader(b.String()))
		if err != nil {
			t.Fatalf("%q was read from %q, but %q is not: %v", all, text, b.String(), err)
		}
		if len(again) > len(all) {
			t.Fatalf("%q became %q", all, again)
		}
	})
}
