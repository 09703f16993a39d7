package ingest_test

import (
	"testing"

	"archivist/pkg/ingest"
)

// TestSource: the source of a payload is its URL without secrets, or says who uploaded it.
func TestSource(t *testing.T) {
	const url = "upload://01M7ZBMEYHBB62YP6RY21T1GQ7/00"
	for want, p := range map[string]ingest.Payload{
		"":                                 {Filename: "a.txt"},
		"https://example.org/a?redacted":   {URL: "https://me:secret@example.org/a?key=secret", Uploader: "ann"},
		"a.txt, uploaded by ann":           {URL: url, Filename: "a.txt", Uploader: "ann"},
		"a.txt, uploaded by the depositor": {URL: url, Filename: "a.txt"}, // of an earlier release
	} {
		if got := p.Source(); got != want {
			t.Errorf("%+v: %q, expected %q", p, got, want)
		}
	}
	p := ingest.Payload{URL: url, Uploader: "ann"}
	if p.UploaderOf(url) != "ann" || p.UploaderOf("https://example.org/a") != "" {
		t.Error("a file that was downloaded has been uploaded, or the other way round")
	}
}
