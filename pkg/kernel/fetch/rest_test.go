package fetch

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"archivist/pkg/kernel/fault"
)

// TestRestIsWhatTheServerSays: bytes go to where the server says they belong. A server that
// gives another part than it was asked for is asked for all; an answer with a part of what
// is left is no whole one.
func TestRestIsWhatTheServerSays(t *testing.T) {
	const content = "0123456789"
	for said, c := range map[string]struct {
		body string // of the answer to a range request
		from int64  // of the content that came in the end; -1 if it failed
		got  string
	}{
		"bytes 4-9/10": {"456789", 4, "456789"},
		"bytes 4-9/*":  {"456789", 4, "456789"},
		"bytes 0-9/10": {content, 0, content},
		"bytes 2-9/10": {"23456789", 0, content},
		"":             {"456789", 0, content},
		"bytes 4-6/10": {"456", -1, ""},
	} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Range") == "" {
				_, _ = io.WriteString(w, content)
				return
			}
			if said != "" {
				w.Header().Set("Content-Range", said)
			}
			w.Header().Set("ETag", `"one"`)
			w.WriteHeader(http.StatusPartialContent)
			_, _ = io.WriteString(w, c.body)
		}))
		f := local("127.0.0.0/8")
		f.Tries = 2
		part := Partial{4, Content{Validator: `"one"`, Size: int64(len(content))}}
		from, got := int64(-1), ""
		err := f.Get(t.Context(), srv.URL, func() Partial { return part }, func(s Stream) error {
			data, err := io.ReadAll(s)
			if err == nil {
				from, got = s.From, string(data)
			}
			return err
		})
		if from != c.from || got != c.got || (err != nil) != (c.from < 0) {
			t.Errorf("%q: got %q from %d, %v", said, got, from, err)
		}
		srv.Close()
	}
}

// TestUnaskedPart: a part of the content that nobody asked for is not taken for all of it.
func TestUnaskedPart(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusPartialContent)
		_, _ = io.WriteString(w, "0123")
	}))
	defer srv.Close()

	f := local("127.0.0.0/8")
	f.Tries = 1
	err := f.Get(t.Context(), srv.URL, nil, func(Stream) error { return nil })
	want := srv.URL + `: answered 206 Partial Content with the range "" when asked for the bytes from 0`
	if !fault.Is(err, fault.Unavailable) || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}
