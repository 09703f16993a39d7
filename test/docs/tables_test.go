package docs

import (
	"regexp"
	"strings"
	"testing"
)

// mostWords is how many words a cell of a table has at most. What needs more stands below the table, or in several
// rows: a long cell cannot be read beside the others.
const mostWords = 40

// cellEnd separates cells. "\|" is a part of one.
var cellEnd = regexp.MustCompile(`(^|[^\\])\|`)

// TestCells: no cell of a table of the documents has more than mostWords words.
func TestCells(t *testing.T) {
	rows := 0
	for _, document := range documents(t) {
		for i, line := range withoutBlocks(t, document) {
			if !strings.HasPrefix(line, "|") {
				continue
			}
			rows++
			for _, cell := range cellEnd.Split(line, -1) {
				if n := len(strings.Fields(cell)); n > mostWords {
					t.Errorf("%s:%d: a cell of %d words; at most %d: %.60s…", document, i+1, n, mostWords, cell)
				}
			}
		}
	}
	if rows < 300 {
		t.Errorf("%d rows were found", rows)
	}
}

// withoutBlocks are the lines of a document; those of fenced blocks are empty.
func withoutBlocks(t *testing.T, document string) []string {
	t.Helper()
	lines := strings.Split(read(t, root+"/"+document), "\n")
	for _, b := range blocksOf(t, document) {
		for i := range b.lines {
			lines[b.line-1+i] = ""
		}
	}
	return lines
}
