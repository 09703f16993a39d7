package bench

import (
	"encoding/json"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"archivist/pkg/events/event"
	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/bucket/buckettest"
	"archivist/pkg/kernel/table/tabletest"
	"archivist/pkg/revisions/archive"
	"archivist/pkg/revisions/revision"
	"archivist/pkg/revisions/runner"
	"archivist/statemachines"
)

// spent is what one function has done, for its price.
type spent struct {
	calls       float64 // of the function
	table, s3   float64 // requests
	gb, seconds float64 // its memory; the time of its requests, one after another
}

// costed is an archive whose functions are counted.
type costed struct {
	*archived
	count    *meter
	s3       *storage
	control  revision.Control
	runner   *runner.Runner
	pass, at spent // the functions revisions and task-control; the requests of the runner are in s3
	executed float64
}

// How long requests take, and what a function needs beside them, in seconds. They are estimates.
const (
	ofTable  = 0.005
	ofS3     = 0.025
	ofItself = 0.02
)

func newCosted(t *testing.T) *costed {
	c := &costed{count: &meter{DynamoDBAPI: tabletest.New()}, s3: &storage{}}
	c.archived = newArchived(t, "maps", "archivist", c.count)
	twin := buckettest.New(t.TempDir())
	twin.Before = func(op, _ string) int { c.s3.add(op); return 0 }
	server := httptest.NewServer(twin)
	t.Cleanup(server.Close)
	work := bucket.Bucket{Client: buckettest.Client(server.URL), Name: "work", Limits: bucket.DefaultLimits}
	c.control = revision.Control{Store: c.Store, Work: work}
	c.runner = &runner.Runner{Bucket: work, Name: work.Name, Dir: t.TempDir(), Now: time.Now, NewID: c.NewID,
		Log: slog.New(slog.DiscardHandler)}
	return c
}

// of counts what a function does.
func (c *costed) of(f *spent, gb float64, do func() error) {
	c.t.Helper()
	calls, requests := c.count.calls, c.s3.sum()
	c.must(do())
	used, s3 := c.count.calls-calls, float64(c.s3.sum()-requests)
	f.calls++
	f.table, f.s3 = f.table+used, f.s3+s3
	f.gb, f.seconds = gb, f.seconds+used*ofTable+s3*ofS3+ofItself
}

// wake is a pass.
func (c *costed) wake() {
	c.t.Helper()
	c.of(&c.pass, 1, func() error {
		_, err := c.Pass(c.t.Context(), c.name, time.Now().Add(time.Minute))
		return err
	})
}

// execute does what the executions do that were started, each with its own pass behind it if each is true.
func (c *costed) execute(each bool) (did bool) {
	c.t.Helper()
	ctx := c.t.Context()
	for _, e := range c.started {
		delete(c.started, e.Instance)
		c.executed++
		in := e.Input()
		var begun runner.Begun
		c.of(&c.at, 1, func() (err error) {
			begun, err = c.control.Begin(ctx, in.Attempt, in.Exec)
			return err
		})
		if begun.Next != runner.NextRun {
			c.t.Fatalf("%s: %+v", e.Instance, begun)
		}
		result, err := c.runner.Run(ctx, *begun.Job)
		if err != nil || result.End != runner.Succeeded {
			c.t.Fatalf("%s: %+v, %v", e.Instance, result, err)
		}
		c.of(&c.at, 1, func() error {
			_, err := c.control.End(ctx, runner.Control{Attempt: in.Attempt, Exec: in.Exec, Result: &result})
			return err
		})
		if each {
			c.wake()
		}
		did = true
	}
	if !each && did {
		c.wake()
	}
	return did
}

// transitions is how many states an execution of task-run goes through whose task succeeds.
func transitions(t *testing.T) (n float64) {
	t.Helper()
	var m struct {
		StartAt string
		States  map[string]struct {
			Next    string
			End     bool
			Type    string
			Choices []struct{ StringEquals, Next string }
		}
	}
	err := json.Unmarshal([]byte(statemachines.Definitions[runner.Machine]), &m)
	if err != nil {
		t.Fatal(err)
	}
	for at := m.StartAt; at != ""; n++ {
		s, ok := m.States[at]
		if !ok || n > 20 {
			t.Fatalf("no way to the end: %q", at)
		}
		at = s.Next
		for _, c := range s.Choices {
			if c.StringEquals == runner.NextRun {
				at = c.Next
			}
		}
	}
	return n
}

// TestRevisionCost: a thousand revisions with three tasks each cost what bench/RESULTS.md says: those that come one by
// one, each of whose notices and ends makes a pass of its own, and those that come together.
func TestRevisionCost(t *testing.T) {
	for _, k := range []struct {
		name          string
		together      bool
		writes, reads float64 // at most
	}{{"one by one", false, 356_000, 173_000}, {"together", true, 354_000, 94_000}} {
		const revisions, tasks = 30, 3
		c := newCosted(t)
		for range 2 {
			c.commit(threeTasks)
			for c.wake(); c.execute(true); {
			}
		}
		*c.count, *c.s3 = meter{DynamoDBAPI: c.count.DynamoDBAPI}, storage{}
		c.pass, c.at, c.executed = spent{}, spent{}, 0
		before := c.events()
		for range revisions {
			c.commit(threeTasks)
			if !k.together {
				for c.wake(); c.execute(true); {
				}
			}
		}
		for c.wake(); c.execute(false); {
		}
		c.settled(revisions + 2)
		if c.executed != revisions*tasks {
			t.Fatalf("%.0f executions", c.executed)
		}
		c.bill(k.name, revisions, before, k.writes, k.reads)
	}
}

// settled checks that all tasks of a revision have succeeded.
func (c *costed) settled(n int64) {
	c.t.Helper()
	for _, task := range []string{"index", "page", "site"} {
		in, err := c.Instance(c.t.Context(), c.id(n, task))
		if err != nil || !in.Settled {
			c.t.Fatalf("%+v, %v", in, err)
		}
	}
}

// events is how many were written.
func (c *costed) events() (n float64) {
	for _, row := range c.count.DynamoDBAPI.(*tabletest.Fake).All() {
		if strings.HasPrefix(row["sk"].(*types.AttributeValueMemberS).Value, event.Prefix) {
			n++
		}
	}
	return n
}

// bill prints what so many revisions have cost.
func (c *costed) bill(name string, revisions int, before, writes, reads float64) {
	t := c.t
	per := func(n float64) float64 { return n * 1000 / float64(revisions) }
	const runnerGB, second = 2, 1 // a task of a second
	t.Log(name)
	sum := bill(t, "orchestration", []charge{
		{"state transitions", per(c.executed) * transitions(t), perTransition, 15_000},
		{"DynamoDB write units", per(c.count.writes), perWrite, writes},
		{"DynamoDB read units", per(c.count.reads), perRead, reads},
		{"Lambda requests", per(c.pass.calls + c.at.calls), perLambda, 0},
		{"Lambda GB-seconds", per(c.pass.seconds*c.pass.gb + c.at.seconds*c.at.gb), perGBs, 0},
	})
	runs := bill(t, "runs of a second each", []charge{
		{"Lambda requests", per(c.executed), perLambda, 0},
		{"Lambda GB-seconds", per(c.executed) * runnerGB * second, perGBs, 0},
		{"S3 PUT, COPY, POST, LIST", per(float64(c.s3.writes)), perS3Write, 0},
		{"S3 GET, HEAD", per(float64(c.s3.reads)), perS3Read, 0},
	})
	api := bill(t, "notices through the API", []charge{
		{"API requests", 1000, perRequest, 0},
		{"Lambda requests", 1000, perLambda, 0},
		{"Lambda GB-seconds", 1000 * 0.1 * 0.5, perGBs, 0},
	})
	t.Logf("%.0f calls of DynamoDB, %.0f passes of %.1f calls, %.0f events; US$ %.4f in all", per(c.count.calls),
		per(c.pass.calls), c.pass.table/c.pass.calls, per(c.events()-before), sum+runs+api)
}

// idleRevisions is what the revision queue costs in a month in which nothing happens: four alarms, a function that
// looks each minute for archives in which something is to be done, and in each hour a pass that looks at the head of
// the only archive.
func idleRevisions(t *testing.T, ticks float64) float64 {
	t.Helper()
	count := &meter{DynamoDBAPI: tabletest.New()}
	a := reopened(t, "maps", "archivist", count)
	now := time.Now()
	a.Store.Now = func() time.Time { return now }
	a.Leases.Now = a.Store.Now
	_, err := a.Add(t.Context(), a.name, revision.Settings{Location: archive.Location{Kind: archive.Git,
		URL: "https://example.org/maps"}}, revision.By{Actor: "anna"})
	a.must(err)
	tick := func() (passes float64) {
		now = now.Add(time.Minute)
		due, err := a.Waiting(t.Context(), 200)
		a.must(err)
		for range due {
			p, err := a.Pass(t.Context(), a.name, now.Add(time.Minute))
			if err != nil || p.More || p.Busy {
				t.Fatalf("%+v, %v", p, err)
			}
			passes++
		}
		return passes
	}
	for range 60 { // the first looks are sooner
		tick()
	}
	*count = meter{DynamoDBAPI: count.DynamoDBAPI}
	const hours, alarms, perAlarm, gb, seconds, logged, perLog = 24.0, 4, 0.10, 1.0, 0.1, 0.5e-6, 0.50
	passes := 0.0
	for range int(hours * 60) {
		passes += tick()
	}
	if passes != hours {
		t.Errorf("%.0f passes in %.0f hours in which nothing happens", passes, hours)
	}
	each := 1 / (hours * 60)
	runs := 1 + passes*each
	units := each * (count.writes*perWrite + count.reads*perRead)
	looks := ticks * (runs*(perLambda+seconds*gb*perGBs+logged*perLog) + units)
	t.Logf("revision queue: %.0f passes a month, %.2f calls a minute; alarms US$ %.2f, looks US$ %.2f",
		passes*each*ticks, count.calls*each, alarms*perAlarm, looks)
	return alarms*perAlarm + looks
}
