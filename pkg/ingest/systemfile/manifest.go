package systemfile

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"strings"

	"archivist/pkg/formats/checkm"
	"archivist/pkg/kernel/fetch"
)

// writeManifest lists the producer's files with their sha256, in order of the paths. A
// file's URL is its source: where it is stored is in the OCFL inventory, and depends on
// the storage root.
func (v Version) writeManifest(w io.Writer) error {
	m := checkm.NewStored(w, "fileUrl: where the file was downloaded from; "+
		"fileName: its logical path in the OCFL inventory")
	for f, err := range v.Entries {
		if err == nil {
			err = m.Row(checkm.Row{
				URL:       f.URL,
				Algorithm: "sha256",
				Digest:    f.Digests["sha256"],
				Size:      f.Size,
				Modified:  f.Modified,
				Name:      f.Path,
				MediaType: f.MediaType,
			})
		}
		if err != nil {
			return err
		}
	}
	return m.Close()
}

// writeSubmitted writes the depositor's manifest without credentials and signed queries.
// If that changes it, the digest of the submitted one is noted. It reads the manifest twice: the
// note, which is near its beginning, depends on all of its rows.
func (v Version) writeSubmitted(w io.Writer) error {
	clean, sums := true, fetch.NewDigester()
	if err := v.submitted(func(line string, row *checkm.Row) error {
		clean = clean && (row == nil || fetch.Redact(row.URL) == row.URL)
		_, _ = io.WriteString(sums, line) // a digester never fails
		return nil
	}); err != nil {
		return err
	}

	note := ""
	if !clean {
		note = fmt.Sprintf("# redacted; the submitted manifest had sha256 %s\n",
			sums.Sums()["sha256"])
	}
	return v.submitted(func(line string, row *checkm.Row) error {
		if row != nil {
			line = strings.ReplaceAll(line, row.URL, fetch.Redact(row.URL))
		}
		line += note // after the first line, which is #%checkm_0.7
		note = ""
		_, err := io.WriteString(w, line)
		return err
	})
}

// submitted gives each line of the depositor's manifest, with its row if it is one. The
// manifest is read twice at once, as rows and as lines: it can be long.
func (v Version) submitted(each func(line string, row *checkm.Row) error) error {
	rows, err := v.Manifest()
	if err != nil {
		return err
	}

	defer rows.Close()
	text, err := v.Manifest()
	if err != nil {
		return err
	}

	defer text.Close()

	l := lineReader{text: bufio.NewReader(text), each: each}
	_, _, err = checkm.Read(rows, checkm.Options{}, func(row checkm.Row) error {
		if err := l.until(row.Line); err != nil {
			return err
		}
		return l.next(&row)
	})
	if err == nil {
		err = l.until(math.MaxInt)
	}

	if err != nil {
		return fmt.Errorf("systemfile: manifest of %s: %w", v.Job.ID, err)
	}
	return nil
}

// lineReader gives each line of a text.
type lineReader struct {
	text *bufio.Reader
	each func(line string, row *checkm.Row) error
	read int // lines
	end  bool
}

// until gives the lines before a line, which counts from 1.
func (l *lineReader) until(line int) error {
	for l.read < line-1 && !l.end {
		if err := l.next(nil); err != nil {
			return err
		}
	}
	return nil
}

// next gives the next line, with its row if it is one.
func (l *lineReader) next(row *checkm.Row) error {
	line, err := l.text.ReadString('\n')
	l.read++
	l.end = err == io.EOF
	if err != nil && !l.end {
		return err
	}
	if line == "" {
		return nil
	}
	return l.each(line, row)
}
