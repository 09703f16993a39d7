package feed

import (
	"encoding/xml"
	"net/url"
	"strings"
)

// Namespaces of what is read besides the elements of RSS and Atom.
const (
	dublinCore = "http://purl.org/dc/elements/1.1/"
	mediaRSS   = "http://search.yahoo.com/mrss/"
	enclosures = "http://purl.oclc.org/net/rss_2.0/enc#" // of RSS 1.0
	rdf        = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
	xmlSpace   = "http://www.w3.org/XML/1998/namespace" // of xml:base
)

// attribute is the value of an attribute, "" if the element has none of that name.
func attribute(e xml.StartElement, space, name string) string {
	for _, a := range e.Attr {
		if a.Name.Local == name && a.Name.Space == space {
			return a.Value
		}
	}
	return ""
}

// resolve makes a relative address absolute. nil: it is no address.
func resolve(base *url.URL, address string) *url.URL {
	u, err := base.Parse(strings.TrimSpace(address))
	if err != nil {
		return nil
	}
	return u
}
