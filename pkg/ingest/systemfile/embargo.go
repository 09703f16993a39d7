package systemfile

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"time"

	"archivist/pkg/formats/anvl"
	"archivist/pkg/ingest"
)

// Embargo is the file of a package that says until when the files of its object are not given out, in the element
// embargoEndDate: a day, a time, or NoEmbargo. It is content, too. (Source: Merritt.)
const Embargo = "producer/mrt-embargo.txt"

// NoEmbargo says that there is no embargo, or no longer one.
const NoEmbargo = "none"

const (
	embargoElement = "embargoEndDate"
	maxEmbargo     = 64 << 10
)

// ReadEmbargo reads such a file: until is the last day of the embargo in UTC, YYYY-MM-DD, or NoEmbargo. An embargo that
// ends at a time of a day lasts until the end of that day. refused is why the file says neither, or "".
func ReadEmbargo(r io.Reader) (until, refused string, err error) {
	text, err := io.ReadAll(io.LimitReader(r, maxEmbargo+1))
	if err != nil {
		return "", "", err
	}
	elements, err := anvl.Read(bytes.NewReader(text))
	if err != nil || len(text) > maxEmbargo {
		return "", badEmbargo("no lines \"name: value\""), nil
	}

	for _, e := range elements {
		if !strings.EqualFold(e.Name, embargoElement) {
			continue
		}
		if until != "" {
			return "", badEmbargo("it twice"), nil
		}
		until = lastDay(e.Value)
		if until == "" {
			return "", badEmbargo(fmt.Sprintf("%q", ingest.Cut(e.Value, 50))), nil
		}
	}
	if until == "" {
		return "", badEmbargo("no such element"), nil
	}
	return until, "", nil
}

func badEmbargo(found string) string {
	return fmt.Sprintf("mrt-embargo.txt: expected \"%s: \" with a day (2036-12-31), a time (2036-12-31T09:00:00Z) or "+
		"none; found %s. Correct it, then submit it again", embargoElement, found)
}

// lastDay is the last day of an embargo that ends at a day or a time, "" if it is neither.
func lastDay(value string) string {
	if strings.EqualFold(value, NoEmbargo) {
		return NoEmbargo
	}
	if day, err := time.Parse(time.DateOnly, value); err == nil {
		return day.Format(time.DateOnly)
	}
	if at, err := time.Parse(time.RFC3339, value); err == nil {
		// One that ends at midnight ends with the day before.
		return at.Add(-time.Nanosecond).UTC().Format(time.DateOnly)
	}
	return ""
}
