package console_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/table"
	"archivist/pkg/kernel/table/tabletest"
)

// outside registers a consumer whose function fails as long as fails is set, and waits until it has parked an event.
func (w *world) outside(fails *atomic.Bool, reason string) {
	w.Helper()
	arn := w.Register("outside", func(context.Context, []byte) ([]byte, error) {
		if fails.Load() {
			return nil, errors.New(reason)
		}
		return []byte("{}"), nil
	})
	fails.Store(true)
	_, err := w.api.ApplyConsumer(w.Context(), v1.ConsumerDefinition{Name: "outside",
		Filter:      "Object+Create",
		Description: reason, Target: v1.ConsumerTarget{Lambda: arn}, Retries: -1,
		Start: "horizon"}, reason)
	w.must(err)
	w.parked(1)
}

// parked waits until the consumer outside has parked so many events.
func (w *world) parked(n int64) {
	w.Helper()
	w.until("events are parked", func() bool {
		is, err := w.api.Consumer(w.Context(), "outside")
		w.must(err)
		return is.Parked == n && is.Behind == 0
	})
}

// newest: the newest events of all collections are a page, and each filter that its field suggests is accepted.
func (w *world) newest(b *browser) {
	w.Helper()
	_, all := b.get("events")
	if !strings.Contains(all, "object.create") || !strings.Contains(all, `href="./events?collection=sample"`) ||
		!strings.Contains(all, `href="./events?collection=site"`) || strings.Contains(all, "Next page") {
		w.Errorf("of all collections:\n%s", all)
	}
	suggested := 0
	for n := range parsed(w.T, all).Descendants() {
		if n.Data == "option" && n.Parent.Data == "datalist" {
			suggested++
			_, page := b.get("events?filter=" + url.QueryEscape(attr(n, "value")))
			if strings.Contains(page, `aria-invalid="true"`) {
				w.Errorf("the filter %q is suggested, and not accepted", attr(n, "value"))
			}
		}
	}
	if suggested < 25 {
		w.Errorf("%d filters are suggested", suggested)
	}
	_, none := b.get("events?filter=" + url.QueryEscape("Token+All"))
	if !strings.Contains(none, "None of the events") {
		w.Errorf("without a match:\n%s", none)
	}
}

// TestEventPages: a parked event is seen, explained, and handled again; events are found by a filter, and what is wrong
// with a filter is said beside it.
func TestEventPages(t *testing.T) {
	w := begin(t, true)
	w.submit(w.file("sample", "here.txt", "content"), v1.Completed)
	var fails atomic.Bool
	w.outside(&fails, evil)
	b := w.browser()

	w.newest(b)
	_, page := b.get("events?collection=sample")
	if !strings.Contains(page, "object.create") || !strings.Contains(page, "Newest first") {
		t.Errorf("%s", page)
	}
	_, page = b.get("events?collection=sample&filter=" + url.QueryEscape("Batch+All"))
	if strings.Contains(page, "object.create") || !strings.Contains(page, "batch.state") {
		t.Errorf("filtered:\n%s", page)
	}
	resp, page := b.get("events?collection=sample&filter=" + url.QueryEscape("Batchh+All"))
	if resp.StatusCode != 422 || !strings.Contains(page, `aria-invalid="true"`) ||
		!strings.Contains(page, "Batchh") {
		t.Errorf("a wrong filter: %d\n%s", resp.StatusCode, page)
	}

	_, page = b.get("consumers/outside")
	_, text := b.doDeed(page, "redrive-some", "filter", "Objectt+All")
	if !strings.Contains(text, "Nothing was changed") || !strings.Contains(text,
		`aria-invalid="true"`) {
		t.Errorf("a wrong filter of a redrive:\n%s", text)
	}
	form := formAt(t, page, "deed", "deed=redrive-some")
	form.Set("filter", "Object+Create")
	form.Set("reason", "A try")
	_, text = b.post("deed", form)
	if !strings.Contains(text, "it selects <b>1</b>") {
		t.Errorf("what the filter selects is not said:\n%s", text)
	}
	w.parked(1)
	w.until("the first page leads to who has parked events", func() bool {
		_, text = b.get("")
		return strings.Contains(text, `href="./consumers/outside#parked"`)
	})

	w.until("the list has counted what is parked", func() bool {
		_, text = b.get("consumers")
		return strings.Contains(text, `href="./consumers/outside#parked"><b class="bad">1</b>`)
	})
	w.light(map[string]int{"events": 10, "events?collection=sample": 10, "consumers": 5, "consumers/outside": 20})

	fails.Store(false)
	at, _ := b.doDeed(b.rowDeed(page, "redrive-one"), "redrive-one")
	if at != "consumers/outside" {
		t.Error(at)
	}
	w.parked(0)

	_, page = b.get("consumers/outside")
	at, _ = b.doDeed(page, "replay", "filter", "Object+Create")
	if !strings.HasPrefix(at, "replays/") {
		t.Fatal(at)
	}
	w.until("the replay has ended", func() bool {
		_, page = b.get(at)
		return strings.Contains(page, v1.ReplayDone)
	})
	_, page = b.get("consumers/outside")
	at, _ = b.doDeed(page, "delete")
	if at != "consumers" {
		t.Error(at)
	}
	if _, err := w.api.Consumer(t.Context(), "outside"); err == nil {
		t.Error("it is not deleted")
	}
}

// TestEndOfEvents: a list of all that ends before the first event says so; the log of one collection goes on.
func TestEndOfEvents(t *testing.T) {
	w := begin(t, true)
	const logs = 25
	for n := range logs {
		_, err := w.api.PutCollection(t.Context(), fmt.Sprint("maps-", n), v1.Profile{Title: "Maps"})
		w.must(err)
	}
	tb := tabletest.Table(w.Table())
	rows := make([]table.Head, logs)
	w.until("all events have their places", func() bool {
		for n := range rows {
			at := table.Key{PK: fmt.Sprint("LOG#maps-", n), SK: fmt.Sprintf("SEQ#%012d", 1)}
			if tb.Get(t.Context(), at, &rows[n]) != nil {
				return false
			}
		}
		return true
	})
	b := w.browser()
	if _, page := b.get("events"); strings.Contains(page, `id="incomplete"`) ||
		!strings.Contains(page, "This is the end of the list") {
		t.Errorf("a list to the first event:\n%s", page)
	}
	tx := tb.Begin("the archive only")
	for n := range rows {
		tx.Remove(&rows[n])
	}
	w.must(tx.Commit(t.Context()))
	if _, page := b.get("events"); !strings.Contains(page, `id="incomplete"`) ||
		!strings.Contains(page, "only in the archive of the log") {
		t.Errorf("a list that ends early:\n%s", page)
	}
	const said = `"incomplete": "the next events of 25 collections`
	if _, file := b.get("events/history.json"); !strings.Contains(file, said) {
		t.Errorf("a file that ends early:\n%s", file)
	}
}

// TestDeedTwice: a form that is sent twice acts once, and what loses something is not done before it is confirmed.
func TestDeedTwice(t *testing.T) {
	w := begin(t, true)
	w.submit(w.file("sample", "here.txt", "content"), v1.Completed)
	var fails atomic.Bool
	w.outside(&fails, "read-only")
	b := w.browser()
	_, page := b.get("consumers/outside")
	form := formAt(t, page, "deed", "deed=discard")
	form.Set("reason", "It is old")
	form.Set("step", "sure")
	resp, page := b.post("deed", form)
	if sure := formAt(t, page, "deed", "deed=discard"); resp.StatusCode != 200 || sure == nil {
		t.Fatalf("%d\n%s", resp.StatusCode, page)
	}
	w.parked(1)

	_, page = b.get("consumers/outside")
	form = formAt(t, page, "deed", "deed=pause")
	form.Set("reason", "A pause")
	for range 2 {
		if resp, page := b.post("deed", form); resp.StatusCode != 200 || !strings.Contains(page, "It is paused") {
			t.Errorf("%d\n%s", resp.StatusCode, page)
		}
	}
	events, err := call2[v1.List[v1.Event]](w, "/v1/consumers/outside/events")
	n := 0
	for _, e := range events.Items {
		if e.Type == "consumer.paused" {
			n++
		}
	}
	if err != nil || n != 1 {
		t.Errorf("it was paused %d times, %v: %+v", n, err, events)
	}
	for name, bad := range map[string]url.Values{"no kind": {"deed": {"pause"}, "id": {"outside"}},
		"another kind": {"kind": {"job"}, "deed": {"pause"}, "id": {"outside"}},
		"no id":        {"kind": {"consumer"}, "deed": {"pause"}},
		"a path":       {"kind": {"consumer"}, "deed": {"pause"}, "id": {".."}},
		"two ids":      {"kind": {"consumer"}, "deed": {"pause"}, "id": {"outside", "x"}}} {
		bad["form"], bad["reason"], bad["step"] = form["form"], []string{"x"}, []string{"do"}
		if resp, page := b.post("deed", bad); resp.StatusCode != 422 {
			t.Errorf("%s: %d\n%s", name, resp.StatusCode, page)
		}
	}
}

// call2 reads something for which the client has no method.
func call2[T any](w *world, path string) (out T, err error) {
	err = w.api.Call(w.Context(), http.MethodGet, path, nil, &out)
	return out, err
}

// TestEventRoles: each role sees the events and consumers that the API gives it, and is offered what it may do.
func TestEventRoles(t *testing.T) {
	w := begin(t, false)
	w.adminOf(w.as("alma"))
	job := w.submit(w.file("sample", "here.txt", "content"), v1.Completed)
	var fails atomic.Bool
	w.outside(&fails, evil)
	replay, err := w.api.StartReplay(t.Context(), "outside", v1.ReplayRequest{Reason: evil}, "")
	w.must(err)
	const operator = "discard discard-one pause rebuild redrive redrive-one redrive-some replay " +
		"reset"
	none := [5]string{}
	w.roles([]roleRow{
		{"events", usual, none},
		{"event?subject=Job:" + job.ID + "&version=1", usual, none},
		{"event?subject=Job:" + job.ID + "&version=99", [5]int{404, 404, 404, 403, 403}, none},
		{"event?subject=Job:" + job.ID, [5]int{422, 422, 422, 422, 422}, none},
		{"events?subject=Job:" + job.ID, usual, none},
		{"consumers", usual, none},
		{"consumers/outside", usual, [5]string{"delete " + operator, operator}},
		{"consumers/none", [5]int{404, 404, 404, 403, 403}, none},
		{"deed?kind=consumer&deed=redrive-one&id=outside&event=x", [5]int{200, 200, 403, 403, 403},
			[5]string{"redrive-one", "redrive-one"}},
		{"deed?kind=consumer&deed=none&id=outside", [5]int{422, 422, 422, 422, 422}, none},
	})
	w.denied("consumer", "pause", []string{"outside"}, []string{"vera", "dora", "nora"})
	w.denied("consumer", "delete", []string{"outside"}, []string{"otto", "vera", "dora",
		"nora"}, "discard", "yes")
	w.denied("replay", "cancel", []string{replay.ID}, []string{"vera", "dora", "nora"})
	w.users["alma"].plain("consumers", "consumers/outside", "replays/"+replay.ID)
}
