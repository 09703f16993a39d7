package systemfile

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"archivist/pkg/checkm"
	"archivist/pkg/fetch"
)

// writeManifest lists the producer's files with their sha256, in order of the paths. A
// file's URL is where it came from: where it is stored depends on the storage root that
// one reads, and is in the OCFL inventory.
func (v Version) writeManifest(w io.Writer) error {
	m := checkm.NewStored(w, "fileUrl is where a file came from; "+
		"its stored content is found by fileName in the OCFL inventory")
	for f, err := range v.Entries {
		if err == nil {
			err = m.Row(checkm.Row{URL: f.URL, Algorithm: "sha256", Digest: f.Digests["sha256"], Size: f.Size,
				Modified: f.Modified, Name: f.Path, MediaType: f.MediaType})
		}
		if err != nil {
			return err
		}
	}
	return m.Close()
}

// writeSubmitted writes the depositor's manifest as it is kept: credentials and signed
// queries are taken out, and the digest of the submitted one is noted.
func (v Version) writeSubmitted(w io.Writer) error {
	clean, sums := true, fetch.NewDigester()
	if err := v.submitted(func(line string, row *checkm.Row) error {
		clean = clean && (row == nil || fetch.Redact(row.URL) == row.URL)
		_, _ = io.WriteString(sums, line) // a digester takes everything
		return nil
	}); err != nil {
		return err
	}
	first := true
	return v.submitted(func(line string, row *checkm.Row) error {
		if row != nil {
			line = strings.ReplaceAll(line, row.URL, fetch.Redact(row.URL))
		}
		if first && !clean { // after the first line, which is #%checkm_0.7
			line += fmt.Sprintf("# redacted; the submitted manifest had sha256 %s\n", sums.Sums()["sha256"])
		}
		first = false
		_, err := io.WriteString(w, line)
		return err
	})
}

// submitted gives each line of the depositor's manifest, with its row if it is one.
func (v Version) submitted(each func(line string, row *checkm.Row) error) error {
	rows, err := v.Manifest()
	if err != nil {
		return err
	}
	defer rows.Close()
	body, err := v.Manifest()
	if err != nil {
		return err
	}
	defer body.Close()
	text, n := bufio.NewReader(body), 0
	to := func(line int, row *checkm.Row) error {
		for n < line {
			n++
			text, err := text.ReadString('\n')
			if err != nil && err != io.EOF {
				return err
			}
			var of *checkm.Row
			if n == line {
				of = row
			}
			if err := each(text, of); err != nil {
				return err
			}
		}
		return nil
	}
	if _, _, err := checkm.Read(rows, checkm.Options{}, func(r checkm.Row) error { return to(r.Line, &r) }); err != nil {
		return err
	}
	for {
		line, err := text.ReadString('\n')
		if line != "" {
			if err := each(line, nil); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("systemfile: manifest of %s: %w", v.Job.ID, err)
		}
	}
}
