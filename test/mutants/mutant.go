package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// mutant is a change of the code that makes it wrong.
type mutant struct {
	file, kind, wrong string
	old, new          string
	first             string // pattern of tests that are played first; "" for none
	killer            string // of the run: a test, or "" if none
}

func (m mutant) folder() string { return filepath.Dir(m.file) }

// isRule reports whether the mutant is one of the rules of rows: the doctor's tests damage rows, and see what is found.
func (m mutant) isRule() bool {
	return strings.HasPrefix(filepath.Base(m.file), "rules") || m.folder() == "pkg/events/check"
}

// overlay writes the mutant, and the file that tells the compiler of it.
func (m mutant) overlay(dir string) (string, error) {
	source, err := os.ReadFile(m.file)
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(source), m.old); n != 1 || m.old == "" {
		return "", fmt.Errorf("%s: %s: the text to be replaced is there %d times", m.file, m.wrong, n)
	}
	path, err := filepath.Abs(m.file)
	if err != nil {
		return "", err
	}
	changed := filepath.Join(dir, filepath.Base(m.file))
	replaced, err := json.Marshal(map[string]map[string]string{"Replace": {path: changed}})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(changed, []byte(strings.Replace(string(source), m.old, m.new, 1)), 0o600); err != nil {
		return "", err
	}
	return overlay, os.WriteFile(overlay, replaced, 0o600)
}

// parse reads the list: blocks of lines, with an empty line between them.
func parse(text string) (all []mutant, err error) {
	first := regexp.MustCompile(`^(\S+\.go) (rule|effect): (.+)$`)
	for block := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		lines := strings.Split(strings.Trim(block, "\n"), "\n")
		head := first.FindStringSubmatch(lines[0])
		if head == nil {
			return nil, fmt.Errorf("%q is no beginning of a mutant", lines[0])
		}
		var old, changed, hint []string
		for _, line := range lines[1:] {
			switch line[0] {
			case '?':
				hint = append(hint, strings.TrimSpace(line[1:]))
			case '-':
				old = append(old, line[1:])
			case '+':
				changed = append(changed, line[1:])
			default:
				return nil, fmt.Errorf("%s: %q is no line of a mutant", lines[0], line)
			}
		}
		all = append(all, mutant{file: head[1], kind: head[2], wrong: head[3], old: strings.Join(old, "\n"),
			new: strings.Join(changed, "\n"), first: strings.Join(hint, "|")})
	}
	return all, nil
}
