package stage_test

import (
	"bytes"
	"context"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/collection"
	"archivist/pkg/ingest/stage"
	"archivist/pkg/kernel/fault"
)

// scan reads a file by its URL, as a virus scanner does.
func scan(ctx context.Context, in stage.ScanRequest) (out stage.ScanAnswer, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, in.URL, nil)
	if err != nil {
		return out, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return out, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	sum := sha512.Sum512(data)
	out = stage.ScanAnswer{SHA512: hex.EncodeToString(sum[:]), Scanner: "TestAV 1.0/7"}
	if bytes.Contains(data, []byte("EICAR")) {
		out.Infected, out.Signature = true, "Eicar-Test-Signature"
	}
	return out, err
}

// TestVirusScan: each file is scanned before it is stored, as the version's PREMIS says; one with a virus fails its
// job, also inside of a container; a scanner that fails, or has scanned something else, is asked again.
func TestVirusScan(t *testing.T) {
	d, now := newDeposits(t), time.Now()
	d.clock(&now)
	d.Stages.Scan, d.Stages.Collections.Scanner = scan, true
	p := collection.Profile{Scan: true, Containers: &collection.Containers{Keep: true}}
	if err := d.Stages.Collections.Put(t.Context(), "bench", p,
		collection.By{Actor: "me"}, now.UnixMilli()); err != nil {
		t.Fatal(err)
	}

	j := d.send("a.zip", zipped(letters))
	if want := (ingest.Scanned{"TestAV 1.0/7": 4}); j.State != ingest.Completed || j.Scanned["TestAV 1.0/7"] != 4 ||
		len(j.Scanned) != len(want) {
		t.Errorf("%s: %v: %s", j.State, j.Scanned, j.Message)
	}
	if text := d.premis(j); !strings.Contains(text, "virus check") ||
		!strings.Contains(text, "No virus was found in 4 of 4 files by TestAV 1.0/7.") {
		t.Errorf("PREMIS has no virus check: %s", text)
	}

	const found = `the virus check has found "Eicar-Test-Signature" (TestAV 1.0/7)`
	d.Refused(d.send("b.zip", zipped(map[string]string{"a": "x", "b/c.exe": "an EICAR"})).ID, "b/c.exe")
	d.Refused(d.send("c.zip", zipped(map[string]string{"a": "an EICAR"})).ID, found)
	d.files["/virus"] = []byte("EICAR")
	file := func(name string) ingest.Payload {
		return ingest.Payload{URL: d.Source.URL + "/" + name, Type: ingest.TypeFile, Filename: name}
	}
	d.Refused(ingest.JobID(d.submit(file("virus")).ID, 1), "file virus: "+found)

	n := 0
	d.Stages.Scan = func(ctx context.Context, in stage.ScanRequest) (stage.ScanAnswer, error) {
		n++
		out, err := scan(ctx, in)
		switch n {
		case 1:
			return stage.ScanAnswer{}, fault.New(fault.Unavailable, "there is no such function")
		case 2:
			return out, errors.New("the function failed")
		case 3:
			out.SHA512 = "0"
		case 4:
			out.Scanner = ""
		}
		return out, err
	}
	d.files["/good"] = []byte("good")
	id := ingest.JobID(d.submit(file("good")).ID, 1)
	for _, says := range []string{"there is no such function", "the function failed", "has scanned other content",
		"does not say what it is"} {
		if is := d.Job(id); is.State != ingest.Downloading || !strings.Contains(is.Message, says) {
			t.Errorf("%s: %s; want %q", is.State, is.Message, says)
		}
		now = now.Add(time.Hour)
		d.Drive()
	}
	if is := d.Job(id); is.State != ingest.Completed {
		t.Errorf("%s: %s", is.State, is.Message)
	}
}
