package researcher

import (
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/fetch"
)

// origin is a server of one recording that can break off.
type origin struct {
	*httptest.Server
	mu     sync.Mutex
	text   string
	breaks int      // after so many bytes; 0: never
	ranges []string // that were asked for
}

func newOrigin(t *testing.T, text string) *origin {
	o := &origin{text: text}
	o.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.ranges = append(o.ranges, r.Header.Get("Range"))
		w.Header().Set("ETag", fmt.Sprintf(`"%x"`, sha256.Sum256([]byte(o.text))))
		if o.breaks > 0 {
			w.Header().Set("Content-Length", fmt.Sprint(len(o.text)))
			_, _ = io.WriteString(w, o.text[:o.breaks])
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader(o.text))
	}))
	t.Cleanup(o.Close)
	return o
}

func (o *origin) set(text string, breaks int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text, o.breaks, o.ranges = text, breaks, nil
}

func newCache(t *testing.T, limit int64) *Cache {
	client := fetch.New(fetch.Guard{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
		func() float64 { return 0 })
	client.Tries = 1
	clock := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	return &Cache{Dir: t.TempDir(), Limit: limit, Client: client, Now: func() time.Time {
		clock = clock.Add(time.Second)
		return clock
	}}
}

func digest(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) }

// get returns the content of a recording.
func get(t *testing.T, c *Cache, m Media) (string, error) {
	t.Helper()
	f, err := c.Get(t.Context(), m, func(int64, int64) {})
	if err != nil {
		return "", err
	}
	defer f.Close()
	data, err := os.ReadFile(f.Path)
	return string(data), err
}

// TestResume: the rest of a recording is requested after a failure, and all of it if it has changed, or if what there
// is turns out to be of another.
func TestResume(t *testing.T) {
	text := strings.Repeat("a", 1000) + "end"
	o := newOrigin(t, text)
	c := newCache(t, 1<<20)
	m := Media{URL: o.URL, SHA256: digest(text)}
	part := filepath.Join(c.Dir, m.name()+partOf)
	for _, step := range []struct {
		what, ranges string
		before       func()
	}{
		{"the rest", "bytes=400-", func() {}},
		{"all, after a part of another content", "bytes=400-,", func() {
			if err := os.WriteFile(part, []byte(strings.Repeat("x", 400)), 0o600); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		o.set(text, 400)
		if _, err := get(t, c, m); !fault.Is(err, fault.Unavailable) {
			t.Fatalf("%s: after a failure: %v", step.what, err)
		}
		o.set(text, 0)
		step.before()
		got, err := get(t, c, m)
		if err != nil || got != text || strings.Join(o.ranges, ",") != step.ranges {
			t.Errorf("%s: %d bytes, %v; requested %q", step.what, len(got), err, o.ranges)
		}
		if _, err := os.Stat(part); err == nil {
			t.Errorf("%s: the part is still there", step.what)
		}
		if err := os.Remove(filepath.Join(c.Dir, m.name())); err != nil {
			t.Fatal(err)
		}
	}
	o.set(text, 400)
	_, _ = get(t, c, Media{URL: o.URL})
	other := strings.Repeat("b", 700)
	o.set(other, 0)
	if got, err := get(t, c, Media{URL: o.URL}); got != other || err != nil {
		t.Errorf("after a change: %d bytes, %v", len(got), err)
	}
}

// TestVerified: what is not what its curator says is refused with what it is, and not kept.
func TestVerified(t *testing.T) {
	o := newOrigin(t, "content")
	c := newCache(t, 100)
	for _, m := range []Media{{Size: 8}, {Size: 6}, {SHA256: digest("other")}, {Size: 101}} {
		m.URL = o.URL
		_, err := get(t, c, m)
		if !fault.Is(err, fault.Invalid) {
			t.Errorf("%+v: %v", m, err)
		}
		if info, err := os.Stat(filepath.Join(c.Dir, m.name()+partOf)); err == nil && info.Size() > 0 {
			t.Errorf("%+v: %d bytes are kept", m, info.Size())
		}
	}
	if got, err := get(t, c, Media{URL: o.URL, Size: 7, SHA256: digest("content")}); got != "content" || err != nil {
		t.Errorf("%q %v", got, err)
	}
}

// TestBounded: the least recently used recordings are removed; what is in use stays.
func TestBounded(t *testing.T) {
	c := newCache(t, 350)
	var all []Media
	var held *File
	for i := range 10 {
		text := strings.Repeat(fmt.Sprint(i), 100)
		m := Media{URL: newOrigin(t, text).URL, SHA256: digest(text)}
		all = append(all, m)
		f, err := c.Get(t.Context(), m, func(int64, int64) {})
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			held = f
			continue
		}
		f.Close()
	}
	var kept []int
	for i, m := range all {
		if _, err := os.Stat(filepath.Join(c.Dir, m.name())); err == nil {
			kept = append(kept, i)
		}
	}
	if fmt.Sprint(kept) != "[0 8 9]" {
		t.Errorf("kept: %v, want the one in use and the last two", kept)
	}
	held.Close()
}

// TestShared: many who want the same recording at once, each with a cache of its own in the same folder, download it
// once.
func TestShared(t *testing.T) {
	text := strings.Repeat("shared", 10000)
	o := newOrigin(t, text)
	c := newCache(t, 1<<20)
	now := c.Now()
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			own := &Cache{Dir: c.Dir, Limit: c.Limit, Client: c.Client, Now: func() time.Time { return now }}
			got, err := get(t, own, Media{URL: o.URL, SHA256: digest(text)})
			if got != text || err != nil {
				t.Errorf("%d bytes, %v", len(got), err)
			}
		})
	}
	group.Wait()
	if len(o.ranges) != 1 {
		t.Errorf("requested %d times", len(o.ranges))
	}
}

// TestFresh: without a digest, a recording counts as that of its address for a day, however often it is used.
func TestFresh(t *testing.T) {
	o := newOrigin(t, "old")
	c := newCache(t, 1<<20)
	clock := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	c.Now = func() time.Time { return clock }
	for _, step := range []struct {
		after time.Duration
		want  string
	}{{0, "old"}, {12 * time.Hour, "old"}, {11 * time.Hour, "old"}, {2 * time.Hour, "new"}} {
		clock = clock.Add(step.after)
		got, err := get(t, c, Media{URL: o.URL})
		if got != step.want || err != nil {
			t.Errorf("after %s: %q %v, want %q", step.after, got, err, step.want)
		}
		o.set("new", 0)
	}
}
