package jobs

import (
	"strings"
	"testing"
)

// TestCauseOf: the column of a list begins with the cause, whatever was asked of whom.
func TestCauseOf(t *testing.T) {
	for _, k := range [][2]string{
		{"the payload's type cannot be detected: http://127.0.0.1:4580/folders/missing.checkm answered 404 Not " +
			"Found. Correct the source", "404 Not Found. Correct"},
		{"file nope.bin: http://127.0.0.1:4766/v1/nope.bin answered 503 Service Unavailable (tried 4 times)",
			"503 Service"},
		{"https://example.org/scans/map-18.tif: the server answers 404 Not Found; correct the URL", "404 Not Found"},
		{"http://127.0.0.1:9/x.bin: dial tcp 127.0.0.1:9: connect: connection refused (tried 4 times).",
			"connection refused"},
		{"http://no.such.example/x: dial tcp: lookup no.such.example on 10.0.0.2:53: no such host.", "no such host."},
		{"https://example.org/a is a web page (HTML), not a manifest", "is a web page"},
		{"file a b.tif: its md5 is 1, expected 2", "its md5 is 1"},
		{"the content has no file", "the content has no file"},
		{"https://example.org/a ", "https://example.org/a "},
		{"", ""},
	} {
		if got := causeOf(k[0]); !strings.HasPrefix(got, k[1]) || k[1] == "" && got != "" {
			t.Errorf("%q: %q, want %q", k[0], got, k[1])
		}
	}
}
