package stage

import (
	"cmp"
	"fmt"
	"mime"
	"path"
	"strings"

	"archivist/pkg/formats/checkm"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/payload"
	"archivist/pkg/ingest/transfer"
	"archivist/pkg/kernel/fetch"
	"archivist/pkg/kernel/source"
	"archivist/pkg/objects/aip"
	"archivist/pkg/objects/ocfl"
)

// describe compares a received file with what the depositor stated. A file with a wrong
// digest is refused; one with a wrong size is refused only if no digest matched.
// mismatch is what its content says against its name, or "".
func describe(p ingest.Payload, row checkm.Row, came *transfer.File, key, mismatch string) (aip.Entry, error) {
	sums, digests := came.Sums, came.Sums.Sums()
	e := aip.Entry{
		URL:       fetch.Redact(row.URL),
		Uploader:  p.UploaderOf(row.URL),
		MediaType: row.MediaType,
		Modified:  row.Modified,
		File: ocfl.File{
			Path:    "producer/" + row.Name,
			Size:    sums.Size,
			Digests: digests,
			CRC64:   sums.CRC64NVME(),
			Source:  key,
		},
	}
	if e.MediaType == "" {
		e.MediaType = defaultType(row.Name)
	}

	if row.Digest != "" {
		e.Given = row.Algorithm
		if digests[row.Algorithm] != row.Digest {
			return e, &refusedError{fmt.Sprintf("the depositor's %s is %s, but %s was computed over %d bytes received",
				row.Algorithm, row.Digest, digests[row.Algorithm], sums.Size)}
		}
	}

	var warnings []string
	// -1 is a size that was not given.
	if row.Size >= 0 && row.Size != sums.Size {
		differs := fmt.Sprintf("the depositor's size is %d bytes, but %d were received", row.Size,
			sums.Size)
		if row.Digest == "" {
			return e, &refusedError{differs +
				", and there is no digest that shows which is correct"}
		}
		warnings = append(warnings, differs+"; the digest matched")
	}

	if came.Encoding != "" {
		warnings = append(warnings, fmt.Sprintf("the source sent it with the Content-Encoding %q, "+
			"which was not asked for; it is kept as it was received",
			ingest.Cut(came.Encoding, 50)))
	}

	if row.Digest == "" { // else it is the file that the depositor has
		mismatch = cmp.Or(payload.PageWarning(row.Name, row.MediaType, came.Start()), mismatch)
	}

	if mismatch != "" {
		warnings = append(warnings, mismatch)
	}

	e.Warning = strings.Join(warnings, "; ")
	return e, nil
}

// refusedError reports that a file does not match what the depositor stated.
type refusedError struct{ why string }

func (e *refusedError) Error() string { return e.why }

// defaultType is the media type that a file's name suggests. It names no charset: the
// file's charset is not known. Without one it is the type of any bytes (RFC 2046, section 4.5.1).
func defaultType(name string) string {
	if t, _, err := mime.ParseMediaType(mime.TypeByExtension(path.Ext(name))); err == nil {
		return t
	}
	return "application/octet-stream"
}

// nameOf is the name of a file below producer/.
func nameOf(e aip.Entry) string { return strings.TrimPrefix(e.Path, "producer/") }

// tally adds up files.
type tally struct {
	files, warned, checked, sent int
	bytes                        int64
	warnings                     ingest.Warnings
	scanned                      ingest.Scanned
}

// add counts a file of the ledger.
func (t *tally) add(e aip.Entry) {
	t.files++
	t.bytes += e.Size
	if e.Given != "" {
		t.checked++
	}
	if source.IsUpload(e.URL) {
		t.sent++
	}
	t.scanned.Add(e.Scanner)
	if e.Warning != "" {
		t.warned++
		t.warnings.Add("file " + strings.TrimPrefix(e.Path, "producer/") + ": " + e.Warning)
	}
}
