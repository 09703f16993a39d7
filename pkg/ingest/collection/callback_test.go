package collection_test

import (
	"strings"
	"testing"

	"archivist/pkg/ingest/collection"
	"archivist/pkg/kernel/fault"
)

// TestCallbackHosts: a submission may have a callback to a host that the profile names exactly, and no other one; on a
// local stack also without TLS.
func TestCallbackHosts(t *testing.T) {
	p := collection.Profile{Callback: collection.Callback{Hosts: []string{"example.org", "example.net:8443"}}}
	for url, says := range map[string]string{
		"https://EXAMPLE.org./a?b":       "",
		"https://example.org:8443":       "",
		"https://example.net:8443":       "",
		"https://example.net":            "does not allow submissions callbacks to https://example.net;",
		"https://a.example.org":          "does not allow",
		"https://evil/example.org":       "does not allow",
		"https://example.org@evil/":      "a user or a password",
		"https://me:SECRET@example.org/": "a user or a password",
		"https://example.org/#a":         "a fragment",
		"https://example.org:70000/":     "the port 70000",
		"http://example.org/":            "expected an https URL",
	} {
		err := collection.Store{}.CheckCallback("maps", p, url)
		if (err == nil) != (says == "") || err != nil && (!fault.Is(err, fault.Invalid) ||
			!strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "SECRET")) {
			t.Errorf("%s: %v", url, err)
		}
	}
	if err := (collection.Store{Plain: true}).CheckCallback("maps", p, "http://example.org/"); err != nil {
		t.Errorf("on a local stack: %v", err)
	}
}
