package checkm

import (
	"strings"
	"testing"
)

// TestBounds: what a later step could not hold is an error at its line and column,
// in a short message; what is just within the bounds is taken.
func TestBounds(t *testing.T) {
	check := func(r Row, wrong func(column, why string)) {
		if len(r.Local) > 2 {
			wrong("localIdentifier", "too many ids")
		}
	}
	row := func(url, name, local, title string) string {
		return batch + url + " | | | | | " + name + " | | " + local + " | | " + title + " |\n" + eof
	}
	url := "http://x/a"
	for name, c := range map[string]struct {
		text   string
		column int
		says   string
	}{
		"within":         {row(url, strings.Repeat("é", 2048), "a; b", "t\u00a0t"), 0, ""},
		"tabs around":    {row(url, "\ta\t", "a", "t"), 0, ""},
		"long line":      {row(url, "a", "", strings.Repeat("a", MaxLine)), 0, "more than 65536 bytes"},
		"long URL":       {row(url+strings.Repeat("a", MaxURL), "a", "", ""), 1, "fileurl has 2058 bytes"},
		"long name":      {row(url, strings.Repeat("é", 2049), "a", ""), 22, "4098 bytes; at most 4096"},
		"ids":            {row(url, "a", "a; b; c", ""), 28, "too many ids"},
		"control":        {row(url, "a", "x\x01y", ""), 29, "localidentifier has the character U+0001"},
		"not XML":        {row(url, "a", "", "t\uffff"), 34, "title has the character U+FFFF"},
		"name of a FFFE": {row(url, "\ufffe", "", ""), 22, "U+FFFE"},
		"long media type": {start + url + " | | | | | a | " + strings.Repeat("a", 256) + "\n" + eof, 26,
			"mimetype has 256 bytes"},
	} {
		_, problems, err := Read(strings.NewReader(c.text), Options{Check: check}, nil)
		bad := Rejected(problems)
		switch {
		case err != nil || len(bad) > 1 || (len(bad) == 0) != (c.says == ""):
			t.Errorf("%s: %v, %v", name, bad, err)
		case len(bad) == 1 && (bad[0].Line != 5 || bad[0].Column != c.column || !strings.Contains(bad[0].Message,
			c.says) || len(bad[0].Message) > maxSaid+3):
			t.Errorf("%s: %+v", name, bad[0])
		}
	}
}

// TestNoSecretsInMessages: what a message repeats of a cell has neither credentials nor a
// query, also where the cell is in a wrong column.
func TestNoSecretsInMessages(t *testing.T) {
	const secret = "https://me:SECRET@host/a;token=SECRET?sig=SECRET#SECRET"
	text := start + "ftp://me:SECRET@host/a?sig=SECRET | " + secret + " | x | " + secret + " | " + secret +
		" | a | | " + secret + "\n" + eof
	_, problems, err := Read(strings.NewReader(text), Options{}, nil)
	if err != nil || len(problems) < 5 {
		t.Fatalf("%v, %v", problems, err)
	}
	for _, p := range problems {
		if strings.Contains(p.String(), "SECRET") {
			t.Error(p)
		}
	}
}
