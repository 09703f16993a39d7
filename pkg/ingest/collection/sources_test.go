package collection_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"archivist/pkg/ingest/collection"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table/tabletest"
)

// TestSources: sources that are accepted come back as they are; an entry that nothing matches is refused by its field.
func TestSources(t *testing.T) {
	n := 0
	s := collection.Store{Table: tabletest.Open(t), NewID: func() string { n++; return fmt.Sprint("id", n) },
		Buckets: []string{"digitisation"}}
	of := func(host, secret string) *collection.Sources {
		return &collection.Sources{Credentials: []collection.Credential{{Host: host, Secret: secret}}}
	}
	long := strings.Split(strings.Repeat("a.org,", 51), ",")[:51]
	for name, c := range map[string]struct {
		given *collection.Sources
		wrong string
	}{
		"all": {given: &collection.Sources{Allow: []string{"example.org", "*.example.org", "10.0.0.1:80", "[::1]:80"},
			Deny: []string{"a.example.org"}, Buckets: []string{"digitisation"},
			Credentials: []collection.Credential{{Host: "a.org", Secret: "archivist/sources/a"},
				{Host: "a.org:81", Secret: "archivist/sources/b"}}}},
		"a URL":         {given: &collection.Sources{Allow: []string{"https://example.org"}}, wrong: "sources.allow"},
		"a pattern":     {given: &collection.Sources{Deny: []string{"a*.example.org"}}, wrong: "sources.deny"},
		"nothing":       {given: &collection.Sources{Deny: []string{""}}, wrong: "sources.deny"},
		"too many":      {given: &collection.Sources{Allow: long}, wrong: "sources.allow: 51 entries"},
		"a bucket":      {given: &collection.Sources{Buckets: []string{"other"}}, wrong: "setting sourceBuckets"},
		"all hosts":     {given: of("*.example.org", "archivist/sources/a"), wrong: "sources.credentials"},
		"secret":        {given: of("example.org", "archivist/tasks/a"), wrong: `begins with "archivist/sources/"`},
		"secret's name": {given: of("example.org", "archivist/sources/"), wrong: `begins with "archivist/sources/"`},
		"twice": {given: &collection.Sources{Credentials: []collection.Credential{{Host: "a.org",
			Secret: "archivist/sources/a"}, {Host: "A.org", Secret: "archivist/sources/b"}}}, wrong: "two secrets"},
	} {
		err := s.Put(t.Context(), "maps", collection.Profile{Sources: c.given}, collection.By{Actor: "me"}, 1)
		switch {
		case c.wrong == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.wrong != "" && (!fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), c.wrong)):
			t.Errorf("%s: %v; want %q", name, err, c.wrong)
		}
	}

	p, known, err := s.Profile(t.Context(), "maps")
	if err != nil || !known || len(p.Sources.Credentials) != 2 || len(p.Sources.Allow) != 4 {
		t.Errorf("%+v, %v, %v", p.Sources, known, err)
	}
	for raw, want := range map[string]string{"https://a.org/x": "archivist/sources/a",
		"https://a.org:81/x": "archivist/sources/b",
		"https://a.org:82/":  "archivist/sources/a", "https://b.a.org/": ""} {
		u, _ := url.Parse(raw)
		if got := p.SecretOf(u); got != want {
			t.Errorf("%s has the secret %q, want %q", raw, got, want)
		}
	}
	err = s.Put(t.Context(), "maps", collection.Profile{Callback: collection.Callback{URL: "https://example.org/",
		Secret: "archivist/sources/a"}}, collection.By{Actor: "me"}, 2)
	if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "those of sources") {
		t.Errorf("a callback signed with a source's secret: %v", err)
	}
}
