package premis

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
)

// Join writes documents of this package as one: first all objects, then the events, then the
// agents. What several of them have is written once. Equal means equal bytes: this package
// always writes the same in the same way. The documents are in memory as a whole.
func Join(w io.Writer, documents ...[]byte) error {
	d := New(w)
	seen := map[string]bool{}
	parts := map[string][][]byte{}
	for i, doc := range documents {
		if err := children(doc, func(name string, raw []byte) {
			if !seen[string(raw)] {
				seen[string(raw)] = true
				parts[name] = append(parts[name], raw)
			}
		}); err != nil {
			return fmt.Errorf("premis: document %d: %w", i+1, err)
		}
	}

	// Rights, which this package does not write, would be left out.
	for _, name := range []string{"object", "event", "agent"} {
		for _, raw := range parts[name] {
			d.b.Write(raw)
			d.b.WriteByte('\n')
		}
	}
	return d.Close()
}

// children calls each with the elements of a document's root, as they are written. raw is a
// part of doc.
func children(doc []byte, each func(name string, raw []byte)) error {
	r := xml.NewDecoder(bytes.NewReader(doc))
	for inside := false; ; {
		from := r.InputOffset()
		token, err := r.Token()
		if err == io.EOF {
			return nil
		}

		if err != nil {
			return err
		}

		start, is := token.(xml.StartElement)
		if !is {
			continue
		}

		// The first element is the root, whose children are passed on.
		if !inside {
			inside = true
			continue
		}

		if err := r.Skip(); err != nil {
			return err
		}

		each(start.Name.Local, doc[from:r.InputOffset()])
	}
}
