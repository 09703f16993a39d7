package api_test

import (
	"strings"
	"testing"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/fetch"
	"archivist/pkg/research"
	"archivist/pkg/research/feed"
)

// TestFeeds: the feeds of a project are listed with what is known of each, and can be made due.
func TestFeeds(t *testing.T) {
	c, q := serve(t, through)
	ctx := t.Context()
	looker := &feed.Looker{Reader: feed.Reader{Client: fetch.New(fetch.Guard{}, nil), Now: q.Now}, Table: q.Table,
		Now: q.Now, NewID: q.NewID, Log: q.Log, Research: &research.Store{Table: q.Table, Now: q.Now, NewID: q.NewID,
			Times: research.Default, Projects: []string{"jingles"}}}
	d := jingles
	d.Feeds = []v1.ResearchFeed{{URL: "https://127.0.0.1/feed.xml?token=secret", Source: "radio", Kind: "episode"}}
	_, err := c.ApplyResearch(ctx, d, "new")
	if err != nil {
		t.Fatal(err)
	}
	feeds, err := c.ResearchFeeds(ctx, "jingles")
	if err != nil || len(feeds) != 1 || feeds[0].Next != "" || feeds[0].EveryMinutes != 60 || feeds[0].Looked != "" {
		t.Fatalf("before the first look: %+v, %v", feeds, err)
	}
	err = c.LookAtFeed(ctx, "jingles", feeds[0].Key)
	if !fault.Is(err, fault.NotFound) {
		t.Errorf("it has no row: %v", err)
	}
	err = looker.Tick(ctx, looker.Now().Add(feed.Budget))
	if err != nil {
		t.Fatal(err)
	}
	feeds, err = c.ResearchFeeds(ctx, "jingles")
	if err != nil || feeds[0].Failures != 1 || feeds[0].Next == "" || feeds[0].Looked == "" ||
		!strings.Contains(feeds[0].Problem, "127.0.0.1, which is not a public address") ||
		strings.Contains(feeds[0].Problem, "secret") {
		t.Errorf("after a look: %+v, %v", feeds, err)
	}
	err = c.LookAtFeed(ctx, "jingles", feeds[0].Key)
	if err != nil {
		t.Fatal(err)
	}
	soon, err := c.ResearchFeeds(ctx, "jingles")
	if err != nil || soon[0].Next != "" {
		t.Errorf("made due: %+v, %v", soon, err)
	}
	_, err = c.ResearchFeeds(ctx, "none")
	if !fault.Is(err, fault.NotFound) {
		t.Errorf("another project: %v", err)
	}
}
