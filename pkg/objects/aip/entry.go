package aip

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"iter"

	"archivist/pkg/objects/ocfl"
)

// Entry is everything that is known of one producer's file. A job's ledger has one for
// each file that was downloaded; the list of a version's files has the same ones.
type Entry struct {
	ocfl.File
	URL string `json:"url"` // redacted
	// Uploader is who uploaded it, as events name actors; "" if it was not uploaded, and if that is not known.
	Uploader  string `json:"uploadedBy,omitempty"`
	MediaType string `json:"mediaType"`
	Modified  string `json:"modified,omitempty"`
	Given     string `json:"given,omitempty"` // the algorithm of the depositor's digest, "" if there was none
	Warning   string `json:"warning,omitempty"`
	// RawName are the bytes of its name in the container that it comes from, percent-encoded; "" if they are its path.
	RawName string `json:"rawName,omitempty"`
	// Scanner is what has found no virus in it, "" if it was not scanned. Lists of stored files do not have it.
	Scanner string `json:"scanner,omitempty"`
}

// WriteList writes a list of files, without their keys in the work bucket: these files are
// removed later. Entries come in order of their paths, since Version.File searches in the list.
func WriteList(w io.Writer, entries iter.Seq2[Entry, error]) error {
	b := bufio.NewWriter(w)
	enc := json.NewEncoder(b)
	for e, err := range entries {
		if err != nil {
			return err
		}
		e.Source, e.Scanner = "", ""
		if err := enc.Encode(e); err != nil {
			return err
		}
	}
	return b.Flush()
}

// ReadList reads a list of files as a stream. An error is the last that it yields.
func ReadList(list io.Reader) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		for lines := json.NewDecoder(list); ; {
			var e Entry
			err := lines.Decode(&e)
			if err == io.EOF {
				return
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// firstLine finds the first whole line in a part of a list of files, and the path of its
// file. start is whether the part begins with a line.
func firstLine(text []byte, start bool) (at int, path string, ok bool) {
	if !start {
		at = bytes.IndexByte(text, '\n') + 1
		if at == 0 {
			return 0, "", false
		}
	}

	line, _, whole := bytes.Cut(text[at:], []byte("\n"))
	var e Entry
	if !whole || json.Unmarshal(line, &e) != nil {
		return 0, "", false
	}
	return at, e.Path, true
}
