package e2e

import (
	"cmp"
	"fmt"
	"strings"

	"archivist/localstack"
)

// tableOf is a table of kinds of damage and acts, in Markdown, with what the archive and the validator said.
func tableOf(cells []*cell) string {
	var b strings.Builder
	b.WriteString("| damage | done then | what Archivist says | ocfl-py: damaged, then, in the end | broken |\n" +
		"|---|---|---|---|---|\n")
	for _, c := range cells {
		fmt.Fprintf(&b, "| %s | %s | %s | %s, %s, %s | %s |\n", c.kind.name, c.act.name, oneLine(c.says), short(c.seen),
			short(c.after), short(c.last), oneLine(cmp.Or(strings.Join(c.wrongs, "; "), "none")))
	}
	return b.String()
}

// short is a verdict in a word, or in the codes of the specification.
func short(v localstack.Verdict) string {
	if v.Valid {
		return "valid"
	}
	return "**" + cmp.Or(strings.Join(v.Errors, " "), "not asked") + "**"
}

func oneLine(text string) string {
	return strings.NewReplacer("\n", " ", "|", "/").Replace(text)
}
