package api_test

import (
	"strings"
	"testing"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/ingest"
	"archivist/pkg/kernel/fault"
)

// long has 2,000 characters at most, and more bytes.
var long = "https://hooks.example.org/" + strings.Repeat("é", ingest.MaxCallback/2)

// callbacksRefused are callbacks that the profile of TestCallbackAtTheDoor does not allow, with what is said.
var callbacksRefused = map[string]string{
	"https://example.org/SECRET?a=SECRET":          "callbacks to https://example.org; who may change the profile can",
	"https://x.hooks.example.org/":                 "callback.hosts",
	"https://hooks.example.org.evil.example/":      "callback.hosts",
	"https://example.net/":                         "callback.hosts",
	"https://example.net:443/":                     "callback.hosts",
	"https://hooks.example.org\\@evil/":            "expected an https URL",
	"https://evil/?@hooks.example.org":             "callbacks to https://evil;",
	"http://hooks.example.org/?SECRET":             "expected an https URL",
	"ftp://hooks.example.org/?SECRET":              "expected an https URL",
	"hooks.example.org/":                           "expected an https URL",
	"https:hooks.example.org":                      "expected an https URL",
	"https://hooks.example.org/\u0085":             "expected an https URL",
	"https://hooks.example.org/%zz?SECRET":         "expected an https URL",
	"https://me:SECRET@hooks.example.org/":         "a user or a password",
	"https://hooks.example.org/#SECRET":            "a fragment",
	"https://hooks.example.org/#":                  "a fragment",
	"https://hooks.example.org:99999/":             "the port 99999",
	"https://hooks.example.org:0/":                 "the port 0",
	long:                                           "callback: found 2026 bytes; expected at most 2000",
	long + strings.Repeat("x", ingest.MaxCallback): "callback",
}

// TestCallbackAtTheDoor: a submission may name a callback to a host of its collection's profile, and the batch shows it
// without its query. Any other one is refused, with the field and what to do, and without its secrets: nothing is
// stored. A repeated submission has its batch, whatever the profile says then.
func TestCallbackAtTheDoor(t *testing.T) {
	c, q := serve(t, through)
	profile := func(hosts ...string) {
		p := v1.Profile{Callback: &v1.Callback{Hosts: hosts}}
		if len(hosts) == 0 {
			p.Callback = nil
		}
		if _, err := c.PutCollection(t.Context(), "maps", p); err != nil {
			t.Fatal(err)
		}
	}
	profile("Hooks.example.org", "example.net:8443", "10.0.0.1")
	got, err := c.Collection(t.Context(), "maps")
	if err != nil || len(got.Profile.Callback.Hosts) != 3 || got.Profile.Callback.Mode != "required" {
		t.Errorf("%+v, %v", got.Profile.Callback, err)
	}

	before := rowsOf(t, q)
	for url, says := range callbacksRefused {
		in := good
		in.Callback = url
		_, err := c.Submit(t.Context(), in, "")
		if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "callback") ||
			!strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%.100s: %v", url, err)
		}
	}
	if rowsOf(t, q) != before {
		t.Error("a submission that was refused has stored something")
	}

	in := good
	for _, url := range []string{"https://example.net:8443/", "https://10.0.0.1/",
		"HTTPS://HOOKS.example.org:81/x?SECRET"} {
		in.Callback = url
		out, err := c.Submit(t.Context(), in, "a key for "+url)
		if err != nil {
			t.Fatal(err)
		}
		b, err := c.Batch(t.Context(), out.ID)
		kept := stored(t, q, out.ID).Callback
		if err != nil || kept != url || b.Callback == "" || strings.Contains(b.Callback, "SECRET") {
			t.Errorf("%q is kept as %q, and shown as %q, %v", url, kept, b.Callback, err)
		}
	}
	profile()
	if _, err := c.Submit(t.Context(), in, "a key for "+in.Callback); err != nil {
		t.Errorf("a repeat: %v", err)
	}
	if _, err := c.Submit(t.Context(), in, "another key"); !fault.Is(err, fault.Invalid) {
		t.Errorf("a host that was taken out: %v", err)
	}
}
