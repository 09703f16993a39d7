// Package erc reads kernel descriptions (who, what, when, where) from the forms
// in which depositors put them into a package: ERC, Dublin Core, DataCite.
package erc

import (
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strings"

	"archivist/pkg/anvl"
)

// Kernel is a description: each element with its values in order.
type Kernel struct {
	Who, What, When, Where []string
}

// Absent reports whether a value says that there is none: empty, or one of the
// kernel's codes alone (Kernel Metadata, "coded values").
func Absent(v string) bool {
	switch strings.TrimSpace(v) {
	case "", "(:unas)", "(:unkn)", "(:unav)", "(:null)":
		return true
	}
	return false
}

func (k *Kernel) add(name string, values ...string) {
	to := map[string]*[]string{"who": &k.Who, "what": &k.What, "when": &k.When, "where": &k.Where}[strings.ToLower(name)]
	if to == nil {
		return
	}
	for _, v := range values {
		if v = strings.TrimSpace(v); !Absent(v) && !slices.Contains(*to, v) {
			*to = append(*to, v)
		}
	}
}

// Or fills each element that k does not have from less.
func (k Kernel) Or(less Kernel) Kernel {
	pick := func(a, b []string) []string {
		if len(a) > 0 {
			return a
		}
		return b
	}
	return Kernel{pick(k.Who, less.Who), pick(k.What, less.What), pick(k.When, less.When), pick(k.Where, less.Where)}
}

// ReadERC reads an ERC record in ANVL, also its short form "erc: who|what|when|where".
func ReadERC(r io.Reader) (Kernel, error) {
	elements, err := anvl.Read(r)
	if err != nil {
		return Kernel{}, fmt.Errorf("erc: %w", err)
	}
	var k Kernel
	for _, e := range elements {
		if !strings.EqualFold(e.Name, "erc") {
			k.add(e.Name, e.Value)
			continue
		}
		for i, v := range strings.Split(e.Value, "|") {
			if names := []string{"who", "what", "when", "where"}; i < len(names) {
				k.add(names[i], v)
			}
		}
	}
	return k, nil
}

const (
	dcNamespace       = "http://purl.org/dc/elements/1.1/"
	dataciteNamespace = "http://datacite.org/schema/kernel-"
)

var dcNames = map[string]string{"creator": "who", "title": "what", "date": "when", "identifier": "where"}
var dataciteNames = map[string]string{"creatorName": "who", "title": "what", "publicationYear": "when", "identifier": "where", "alternateIdentifier": "where"}

// ReadDC reads the elements of Dublin Core in an XML document.
func ReadDC(r io.Reader) (Kernel, error) {
	return readXML(r, func(n xml.Name) string {
		if n.Space == dcNamespace {
			return dcNames[n.Local]
		}
		return ""
	})
}

// ReadDataCite reads a DataCite record, of any version of its schema.
func ReadDataCite(r io.Reader) (Kernel, error) {
	return readXML(r, func(n xml.Name) string {
		if strings.HasPrefix(n.Space, dataciteNamespace) {
			return dataciteNames[n.Local]
		}
		return ""
	})
}

// readXML collects the text of the elements that name has a word for. Entities
// other than XML's own five are refused: encoding/xml expands no others.
func readXML(r io.Reader, name func(xml.Name) string) (Kernel, error) {
	var k Kernel
	d := xml.NewDecoder(r)
	in, text := "", ""
	for {
		t, err := d.Token()
		if err == io.EOF {
			return k, nil
		}
		if err != nil {
			return Kernel{}, fmt.Errorf("erc: %w", err)
		}
		switch t := t.(type) {
		case xml.StartElement:
			in, text = name(t.Name), ""
		case xml.CharData:
			text += string(t)
		case xml.EndElement:
			if in != "" {
				k.add(in, text)
			}
			in = ""
		}
	}
}
