package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestWidths: columns fit, what may not be cut is whole, and room that one column does
// not need goes to the others.
func TestWidths(t *testing.T) {
	for _, k := range []struct {
		need, cut []int
		total     int
		want      []int
	}{
		{[]int{10, 20}, []int{0, 1}, 80, []int{10, 20}},
		{[]int{10, 200}, []int{0, 1}, 80, []int{10, 70}},
		{[]int{10, 200, 300}, []int{0, 1, 2}, 70, []int{10, 20, 40}},
		{[]int{10, 8, 300}, []int{0, 1, 2}, 70, []int{10, 8, 52}},
		{[]int{10, 100}, []int{0, 1}, 15, []int{10, 0}}, // too little to say anything
		{[]int{10, 100}, []int{0, 0}, 40, []int{10, 30}},
	} {
		if got := widths(k.need, k.cut, k.total); !slices.Equal(got, k.want) {
			t.Errorf("%v %v in %d: got %v, want %v", k.need, k.cut, k.total, got, k.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		need := rapid.SliceOfN(rapid.IntRange(0, 200), 1, 8).Draw(t, "need")
		cut := rapid.SliceOfN(rapid.IntRange(0, 3), len(need), len(need)).Draw(t, "cut")
		total, sum := rapid.IntRange(0, 200).Draw(t, "total"), 0
		for i, width := range widths(need, cut, total) {
			if sum += width; width < 0 || width > need[i] {
				t.Fatalf("the column %d has %d, it needs %d", i, width, need[i])
			}
		}
		if sum > total {
			t.Fatalf("%d of %d", sum, total)
		}
	})
}

// TestColours: colours are on a terminal only, and never with NO_COLOR.
func TestColours(t *testing.T) {
	for _, k := range []struct {
		width   int
		env     map[string]string
		colours bool
	}{
		{80, nil, true},
		{0, nil, false},
		{80, map[string]string{"NO_COLOR": "1"}, false},
		{80, map[string]string{"TERM": "dumb"}, false},
	} {
		var out bytes.Buffer
		m := machine{getenv: func(name string) string { return k.env[name] }}
		p := page{m.screen(stream{&out, k.width}), k.width}
		table(p, []string{"Failed"}, column[string]{title: "state", text: func(s string) string { return s }, style: stateStyle})
		if got := strings.Contains(out.String(), "\x1b[31mFailed\x1b[0m"); got != k.colours || !k.colours && strings.Contains(out.String(), "\x1b") {
			t.Errorf("%d columns, %v: %q", k.width, k.env, out.String())
		}
	}
}
