package fetch

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"archivist/pkg/kernel/fault"
)

func local(allow ...string) *Client {
	var g Guard
	for _, a := range allow {
		g.Allow = append(g.Allow, netip.MustParsePrefix(a))
	}
	c := New(g, func() float64 { return 0 })
	c.Wait = func(context.Context, time.Duration) error { return nil }
	return c
}

// TestDigests: every algorithm that a depositor can name; an unknown one is left out.
func TestDigests(t *testing.T) {
	d := NewDigester("md5", "adler32", "crc32", "sha1", "sha384", "unknown")
	io.WriteString(d, "123456789")
	sums := d.Sums()
	for name, want := range map[string]string{ // of sha1sum and the like, and the check values of the checksums
		"md5": "25f9e794323b453885f5181f1b624d0b", "adler32": "091e01de", "crc32": "cbf43926",
		"sha1":   "f7c3bc1d808e04732adf679965ccc34ca7ae3441",
		"sha256": "15e2b0d3c33891ebb0f1ef609ec419420c20e320ce94c65fbc8c3312448eb225",
		"sha384": "eb455d56d2c1a69de64e832011f3393d45f3fa31d6842f21af92d2fe469c499da5e3179847334a18479c8d1dedea1be3",
		"sha512": "d9e6762dd1c8eaf6d61b3c6192fc408d4d6d5f1176d0c29169bc24e71c3f274a" +
			"d27fcd5811b313d681f7e55ec02d73d499c95455b6b5bb503acf574fba8ffe85",
	} {
		if sums[name] != want {
			t.Errorf("%s: got %s, want %s", name, sums[name], want)
		}
	}
	if got := d.CRC64NVME(); got != "rosUhgp5mIg=" { // 0xAE8B14860A799888
		t.Errorf("CRC64NVME is %s", got)
	}
	if len(sums) != 7 || d.Size != 9 {
		t.Errorf("%d digests of %d bytes", len(sums), d.Size)
	}
}

func TestRetries(t *testing.T) {
	n := 0
	answers := []int{500, 429, 200}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(answers[min(n, len(answers)-1)])
		n++
		io.WriteString(w, "content")
	}))
	defer srv.Close()
	get := func() (string, error) {
		var got string
		err := local("127.0.0.0/8").Get(t.Context(), srv.URL+"/a?secret=1", nil, func(body Stream) error {
			b, err := io.ReadAll(body)
			got = string(b)
			return err
		})
		return got, err
	}
	if got, err := get(); err != nil || got != "content" || n != 3 {
		t.Errorf("got %q after %d requests, %v", got, n, err)
	}
	n, answers = 0, []int{404}
	_, err := get()
	var status *StatusError
	if !fault.Is(err, fault.Invalid) || !errors.As(err, &status) || n != 1 || strings.Contains(err.Error(), "secret") {
		t.Errorf("404: %v after %d requests", err, n)
	}
	n, answers = 0, []int{503}
	if _, err := get(); !fault.Is(err, fault.Unavailable) || n != 4 {
		t.Errorf("503: %v after %d requests", err, n)
	}
}

func TestGuard(t *testing.T) {
	srv := httptest.NewServer(http.NotFoundHandler())
	defer srv.Close()
	err := local().Get(t.Context(), srv.URL, nil, func(Stream) error { return nil })
	var refused *RefusedError
	if !fault.Is(err, fault.Invalid) || !errors.As(err, &refused) {
		t.Errorf("loopback was fetched from: %v", err)
	}
}

func TestSize(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodHead && r.URL.Path == "/nohead" {
			w.WriteHeader(405)
			return
		}
		http.ServeContent(w, r, "x", time.Time{}, strings.NewReader("0123456789"))
	}))
	defer srv.Close()
	for _, path := range []string{"/a", "/nohead"} {
		if n, err := local("127.0.0.0/8").Size(t.Context(), srv.URL+path); err != nil || n != 10 {
			t.Errorf("%s: %d, %v", path, n, err)
		}
	}
	if _, err := local("127.0.0.0/8").Size(t.Context(), "http://127.0.0.1:1/"); err == nil {
		t.Error("a dead server has a size")
	}
}

// TestResume: half of the content is not fetched again, unless it changed.
func TestResume(t *testing.T) {
	content, etag := strings.Repeat("0123456789", 100), `"one"`
	sent := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", etag)
		counted := &counter{ResponseWriter: w, n: &sent}
		http.ServeContent(counted, r, "x", time.Time{}, strings.NewReader(content))
	}))
	defer srv.Close()
	var got []byte
	var seen Content
	get := func(limit int) error {
		return local("127.0.0.0/8").Get(t.Context(), srv.URL, func() Partial { return Partial{int64(len(got)), seen} },
			func(s Stream) error {
				if s.From != int64(len(got)) {
					got = got[:0]
				}
				if s.Size != int64(len(content)) {
					t.Errorf("the size is %d", s.Size)
				}
				seen = s.Content
				b := make([]byte, limit)
				n, err := io.ReadFull(s, b)
				got = append(got, b[:n]...)
				if err == io.ErrUnexpectedEOF || err == io.EOF {
					return nil
				}
				return ErrStop
			})
	}
	if err := get(600); !errors.Is(err, ErrStop) || len(got) != 600 {
		t.Fatalf("stopped with %d bytes, %v", len(got), err)
	}
	sent = 0
	if err := get(5000); err != nil || string(got) != content || sent != 400 {
		t.Errorf("%d bytes, %d of them sent again, %v", len(got), sent, err)
	}
	got, etag, content = got[:600], `"two"`, strings.Repeat("abcdefghij", 100)
	if err := get(5000); err != nil || string(got) != content {
		t.Errorf("other content was mixed in: %.20s…, %v", got, err)
	}
}

type counter struct {
	http.ResponseWriter
	n *int
}

func (c *counter) Write(p []byte) (int, error) {
	*c.n += len(p)
	return c.ResponseWriter.Write(p)
}

func TestDigestsGoOn(t *testing.T) {
	whole, half := NewDigester("md5", "adler32", "crc32", "sha1", "sha384"), NewDigester("md5", "adler32", "crc32",
		"sha1", "sha384")
	io.WriteString(whole, "one two")
	io.WriteString(half, "one")
	state, err := half.State()
	if err != nil {
		t.Fatal(err)
	}
	rest := NewDigester("md5", "adler32", "crc32", "sha1", "sha384")
	if err := rest.Restore(state); err != nil {
		t.Fatal(err)
	}
	io.WriteString(rest, " two")
	for name, want := range whole.Sums() {
		if rest.Sums()[name] != want {
			t.Errorf("%s: %s, want %s", name, rest.Sums()[name], want)
		}
	}
	if rest.CRC64NVME() != whole.CRC64NVME() || rest.Size != 7 {
		t.Error("the checksum or the size differs")
	}
}
