package console

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/access"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/terminal"
)

// listed is a list with its filter and its pages.
type listed struct {
	Filter v1.Filter
	States []string // of which Filter.State is one
	// Collections are those that a depositor can choose from; empty: any can be named.
	Collections []string
	sortable
	First, Next string // the addresses of pages, without the path; "" = there is none
	Filtered    bool   // something is left out
	// Wrong is what is wrong with fields of the filter, by their names; Other what else is wrong.
	Wrong map[string]string
	Other string
}

// Refused reports whether the filter was not accepted: nothing was read then.
func (l listed) Refused() bool { return l.Other != "" || len(l.Wrong) > 0 }

// status is that of the page of the list.
func (l listed) status() int {
	if l.Refused() {
		return http.StatusUnprocessableEntity
	}
	return http.StatusOK
}

// refuse takes up what is wrong with the filter, which is said at its field. It returns any other
// error.
func (l *listed) refuse(v *visit, err error) error {
	if !fault.Is(err, fault.Invalid) || v.via.refused {
		return err
	}
	l.Wrong, l.Other = faultsOf(err, filterFields)
	return nil
}

// filterFields are the fields of the form of a filter by those of the API.
var filterFields = map[string]string{"collection": "collection", "state": "state",
	"submitter": "submitter", "message": "message", "after": "after", "before": "before",
	"order": "order", "callback": "callback", "localId": "localId", "ark": "ark", "query": "q",
	"title": "title",
	"date":  "date", "format": "format", "sort": "sort"}

// filter is the filter in the address of a list.
func (v *visit) filter() v1.Filter {
	return suited(v1.Filter{
		Collection: v.collection(),
		State:      v.field("state"),
		Submitter:  v.field("submitter"),
		Message:    v.field("message"),
		After:      v.field("after"),
		Before:     v.field("before"),
		LocalID:    v.field("localId"),
		ARK:        v.field("ark"),
		Batch:      v.field("batch"),
		Callback:   v.field("callback"),
		Sort:       v.field("sort"),
		Order:      v.field("order"),
	})
}

// pager is the list with the addresses of its pages. next is the cursor of the next page.
func (v *visit) pager(f v1.Filter, states []string, next string) listed {
	q := v.URL.Query()
	at := q.Get("cursor")
	q.Del("cursor")
	if f.Sort == "" && q.Get("sort") != "" { // too many matched to be sorted
		q.Del("sort")
		q.Del("order")
	}
	l := listed{Filter: f, States: states}
	for name, values := range q { // an empty field of the form filters nothing
		if strings.Join(values, "") == "" {
			q.Del(name)
		}
	}
	l.Filtered = slices.ContainsFunc(slices.Collect(maps.Keys(q)), func(name string) bool {
		return name != "sort" && name != "order"
	})
	if at != "" {
		l.First = "?" + q.Encode()
	}
	if next != "" {
		q.Set("cursor", next)
		l.Next = "?" + q.Encode()
	}
	if !v.may(access.Viewer) {
		l.Collections = v.is.Of(access.Depositor)
	}
	return l
}

// optionsFor are the options of a command that lists what a filter selects, each after a blank.
func optionsFor(f v1.Filter) (out string) {
	for _, o := range [][2]string{{"-c", f.Collection}, {"-b", f.Batch}, {"--state", f.State},
		{"--callback", f.Callback},
		{"--submitter", f.Submitter}, {"--message", f.Message}, {"--after", f.After}, {"--before", f.Before},
		{"--local-id", f.LocalID}, {"--ark", f.ARK}, {"--title", f.Title}, {"--date", f.Date},
		{"--format", f.Format}, {"--sort", f.Sort}, {"--order", f.Order}} {
		out += option(o[0], o[1])
	}
	return out
}

// batches is the page of batches.
type batches struct {
	listed
	Items []v1.Batch
	// Counts is the page that counts the batches by state, of which the browser shows a part.
	Counts string
}

// showBatches lists batches, newest first unless they are sorted by something else.
func (c *Console) showBatches(v *visit) (view, error) {
	f := v.filter()
	f.Batch = ""
	page, unsorted, err := readSorted(v, &f, v1.BatchSorts, v.api.BatchPage)
	moving := false
	for _, b := range page.Items {
		moving = moving || working(b.State)
	}
	b := batches{v.pager(f, v1.BatchStates, page.Cursor), page.Items,
		strings.TrimSuffix("batch-counts?"+query("collection", f.Collection), "?")}
	b.sortable = v.sortable(f, v1.BatchSorts, unsorted)
	err = b.refuse(v, err)
	return view{Title: "Batches", Moving: moving, Still: f.Sort != "", Status: b.status(), Body: b,
		Command: joined("archivist batch list", optionsFor(f))}, err
}

// batch is the page of a batch.
type batch struct {
	v1.Batch
	Ended  int64 // jobs
	Rate   float64
	Left   float64 // seconds; 0 = not known
	Jobs   []v1.Job
	More   bool // there are more jobs
	Offers []offer
	Events []v1.Event
	Older  string // the address of more events
	// Earlier are the numbers of earlier reports that have a link, the newer ones first; AnyReport:
	// there are more.
	Earlier   []int
	AnyReport bool
	// Notices are what became of mails and of callbacks of the first jobs, those that need a person
	// first. Unshown is how many more callbacks these jobs have.
	Notices []notice
	Unshown int
}

// notice is what became of a mail, or of a callback of a job.
type notice struct {
	v1.Notice
	Job string
}

// Limits of the page of a batch.
const (
	mostEarlier = 10 // links to earlier reports
	mostNotices = 20 // callbacks
)

// reports finds the reports that the page leads to beside the newest.
func (b *batch) reports() {
	for n := b.Reports - 1; n > 0; n-- {
		if len(b.Earlier) == mostEarlier && n > 1 {
			b.AnyReport = true
			n = 1 // the first is always among them
		}
		b.Earlier = append(b.Earlier, n)
	}
}

// notices sets what became of mails, and of callbacks of jobs.
func (b *batch) notices(jobs []v1.Job) {
	var calls []notice
	for _, j := range jobs {
		for _, c := range j.Callbacks {
			calls = append(calls, notice{c, j.ID})
		}
	}
	slices.SortStableFunc(calls, func(a, b notice) int { return urgency[a.State] - urgency[b.State] })
	b.Unshown = max(0, len(calls)-mostNotices)
	for _, m := range b.Mails {
		b.Notices = append(b.Notices, notice{Notice: m})
	}
	b.Notices = append(b.Notices, calls[:len(calls)-b.Unshown]...)
}

// urgency is the order of callbacks by their state: first what needs a person.
var urgency = map[string]int{v1.NoticeFailed: 0, v1.NoticeGivenUp: 1, v1.NoticeWaits: 2,
	v1.NoticeDelivered: 3}

// showBatch shows a batch with its progress, its first jobs, its events, and what can be done.
func (c *Console) showBatch(v *visit) (view, error) {
	id := v.PathValue("id")
	one, err := v.api.Batch(v.Context(), id)
	if err != nil {
		return view{}, err
	}
	jobs, err := v.api.JobPage(v.Context(), v1.Filter{Batch: id}, "")
	if err != nil {
		return view{}, err
	}
	n := one.Counts
	b := batch{Batch: one, Ended: n.Completed + n.Failed + n.Deleted,
		Jobs: jobs.Items[:min(len(jobs.Items), jobsOfBatch)], Offers: offers("batch", id, one.Actions)}
	b.More = n.Expected > len(b.Jobs)
	b.notices(jobs.Items)
	b.reports()
	b.rate(v)
	b.Events, b.Older, err = v.eventsOf(id)
	return view{Title: "Batch " + id, Body: b, Moving: working(one.State),
		Command: "archivist batch show " + id,
		Said: "The batch is " + one.State + ": " + terminal.Count(int(b.Ended), "job") + " of " +
			number(n.Expected) + " ended."}, err
}

// jobsOfBatch is how many jobs the page of a batch shows.
const jobsOfBatch = 20

// rate finds out how fast jobs of a batch end, and how long it will take, while it works.
func (b *batch) rate(v *visit) {
	took := v.now.Sub(parse(b.Created)).Seconds()
	if b.Ended == 0 || took <= 0 || !working(b.State) {
		return
	}
	b.Rate = float64(b.Ended) / took * 60
	b.Left = took / float64(b.Ended) * float64(int64(b.Counts.Expected)-b.Ended)
}

// report leads to the newest report of a batch, or to one by its number.
func (c *Console) report(v *visit) error {
	path := "/v1/batches/" + url.PathEscape(v.PathValue("id")) + "/report"
	if n := v.field("number"); n != "" {
		path += "?" + query("number", n)
	}
	return v.lead(path)
}
