package systemfile_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"archivist/pkg/ingest/systemfile"
)

// TestReadEmbargo: a day, a time and none are read, and nothing else. An embargo never ends before its time.
func TestReadEmbargo(t *testing.T) {
	for text, want := range map[string]string{
		"embargoEndDate: 2036-12-31\n":                  "2036-12-31",
		"# a comment\r\nembargoenddate:\r\n 2036-12-31": "2036-12-31",
		"embargoEndDate: 2036-12-31T09:00:00Z":          "2036-12-31",
		"embargoEndDate: 2037-01-01T00:00:00Z":          "2036-12-31",
		"embargoEndDate: 2036-12-31T20:00:00-08:00":     "2037-01-01",
		"embargoEndDate: 2037-01-01T00:30:00+01:00":     "2036-12-31",
		"other: x\nembargoEndDate: NONE\n":              systemfile.NoEmbargo,
	} {
		until, refused, err := systemfile.ReadEmbargo(strings.NewReader(text))
		if until != want || refused != "" || err != nil {
			t.Errorf("%q: %q, %q, %v; expected %q", text, until, refused, err, want)
		}
	}

	for _, text := range []string{"", "embargoEndDate:", "embargoEndDate: 2036-12-31T09:00:00",
		"embargoEndDate: \xff"} {
		until, refused, err := systemfile.ReadEmbargo(strings.NewReader(text))
		if until != "" || !strings.Contains(refused, "mrt-embargo.txt: expected") || err != nil {
			t.Errorf("%q: %q, %q, %v", text, until, refused, err)
		}
	}

	// What the storage did not give is not what the file says.
	down := errors.New("the storage is down")
	from := io.MultiReader(strings.NewReader("embargoEndDate: 2036-12-31\n"), iotest.ErrReader(down))
	if until, refused, err := systemfile.ReadEmbargo(from); !errors.Is(err, down) || refused != "" {
		t.Errorf("%q, %q, %v", until, refused, err)
	}
}
