package search_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/views/search"
)

// TestParseQuery: what each form means, in the one form of String.
func TestParseQuery(t *testing.T) {
	for text, want := range map[string]string{
		"Harbour  MAP":          `"harbour" "map"`,
		`"Map of the Harbour"`:  `"map of the harbour"`,
		"harb*":                 `harb*`,
		"Title:Café":            `title:"cafe"`,
		"-creator:Blunt map":    `-creator:"blunt" "map"`,
		"date:1800..1899-12":    `date:1800..1899-12`,
		"date:..1899 date:1800": `date:..1899 date:"1800"`,
		"collection:Maps-2":     `collection:"Maps-2"`,
		"ark:/99999/fk4":        `ark:"ark:/99999/fk4"`,
		"ark:ark:/99999/fk4":    `ark:"ark:/99999/fk4"`,
		"file:north_1.tif":      `file:"north 1 tif"`,
	} {
		q, err := search.ParseQuery(text)
		if err != nil || q.String() != want {
			t.Errorf("%s is %s, %v; want %s", text, q, err, want)
		}
		if again, err := search.ParseQuery(want); err != nil || again.String() != want {
			t.Errorf("%s is %s when it is read again, %v", want, again, err)
		}
	}
}

// TestBadQueries: a query that cannot be read is an Invalid with the position and the reason.
func TestBadQueries(t *testing.T) {
	for text, want := range map[string]struct {
		at     int
		reason string
	}{
		"":                             {1, "nothing to search for"},
		"  ":                           {1, "nothing to search for"},
		"-map":                         {1, "nothing to search for"},
		"map titel:x":                  {5, `no field "titel"; the fields are title, creator`},
		"https://example.org":          {1, "quotation marks"},
		`é "map of`:                    {3, "no second quotation mark"},
		"title:":                       {7, "no text here"},
		"title: map":                   {7, "no text here"},
		`map ""`:                       {5, "no text here"},
		"map ???":                      {5, "no letter and no digit"},
		"id:evt-1*":                    {4, "compared as a whole"},
		"ark:99999/fk*":                {5, "compared as a whole"},
		"collection:ma*":               {12, "compared as a whole"},
		"harbour OR map":               {9, "all conditions of a query hold"},
		"a AND b":                      {3, "all conditions of a query hold"},
		"NOT b":                        {1, "put a - before"},
		"har*our":                      {1, "a * stands at the end of a word"},
		"title:*our":                   {7, "a * stands at the end of a word"},
		"ha**":                         {1, "a * stands at the end of a word"},
		"harb?ur":                      {1, "a ? stands for itself"},
		"h*":                           {1, "at least two"},
		"a-b*":                         {1, "only letters and digits"},
		"date:1899..1800":              {6, "ends before it begins"},
		"date:18..":                    {6, "FROM..TO"},
		"date:..":                      {6, "at least one bound"},
		"date:1899-13..":               {6, "FROM..TO"},
		"\xff":                         {1, "UTF-8"},
		strings.Repeat("a", 1001):      {1, "1,000 bytes"},
		strings.Repeat("a ", 20) + "b": {41, "more than 20"},
	} {
		_, err := search.ParseQuery(text)
		var bad *search.QueryError
		if !fault.Is(err, fault.Invalid) || !errors.As(err, &bad) || bad.At != want.at ||
			!strings.Contains(err.Error(), want.reason) {
			t.Errorf("%q: %v; want %q at character %d", text, err, want.reason, want.at)
		}
	}
}

// FuzzParseQuery: no text makes the parser fail otherwise, and what it reads has a form that
// means the same.
func FuzzParseQuery(f *testing.F) {
	for _, seed := range []string{`title:"a b" -c*`, "date:1..2", `ark:"`, "-:", "é*"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		q, err := search.ParseQuery(text)
		if err != nil {
			if !fault.Is(err, fault.Invalid) {
				t.Fatal(err)
			}
			return
		}
		again, err := search.ParseQuery(q.String())
		whole := len(q.String()) <= search.MaxQuery && !strings.Contains(text, `"`)
		if whole && (err != nil || again.String() != q.String()) {
			t.Fatalf("%q is %s, and that is %s, %v", text, q, again, err)
		}
	})
}

// TestNormal: words are found whatever the case, diacritics, form and punctuation.
func TestNormal(t *testing.T) {
	for text, want := range map[string]string{
		"Café_No.2.TIF":     "cafe no 2 tif",
		"  a--b  ":          "a b",
		"Ⅳ ﬁn":              "iv fin",
		"Straße STRASSE":    "strasse strasse",
		"Łódź Ærø":          "lodz aero",
		"Đinđić ÞÓR":        "dindic thor",
		"Ὀδυσσεύς ΟΔΥΣΣΕΥΣ": "οδυσσευσ οδυσσευσ",
		"Ĳssel Ǽ":           "ijssel ae",
		"東京 1851年":          "東京 1851年",
		"e\u0301 \u00e9":    "e e",
		"हिन्दी":            "हिनदी",
	} {
		if found := search.Normal(text); found != want || search.Normal(found) != found {
			t.Errorf("%q is %q, and then %q; want %q", text, found, search.Normal(found), want)
		}
	}
}

// FuzzNormal: what is normal stays so, and has no blank at its ends: a query and a document meet in one form.
func FuzzNormal(f *testing.F) {
	for _, seed := range []string{"Łódź", "ẞ", "ǅ", "ﬃ", "K", "ᵀᴹ", "İ", "ς"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		found := search.Normal(text)
		if again := search.Normal(found); again != found || strings.TrimSpace(found) != found {
			t.Errorf("%q is %q, and then %q", text, found, again)
		}
	})
}

// TestBody: what a document is sorted and selected by.
func TestBody(t *testing.T) {
	d := search.Document{ARK: "ark:/99999/x", Dates: []string{"undated", "circa 1904-05, or 1910"}}
	b := d.Body()
	if b.Day != "1904-05" || b.TitleKey <= "\U0001F5FA" || !slices.Contains(b.Any, "ark 99999 x") {
		t.Errorf("%+v", b)
	}
	for text, want := range map[string]string{"1851": "1851", "in 18512": "", "1851-02-31": "1851-02-31",
		"12.5.1851": "1851", "[1851?]": "1851", "1851-13": "1851"} {
		if found := search.Day(text); found != want {
			t.Errorf("the day of %q is %q, want %q", text, found, want)
		}
	}
}
