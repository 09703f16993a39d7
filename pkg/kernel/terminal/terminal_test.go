package terminal

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestWidths: columns fit, what may not be shortened is whole, and room that one column
// does not need goes to the others.
func TestWidths(t *testing.T) {
	for _, k := range []struct {
		need, shares []int
		total        int
		want         []int
	}{
		{[]int{10, 20}, []int{0, 1}, 80, []int{10, 20}},
		{[]int{10, 200}, []int{0, 1}, 80, []int{10, 70}},
		{[]int{10, 200, 300}, []int{0, 1, 2}, 70, []int{10, 20, 40}},
		{[]int{10, 8, 300}, []int{0, 1, 2}, 70, []int{10, 8, 52}},
		{[]int{10, 100}, []int{0, 1}, 15, []int{10, 0}}, // too little to say anything
		{[]int{10, 100}, []int{0, 0}, 40, []int{10, 30}},
	} {
		if got := gridOf(k.need, k.shares).widths(k.total); !slices.Equal(got, k.want) {
			t.Errorf("%v %v in %d: got %v, want %v", k.need, k.shares, k.total, got, k.want)
		}
	}

	rapid.Check(t, func(t *rapid.T) {
		need := rapid.SliceOfN(rapid.IntRange(0, 200), 1, 8).Draw(t, "need")
		shares := rapid.SliceOfN(rapid.IntRange(0, 3), len(need), len(need)).Draw(t, "shares")
		total, sum := rapid.IntRange(0, 200).Draw(t, "total"), 0
		for i, width := range gridOf(need, shares).widths(total) {
			sum += width
			if width < 0 || width > need[i] {
				t.Fatalf("the column %d has %d, it needs %d", i, width, need[i])
			}
		}
		if sum > total {
			t.Fatalf("%d of %d", sum, total)
		}

		sum = 0
		g, fitted := gridOf(need, shares).fit(total)
		for i, width := range fitted {
			sum += width + len(gap)
			if width == 0 || len(g) != len(fitted) {
				t.Fatalf("the column %d of %d is there, and has nothing", i, len(g))
			}
		}
		if sum > 0 && sum-len(gap) > total {
			t.Fatalf("with gaps %d of %d", sum-len(gap), total)
		}
	})
}

// gridOf is a grid of columns that need so much and have these shares.
func gridOf(need, shares []int) (g grid) {
	for i := range need {
		g = append(g, column{need: need[i], share: shares[i]})
	}
	return g
}

// TestFit: an extra column is left out before one that has no share is shortened, and what is left out leaves its gap
// to the others.
func TestFit(t *testing.T) {
	columns := []Column[string]{{Title: "id", Text: strings.Clone}}
	others := []Column[string]{{Title: "created", Extra: true}, {Title: "failed"}, {Title: "remarks", Share: 1}}
	for _, c := range others {
		c.Text = func(string) string { return c.Title }
		columns = append(columns, c)
	}
	for width, want := range map[int]string{
		40: "ID         CREATED  FAILED  REMARKS\n",
		33: "ID         CREATED  FAILED\n",
		25: "ID         FAILED  REMAR…\n",
		17: "ID         FAILED\n",
	} {
		var out bytes.Buffer
		Table(Page{NewScreen(&out, false), width}, []string{"123456789"}, columns...)
		if got, _, _ := strings.Cut(out.String(), "\n"); got+"\n" != want {
			t.Errorf("in %d: %q, want %q", width, got, want)
		}
	}
}

// TestStyles: styles are codes with colours, and nothing without.
func TestStyles(t *testing.T) {
	for colours, want := range map[bool]string{
		true:  "\x1b[1mSTATE\x1b[0m\n\x1b[31mFailed\x1b[0m\n",
		false: "STATE\nFailed\n",
	} {
		var out bytes.Buffer
		state := Column[string]{Title: "state", Text: strings.Clone, Style: func(string) Style { return Red }}
		Table(Page{NewScreen(&out, colours), 80}, []string{"Failed"}, state)
		if out.String() != want {
			t.Errorf("colours %v: %q", colours, out.String())
		}
	}
}

// TestStatus: on a terminal one line that fits; else news at once, the rest at its pace.
func TestStatus(t *testing.T) {
	var screen, lines bytes.Buffer
	now := time.Unix(0, 0)
	s := Status{Terminal: Stream{&screen, 10}, Lines: &lines, Now: func() time.Time { return now }}
	s.Show("a long text\n", false)
	s.End()
	s.End()
	if screen.String() != "\r\x1b[Ka long t…\r\x1b[K" || lines.Len() > 0 {
		t.Errorf("%q, %q", screen.String(), lines.String())
	}

	s.Terminal = Stream{&screen, 0}
	for i, text := range []string{"one", "two", "news", "news", "three", "four"} {
		s.Show(text, text == "news")
		now = now.Add(time.Second)
		if i == 4 {
			now = now.Add(Pace)
		}
	}
	if lines.String() != "one\nnews\nfour\n" {
		t.Errorf("%q", lines.String())
	}
}

// TestStatusRows: on a terminal the rows are rewritten with the line, and all are removed at the end; else only rows
// that have changed come, with the next line.
func TestStatusRows(t *testing.T) {
	var screen, lines bytes.Buffer
	s := Status{Terminal: Stream{&screen, 10}, Lines: &lines, Now: time.Now}
	s.Show("one", true, "a row that is long", "b")
	s.Show("two", true, "c")
	s.End()
	want := "\r\x1b[Kone\n\r\x1b[Ka row th…\n\r\x1b[Kb" + "\r\x1b[2A\x1b[J" + "\r\x1b[Ktwo\n\r\x1b[Kc" +
		"\r\x1b[1A\x1b[J\r\x1b[K"
	if screen.String() != want {
		t.Errorf("%q", screen.String())
	}
	s.Terminal = Stream{&screen, 0}
	s.Show("one", true, "a", "b")
	s.Show("two", true, "a", "c\n")
	s.Show("two", true, "d")
	if lines.String() != "one\na\nb\ntwo\nc \n" {
		t.Errorf("%q", lines.String())
	}
}

// TestMeter: the rate is that of the last minute.
func TestMeter(t *testing.T) {
	now := time.Unix(0, 0)
	m := Meter{Now: func() time.Time { return now }}
	if m.Rate() != 0 || m.Left(10) != "" || m.Since() < time.Hour {
		t.Error("something is known from nothing")
	}
	for second := range int64(300) {
		rate := int64(1) // slow at first
		if second >= 200 {
			rate = 10
		}
		m.Add(rate * second)
		now = now.Add(time.Second)
	}
	if m.Rate() != 10 || m.Left(3990) != ", 1m40s left" || m.Since() != time.Second || len(m.samples) > 62 {
		t.Errorf("%f, %s, %s, %d samples", m.Rate(), m.Left(3990), m.Since(), len(m.samples))
	}
	if Percent(2999, 3000) != " 99 %" || Percent(3000, 3000) != "100 %" || Percent(0, 0) != "  0 %" {
		t.Error("only the end is 100 %")
	}
}

// FuzzScreen: what is written in pieces is what is written at once.
func FuzzScreen(f *testing.F) {
	f.Add("aé\u202e\x1b[2J\u009b", 2)
	f.Fuzz(func(t *testing.T, text string, at int) {
		var whole, pieces bytes.Buffer
		_, _ = io.WriteString(NewScreen(&whole, false), text)
		s := NewScreen(&pieces, false)
		at = max(0, min(at, len(text)))
		_, _ = io.WriteString(s, text[:at])
		_, _ = io.WriteString(s, text[at:])
		if whole.String() != pieces.String() {
			t.Errorf("%q and %q", whole.String(), pieces.String())
		}
		if strings.ContainsFunc(whole.String(), obeyed) || strings.ContainsFunc(Printable(text), obeyed) {
			t.Errorf("a terminal obeys %q", whole.String())
		}
	})
}
