package ingest

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var rules = Rules{Timing: Timings["production"]}

func TestChainOfTimes(t *testing.T) {
	for name, timing := range Timings {
		for _, s := range Stages {
			if err := timing.Times(s).Check(); err != nil {
				t.Errorf("%s, %s: %v", name, s.Name, err)
			}
		}
	}
}

// TestCrashesBecomeDeadLetters: in each queue, the last delivery of a message that crashes
// its function ends before the message expires. With twenty deliveries of 90 s, and messages
// kept for six minutes, there would never be a dead letter.
func TestCrashesBecomeDeadLetters(t *testing.T) {
	for name, timing := range Timings {
		queues := []Times{timing.Wake()}
		for _, s := range Stages {
			queues = append(queues, timing.Times(s))
			if n := timing.Times(s).Receives; n < s.Tries+3 {
				t.Errorf("%s, %s: %d deliveries are too few for %d tries: what only fails would be a dead letter", name,
					s.Name, n, s.Tries)
			}
		}
		for _, c := range queues {
			if last := time.Duration(c.Receives) * c.Visibility; c.Receives < 5 || last >= c.Retention ||
				!c.Redrives() {
				t.Errorf("%s: %d deliveries of %s last %s, messages %s", name, c.Receives, c.Visibility, last,
					c.Retention)
			}
		}
	}
	c := Timings["production"].Times(Stages[0])
	c.Receives = 20
	if err := c.Check(); err == nil {
		t.Error("20 deliveries were accepted")
	}
}

func TestTransitionsAreClosed(t *testing.T) {
	for from, tos := range nextJob {
		for _, to := range tos {
			if _, known := nextJob[to]; !known {
				t.Errorf("%s leads to %s, which has no row", from, to)
			}
		}
	}
	for from, tos := range nextBatch {
		for _, to := range tos {
			if _, known := nextBatch[to]; !known {
				t.Errorf("batch %s leads to %s, which has no row", from, to)
			}
		}
	}
	for i, s := range Order[:len(Order)-1] {
		if err := CheckJob(s, Order[i+1]); err != nil {
			t.Error(err)
		}
	}
	if CheckJob(Completed, Failed) == nil || CheckJob(Pending, Downloading) == nil {
		t.Error("a step off the path is allowed")
	}
}

// TestPathOfAJob follows a job from submission to its end and back from failure.
func TestPathOfAJob(t *testing.T) {
	now := time.UnixMilli(1_000_000)
	j := Job{ID: "j", State: Pending, LocalIDs: []string{"x"}, Collection: "c"}
	j = rules.Admit(j, now)
	if j.State != Estimating || !j.HasSlot || j.Exec != 1 || j.LastSuccessful != "" {
		t.Fatalf("admitted: %+v", j)
	}
	j = rules.Next(j, Result{Outcome: StepNext}, now)
	if place, _ := j.WorkKey(); j.State != Provisioning || j.HasSlot || place != WorkProvisioning ||
		j.Answer(Estimating, 1) != Parked {
		t.Fatalf("estimated: %+v", j)
	}
	j = rules.Provision(j, now)
	if j.State != Downloading || !j.HasSlot || !j.HasSpace || len(j.Locks) != 1 || j.LastSuccessful != Provisioning ||
		j.Exec != 2 {
		t.Fatalf("provisioned: %+v", j)
	}
	if j.Answer(Estimating, 1) != Superseded || j.Answer(Downloading, 2) != Continue {
		t.Error("stale and current messages are confused")
	}
	failed := rules.Next(j, Fail(true, "404"), now)
	if failed.State != Failed || failed.HasSlot || len(failed.Locks) > 0 || !failed.HasSpace ||
		failed.Answer(Downloading, 2) != StageFail {
		t.Fatalf("failed: %+v", failed)
	}
	again, err := rules.Requeue(failed, now)
	if place, _ := again.WorkKey(); err != nil || again.State != Downloading || again.RetryCount != 1 ||
		place != WorkPending || again.HasSlot || !again.HasSpace || len(again.Locks) > 0 || again.Running() {
		t.Fatalf("requeued: %+v, %v", again, err)
	}
	again = rules.Provision(again, now)
	if again.State != Downloading || again.Exec != 3 || !again.HasSlot || len(again.Locks) != 1 ||
		again.LastSuccessful != Provisioning {
		t.Fatalf("admitted again: %+v", again)
	}
	for _, want := range []State{Processing, Storing, Recording, Notify, Completed} {
		prev := j.State
		j = rules.Next(j, Result{Outcome: StepNext}, now)
		if j.State != want || j.LastSuccessful != prev || j.Answer(prev, 2) != Success {
			t.Fatalf("after %s: %+v", prev, j)
		}
	}
	if j.HasSlot || j.HasSpace || len(j.Locks) > 0 {
		t.Errorf("a completed job keeps something: %+v", j)
	}
}

func TestRequeueRefuses(t *testing.T) {
	for _, j := range []Job{{State: Completed}, {State: Downloading}, {State: Failed, NotRecoverable: true,
		Message: "wrong digest"}} {
		if _, err := rules.Requeue(j, time.Now()); err == nil {
			t.Errorf("%s (not recoverable %v) was requeued", j.State, j.NotRecoverable)
		}
	}
}

// TestEveryUnfinishedJobHasAPlace: after any rule, a job that has not ended and is not held is
// at one gate, or due.
func TestEveryUnfinishedJobHasAPlace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.UnixMilli(rapid.Int64Range(1, 1<<41).Draw(t, "now"))
		j := rules.enter(Job{ID: "j"}, Pending, now)
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			prev := j
			switch place, _ := j.WorkKey(); {
			case place == WorkPending:
				j = rules.Admit(j, now)
			case j.Deferred():
				now = time.UnixMilli(j.Due)
				j = rules.Ready(j)
			case place == WorkParked && j.State == Estimating:
				j = rules.Admit(j, now)
			case place == WorkProvisioning || place == WorkParked:
				j = rules.Provision(j, now)
			case j.Running():
				res := rapid.SampledFrom([]Result{{Outcome: StepNext}, {Outcome: StepContinue}, {Outcome: StepPark,
					Lock: "l"},
					Defer(time.Hour, "asks to wait"), Fail(true, "x")}).Draw(t, "result")
				if res.Outcome == StepPark && j.State == Estimating {
					continue
				}
				j = rules.Next(j, res, now)
			case j.State == Failed:
				j, _ = rules.Requeue(j, now)
			}
			place, rank := j.WorkKey()
			if j.State.Open() && (place == "" || rank == "") {
				t.Fatalf("%s → %s has no place in the index", prev.State, j.State)
			}
			if j.Running() && j.Due <= now.UnixMilli() {
				t.Fatalf("%s has no due time in the future", j.State)
			}
			if j.Running() != j.HasSlot {
				t.Fatalf("%s: running %v, slot %v", j.State, j.Running(), j.HasSlot)
			}
			if j.Exec < prev.Exec {
				t.Fatal("exec fell")
			}
		}
	})
}

// TestDefer: a deferred job is due when its source asks to retry, at the latest after
// MaxDefer; until then it holds no slot, and its tries still count.
func TestDefer(t *testing.T) {
	now := time.UnixMilli(1000)
	for _, c := range []struct{ after, want time.Duration }{{time.Hour, time.Hour}, {24 * time.Hour, MaxDefer}} {
		running := Job{ID: "j", State: Downloading, HasSlot: true, HasSpace: true, Work: Work{Tries: 3, Due: 7}}
		j := rules.Next(running, Defer(c.after, "asks to wait"), now)
		place, _ := j.WorkKey()
		if !j.Deferred() || j.HasSlot || !j.HasSpace || j.Tries != 3 || j.Message != "asks to wait" ||
			!strings.HasPrefix(place, "due#") {
			t.Errorf("%+v at %s", j, place)
		}
		if want := now.Add(c.want).UnixMilli(); j.Due != want || j.Answer(Downloading, 0) != Parked {
			t.Errorf("due at %d, want %d; the execution gets the answer %s", j.Due, want, j.Answer(Downloading, 0))
		}

		j = rules.Ready(j)
		if place, _ := j.WorkKey(); place != WorkParked || j.Deferred() {
			t.Errorf("then it is at %s", place)
		}
		j = rules.Provision(j, now)
		if j.State != Downloading || j.Tries != 3 || !j.HasSlot {
			t.Errorf("then %+v", j)
		}
	}
}

func TestBatchPriority(t *testing.T) {
	for n, want := range map[int]int{0: 5, 1: 5, 2: 11, 10: 28, 100: 51, 1000: 74, 30000: 99} {
		if got := BatchPriority(n); got != want {
			t.Errorf("%d jobs: priority %d, want %d", n, got, want)
		}
	}
}

// TestTurn: waiting jobs are in order of priority, then age; with aging, a job of lower
// priority that has waited long enough is first.
func TestTurn(t *testing.T) {
	at := func(r Rules, priority int, ms int64) string {
		_, turn := func() (string, string) {
			j := r.New(Job{ID: "j", Priority: priority}, time.UnixMilli(ms))
			return j.WorkKey()
		}()
		return turn
	}
	aging := Rules{Timing: rules.Timing, Aging: time.Minute}
	hour := time.Hour.Milliseconds()
	if at(rules, 5, hour) > at(rules, 6, 0) || at(rules, 5, 1) > at(rules, 5, 2) {
		t.Error("not by priority, then age")
	}
	if at(aging, 5, hour) < at(aging, 6, 0) || at(aging, 5, 0) > at(aging, 6, 0) {
		t.Error("no aging")
	}
}

func TestBackoffEnds(t *testing.T) {
	timing := Timings["production"]
	c := timing.Times(Stages[1])
	last := time.Duration(0)
	for n := range 100 {
		d := backoff(timing, c, n)
		if d < last || d > timing.MaxBackoff {
			t.Fatalf("repair %d: %s after %s", n, d, last)
		}
		last = d
	}
}
