package console

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/terminal"
)

// events is the page of the log.
type events struct {
	Logs        []string // the collections whose events there are, and site
	Log         string   // that is shown; "" = the newest of all
	Subject     string   // whose events are shown instead, oldest first
	Filter      string
	Wrong       string // why the filter, or the subject, was not accepted
	OfSubject   bool   // it was the subject
	Examples    []string
	Words       v1.FilterWords // that a filter is made of
	Items       []v1.LogEvent
	First, Next string
	Others      int               // logs that are not in a list of all
	Incomplete  string            // why a list of all ends before the first event
	Looked      string            // until when it was looked, if the page is short
	logOf       map[string]string // the logs by their partitions
}

// examplesOfFilters are filters that a field suggests.
var examplesOfFilters = []string{"All+All{outcome=failure}", "Job+All{type=job.state}",
	"Object+Create|Modify",
	"Object+Create|Modify|Delete", "Collection+All", "Batch+All",
	"Queue|Collection+Modify{type=hold.*}",
	"Version+Create", "File+Disseminate", "Operation+All", "Upload+All", "Token+All",
	"Consumer+All", "Component+All", "ComponentItem+All", "Archive|Revision|Task+All",
	"Episode|Clip+All", "ResearchProject|ResearchLease+All",
	`All+All{id="ID"}`, `All+All{parent="NAME"}`, `All+All{component=download}`,
	`All+All{actor="NAME"}`,
	"All+All{!component=download}"}

// fresh is how old the newest event is while more are expected within seconds.
const fresh = time.Minute

// showEvents shows the events of a log, newest first, or those of a subject. It follows the log: new events appear by
// themselves.
func (c *Console) showEvents(v *visit) (view, error) {
	e := events{Log: v.field("collection"), Subject: v.field("subject"), Filter: v.field("filter"),
		Examples: examplesOfFilters}
	if err := e.logs(v); err != nil {
		return view{}, err
	}
	var err error
	if e.Words, err = v.api.FilterWords(v.Context()); err != nil {
		return view{}, err
	}
	if e.Subject != "" {
		e.Log = ""
	}
	command := joined("archivist event list", option("-s", e.Subject), option("-c", e.Log),
		option("--filter", e.Filter))
	page, err := call[v1.EventPage](v, "GET", "/v1/events?"+query("subject", e.Subject,
		"collection", e.Log,
		"filter", e.Filter, "cursor", v.field("cursor")), nil, "")
	status := http.StatusOK
	if fault.Is(err, fault.Invalid) && (e.Filter != "" || e.Subject != "") {
		e.Wrong, err = plain(err.Error()), nil
		e.OfSubject = strings.HasPrefix(e.Wrong, "subject:")
		status = http.StatusUnprocessableEntity
	}
	e.Items, e.Others, e.Incomplete = page.Items, page.Others, page.Incomplete
	e.complete()
	if v.field("cursor") != "" {
		e.First = "?" + query("subject", e.Subject, "collection", e.Log, "filter", e.Filter)
	}
	e.Next = v.more("cursor", page.Cursor)
	moving := e.Subject == "" && len(e.Items) > 0 && v.now.Sub(parse(e.Items[0].Time)) < fresh
	return view{Title: "Events", Body: e, Command: command, Moving: moving, Status: status,
		Still: e.First != "" || e.Wrong != "",
		Said:  terminal.Count(len(e.Items), "event") + " on this page."}, err
}

// All reports whether these are the newest events of all logs.
func (e events) All() bool { return e.Log == "" && e.Subject == "" }

// LogOf is the log of a partition.
func (e events) LogOf(partition string) string { return e.logOf[partition] }

// complete adds filters by the types of the events of the page to those that the field suggests.
func (e *events) complete() {
	e.Examples = slices.Clone(e.Examples)
	for _, one := range e.Items {
		text := one.Subject.Type + "+All{type=" + one.Type + "}"
		if !slices.Contains(e.Examples, text) {
			e.Examples = append(e.Examples, text)
		}
	}
}

// logs finds out which logs there are.
func (e *events) logs(v *visit) error {
	all, err := v.api.LogPartitions(v.Context())
	e.logOf = map[string]string{}
	for _, p := range all {
		e.logOf[p.Name] = p.Log
	}
	e.Logs = logsOf(all)
	return err
}

// event is the page of one event.
type event struct {
	v1.LogEvent
	Subjects []subject // what it is about, the subject first
	Before   string    // the address of the event before it, of the same subject; "" for the first
	After    string
}

// subject is something that an event is about.
type subject struct {
	v1.EventRef
	Page string // "" = there is none
}

// showEvent shows all that an event says.
func (c *Console) showEvent(v *visit) (view, error) {
	of := v.field("subject")
	n, err := strconv.ParseInt(v.field("version"), 10, 64)
	if err != nil || of == "" {
		return view{}, fault.New(fault.Invalid,
			"subject, version: they name an event, and are missing or malformed")
	}
	one, err := v.api.LogEvent(v.Context(), of, n)
	e := event{LogEvent: one, After: "?" + query("subject", of, "version",
		strconv.FormatInt(n+1, 10))}
	if n > 1 {
		e.Before = "?" + query("subject", of, "version", strconv.FormatInt(n-1, 10))
	}
	for _, r := range slices.Concat([]v1.EventRef{one.Subject}, one.Objects, one.Parents) {
		e.Subjects = append(e.Subjects, subject{r, subjectPage(r.Type, r.ID)})
	}
	return view{Title: "Event " + one.Type, Body: e, Still: true,
		Command: "archivist event show " + quoted(of) + " " + strconv.FormatInt(n, 10)}, err
}
