package console_test

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/events/consumer"
	"archivist/pkg/events/envelope"
	"archivist/pkg/kernel/table/tabletest"
	"archivist/pkg/views/acts"
)

// TestActsPage: what people did is listed with who and why, whatever log it is in, by who did it,
// and by a filter; an operation on jobs is one act, its preview none, and a correction is one.
func TestActsPage(t *testing.T) {
	w := begin(t, true)
	failed := w.submit(w.file("sample", "none.txt", ""), v1.Failed)
	done := w.submit(w.file("letters", "here.txt", "content"), v1.Completed)
	w.tried(failed.Batch)
	priority := 5
	op, err := w.api.Start(w.Context(), v1.OperationRequest{Action: "prioritize", Priority: &priority,
		Filter:        &v1.JobFilter{Batch: failed.Batch},
		ActionOptions: v1.ActionOptions{Reason: "It is urgent"}}, "")
	w.must(err)
	w.until("the operation has ended", func() bool {
		is, err := w.api.Operation(w.Context(), op.ID)
		w.must(err)
		return is.State == v1.OperationDone
	})
	_, err = call(w, "/v1/queue/actions", v1.Action{Action: "pause", Reason: evil})
	w.must(err)
	_, err = call(w, "/v1/jobs/"+failed.ID+"/actions",
		v1.Action{Action: "delete", Reason: "It is not wanted"})
	w.must(err)
	_, err = w.api.Correct(w.Context(), done.Identifiers.Primary,
		v1.CorrectionRequest{What: "Letters", Reason: "A typo in it"}, "")
	w.must(err)

	var all []v1.Act
	w.until("all acts are listed", func() bool {
		all, err = w.api.Acts(w.Context(), v1.ActFilter{}, 0)
		w.must(err)
		return len(all) == 4
	})
	var types []string
	for _, a := range all {
		types = append(types, a.Type)
	}
	if got := strings.Join(types, " "); got != "batch.state job.state queue.paused operation.started" {
		t.Errorf("acts: %s", got)
	}

	b := w.browser()
	b.plain("acts", "acts?filter=Queue%2BAll")
	_, page := b.get("acts")
	for _, want := range []string{"It is not wanted", "A typo in it", ">queue.paused<"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not have %s:\n%s", want, page)
		}
	}
	for address, n := range map[string]int{
		"?actor=" + url.QueryEscape(all[0].Actor): 4, "?actor=nobody": 0,
		"?filter=Queue%2BAll": 1, "?before=2000-01-01": 0,
		"?filter=Batch%2BAll%7Bparent%3Dletters%7D": 1} {
		if _, page := b.get("acts" + address); strings.Count(page, "<tr><td><time") != n {
			t.Errorf("%s has %d acts, expected %d", address, strings.Count(page, "<tr><td><time"), n)
		}
	}
	w.light(map[string]int{"acts": 1, "acts?filter=Queue%2BAll": 1, "acts?actor=ann": 1})
	if _, page := b.get("acts?before=tomorrow"); !strings.Contains(page, `role="alert"`) {
		t.Errorf("a wrong time is not refused:\n%s", page)
	}
}

// TestFeedsPage: the page has each feed with when it was looked at and why that failed, and a
// search leads to it by its address and its key.
func TestFeedsPage(t *testing.T) {
	w := beginWith(t, true, jingles)
	address := "http://" + sourceHost + "/feed.xml"
	_, err := w.api.ApplyResearch(w.Context(), v1.ResearchDefinition{Name: "jingles",
		Analysis: v1.ResearchAnalysis{Name: "correlation", Version: "1"},
		Feeds:    []v1.ResearchFeed{{URL: address, Source: "radio", Kind: "episode", EveryMinutes: 60}}}, "a test")
	w.must(err)
	var feed v1.ResearchFeedState
	w.until("the feed was looked at", func() bool {
		all, err := w.api.ResearchFeeds(w.Context(), "jingles")
		w.must(err)
		if len(all) == 1 {
			feed = all[0]
		}
		return feed.Failures > 0
	})
	b := w.browser()
	_, page := b.get("research/jingles/feeds")
	for _, want := range []string{`id="feed-` + feed.Key + `"`, address, "404",
		"1 failed since it was read", ">never<"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not have %s:\n%s", want, page)
		}
	}
	for _, text := range []string{address, feed.Key} {
		resp, _ := b.get("search?q=" + url.QueryEscape(text))
		if to := resp.Request.URL.String(); !strings.Contains(to, "research/jingles/feeds") {
			t.Errorf("a search for %s leads to %s", text, to)
		}
	}
}

// TestHistoryJSON: each page that shows events leads to them as a file. One that is not whole says
// so, and how to go on.
func TestHistoryJSON(t *testing.T) {
	w := begin(t, true)
	job := w.submit(w.file("sample", "a.txt", "one"), v1.Completed)
	b := w.browser()
	type file struct {
		Items        []map[string]any
		Cursor, More string
	}
	read := func(page string) (out file) {
		t.Helper()
		_, text := b.get(page)
		for n := range parsed(t, text).Descendants() {
			i := slices.IndexFunc(n.Attr, func(a html.Attribute) bool {
				return a.Key == "href" && strings.Contains(a.Val, "/history.json")
			})
			if i < 0 {
				continue
			}
			to := n.Attr[i].Val
			at, err := url.Parse(home + page)
			w.must(err)
			at, err = at.Parse(to)
			w.must(err)
			resp, text := b.get(strings.TrimPrefix(at.String(), home))
			if resp.StatusCode != 200 || json.Unmarshal([]byte(text), &out) != nil ||
				!strings.HasPrefix(resp.Header.Get("Content-Disposition"), "attachment") {
				t.Errorf("%s: %d\n%.500s", at, resp.StatusCode, text)
			}
			return out
		}
		t.Errorf("%s has no link to its events as JSON", page)
		return out
	}
	w.until("the history of the object is there", func() bool { return len(read(objectOf(job)).Items) > 0 })
	for _, page := range []string{"jobs/" + job.ID, "batches/" + job.Batch,
		objectOf(job) + "?version=1",
		"consumers/history", "events?collection=sample&filter=Job%2BAll"} {
		if got := read(page); len(got.Items) == 0 || got.Items[0]["type"] == nil || got.More != "" {
			t.Errorf("%s: %+v", page, got)
		}
	}

	const many = 1030
	var happened consumer.Batch
	for n := range many {
		happened.Events = append(happened.Events, consumer.Item{Event: envelope.Event{
			ID: fmt.Sprintf("tx%05d.0", n), Version: int64(n + 1), Time: int64(1_000_000 + n),
			Type: "queue.paused", Action: "modify", Outcome: "success",
			Subject: envelope.Ref{Type: "Queue", ID: "main"},
			Context: envelope.Context{Actor: "ann"},
			Detail:  []byte(`{"reason":"r"}`)}})
	}
	// The rows that the consumer writes: to wait for so many events would take long.
	_, err := acts.Recorder{Table: tabletest.Table(w.Table()), NewID: rand.Text}.Handle(w.Context(), happened)
	w.must(err)

	first := read("acts")
	if len(first.Items) != 1000 || first.Cursor == "" || !strings.Contains(first.More, "history.json?cursor=") {
		t.Fatalf("%d acts, %q", len(first.Items), first.More)
	}
	_, at, _ := strings.Cut(first.More, ": ")
	_, text := b.get(at)
	var rest file
	if err := json.Unmarshal([]byte(text), &rest); err != nil || len(rest.Items) != many-1000 || rest.More != "" {
		t.Errorf("the rest: %v, %d acts, %q", err, len(rest.Items), rest.More)
	}
	if resp, _ := b.get("jobs/none/history.json"); resp.StatusCode != 404 {
		t.Errorf("of no job: %d", resp.StatusCode)
	}
}
