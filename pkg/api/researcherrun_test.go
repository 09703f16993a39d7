package api_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/backoff"
	"archivist/pkg/kernel/fetch"
	"archivist/pkg/research/analysis"
	"archivist/pkg/research/researcher"
)

// words is an analysis of bytes: a clip is where its bytes are.
type words struct{}

func (words) Check([]byte) error { return nil }

func (words) Open(_ context.Context, path string, _ []byte) (analysis.Session, error) {
	data, err := os.ReadFile(path)
	return text(data), err
}

type text []byte

func (text) Close() error { return nil }

func (s text) Clip(_ context.Context, path string, _ func(float64)) (r analysis.Result, err error) {
	clip, err := os.ReadFile(path)
	if n := bytes.Index(s, clip); err == nil && n >= 0 {
		r.Hits = []analysis.Hit{{Offset: int64(n), Length: int64(len(clip)), Score: 1}}
	}
	return r, err
}

// TestResearcher: a researcher works through a project by HTTP alone, with a token that is for researchers of the
// project only. Answers that are lost cost nothing.
func TestResearcher(t *testing.T) {
	c, q := guarded(t)
	recordings := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := strings.TrimPrefix(r.URL.Path, "/")
		if strings.HasPrefix(name, "e") {
			name = "..0.." + name[1:] // each episode has the clip "0", and one of its own
		}
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader(name))
	}))
	t.Cleanup(recordings.Close)
	keys := map[string][]string{}
	_, err := c.ApplyResearch(t.Context(), jingles, "new")
	for kind, names := range map[string][]string{v1.Episodes: {"e1", "e2"}, v1.Clips: {"0", "1", "2"}} {
		for _, name := range names {
			record := v1.ResearchRecord{Source: "test", ID: name, URL: recordings.URL + "/" + name}
			done, failed := c.Curate(t.Context(), "jingles", kind, []v1.ResearchRecord{record})
			if err != nil || failed != nil || done[0].Problem != "" {
				t.Fatal(err, failed, done)
			}
			keys[kind] = append(keys[kind], done[0].Key)
		}
	}
	stop, wind := context.WithCancel(t.Context())
	lossy := *c
	lossy.Bearer = as("one")
	lossy.HTTP = &http.Client{Transport: &losing{RoundTripper: http.DefaultTransport}}
	ended := make(chan error)
	go func() { ended <- researcherOf(t, &lossy).Run(t.Context(), stop) }()
	for range 400 {
		pass(t, q, c)
		st, err := c.ResearchStatus(t.Context(), "jingles")
		if err != nil {
			t.Fatal(err)
		}
		if st.Coverage.Researched == 6 {
			break
		}
		_ = backoff.Sleep(t.Context(), 10*time.Millisecond)
	}
	wind()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	for e, key := range keys[v1.Episodes] {
		results, err := c.ResearchResults(t.Context(), "jingles", v1.Episodes, key, 0)
		found := map[string]string{}
		for _, r := range results {
			found[r.Clip] += fmt.Sprint(len(r.Hits))
		}
		own, other := keys[v1.Clips][1+e], keys[v1.Clips][2-e]
		right := found[keys[v1.Clips][0]] == "1" && found[own] == "1" && found[other] == "0"
		if err != nil || len(results) != 3 || !right {
			t.Errorf("episode %d: %v, %v", e, found, err)
		}
	}
	st, err := c.ResearchStatus(t.Context(), "jingles")
	if err != nil || st.Leases != 0 || st.Researchers != 0 || st.Results != 6 {
		t.Errorf("%+v, %v", st, err)
	}
}

// losing loses every third answer.
type losing struct {
	http.RoundTripper
	n atomic.Int64
}

func (l *losing) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := l.RoundTripper.RoundTrip(r)
	if err == nil && l.n.Add(1)%3 == 0 {
		resp.Body.Close()
		return nil, errors.New("the answer was lost")
	}
	return resp, err
}

// researcherOf is a researcher of the project jingles, whose tries follow each other at once.
func researcherOf(t *testing.T, c *v1.Client) *researcher.Researcher {
	dir := t.TempDir()
	media := fetch.New(fetch.Guard{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
		func() float64 { return 0 })
	archive := &researcher.API{Client: c, Project: "jingles", Name: "bench-3", Now: time.Now}
	n := 0
	return &researcher.Researcher{Name: "bench-3", Concurrency: 1, Server: archive,
		Source:   researcher.Next{Server: archive},
		Cache:    &researcher.Cache{Dir: dir + "/recordings", Limit: 1 << 20, Client: media, Now: time.Now},
		Reports:  &researcher.Reports{Dir: dir + "/reports", Name: "bench-3", Now: time.Now},
		Analyses: map[string]analysis.Analysis{"correlation": words{}}, Now: time.Now,
		NewID: func() string { n++; return fmt.Sprint("token-", n) }, Jitter: func() float64 { return 0 },
		Log: slog.New(slog.DiscardHandler),
		Wait: func(ctx context.Context, d time.Duration) error {
			return backoff.Sleep(ctx, min(d, 5*time.Millisecond))
		}}
}
