package ingest

import (
	"slices"
	"strings"
	"testing"
	"time"

	"archivist/pkg/kernel/fault"
)

// TestMails: which mails a change of a batch owes: the first chunk of its jobs, and its ends, each once.
func TestMails(t *testing.T) {
	for _, c := range []struct {
		what       string
		prev, next Batch
		want       []MailKind
	}{
		{"the first chunk", Batch{State: BatchPending}, Batch{State: BatchPending, Unpacked: 45},
			[]MailKind{MailQueued}},
		{"the next chunk", Batch{State: BatchPending, Unpacked: 45}, Batch{State: BatchProcessing, Unpacked: 60}, nil},
		{"a refused submission", Batch{State: BatchPending}, Batch{State: BatchFailed}, []MailKind{MailReport}},
		{"the report", Batch{State: BatchReporting, Unpacked: 1}, Batch{State: BatchCompleted, Unpacked: 1},
			[]MailKind{MailReport}},
		{"news", Batch{State: BatchUpdateReporting, Unpacked: 1}, Batch{State: BatchFailed, Unpacked: 1, Changes: 1},
			[]MailKind{MailUpdateReport}},
		{"no news", Batch{State: BatchUpdateReporting, Unpacked: 1}, Batch{State: BatchFailed, Unpacked: 1}, nil},
		{"after its end", Batch{State: BatchFailed, Unpacked: 1}, Batch{State: BatchFailed, Unpacked: 1}, nil},
	} {
		if got := Mails(c.prev, c.next); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, expected %v", c.what, got, c.want)
		}
	}
}

// TestTriesOfMail: a recipient that refuses is given up after three tries, one that cannot be reached after eight.
func TestTriesOfMail(t *testing.T) {
	for refused, want := range map[bool]int{true: 3, false: 8} {
		m, tries := Mail{}, 0
		for len(m.Left([]string{"a@example.org"})) > 0 && tries < 100 {
			m = m.Take(time.UnixMilli(0))
			tries++
			m = m.Note("a@example.org", "it does not work", refused, time.Unix(0, 0))
		}
		if tries != want {
			t.Errorf("refused %v: given up after %d tries, expected %d", refused, tries, want)
		}
	}
}

// TestWakesOfFreed: the gates are woken when a job gives back a slot, space, or a lock, and not when it keeps them.
func TestWakesOfFreed(t *testing.T) {
	had := Job{ID: "j", State: Downloading, HasSlot: true, HasSpace: true, Locks: []string{"a", "b"}}
	for what, change := range map[string]func(*Job){
		"slot":  func(j *Job) { j.HasSlot = false },
		"space": func(j *Job) { j.HasSpace = false },
		"lock":  func(j *Job) { j.Locks = j.Locks[:1] },
		"":      func(j *Job) { j.Checkpoint = "half" },
	} {
		next := had
		change(&next)
		woken := slices.Contains(Wakes(had, next), Wake{Kind: LookGates})
		if woken != (what != "") {
			t.Errorf("%q was freed: woken %v", what, woken)
		}
	}
}

// TestCleanAt: the work files of a job that was deleted, or is cleaned up, stay until none of its workers can be late.
func TestCleanAt(t *testing.T) {
	rules := Rules{Timing: rules.Timing, FailedRetention: 30 * 24 * time.Hour}
	entered := time.UnixMilli(1_000_000)
	grace := rules.Timing.Times(Stage{Long: true}).Grace
	j := rules.Failed(Job{ID: "j", State: Downloading, HasSpace: true}, "404", true, entered)
	soon := entered.Add(time.Second)
	for what, due := range map[string]int64{"deleted": rules.Deleted(j, "", entered).Due,
		"cleaned up": rules.CleanUp(j, soon).Due} {
		if want := entered.Add(grace).UnixMilli(); due != want {
			t.Errorf("%s: its files are removed at %d, expected %d", what, due, want)
		}
	}
	later := entered.Add(2 * grace)
	if got := rules.CleanAt(&j, later); got != later.UnixMilli() {
		t.Errorf("when no worker can be late any more: %d, expected %d", got, later.UnixMilli())
	}
}

// TestUpdateReportRefuses: a failed batch reports again only when all of its jobs have ended, also those on hold.
func TestUpdateReportRefuses(t *testing.T) {
	b, now := Batch{ID: "b", State: BatchFailed}, time.UnixMilli(1)
	for _, c := range []struct {
		counts Counts
		may    bool
	}{{Counts{}, false}, {Counts{Failed: 1, Processing: 1}, false}, {Counts{Failed: 1, Held: 1}, false},
		{Counts{Failed: 1, Completed: 1, Deleted: 1}, true}} {
		next, err := rules.UpdateReport(b, c.counts, now)
		if c.may != (err == nil && next.State == BatchUpdateReporting) || !c.may && !fault.Is(err, fault.Conflict) {
			t.Errorf("%+v: %s, %v", c.counts, next.State, err)
		}
	}
}

// TestProgressOfOperation: a page of an operation that was done ends what is told of its repairs.
func TestProgressOfOperation(t *testing.T) {
	o := Operation{State: OperationRunning, Work: Work{Repairs: 5, Tries: 3, Blocked: "it could not be started"}}
	o = rules.ContinueOperation(o, time.UnixMilli(1000))
	if o.Stuck() || o.Tries != 0 || o.Due <= 1000 {
		t.Errorf("%+v", o.Work)
	}
}

// TestOneIsNotSeveral: what a person is told of one thing is in the singular.
func TestOneIsNotSeveral(t *testing.T) {
	var w Warnings
	for range MaxWarnings + 1 {
		w.Add("a warning")
	}
	if last := w.List("look there")[MaxWarnings]; last != "1 more warning: look there" {
		t.Errorf("the last line is %q", last)
	}

	b := Batch{IfVersion: 2}
	why := b.ForOneObject()
	if strings.Contains(why, "several") || !strings.HasPrefix(why, "ifVersion name one object") {
		t.Errorf("of a manifest with one row or more: %q", why)
	}
}
