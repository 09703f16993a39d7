package storagesim

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/guregu/dynamo/v2/dynamodbiface"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/collection"
	"archivist/pkg/ingest/identity"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/ingest/stage"
	"archivist/pkg/ingest/workspace"
	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/fetch"
	"archivist/pkg/kernel/lease"
	"archivist/pkg/kernel/table/tabletest"
	"archivist/pkg/objects/inventory"
	"archivist/pkg/objects/ocfl"
)

// actor is one process: a worker, a person, or the scheduler.
type actor struct {
	w      *world
	name   string
	worker bool
	direct bool      // its calls are not scheduled one by one
	end    time.Time // when its function's time is up; zero: never
	dead   bool
	job    string // what it works on, and under which execution
	exec   int64
	rng    *rand.Rand
	rows   memory

	q *queue.Queue
	s *stage.Stages
}

// newActor makes a process with clients of its own.
func (w *world) newActor(name string) *actor {
	a := &actor{w: w, name: name, rng: rand.New(rand.NewPCG(w.Rng.Uint64(), 2))}
	var client dynamodbiface.DynamoDBAPI = &tabletest.Client{DynamoDBAPI: w.fake,
		Do: func(op string, effect func() error) error {
			if a.direct {
				return effect()
			}
			return a.do(op, "", effect)
		}}
	if w.mutant.noFence {
		a.rows = memory{DynamoDBAPI: client}
		client = &a.rows
	}
	t := tabletest.Table(client)
	t.Wait, t.Jitter = a.wait, a.rng.Float64
	a.q = &queue.Queue{Table: t, Now: time.Now, NewID: w.newID, Executions: w, Wake: w.poke,
		Metric:   func(string, float64) {},
		Rules:    ingest.Rules{Timing: timing, FailedRetention: retention},
		Settings: queue.Settings{MaxInFlight: 10, Space: 1 << 30, SweepPage: 50},
		Log:      slog.New(slog.NewTextHandler(io.Discard, nil))}
	store := s3.New(s3.Options{BaseEndpoint: &s3URL, Region: "us-east-1", UsePathStyle: true,
		Credentials:      credentials.NewStaticCredentialsProvider("a", "b", ""),
		RetryMaxAttempts: 1, HTTPClient: httpClient(a.s3)})
	work := bucket.Bucket{Client: store, Name: "work", Limits: bucket.DefaultLimits}
	a.s = &stage.Stages{Queue: a.q, Inventory: inventory.Store{Table: t}, Collections: collection.Store{Table: t,
		NewID: w.newID, Plain: true}, Work: workspace.Store{Bucket: work},
		Root: ocfl.Root{Bucket: bucket.Bucket{Client: store, Name: "storage", Limits: bucket.DefaultLimits},
			Work: work, Recorded: inventory.Store{Table: t}.Recorded},
		Fetch: fetch.New(fetch.Guard{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}, a.rng.Float64),
		Now:   time.Now, Draw: identity.Draw,
		NAAN: "99999", Shoulder: "fk4", Parallel: 4}
	a.s.Fetch.HTTP.Transport = a.web(w.source())
	a.s.Fetch.Wait = a.wait
	a.s.Secret = func(context.Context, string) (string, error) { return "a key", nil }
	a.s.Serve(a.q)
	if w.mutant.wrap != nil {
		w.mutant.wrap(a)
	}
	return a
}

var s3URL = "http://s3.invalid"

func (a *actor) wait(_ context.Context, d time.Duration) error {
	if a.direct {
		return nil
	}
	time.Sleep(d) // of the bubble
	if a.park("awake", "") != none {
		return errDead
	}
	return nil
}

// httpClient is the SDK's client as a function.
type httpClient func(*http.Request) (*http.Response, error)

// Do sends one request.
func (f httpClient) Do(r *http.Request) (*http.Response, error) { return f(r) }

// s3 sends a request to the twin when the schedule allows it.
func (a *actor) s3(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		body, err = io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
	}
	op, key := a.w.twin.Operation(r), strings.TrimPrefix(r.URL.Path, "/")
	if a.w.mutant.s3 != nil {
		a.w.mutant.s3(op, key, r.Header)
	}
	if m := a.w.mutant; m.read != nil && (op == "GET object" || op == "HEAD object") {
		r.URL.Path, r.URL.RawPath = "/"+m.read(key), ""
	}
	var resp *http.Response
	effect := func() error {
		again := r.Clone(ctx)
		again.Body = io.NopCloser(bytes.NewReader(body))
		rec := httptest.NewRecorder()
		a.w.twin.ServeHTTP(rec, again)
		resp = rec.Result()
		resp.Request = r
		if rec.Code >= 300 {
			a.w.log("  → %d", rec.Code)
		}
		a.w.check.written(op, key)
		return nil
	}
	var err error
	if a.direct {
		err = effect()
	} else {
		if op == "PUT object" && rootInventory.MatchString(key) && a.job != "" { // not a repair
			a.w.check.sent(a)
		}
		err = a.do(op, key, effect)
	}
	if err == errRefused {
		return &http.Response{StatusCode: http.StatusServiceUnavailable, Header: http.Header{}, Body: http.NoBody,
			Request: r}, nil
	}
	if err != nil {
		return nil, err
	}
	return resp, nil
}

// kinds of calls.
type kind int

const (
	reads kind = iota
	writes
)

// kindOf classifies a call, and reports whether it decides about a version.
func kindOf(c *call) (k kind, ours bool) {
	switch c.op {
	case "GetItem", "Query", "GET object", "HEAD object", "List":
		return reads, false
	case "TransactWriteItems", "PutItem", "UpdateItem", "DeleteItem":
		return writes, false
	}
	if strings.HasPrefix(c.op, "handle ") {
		return reads, false // it is not repeated as a whole
	}
	return writes, strings.HasPrefix(c.key, "storage/") && (strings.Contains(c.key, "/inventory.json") ||
		c.op == "DELETE object")
}

// Start registers an execution and sends its first message.
func (w *world) Start(_ context.Context, _, name string, in queue.Message) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.started[name] {
		w.started[name] = true
		w.send(in, 0)
	}
	return nil
}

// Stop does nothing: a superseded execution ends by its own answer.
func (w *world) Stop(context.Context, string, string, string) error { return nil }

// StoppedByHand reports that no execution was stopped.
func (w *world) StoppedByHand(context.Context, string, string) (string, bool, error) {
	return "", false, nil
}

// Problem reports that there was none.
func (w *world) Problem(context.Context, string, string) (string, error) { return "", nil }

func (w *world) poke(context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.poked = true
	return nil
}

// send queues a message.
func (w *world) send(m queue.Message, later time.Duration) {
	m.Token = fmt.Sprintf("%s|%s|%d|%s|%s", m.Job, m.Batch, m.Exec, m.State, m.Step)
	w.sent = append(w.sent, message{m, time.Now().Add(later)})
}

// answers continues an execution.
type answers struct {
	w  *world
	in queue.Message
}

// Answer sends the next state's message, or the same one's again.
func (s answers) Answer(_ context.Context, _ string, ans ingest.Answer, _ string) error {
	to := ingest.State(s.in.State)
	if ans == ingest.Success {
		to = ingest.After(to)
	}
	if (ans == ingest.Success || ans == ingest.Continue) && s.in.Job != "" && to != ingest.Completed {
		s.w.mu.Lock()
		defer s.w.mu.Unlock()
		s.in.State = string(to)
		s.w.send(s.in, time.Second)
	}
	return nil
}

// visible is the index of the first visible message.
func (w *world) visible() int {
	return slices.IndexFunc(w.sent, func(m message) bool { return !time.Now().Before(m.from) })
}

// arrive receives a visible message. It may be delivered again, or be lost.
func (w *world) arrive(rng *rand.Rand) (queue.Message, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := w.visible()
	if i < 0 {
		return queue.Message{}, false
	}
	m := w.sent[i].Message
	if w.Calm || rng.IntN(20) > 0 {
		w.sent = slices.Delete(w.sent, i, i+1)
	}
	if !w.Calm && rng.IntN(40) == 0 {
		return queue.Message{}, false // lost
	}
	return m, true
}

// handle makes an actor the worker for one message. Each stage that does not touch the
// storage root is one point of the schedule.
func (a *actor) handle(m queue.Message) {
	stage, _ := ingest.StageNamed(m.Step)
	if m.Job != "" {
		stage, _ = ingest.StageOf(ingest.State(m.State))
	}
	worker := queue.Worker{Queue: a.q, Stage: stage, Step: a.s.Steps()[stage.Name], Answers: answers{a.w, m}}
	a.job, a.exec, a.end = m.Job, m.Exec, time.Now().Add(life)
	var keep time.Duration
	var err error
	a.direct = !slices.Contains([]string{"process", "store", "record", "notify"}, stage.Name)
	if a.direct {
		err = a.do("handle "+stage.Name, m.Job+m.Batch, func() error { keep, err = worker.Handle(ctx, m); return err })
	} else {
		if a.w.mutant.noFence {
			a.rows.holds, a.rows.last = "JOB#"+m.Job, nil
		}
		keep, err = worker.Handle(ctx, m)
	}
	a.direct, a.job, a.end, a.rows.holds = false, "", time.Time{}, ""
	a.w.mu.Lock()
	defer a.w.mu.Unlock()
	if a.dead || err != nil {
		keep = timing.Times(stage).Visibility
	}
	if keep > 0 {
		a.w.sent = append(a.w.sent, message{m, time.Now().Add(keep)})
	}
}

// tick is one run of the scheduler, one point of the schedule.
func (a *actor) tick() {
	c := &queue.Scheduler{Queue: a.q, Leases: &lease.Store{Table: a.q.Table, Now: time.Now, NewID: a.w.newID}}
	_ = a.do("tick", "", func() error {
		a.direct = true
		defer func() { a.direct = false }()
		return c.Tick(ctx, true)
	})
}
