package fetch

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"archivist/pkg/kernel/fault"
)

// TestSilentServers: whatever a server does not send, its request ends in time, and
// the message says what was waited for.
func TestSilentServers(t *testing.T) {
	t.Parallel()                                  // it waits
	const short = 500 * time.Millisecond          // ten times what an answer takes
	mute, err := net.Listen("tcp", "127.0.0.1:0") // takes connections and says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer mute.Close()
	half := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "1400")
		_, _ = io.WriteString(w, "twelve bytes")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	defer half.Close()
	for _, c := range []struct {
		url, says string
		wait      func(*Limits) *time.Duration // the limit that is reached; the others are long
		dial      func(ctx context.Context, network, address string) (net.Conn, error)
	}{
		{"http://archive.invalid/a?secret=1", "http://archive.invalid/a?redacted: no connection for 0.5 s (tried 2 " +
			"times)",
			func(l *Limits) *time.Duration { return &l.Connect },
			func(ctx context.Context, _, _ string) (net.Conn, error) { <-ctx.Done(); return nil, ctx.Err() }},
		{"https://" + mute.Addr().String() + "/a", ": no end of the TLS handshake for 0.5 s",
			func(l *Limits) *time.Duration { return &l.TLS }, nil},
		{"http://" + mute.Addr().String() + "/a", ": no response header for 0.5 s",
			func(l *Limits) *time.Duration { return &l.Header }, nil},
		{half.URL, half.URL + ": received 12 of 1,400 bytes, then nothing for 0.5 s",
			func(l *Limits) *time.Duration { return &l.Data }, nil},
	} {
		f := local("127.0.0.0/8")
		f.Tries = 2
		f.Limits = DefaultLimits
		*c.wait(&f.Limits) = short
		if c.dial != nil {
			f.HTTP.Transport.(*http.Transport).DialContext = c.dial
		}
		read := func(s Stream) error { _, err := io.ReadAll(s); return err }
		err := f.Get(t.Context(), c.url, nil, read)
		var silent *SilentError
		if !fault.Is(err, fault.Unavailable) || !errors.As(err, &silent) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v; expected %q", c.url, err, c.says)
		}
		f.Limits = DefaultLimits
		ctx, cancel := context.WithTimeout(t.Context(), short)
		err = f.Get(ctx, c.url, nil, read)
		cancel()
		what, _, _ := strings.Cut(c.says[strings.LastIndex(c.says, ": ")+2:], " for")
		said, received := strings.CutSuffix(what, ", then nothing")
		if received { // it may have sent until then
			said += " when"
		} else {
			said += " until"
		}
		said += " the time for this try was up"
		if err == nil || !strings.Contains(err.Error(), said) {
			t.Errorf("%s: %v; expected %q", c.url, err, said)
		}
	}
}

// TestSlowIsNotSilent: of a source that has sent data all the time, the message does not say that nothing came.
func TestSlowIsNotSilent(t *testing.T) {
	const short = time.Second / 2
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "1400")
		for r.Context().Err() == nil {
			_, _ = io.WriteString(w, "x")
			_ = http.NewResponseController(w).Flush()
			<-time.After(short / 100)
		}
	}))
	defer slow.Close()
	ctx, cancel := context.WithTimeout(t.Context(), short)
	defer cancel()
	f := local("127.0.0.0/8")
	f.Limits = DefaultLimits
	err := f.Get(ctx, slow.URL, nil, func(s Stream) error { _, err := io.ReadAll(s); return err })
	if err == nil || !strings.Contains(err.Error(), " of 1,400 bytes when the time for this try was up") {
		t.Errorf("of a slow source: %v", err)
	}
}

// TestSizeOfHangingHead: a server that does not answer a HEAD is asked by a GET, and
// one that answers neither has an unknown size, in time.
func TestSizeOfHangingHead(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodHead || r.URL.Path == "/never" {
			<-r.Context().Done()
			return
		}
		http.ServeContent(w, r, "x", time.Time{}, strings.NewReader("0123456789"))
	}))
	defer srv.Close()
	c := local("127.0.0.0/8")
	c.Limits.Small = time.Second // ten times what an answer takes
	if n, err := c.Size(t.Context(), srv.URL+"/a"); err != nil || n != 10 {
		t.Errorf("%d, %v", n, err)
	}
	var silent *SilentError
	if _, err := c.Size(t.Context(), srv.URL+"/never"); !errors.As(err, &silent) {
		t.Errorf("%v", err)
	}
}
