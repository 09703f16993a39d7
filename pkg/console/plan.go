package console

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"

	"archivist/pkg/api/v1/plan"
	"archivist/pkg/kernel/fault"
)

// mostFiles is the most that a page sends.
const mostFiles = 10_000

// isSum matches a SHA-256 in hexadecimal.
var isSum = regexp.MustCompile(`^[0-9a-f]{64}$`)

// filesOf are files that were chosen in the browser as objects: each one, or all one. An Invalid says which name cannot
// be stored, and why.
func filesOf(chosen []*plan.File, each bool) (out plan.Files, err error) {
	switch {
	case len(chosen) == 0:
		return out, fault.New(fault.Invalid, "there are no files; choose some")
	case len(chosen) > mostFiles:
		return out, fault.New(fault.Invalid, "there are %s files; a page sends at most %s. Use the command line: "+
			"archivist submit FOLDER", number(len(chosen)), number(mostFiles))
	case slices.Contains(chosen, nil):
		return out, fault.New(fault.Invalid, "a file has no name; load the page again")
	}

	slices.SortFunc(chosen, func(a, b *plan.File) int { return cmp.Compare(a.Name, b.Name) })
	for _, f := range chosen {
		f.Path = f.Name
		if f.Size < 0 || !isSum.MatchString(f.SHA256) {
			return out, fault.New(fault.Invalid, "%q has no SHA-256 or no size; load the page again", cut(f.Name))
		}
		if each {
			out.Objects = append(out.Objects, plan.Object{ID: f.Name, IsFile: true, Files: []*plan.File{f}})
		}
	}
	out.Each = each
	if !each {
		out.Listed = len(chosen) > 1
		out.Objects = []plan.Object{{IsFile: !out.Listed, Files: chosen}}
	}

	out.Check(func(format string, args ...any) {
		if err == nil {
			err = fault.New(fault.Invalid, "these files cannot be stored: %s; rename it, or leave it out",
				fmt.Sprintf(format, args...))
		}
	}, func(string) {})
	return out, err
}

// sumOf is the SHA-256 of a text, in hexadecimal.
func sumOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
