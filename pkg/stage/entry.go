package stage

import (
	"fmt"
	"mime"
	"path"

	"archivist/pkg/aip"
	"archivist/pkg/checkm"
	"archivist/pkg/fetch"
	"archivist/pkg/ocfl"
)

// describe holds a file that came against what the depositor said of it. A
// wrong digest refuses it; a wrong size only without a digest that is right.
func describe(row checkm.Row, sums *fetch.Digester, key string) (aip.Entry, error) {
	digests := sums.Sums()
	file := ocfl.File{Path: "producer/" + row.Name, Size: sums.Size, Digests: digests,
		CRC64: sums.CRC64NVME(), Source: key}
	e := aip.Entry{File: file,
		URL: fetch.Redact(row.URL), MediaType: row.MediaType, Modified: row.Modified}
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
	if row.Size >= 0 && row.Size != sums.Size {
		e.Warning = fmt.Sprintf("the depositor's size is %d bytes, but %d were received", row.Size, sums.Size)
		if row.Digest == "" {
			return e, &refusedError{e.Warning + ", and there is no digest that shows which is correct"}
		}
	}

	return e, nil
}

// defaultType is the media type that a file's name suggests. It names no charset:
// nobody said in which the file is.
func defaultType(name string) string {
	if t, _, err := mime.ParseMediaType(mime.TypeByExtension(path.Ext(name))); err == nil {
		return t
	}
	return "application/octet-stream"
}

// tally adds up files.
type tally struct {
	files, warned, checked int
	bytes                  int64
}

func (t *tally) add(e aip.Entry) {
	t.files++
	t.bytes += e.Size
	if e.Given != "" {
		t.checked++
	}
	if e.Warning != "" {
		t.warned++
	}
}
