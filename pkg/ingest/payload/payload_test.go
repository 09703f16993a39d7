package payload_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/payload"
	"archivist/pkg/kernel/fault"
)

const manifest = "#%checkm_0.7\n#%profile | http://uc3.cdlib.org/registry/ingest/manifest/"

// Example detects a batch manifest by its first bytes.
func Example() {
	start := []byte("#%checkm_0.7\n#%profile | http://uc3.cdlib.org/registry/ingest/manifest/mrt-batch-manifest\n")
	kind, err := payload.TypeOf(ingest.Payload{URL: "https://example.org/list", Filename: "list"}, start)
	fmt.Println(kind, err)
	// Output: batch-manifest <nil>
}

// page is an error page, which many servers send with status 200.
const page = "\n<!DOCTYPE HTML><title>Sign in</title>"

func TestTypeOf(t *testing.T) {
	for _, row := range []struct {
		name, file, start, kind string
		given                   string // type by the depositor
		unexpected              bool   // a web page where something else was expected
	}{
		{name: "nothing", kind: ingest.TypeFile},
		{name: "text", start: "a | b", kind: ingest.TypeFile},
		{name: "object manifest", start: manifest + "mrt-ingest-manifest\n", kind: ingest.TypeObjectManifest},
		{name: "list of objects", start: manifest + "mrt-batch-manifest\n", kind: ingest.TypeBatchManifest},
		{name: "list of files", start: manifest + "mrt-single-file-batch-manifest\n", kind: ingest.TypeSingleFileBatch},
		{name: "list of containers", start: manifest + "mrt-container-batch-manifest\n",
			kind: ingest.TypeContainerBatch},
		{name: "zip by its name", file: "a.ZIP", start: "PK\x03\x04", kind: ingest.TypeContainer},
		{name: "zip inside", file: "a.docx", start: "PK\x03\x04", kind: ingest.TypeFile},
		{name: "zip by its name only", file: "a.zip", start: "text", kind: ingest.TypeFile},
		{name: "tar by another name", file: "a.zip", start: "\x1f\x8b\x08", kind: ingest.TypeFile},
		{name: "tgz", file: "a.tgz", start: "\x1f\x8b\x08", kind: ingest.TypeContainer},
		{name: "page for a container", given: ingest.TypeContainer, start: page, unexpected: true},
		{name: "page", start: page, unexpected: true},
		{name: "page after a byte order mark", start: "\xef\xbb\xbf" + page, unexpected: true},
		{name: "XHTML", start: "<?xml version='1.0'?>\n<html>", unexpected: true},
		{name: "XML", start: "<?xml version='1.0'?>\n<mods>", kind: ingest.TypeFile},
		{name: "page by its name", file: "a.HTM", start: page, kind: ingest.TypeFile},
		{name: "page by its type", given: ingest.TypeFile, start: page, kind: ingest.TypeFile},
		{name: "page for a manifest", file: "a.html", given: ingest.TypeObjectManifest, start: page, unexpected: true},
	} {
		p := ingest.Payload{URL: "https://example.org/?token=secret", Type: row.given, Filename: row.file}
		kind, err := payload.TypeOf(p, []byte(row.start))
		if row.unexpected {
			if !fault.Is(err, fault.Unavailable) || strings.Contains(err.Error(), "secret") {
				t.Errorf("%s: %v", row.name, err)
			}
		} else if kind != row.kind || err != nil {
			t.Errorf("%s is %q, %v; expected %q", row.name, kind, err, row.kind)
		}
	}
}

// TestChanged: only a type that was detected as a plain file is checked against the content.
func TestChanged(t *testing.T) {
	for _, row := range []struct {
		start, says string
		detected    bool
		kind        string
	}{
		{"text", "", true, ingest.TypeFile},
		{manifest + "mrt-ingest-manifest\n", "type object-manifest", true, ingest.TypeFile},
		{page, "received a web page", true, ingest.TypeFile},
		{page, "", false, ingest.TypeFile},
		{"text", "", true, ingest.TypeObjectManifest},
	} {
		j := &ingest.Job{Payload: ingest.Payload{Type: row.kind, Detected: row.detected}}
		came := func(context.Context) (io.ReadCloser, error) {
			return io.NopCloser(bytes.NewReader([]byte(row.start))), nil
		}
		why, err := payload.Changed(t.Context(), j, came)
		if err != nil || (why == "") != (row.says == "") || !strings.Contains(why, row.says) {
			t.Errorf("%.20q: %q, %v; expected %q", row.start, why, err, row.says)
		}
	}
}
