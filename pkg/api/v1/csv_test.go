package v1

import (
	"encoding/csv"
	"slices"
	"strings"
	"testing"
)

// TestCSV: what a spreadsheet would take for a formula is a text, and every field can be had again.
func TestCSV(t *testing.T) {
	var out strings.Builder
	table := newCSV(&out, "path", "note")
	fields := []string{"", "=cmd()", "+1", "-1", "@x", "\tx", "'quoted", "a,\"b\"\nc", "producer/a.pdf", "é"}
	for _, f := range fields {
		table.row(f, "n")
	}
	if err := table.close(); err != nil || !strings.HasPrefix(out.String(), "path,note\r\n") {
		t.Fatalf("%q, %v", out.String(), err)
	}

	rows, err := csv.NewReader(strings.NewReader(out.String())).ReadAll()
	if err != nil || len(rows) != len(fields)+1 {
		t.Fatal(rows, err)
	}
	var got []string
	for _, row := range rows[1:] {
		if strings.ContainsAny(row[0][:min(1, len(row[0]))], "=+-@\t\r") {
			t.Errorf("%q is a formula", row[0])
		}
		got = append(got, strings.TrimPrefix(row[0], "'"))
	}
	if !slices.Equal(got, fields) {
		t.Errorf("%q; expected %q", got, fields)
	}
}
