package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"maps"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"archivist/cmd/archivist/command/commandtest"
	"archivist/localstack/demo"
	v1 "archivist/pkg/api/v1"
)

// fragile is a network that ends the program at a request, and counts what was sent.
type fragile struct {
	mu       sync.Mutex
	requests int
	last     int // the program is killed at this request; 0: it lives
	kill     context.CancelFunc
	sent     map[string]int // successful PUTs, by path and number of the part
}

// RoundTrip makes a request. The last one has its effect if its number is odd.
func (f *fragile) RoundTrip(r *http.Request) (*http.Response, error) {
	f.mu.Lock()
	f.requests++
	isLast := f.requests == f.last
	f.mu.Unlock()
	if isLast && f.last%2 == 0 {
		f.kill()
		return nil, r.Context().Err()
	}

	resp, err := http.DefaultTransport.RoundTrip(r)
	if r.Method == http.MethodPut && err == nil && resp.StatusCode == http.StatusOK {
		f.mu.Lock()
		f.sent[r.URL.Path+" "+r.URL.Query().Get("partNumber")]++
		f.mu.Unlock()
	}
	if isLast {
		f.kill()
	}
	return resp, err
}

// TestUpload: a folder of 1,000 files and one in parts is submitted to a real archive and storage by a program that is
// killed again and again. Nothing is sent twice, and all is preserved with its digest.
func TestUpload(t *testing.T) {
	home := commandtest.EmptyHome(t)
	d, err := demo.Start(t.Context(), demo.Options{Empty: true, Folder: t.TempDir(), Out: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})

	want := map[string]string{}
	add := func(name, text string) {
		commandtest.Write(t, filepath.Join(home, "letters", name), text)
		want["producer/"+name] = fmt.Sprintf("%x", sha256.Sum256([]byte(text)))
	}
	for i := range 1000 {
		add(fmt.Sprintf("%d/%03d.txt", i%7, i), fmt.Sprint("letter ", i))
	}
	add("large.bin", string(bytes.Repeat([]byte("archive"), 10<<20))) // 70 MiB: two parts
	add("empty", "")

	net := &fragile{sent: map[string]int{}}
	c := with(t, d.APIURL)
	c.HTTP = &http.Client{Transport: net}
	const line = "submit letters -c maps --local-id letters --what Letters --new-collection"
	run := func(last int) int {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		net.requests, net.last, net.kill, c.Ctx = 0, last, cancel, ctx
		return c.Run(line)
	}
	// Together well under the 1,000 files, so that each of these runs has work left when it is killed.
	for _, last := range []int{2, 3, 5, 151, 250, 200, 199} {
		if code := run(last); code != 130 {
			t.Fatalf("killed at request %d: exit code %d\n%s", last, code, &c.Both)
		}
	}
	if code := run(0); code != 0 {
		t.Fatalf("exit code %d\n%s", code, &c.Both)
	}

	batch := strings.TrimSpace(c.Out.String())
	for of, n := range net.sent {
		if n > 1 {
			t.Errorf("%s was sent %d times", of, n)
		}
	}
	if code := run(0); code != 0 || strings.TrimSpace(c.Out.String()) != batch {
		t.Errorf("again: exit code %d\n%s", code, &c.Both)
	}
	preserved(t, &v1.Client{URL: d.APIURL, HTTP: http.DefaultClient}, batch, want)
}

// preserved: a batch has preserved the files of a depositor, with these digests, and nothing else.
func preserved(t *testing.T, client *v1.Client, batch string, want map[string]string) {
	t.Helper()
	for {
		b, err := client.Batch(t.Context(), batch)
		if err != nil {
			t.Fatal(err)
		}
		if v1.Ended(b.State) {
			break
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-t.Context().Done():
			t.Fatal("the batch does not end")
		}
	}

	jobs, err := client.Jobs(t.Context(), v1.Filter{Batch: batch})
	if err != nil || len(jobs) != 1 || jobs[0].State != v1.Completed {
		t.Fatalf("%+v, %v", jobs, err)
	}
	files, err := client.Files(t.Context(), jobs[0].Identifiers.Primary, jobs[0].Version)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, f := range files {
		if strings.HasPrefix(f.Path, "producer/") {
			got[f.Path] = f.Digests["sha256"]
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("%d files are preserved, expected %d", len(got), len(want))
	}
}
