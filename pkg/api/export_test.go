package api

import "fmt"

// ProblemRows are the types of problems as rows of the table in docs/api.md.
func ProblemRows() (rows []string) {
	for _, p := range problemTypes {
		rows = append(rows, fmt.Sprintf("| `%s` | %d | %s | %s |", p.URI(), p.status, p.title, p.advice))
	}
	return rows
}
