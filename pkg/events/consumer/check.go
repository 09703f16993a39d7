package consumer

import (
	"cmp"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"archivist/pkg/events/filter"
	"archivist/pkg/kernel/definition"
	"archivist/pkg/kernel/fault"
)

// Limits of a definition, each with its reason.
const (
	// MaxDefinition is in bytes of its file.
	MaxDefinition = 32 << 10
	// MaxFilter is in characters; it is evaluated for every event.
	MaxFilter = 4096
	// MaxBatch is the number of events of one call: those that one transaction can park.
	MaxBatch = 90
	// MaxWindow is the number of events that one step reads.
	MaxWindow = 1000
	// MaxConcurrency is the number of calls at once in one partition: the target is not flooded.
	MaxConcurrency = 16
	// MaxRetries is low enough that a run ends in time.
	MaxRetries = 10
	// MaxMaxDepth is the number of causes of an event; its row lists their components.
	MaxMaxDepth = 50

	// LongestDebounce and LongestWait are in seconds: a day and a week. What waits is a reference to events of
	// the log, which must keep them meanwhile.
	LongestDebounce = 24 * 60 * 60
	LongestWait     = 7 * 24 * 60 * 60
)

// Defaults of a definition.
const (
	defaultBatch       = 10
	defaultWindow      = 500
	defaultConcurrency = 4
	defaultRetries     = 3
	defaultMaxDepth    = 8
)

// queues are URLs of queues, also as LocalStack has them: with the region before the account. SQS
// gives a queue its URL: host, the account's twelve digits, the name.
var queues = regexp.MustCompile(`^https?://[^/\s]+(/queue/[a-z0-9-]+)?/\d{12}/[A-Za-z0-9_-]+(\.fifo)?$`)

// Parse reads a definition from JSON or YAML. Unknown and repeated fields, and more than one
// document, are an Invalid. It does not check the values.
func Parse(data []byte) (Definition, error) {
	return definition.Parse[Definition](data, MaxDefinition)
}

// Check sets the defaults of a definition and returns an Invalid that names the first field that is
// not accepted, and why. It does not know the handlers, the permitted targets and the names in the
// filter; the Store checks these.
func (d *Definition) Check() error {
	d.setDefaults()
	return definition.Check(d.checkTexts, d.checkChoices, d.checkNumbers, d.checkSchedule,
		d.checkStart, d.checkCoalesce, d.checkTarget)
}

// setDefaults sets the fields that are zero. Retries of 0 are the default, so there is NoRetries.
func (d *Definition) setDefaults() {
	d.Mode = cmp.Or(d.Mode, Async)
	d.Order = cmp.Or(d.Order, OrderSubject)
	d.OnFailure = cmp.Or(d.OnFailure, Park)
	d.OwnEvents = cmp.Or(d.OwnEvents, OwnIgnore)
	d.Start = cmp.Or(d.Start, StartLatest)
	d.Batch = cmp.Or(d.Batch, defaultBatch)
	d.Window = cmp.Or(d.Window, defaultWindow)
	d.Concurrency = cmp.Or(d.Concurrency, defaultConcurrency)
	d.Retries = cmp.Or(d.Retries, defaultRetries)
	d.MaxDepth = cmp.Or(d.MaxDepth, defaultMaxDepth)
	if d.Mode == Scheduled {
		d.TimeZone = cmp.Or(d.TimeZone, "UTC")
	}
}

// checkTexts checks the name, the description and that there is a filter; what the filter says is
// checked by the Store.
func (d *Definition) checkTexts() error {
	switch {
	case !definition.Names.MatchString(d.Name):
		return fault.New(fault.Invalid,
			"name: %q: expected 1 to 50 small letters, digits and hyphens, "+
				"beginning with a letter", definition.Clip(d.Name, 60))
	case strings.TrimSpace(d.Filter) == "":
		return fault.New(fault.Invalid, "filter: empty; *+* selects all events")
	case utf8.RuneCountInString(d.Filter) > MaxFilter:
		return fault.New(fault.Invalid, "filter: %d characters; at most %d are accepted",
			utf8.RuneCountInString(d.Filter), MaxFilter)
	}
	return definition.CheckDescription(d.Description)
}

func (d *Definition) checkChoices() error {
	return cmp.Or(
		definition.Choice("mode", d.Mode, Async, Scheduled),
		definition.Choice("order", d.Order, OrderSubject, OrderCollection, OrderNone),
		definition.Choice("onFailure", d.OnFailure, Park, Block),
		definition.Choice("ownEvents", d.OwnEvents, OwnIgnore, OwnChain, OwnHandle))
}

func (d *Definition) checkNumbers() error {
	return cmp.Or(
		definition.Within("batch", d.Batch, 1, MaxBatch),
		definition.Within("window", d.Window, 1, MaxWindow),
		definition.Within("concurrency", d.Concurrency, 1, MaxConcurrency),
		definition.Within("retries", d.Retries, NoRetries, MaxRetries),
		d.checkDepth())
}

func (d *Definition) checkDepth() error {
	if d.MaxDepth == AnyDepth && d.Target.Handler != "" {
		return nil
	}
	return definition.Within("maxDepth", d.MaxDepth, 1, MaxMaxDepth)
}

// checkSchedule refuses a schedule that has no times, and one of a consumer that would not look at
// it.
func (d *Definition) checkSchedule() error {
	if d.Mode == Scheduled {
		_, err := definition.ParseSchedule(d.Schedule, d.TimeZone)
		return err
	}

	switch {
	case d.Schedule != "":
		return fault.New(fault.Invalid, "schedule: only a consumer of the mode %s has one",
			Scheduled)
	case d.TimeZone != "":
		return fault.New(fault.Invalid, "timeZone: only a consumer of the mode %s has one",
			Scheduled)
	}
	return nil
}

func (d *Definition) checkStart() error {
	_, err := parseStart(d.Start)
	if err != nil {
		return fault.New(fault.Invalid, "start: %w", err)
	}
	return nil
}

// checkCoalesce checks how events are coalesced, and sets MaxWait. It refuses what contradicts itself:
// without an order key nothing is of one key; a scheduled consumer has its own waiting; and a
// cursor that has passed what waits cannot block before it.
func (d *Definition) checkCoalesce() error {
	m := d.Coalesce
	if m == nil {
		return nil
	}

	switch {
	case d.Order == OrderNone:
		return fault.New(fault.Invalid,
			"coalesce: events without an order key are not coalesced; set order to %s "+
				"or %s", OrderSubject, OrderCollection)
	case m.Debounce == 0 && m.MaxWait != 0:
		return fault.New(fault.Invalid, "coalesce.mostSeconds: needs coalesce.quietSeconds")
	case m.Debounce != 0 && d.Mode == Scheduled:
		return fault.New(fault.Invalid,
			"coalesce.quietSeconds: a %s consumer runs at its times, not when a key is "+
				"quiet; leave it out", Scheduled)
	case m.Debounce != 0 && d.OnFailure == Block:
		return fault.New(fault.Invalid,
			"coalesce.quietSeconds: the cursor has passed events that wait; set onFailure "+
				"to %s, or leave it out", Park)
	case m.Debounce == 0:
		return nil
	}

	if m.MaxWait == 0 {
		m.MaxWait = min(10*m.Debounce, LongestWait)
	}

	if err := definition.Within("coalesce.quietSeconds", m.Debounce, 1, LongestDebounce); err != nil {
		return err
	}
	return definition.Within("coalesce.mostSeconds", m.MaxWait, m.Debounce, LongestWait)
}

// checkTarget refuses a target that is not exactly one thing, and ARNs and URLs that cannot be called.
// Whether the deployment may call it is checked by the Store.
func (d *Definition) checkTarget() error {
	t, set := d.Target, 0
	for _, s := range []string{t.Handler, t.Lambda, t.Queue} {
		if s != "" {
			set++
		}
	}

	switch {
	case set != 1:
		return fault.New(fault.Invalid,
			"target: %d of handler, lambda and queue are set; expected one", set)
	case t.Lambda != "" && !definition.Functions.MatchString(t.Lambda):
		return fault.New(fault.Invalid, "target.lambda: %q: expected the ARN of a function",
			definition.Clip(t.Lambda, 200))
	case t.Queue != "" && !queues.MatchString(t.Queue):
		return fault.New(fault.Invalid, "target.queue: %q: expected the URL of an SQS queue",
			definition.Clip(t.Queue, 200))
	}
	return nil
}

// start is where a cursor is put: at the newest event, at the oldest, after a seq, or at the first
// event from a time on. The zero value is the oldest event that is kept.
type start struct {
	latest bool

	// seq is the first to be handled; 0: the oldest that is kept.
	seq int64

	// time is in milliseconds since 1970; 0: not by time.
	time int64
}

// parseReset reads what parseStart reads, and "cursor": then the place is that of the cursor, and
// the start that is returned is not used.
func parseReset(text string) (start, error) {
	if text == AtCursor {
		return start{}, nil
	}
	return parseStart(text)
}

// parseStart reads "latest", "horizon", "seq:N" or "time:2026-11-22T10:00:00Z"; anything else is an
// Invalid. A seq has at most twelve digits, as in the keys of the log.
func parseStart(text string) (start, error) {
	what, value, _ := strings.Cut(text, ":")
	switch what {
	case StartLatest, StartHorizon:
		if value == "" && !strings.Contains(text, ":") {
			return start{latest: what == StartLatest}, nil
		}
	case "seq":
		n, err := strconv.ParseInt(value, 10, 64)
		if err == nil && n > 0 && n < 1e12 {
			return start{seq: n}, nil
		}
	case "time":
		at, err := time.Parse(time.RFC3339, value)
		if err == nil && at.UnixMilli() > 0 {
			return start{time: at.UnixMilli()}, nil
		}
	}
	return start{}, fault.New(fault.Invalid,
		"%q: expected %s, %s, seq:N with N from 1, or time: and a time such as "+
			"2026-11-22T10:00:00Z", definition.Clip(text, 60), StartLatest, StartHorizon)
}

// checkFilter refuses a filter that does not compile, if it is not empty.
func checkFilter(text string) error {
	if text == "" {
		return nil
	}
	if _, err := filter.Compile(text); err != nil {
		return fault.New(fault.Invalid, "%w", err)
	}
	return nil
}

// check refuses, with an Invalid, a selection that does not say what it selects, or whose filter
// does not compile.
func (sel Selection) check() error {
	set := 0
	for _, is := range []bool{sel.All, sel.Event != "", sel.Filter != ""} {
		if is {
			set++
		}
	}

	if set != 1 {
		return fault.New(fault.Invalid,
			"select: %d of all, event and filter are set; expected one", set)
	}
	return checkFilter(sel.Filter)
}
