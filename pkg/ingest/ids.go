package ingest

import (
	"slices"
	"strings"
	"unicode/utf8"

	"archivist/pkg/kernel/fault"
)

// Limits of local ids. A job has a lock and a place in its line for each id, all written
// in one transaction. DynamoDB allows 100 rows in a transaction, and keys of 2,048 bytes.
const (
	MaxLocalIDs     = 20
	MaxLocalIDBytes = 500
)

// CheckLocalID returns an Invalid if a local id is not allowed. It must have 1 to
// MaxLocalIDBytes bytes of UTF-8, no control characters, no leading or trailing blanks,
// and no ";", which separates ids in manifests.
func CheckLocalID(id string) error {
	why := ""
	switch {
	case id == "":
		why = "is empty"
	case len(id) > MaxLocalIDBytes:
		return fault.New(fault.Invalid,
			"the local id that begins with %q has %d bytes; at most %d are allowed",
			Cut(id, 40), len(id), MaxLocalIDBytes)
	case !utf8.ValidString(id) || strings.ContainsRune(id, utf8.RuneError):
		why = "is not valid UTF-8"
	case strings.ContainsFunc(id, Unstorable):
		why = "has a control character"
	case strings.Contains(id, ";"):
		why = `has a ";", which separates ids`
	case strings.TrimSpace(id) != id:
		why = "has leading or trailing blanks"
	}

	if why == "" {
		return nil
	}
	return fault.New(fault.Invalid, "the local id %q %s", id, why)
}

// CleanLocalIDs returns the ids of one object in their order, trimmed and without
// duplicates. It returns an Invalid if one of them is not allowed, or if there are more
// than MaxLocalIDs.
func CleanLocalIDs(ids []string) ([]string, error) {
	var out []string
	for _, id := range ids {
		id = strings.TrimSpace(id)
		if err := CheckLocalID(id); err != nil {
			return nil, err
		}

		if !slices.Contains(out, id) {
			out = append(out, id)
		}

		if len(out) > MaxLocalIDs {
			return nil, fault.New(fault.Invalid,
				"an object has at most %d local ids in one submission; %d are given",
				MaxLocalIDs, len(ids))
		}
	}
	return out, nil
}
