package erc

import (
	"slices"
	"strings"
	"testing"
)

// TestSummary: a row has a summary of at most 2,000 bytes, cut at a character.
func TestSummary(t *testing.T) {
	for name, c := range map[string]struct {
		values []string
		want   string
	}{
		"none":    {nil, ""},
		"one":     {[]string{"a"}, "a"},
		"several": {[]string{"a", "(:unas)", "b"}, "a; b"},
		"fits":    {[]string{strings.Repeat("ü", 1000)}, strings.Repeat("ü", 1000)},
		"long":    {[]string{strings.Repeat("ü", 1001)}, strings.Repeat("ü", 998) + "…"},
		"many":    {slices.Repeat([]string{"x"}, 5000), strings.Repeat("x; ", 665) + "x;" + "…"},
	} {
		if got := Summary(c.values); got != c.want || len(got) > 2000 {
			t.Errorf("%s: got %d bytes %.20q, want %d bytes %.20q", name, len(got), got, len(c.want), c.want)
		}
	}
}
