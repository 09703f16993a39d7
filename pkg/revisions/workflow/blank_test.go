package workflow

import (
	"strings"
	"testing"
)

// TestBlankLines: files whose blank lines would keep the library for minutes are refused before it reads them, and
// others are read.
func TestBlankLines(t *testing.T) {
	const head = "- name: a\n  script: |\n    x\n"
	for name, c := range map[string]struct {
		text string
		line int // of the problem; 0: there is none
	}{
		"at the end":          {head + strings.Repeat("\n", 200_000), 4},
		"of spaces":           {head + strings.Repeat("    \n", 50_000), 4},
		"of tabs":             {head + strings.Repeat("\t\n", 100_000), 4},
		"of Windows":          {head + strings.Repeat("\r\n", 100_000), 4},
		"of an old Mac":       {head + strings.Repeat("\r", 200_000), 4},
		"folded":              {strings.Replace(head, "|", ">", 1) + strings.Repeat("\n", 200_000), 4},
		"at the beginning":    {strings.Repeat("\n", 200_000) + head, 1},
		"one too many":        {head + strings.Repeat("\n", maxBlank+1), 4},
		"as many as may be":   {head + strings.Repeat("\n", maxBlank) + "    y\n", 0},
		"again and again":     {head + strings.Repeat(strings.Repeat("\n", maxBlank)+"    y\n", 300), 0},
		"one after each line": {head + strings.Repeat("\n    y\n", 10_000), 0},
		"none":                {head, 0},
	} {
		t.Run(name, func(t *testing.T) {
			d, problems := Parse([]File{{Path: "_workflows/a.yaml", Data: []byte(c.text)}})
			if (d != nil) != (c.line == 0) || len(problems) > 1 || len(problems) == 1 &&
				(problems[0].Line != c.line || !strings.Contains(problems[0].Message, "blank lines")) {
				t.Errorf("%v", problems)
			}
		})
	}
}
