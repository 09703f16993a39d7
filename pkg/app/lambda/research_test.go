package lambda

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"archivist/pkg/aws/cloudwatch"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/passes"
	"archivist/pkg/research"
)

// passing makes passes of the assigner, each of which takes some time.
type passing struct {
	now   time.Time
	busy  int // passes of somebody else, first
	more  bool
	err   error
	asked []string // project and time, in seconds
	woken []string
}

func (p *passing) Pass(_ context.Context, project string, until time.Time) (research.Passed, error) {
	p.asked = append(p.asked, project+" "+until.Sub(p.now).String())
	p.now = p.now.Add(4 * time.Second)
	if p.busy > 0 {
		p.busy--
		return research.Passed{Left: passes.Left{Busy: true}}, nil
	}
	return research.Passed{Assigned: 1, Left: passes.Left{More: p.more}}, p.err
}

func (p *passing) function(projects ...string) *PendingWork {
	return &PendingWork{Pass: p.Pass, Projects: projects, Now: func() time.Time { return p.now },
		Budget: 40 * time.Second,
		Wake: func(_ context.Context, project string) error {
			p.woken = append(p.woken, project)
			return nil
		}, Metrics: &cloudwatch.Metrics{}, Log: slog.New(slog.DiscardHandler)}
}

// TestPendingWork: the minute makes a pass for each project, with an equal part of the time that is left; a
// wake-up for its own, and waits a little for a pass that is at work. What is left at the end of a pass is
// for another invocation.
func TestPendingWork(t *testing.T) {
	var minute PendingWorkRequest
	sample(t, "scheduler.minute.json", &minute)
	var wake PendingWorkRequest
	sample(t, "pending-work.wake.json", &wake)
	broken := errors.New("it is broken")
	for name, c := range map[string]struct {
		passing
		in           PendingWorkRequest
		asked, woken string
	}{
		"minute": {in: minute, asked: "demo 20s, other 36s"},
		"more": {passing: passing{more: true}, in: minute, asked: "demo 20s, other 36s",
			woken: "demo, other"},
		"busy":           {passing: passing{busy: 1}, in: minute, asked: "demo 20s, other 36s"},
		"woken":          {in: wake, asked: "demo 40s"},
		"woken and busy": {passing: passing{busy: 2}, in: wake, asked: "demo 40s, demo 36s, demo 32s"},
		"never free": {passing: passing{busy: 99}, in: wake,
			asked: "demo 40s, demo 36s, demo 32s, demo 28s, demo 24s"},
		"failed":     {passing: passing{err: broken, more: true}, in: minute, asked: "demo 20s, other 36s"},
		"no project": {in: PendingWorkRequest{Project: "gone"}},
	} {
		run := c.passing
		err := run.function("demo", "other").Handle(t.Context(), c.in)
		if !errors.Is(err, c.err) || strings.Join(run.asked, ", ") != c.asked ||
			strings.Join(run.woken, ", ") != c.woken {
			t.Errorf("%s: %v, asked %q, woken %q", name, err, run.asked, run.woken)
		}
	}
}

// recorder stores reports, by the ids of their leases.
type recorder struct {
	stored      []string
	deadLetters []map[string]string
	bodies      []string
	lost        error // of the dead-letter queue
}

func (r *recorder) record(ctx context.Context, report research.Report) (research.Recording, error) {
	err := report.Check()
	if err != nil {
		return research.Recording{}, err
	}
	switch report.Lease {
	case "busy":
		return research.Recording{}, fault.New(fault.Unavailable, "later")
	case "defect":
		return research.Recording{}, errors.New("no kind")
	case "other":
		return research.Recording{}, fault.New(fault.Conflict, "another result")
	case "panic":
		panic("at the disco")
	case "slow":
		<-ctx.Done()
		return research.Recording{}, ctx.Err()
	}
	r.stored = append(r.stored, report.Lease)
	return research.Recording{Ended: true}, nil
}

func (r *recorder) function() *CompletedWork {
	return &CompletedWork{Record: r.record, Budget: time.Minute, Metrics: &cloudwatch.Metrics{},
		Log: slog.New(slog.DiscardHandler),
		DeadLetter: func(_ context.Context, body string, attributes map[string]string) error {
			if r.lost != nil {
				return r.lost
			}
			r.bodies, r.deadLetters = append(r.bodies, body), append(r.deadLetters, attributes)
			return nil
		}}
}

func back(out events.SQSEventResponse) (ids []string) {
	for _, f := range out.BatchItemFailures {
		ids = append(ids, f.ItemIdentifier)
	}
	return ids
}

// TestCompletedWork: a report that can never be stored becomes a dead letter with the reason; one that may
// be stored later comes back; all others are stored.
func TestCompletedWork(t *testing.T) {
	var in events.SQSEvent
	sample(t, "completed-work.message.json", &in)
	var report research.Report
	err := json.Unmarshal([]byte(in.Records[0].Body), &report)
	if err != nil || report.Check() != nil {
		t.Fatal(err, report.Check())
	}
	for _, id := range []string{"busy", "defect", "other", "panic", "fine"} {
		report.Lease = id
		text, err := json.Marshal(report)
		if err != nil {
			t.Fatal(err)
		}
		in.Records = append(in.Records, events.SQSMessage{MessageId: id, Body: string(text)})
	}
	in.Records = append(in.Records, events.SQSMessage{MessageId: "text", Body: "hello"},
		events.SQSMessage{MessageId: "empty", Body: "{}", EventSourceARN: "arn:completed-work"})
	r := &recorder{}
	out, err := r.function().Handle(t.Context(), in)
	if got := back(out); err != nil || !slices.Equal(got, []string{"busy", "defect"}) {
		t.Errorf("%v come back, %v", got, err)
	}
	if len(r.stored) != 2 || r.stored[1] != "fine" {
		t.Errorf("stored: %q", r.stored)
	}
	for i, want := range []string{"another result", "a defect of this software: at the disco",
		"the message is no report: ", `project: found ""`} {
		if len(r.deadLetters) != 4 || !strings.HasPrefix(r.deadLetters[i]["reason"], want) {
			t.Fatalf("%q: dead letters: %q", want, r.deadLetters)
		}
	}
	if r.bodies[2] != "hello" || r.deadLetters[2]["message"] != "text" ||
		r.deadLetters[3]["queue"] != "arn:completed-work" {
		t.Errorf("dead letters: %q %q", r.bodies, r.deadLetters)
	}
	r.lost = errors.New("the queue cannot be reached")
	out, err = r.function().Handle(t.Context(), in)
	if got := back(out); err != nil || len(got) != 6 {
		t.Errorf("without the dead-letter queue %v come back, %v", got, err)
	}
}

// TestCompletedWorkEnds: what is not stored in the time of an invocation comes back.
func TestCompletedWorkEnds(t *testing.T) {
	var in events.SQSEvent
	sample(t, "completed-work.message.json", &in)
	in.Records[0].Body = strings.Replace(in.Records[0].Body, "01M81XBMAJGP35692BQTPEDTKN", "slow", 1)
	r := &recorder{}
	f := r.function()
	f.Budget = time.Millisecond
	out, err := f.Handle(t.Context(), in)
	if got := back(out); err != nil || len(got) != 1 || len(r.deadLetters) > 0 {
		t.Errorf("%v come back, %q, %v", got, r.deadLetters, err)
	}
}

// TestReason: the attribute of a message has no character that SQS refuses, and is not long.
func TestReason(t *testing.T) {
	got := reason(errors.New("found \"\x02\u2028" + strings.Repeat("é", 1000)))
	if !strings.HasPrefix(got, `found "??é`) || len(got) > mostReason+10 {
		t.Errorf("%q", got)
	}
}
