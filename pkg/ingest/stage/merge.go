package stage

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"archivist/pkg/formats/checkm"
	"archivist/pkg/ingest"
	"archivist/pkg/objects/aip"
)

// maxDeletions limits an update's list of files that it deletes, in bytes.
const maxDeletions = 5 << 20

// merging is how an update becomes a version: the files of the newest one, without those that it deletes or replaces,
// and its own. (Source: Merritt's update of an object.)
type merging struct {
	names     *checkm.Names
	submitted map[string]bool // paths
	deletions []string        // names, in the order of the list
	delete    map[string]bool // names that are to be deleted and were not found yet
	total     ingest.Merged
}

func newMerging() *merging {
	return &merging{names: checkm.NewNames(), submitted: map[string]bool{}, delete: map[string]bool{}}
}

// add notes a file of the submission.
func (m *merging) add(e aip.Entry) {
	m.names.Add(nameOf(e))
	m.submitted[e.Path] = true
	m.total.Files, m.total.Bytes = m.total.Files+1, m.total.Bytes+e.Size
}

// read reads the list of deletions: a name in each line.
func (m *merging) read(ctx context.Context, p Packager, e aip.Entry) (refused string, err error) {
	const list = "mrt-delete.txt"
	if e.Size > maxDeletions {
		return fmt.Sprintf("%s has %d bytes; at most %d are allowed", list, e.Size, maxDeletions), nil
	}

	body, _, err := p.Work.Open(ctx, e.Source)
	if err != nil {
		return "", err
	}

	defer body.Close()
	text, err := io.ReadAll(body)
	if err != nil {
		return "", err
	}

	if !utf8.Valid(text) {
		return list + " is not UTF-8. Correct it, then submit it again", nil
	}

	for line := range bytes.Lines(bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))) {
		name := strings.TrimRight(string(line), "\r\n")
		if name != "" && !m.delete[name] {
			m.deletions, m.delete[name] = append(m.deletions, name), true
		}
	}
	return "", nil
}

// contradiction returns that a file is to be deleted, and is submitted, or "".
func (m *merging) contradiction() string {
	for _, name := range m.deletions {
		if m.submitted["producer/"+name] {
			return fmt.Sprintf("mrt-delete.txt names %q, which the submission has, too. Take one of them out, then "+
				"submit it again", ingest.Cut(name, 200))
		}
	}
	return ""
}

// keep reports whether the version has a file of the newest one.
func (m *merging) keep(e aip.Entry) (kept bool, refused string) {
	name := nameOf(e)
	switch {
	case m.submitted[e.Path]:
		return false, ""
	case m.delete[name]:
		delete(m.delete, name)
		m.total.Deleted++
		return false, ""
	}

	switch c := m.names.Add(name); {
	case c.Folder > 0:
		return false, fmt.Sprintf("the stored file %q would also be the folder of a submitted one. Name it in "+
			"mrt-delete.txt, then submit it again", name)
	case c.File > 0:
		return false, fmt.Sprintf("the folder %q of the stored file %q would also be a submitted file. Name the "+
			"stored one in mrt-delete.txt, then submit it again", c.Inside, name)
	}
	m.total.Files, m.total.Bytes, m.total.Kept = m.total.Files+1, m.total.Bytes+e.Size, m.total.Kept+1
	return true, ""
}

// merge adds the files of the newest version that an update keeps, and returns why the update is refused, or "". The
// version has to be the newest one still when the update is written: made.follows says which it was.
func (p Packager) merge(ctx context.Context, j *ingest.Job, made *pack) (refused string, err error) {
	entries, follows, refused, err := p.newest(ctx, j)
	if err != nil || refused != "" {
		return refused, err
	}

	made.follows = follows
	m := made.merging
	if refused := m.contradiction(); refused != "" {
		return refused, nil
	}

	for e, err := range entries {
		if err != nil {
			return "", err
		}
		kept, refused := m.keep(e)
		if refused != "" {
			return refused, nil
		}
		if kept {
			if err := made.files.Add(e.Path, e); err != nil {
				return "", err
			}
		}
	}

	if m.total.Files == 0 {
		return "mrt-delete.txt names all files of the object. A version has one file at least; archivist object " +
			"withdraw takes an object out of use", nil
	}

	j.Merged = &m.total
	for _, name := range m.deletions {
		if m.delete[name] {
			warnOnce(j, fmt.Sprintf("mrt-delete.txt names %q, which the newest version does not have",
				ingest.Cut(name, 200)))
		}
	}
	return "", nil
}
