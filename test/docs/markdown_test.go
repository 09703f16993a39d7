// Package docs tests the documents: every command in a code block is run or checked,
// and every link leads somewhere.
package docs

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

// What only makes sense in an AWS account is not run locally. The reader sees it: in
// the first line of a block, or in a sentence about the whole page.
const (
	remoteBlock    = "# Needs an AWS account"
	remoteDocument = "Every command on this page needs an AWS account."
)

var (
	on = flag.String("on", "", "demo: run the commands of the documents, on the system in one process; ministack: "+
		"run those of the README, on the local AWS")
	update = flag.Bool("update", false, "with -on: write the output of the commands into the documents")
)

// block is a fenced block of a document.
type block struct {
	document string
	line     int // of its first line of text, from 1
	language string
	indent   string
	remote   bool
	lines    []string
}

// command is a command of a console block with the output that is shown below it.
type command struct {
	text string
	want []string
	at   int // index of its first line of output in the block
}

// commands are what the user types. A console block shows them after a "$ ", a shell
// block is one script.
func (b block) commands() (out []command) {
	if b.language == "sh" {
		return []command{{text: strings.Join(b.lines, "\n")}}
	}
	for i, line := range b.lines {
		text, typed := strings.CutPrefix(line, "$ ")
		switch last := len(out) - 1; {
		case typed:
			out = append(out, command{text: text, at: i + 1})
		case last >= 0 && strings.HasSuffix(out[last].text, "\\"):
			out[last].text += "\n" + strings.TrimPrefix(line, "> ")
			out[last].at = i + 1
		case last >= 0:
			out[last].want = append(out[last].want, line)
		}
	}
	return out
}

var fence = regexp.MustCompile("^( *)```([a-z]*)$")

// blocksOf finds the fenced blocks of a document.
func blocksOf(t *testing.T, document string) (out []block) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, document))
	if err != nil {
		t.Fatal(err)
	}
	everything := strings.Contains(string(text), remoteDocument)
	var open *block
	for i, line := range strings.Split(string(text), "\n") {
		m := fence.FindStringSubmatch(line)
		switch {
		case m != nil && open == nil:
			open = &block{document: document, line: i + 2, language: m[2], indent: m[1]}
		case m != nil:
			open.remote = everything || len(open.lines) > 0 && strings.HasPrefix(open.lines[0], remoteBlock)
			out = append(out, *open)
			open = nil
		case open != nil:
			open.lines = append(open.lines, strings.TrimPrefix(line, open.indent))
		}
	}
	if open != nil {
		t.Fatalf("%s:%d: the block is not closed", document, open.line)
	}
	return out
}

// first are the documents that a newcomer reads first, in this order.
var first = []string{"README.md", "docs/quickstart.md"}

// documents are those whose commands are run or checked, in this order.
func documents(t *testing.T) []string {
	t.Helper()
	out := slices.Clone(first)
	found, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil || len(found) < 5 {
		t.Fatalf("%d documents: %v", len(found), err)
	}
	for _, path := range found {
		if name := "docs/" + filepath.Base(path); !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// TestLanguages: a block says what it is; else its commands would escape the tests.
func TestLanguages(t *testing.T) {
	command := regexp.MustCompile(`^(\$ )?(make|aws|go|git|(dist/)?archivist) [a-z-]`)
	for _, document := range documents(t) {
		for _, b := range blocksOf(t, document) {
			switch b.language {
			case "sh", "console":
			case "go", "json", "text", "http", "yaml", "mermaid":
				if i := slices.IndexFunc(b.lines, command.MatchString); i >= 0 {
					t.Errorf("%s:%d: a command in a block of %s", document, b.line+i, b.language)
				}
			default:
				t.Errorf("%s:%d: the block has the language %q; expected sh, console, go, json, yaml, mermaid, http "+
					"or text", document, b.line, b.language)
			}
		}
	}
}

// TestQuestionMarks: a command has no ? outside quotes: zsh, the shell of a Mac, takes it for a pattern of names of
// files, and refuses one that no file has.
func TestQuestionMarks(t *testing.T) {
	quoted := regexp.MustCompile(`(?s)"[^"]*"|'[^']*'|<<'?EOF.*?\nEOF|\$\?|#[^\n]*`)
	n := 0
	for _, document := range documents(t) {
		for _, b := range blocksOf(t, document) {
			if b.language != "sh" && b.language != "console" {
				continue
			}
			for _, c := range b.commands() {
				n++
				if strings.Contains(quoted.ReplaceAllString(c.text, ""), "?") {
					t.Errorf("%s:%d: a ? without quotes in %s", document, b.line, c.text)
				}
			}
		}
	}
	if n < 50 {
		t.Errorf("%d commands were looked at", n)
	}
}
