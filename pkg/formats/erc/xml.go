package erc

import (
	"bufio"
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strings"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/ianaindex"
	"golang.org/x/text/encoding/unicode"
)

const (
	dcNamespace       = "http://purl.org/dc/elements/1.1/"
	dctermsNamespace  = "http://purl.org/dc/terms/"
	dataciteNamespace = "http://datacite.org/schema/kernel-"
)

// dataciteNames are the elements of DataCite by those of Dublin Core (DataCite
// Metadata Schema 4, appendix "Mapping to Dublin Core").
var dataciteNames = map[string]string{
	"creatorName": "creator", "title": "title", "publicationYear": "date",
	"identifier": "identifier", "alternateIdentifier": "identifier",
	"relatedIdentifier": "relation",
	"subject":           "subject", "description": "description", "publisher": "publisher",
	"contributorName": "contributor", "resourceType": "type", "format": "format",
	"language":         "language",
	"geoLocationPlace": "coverage", "rights": "rights",
}

// ReadDC reads the elements of Dublin Core in an XML document. The elements may be anywhere
// in it, of either namespace.
func ReadDC(r io.Reader) (Kernel, error) {
	return readXML(r, func(n xml.Name) string {
		_, kernel := synonyms[n.Local]
		if (n.Space == dcNamespace || n.Space == dctermsNamespace) &&
			(kernel || slices.Contains(Elements, n.Local)) {
			return n.Local
		}
		return ""
	})
}

// ReadDataCite reads a DataCite record, of any version of its schema. Only elements of its
// own namespace count.
func ReadDataCite(r io.Reader) (Kernel, error) {
	return readXML(r, func(n xml.Name) string {
		if strings.HasPrefix(n.Space, dataciteNamespace) {
			return dataciteNames[n.Local]
		}
		return ""
	})
}

// readXML collects the text of the elements for which name returns a name, with the text of
// the elements inside them. Entities other than XML's own five are refused: encoding/xml
// expands no others. An error of the document is one of the package, with the decoder's
// reason.
func readXML(r io.Reader, name func(xml.Name) string) (Kernel, error) {
	in, err := utf8XML(r)
	if err != nil {
		return Kernel{}, err
	}

	d := xml.NewDecoder(in)
	d.CharsetReader = charset
	x := xmlReader{name: name, found: collector{}}
	for {
		t, err := d.Token()
		if err == io.EOF {
			return x.found.kernel(), nil
		}
		if err != nil {
			return Kernel{}, fmt.Errorf("erc: %w", err)
		}
		x.token(t)
	}
}

// xmlReader processes the tokens of a document. An element for which there is a name ends the
// search in it: what is inside is only text.
type xmlReader struct {
	name  func(xml.Name) string
	found collector

	in    string // the name of the element that it is in, "" in none
	depth int    // of the elements inside that
	text  strings.Builder
}

// token processes one token. Elements inside one that is read count only as line breaks, with
// their text.
func (x *xmlReader) token(t xml.Token) {
	switch t := t.(type) {
	case xml.StartElement:
		if x.in != "" {
			x.depth++
			x.text.WriteByte('\n') // e.g. <br/>
			return
		}
		x.in = x.name(t.Name)
		x.text.Reset()
	case xml.CharData:
		x.text.Write(t)
	case xml.EndElement:
		if x.depth > 0 {
			x.depth--
			return
		}
		if x.in != "" {
			x.found.add(x.in, x.text.String())
		}
		x.in = ""
	}
}

// utf8XML decodes a document in UTF-16 and drops a byte order mark (XML 1.0, appendix F).
// The declaration cannot be used for that: it can be read only after decoding.
func utf8XML(r io.Reader) (io.Reader, error) {
	in := bufio.NewReader(r)
	start, err := in.Peek(4)
	if err != nil && err != io.EOF {
		return nil, fmt.Errorf("erc: %w", err)
	}

	order := unicode.Endianness(unicode.BigEndian)
	switch {
	case bytes.HasPrefix(start, []byte("\xef\xbb\xbf")):
		_, err = in.Discard(3)
		return in, err
	case bytes.HasPrefix(start, []byte("\xff\xfe")), bytes.HasPrefix(start, []byte("<\x00?\x00")):
		order = unicode.LittleEndian
	case !bytes.HasPrefix(start, []byte("\xfe\xff")) &&
		!bytes.HasPrefix(start, []byte("\x00<\x00?")):
		return in, nil
	}
	return unicode.UTF16(order, unicode.UseBOM).NewDecoder().Reader(in), nil
}

// charset decodes a document in the charset that its declaration names.
func charset(label string, in io.Reader) (io.Reader, error) {
	if strings.HasPrefix(strings.ToLower(label), "utf-16") {
		return in, nil // already decoded, or the declaration could not have been read
	}
	named, err := ianaindex.IANA.Encoding(label)
	if err != nil || named == nil || named == encoding.Replacement {
		return nil, fmt.Errorf("unknown charset %q; save the file as UTF-8", label)
	}
	return named.NewDecoder().Reader(in), nil
}
