package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"
)

const title = `# Mutants

Each row is a change that makes the code wrong, and the test that failed with it. [test/mutants](../test/mutants/list.txt)
has the changes; ` + "`go run ./test/mutants -write`" + ` plays them with all tests that could see them, which takes some
hours; with ` + "`-own`" + `, with those of their own packages only.

| mutant | | what is wrong | killed by | played |
|---|---|---|---|---|
`

// record replaces the rows of those that were played, and keeps the others.
func record(file string, played []mutant, own bool, now time.Time) error {
	text, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	rows := map[string]string{}
	for line := range strings.Lines(string(text)) {
		cells := strings.SplitN(line, " | ", 4)
		if len(cells) == 4 && strings.HasPrefix(line, "| pkg/") {
			rows[strings.Join(cells[:3], " | ")] = line
		}
	}
	for _, m := range played {
		killer := "`" + m.killer + "`"
		if m.killer == "" {
			killer = "**none**"
		}
		if m.killer == "" && own {
			killer = "**none** of its package"
		}
		key := fmt.Sprintf("| %s | %s | %s", m.file, m.kind, m.wrong)
		rows[key] = fmt.Sprintf("%s | %s | %s |\n", key, killer, now.UTC().Format(time.DateOnly))
	}
	var sorted []string
	for _, row := range rows {
		sorted = append(sorted, row)
	}
	slices.Sort(sorted)
	return os.WriteFile(file, []byte(title+strings.Join(sorted, "")), 0o644)
}
