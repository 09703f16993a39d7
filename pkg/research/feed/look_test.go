package feed

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
	"archivist/pkg/kernel/fetch"
)

// reader is a Reader that may connect to this machine.
func reader() Reader {
	client := fetch.New(fetch.Guard{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
		func() float64 { return 0 })
	client.Wait = func(context.Context, time.Duration) error { return nil }
	return Reader{Client: client, Now: func() time.Time { return today }}
}

// TestLook: a feed is read over HTTP, and is not read again until it changes.
func TestLook(t *testing.T) {
	text, tag, broken := rss(item("a", "t", "a.mp3", "")), `"1"`, 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", tag)
		if r.Header.Get("If-None-Match") == tag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		if broken > 0 { // the connection ends in the middle
			broken--
			w.Header().Set("Content-Length", "100000")
			_, _ = io.WriteString(w, text[:50])
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}
		_, _ = io.WriteString(w, text)
	}))
	defer srv.Close()
	url := srv.URL + "/show/feed?token=secret"

	broken = 2
	first, err := reader().Look(t.Context(), url, fetch.Validators{})
	if err != nil || len(first.Entries) != 1 || first.Entries[0].URL != srv.URL+"/show/a.mp3" || first.ETag != tag {
		t.Fatalf("%+v, %v", first, err)
	}
	second, err := reader().Look(t.Context(), url, first.Validators)
	if err != nil || !second.Unchanged || second.Entries != nil || second.Validators != first.Validators {
		t.Errorf("unchanged: %+v, %v", second, err)
	}
	text, tag = rss(item("a", "another", "a.mp3", ""), "<item/>"), `"2"`
	third, err := reader().Look(t.Context(), url, first.Validators)
	if err != nil || third.Unchanged || third.Entries[0].Title != "another" || len(third.Skipped) != 1 {
		t.Errorf("changed: %+v, %v", third, err)
	}
	text = "<html>"
	_, err = reader().Look(t.Context(), url, fetch.Validators{})
	if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "/show/feed?redacted: line 1: this is no RSS") {
		t.Errorf("no feed: %v", err)
	}
	text, broken = rss(), 4
	_, err = reader().Look(t.Context(), url, fetch.Validators{})
	if !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), "received 50 of 100,000 bytes") {
		t.Errorf("a connection that always ends: %v", err)
	}
	guarded := reader()
	guarded.Client = fetch.New(fetch.Guard{}, func() float64 { return 0 })
	_, err = guarded.Look(t.Context(), url, fetch.Validators{})
	var refused *fetch.RefusedError
	if !errors.As(err, &refused) {
		t.Errorf("a private address: %v", err)
	}
}
