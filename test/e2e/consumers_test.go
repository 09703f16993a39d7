package e2e

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/aws"
	awsdynamodb "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	eventbridgetypes "github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/guregu/dynamo/v2"
	"github.com/oklog/ulid/v2"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/app/crash"
	"archivist/pkg/aws/cloudwatch"
	"archivist/pkg/events/consumer"
	"archivist/pkg/events/envelope"
	"archivist/pkg/events/event"
	"archivist/pkg/events/eventlog"
	"archivist/pkg/events/filter"
	"archivist/pkg/ingest"
	"archivist/pkg/kernel/table"
	"archivist/pkg/views/history"
	"archivist/pkg/views/statistics"
	"archivist/test/e2e/users"
)

// consumers are those of the system under test, changed from outside of it as its API does.
func consumers() *consumer.Store {
	t := rows()
	newID := func() string { return ulid.Make().String() }
	return &consumer.Store{Table: t, Log: &eventlog.Log{Table: t, Now: time.Now, NewID: newID}, Now: time.Now,
		NewID: newID, Targets: strings.Split(stack.Context["consumerTargets"], ",")}
}

func rows() *table.Table {
	return table.New(dynamo.NewFromIface(awsdynamodb.NewFromConfig(cfg)), out.TableName)
}

var byTest = consumer.By{Actor: "e2e", Reason: "a test"}

// apply makes a consumer, which is deleted at the end of the test: what it has parked, too.
func apply(t *testing.T, d consumer.Definition) {
	t.Helper()
	if _, err := consumers().Apply(t.Context(), d, byTest); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := consumers().Delete(context.WithoutCancel(t.Context()), d.Name, true, byTest); err != nil {
			t.Error(err)
		}
	})
}

// preserve submits a text to a collection, and returns the job when it is Completed.
func preserve(t *testing.T, collection string, src *source, path string) v1.Job {
	t.Helper()
	return preserveFile(t, collection, src.put(path, []byte("content of "+path)))
}

// preserveFile is the same for any file.
func preserveFile(t *testing.T, collection, url string) v1.Job {
	t.Helper()
	return preservePayload(t, collection, v1.Payload{URL: url, Type: "file"})
}

// preservePayload is the same for any payload of one object.
func preservePayload(t *testing.T, collection string, payload v1.Payload) v1.Job {
	t.Helper()
	in := v1.BatchRequest{Collection: collection, Submitter: t.Name(),
		Payload:  payload,
		Metadata: &v1.Metadata{What: t.Name()}}
	b, err := client.Submit(t.Context(), in, fmt.Sprint(payload.URL, time.Now().UnixNano()))
	if err != nil {
		t.Fatal(err)
	}
	return ends(t, ingest.JobID(b.ID, 1), "Completed", soon)
}

// newQueue makes a queue, and returns its messages so far, each once.
func newQueue(t *testing.T, name string) (received func() []string) {
	t.Helper()
	q, err := queues().CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: &name})
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	return func() []string {
		for {
			got, err := queues().ReceiveMessage(t.Context(),
				&sqs.ReceiveMessageInput{QueueUrl: q.QueueUrl, MaxNumberOfMessages: 10})
			if err != nil {
				t.Fatal(err)
			}
			if len(got.Messages) == 0 {
				return all
			}
			for _, m := range got.Messages {
				all = append(all, aws.ToString(m.Body))
				if _, err := queues().DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: q.QueueUrl,
					ReceiptHandle: m.ReceiptHandle}); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// TestPublicEventsReachRules: a rule of somebody else, with a pattern that was compiled from a
// filter, gets the events that the filter selects from the bus, and no others.
func TestPublicEventsReachRules(t *testing.T) {
	begin(t)
	f, err := filter.Compile("Object+Create{parent=rules}")
	if err != nil {
		t.Fatal(err)
	}
	pattern, err := f.Pattern()
	if err != nil {
		t.Fatal(err)
	}
	received := newQueue(t, ruleQueue)
	rules := eventbridge.NewFromConfig(cfg)
	bus, name := out.All["bus"], ruleQueue
	if _, err := rules.PutRule(t.Context(), &eventbridge.PutRuleInput{Name: &name, EventBusName: &bus,
		EventPattern: &pattern}); err != nil {
		t.Fatal(err)
	}
	arn := fmt.Sprintf("arn:aws:sqs:%s:000000000000:%s", out.Region, ruleQueue)
	if _, err := rules.PutTargets(t.Context(), &eventbridge.PutTargetsInput{Rule: &name, EventBusName: &bus,
		Targets: []eventbridgetypes.Target{{Id: &name, Arn: &arn}}}); err != nil {
		t.Fatal(err)
	}
	src := newSource(t)
	other := preserve(t, "other", src, "/other.txt")
	j := preserve(t, "rules", src, "/rules.txt")
	var got []string
	until(t, "the rule's queue has the event", soon, func() bool { got = received(); return len(got) > 0 })
	for _, text := range got {
		var on struct {
			DetailType string `json:"detail-type"`
			Source     string
			Detail     envelope.Event
		}
		if err := json.Unmarshal([]byte(text), &on); err != nil || on.DetailType != "object.create" ||
			on.Detail.Subject.ID != j.Identifiers.Primary || !f.Match(on.Detail) {
			t.Errorf("the queue has %s, %v; expected the object %s, not %s", text, err, j.Identifiers.Primary,
				other.Identifiers.Primary)
		}
	}
}

// TestSearchFindsWithinSeconds: an object is found by a word of its title once its job is Completed.
func TestSearchFindsWithinSeconds(t *testing.T) {
	begin(t)
	src := newSource(t)
	const word = "xylograph"
	in := v1.BatchRequest{Collection: "found", Submitter: t.Name(), Metadata: &v1.Metadata{What: "Maps of " + word},
		Payload: v1.Payload{URL: src.put("/"+word+".txt", []byte(word)), Type: "file"}}
	b, err := client.Submit(t.Context(), in, t.Name())
	if err != nil {
		t.Fatal(err)
	}
	j := ends(t, ingest.JobID(b.ID, 1), "Completed", soon)
	until(t, "the object is found", soon, func() bool {
		found, err := client.Search(t.Context(), word, "", 10)
		return err == nil && len(found.Items) == 1 && found.Items[0].ARK == j.Identifiers.Primary
	})
}

// owned is the file in which the function of our own notes its calls.
var owned = sync.OnceValues(func() (string, error) {
	file := filepath.Join(filepath.Dir(crashes), "calls.jsonl")
	return file, ofUser(ownLambda, "own", file, users.Own(file, out.APIURL, tokens.admin))
})

// ofUser makes a function of somebody: the program in a folder of this package, or in the process its handler. It
// notes its calls in a file.
func ofUser(name, folder, file string, handler any) error {
	if inProcess() {
		system.Register(name, lambda.NewHandler(handler).Invoke)
		return nil
	}
	_, err := stack.Function(context.Background(), name, stack.Path("test", "e2e", folder),
		map[string]string{"USERS_FILE": file, "USERS_API": out.APIURL, "USERS_TOKEN": tokens.admin})
	return err
}

// own is the function of our own as a target.
func own(t *testing.T) consumer.Target {
	t.Helper()
	if _, err := owned(); err != nil {
		t.Fatal(err)
	}
	return consumer.Target{Lambda: functionARN(ownLambda)}
}

// calls are those that a consumer made of our own function.
func calls(t *testing.T, name string) (all []consumer.Batch) {
	t.Helper()
	file, err := owned()
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		if !strings.HasSuffix(line, "\n") {
			break // it is being written
		}
		var b consumer.Batch
		if err := json.Unmarshal([]byte(line), &b); err != nil {
			t.Fatal(err)
		}
		if b.Consumer == name {
			all = append(all, b)
		}
	}
	return all
}

// subjects are those of the events with which a consumer called our own function.
func subjects(t *testing.T, name string) (ids []string) {
	t.Helper()
	for _, b := range calls(t, name) {
		for _, e := range b.Events {
			ids = append(ids, e.Subject.ID)
		}
	}
	return ids
}

// TestConsumersSleepAndWake: a consumer in a function of somebody else is called at once; one with
// a schedule when its time has come, one that is paused when it is resumed, and one that is added
// later with all that happened before. Each gets each event, at least once.
func TestConsumersSleepAndWake(t *testing.T) {
	begin(t)
	target := own(t)
	define := func(name string, change func(*consumer.Definition)) consumer.Definition {
		d := consumer.Definition{Name: name, Filter: "Object+Create{parent=modes}", Target: target}
		change(&d)
		return d
	}
	awake := define("awake", func(*consumer.Definition) {})
	hourly := define("hourly", func(d *consumer.Definition) {
		d.Mode, d.Schedule = consumer.Scheduled, "rate(1 hour)"
	})
	paused := define("paused", func(d *consumer.Definition) { d.Paused = true })
	for _, d := range []consumer.Definition{awake, hourly, paused} {
		apply(t, d)
	}
	src := newSource(t)
	var want []string
	for _, path := range []string{"/modes-1.txt", "/modes-2.txt"} {
		want = append(want, preserve(t, "modes", src, path).Identifiers.Primary)
	}
	slices.Sort(want)
	gets := func(name string) {
		t.Helper()
		var got []string
		until(t, name+" is called with both", soon, func() bool {
			got = subjects(t, name)
			slices.Sort(got)
			got = slices.Compact(got) // a run that died is repeated: at least once
			return len(got) >= len(want)
		})
		if !slices.Equal(got, want) {
			t.Errorf("%s was called with %v, expected %v", name, got, want)
		}
	}
	gets("awake")
	if got := append(subjects(t, "hourly"), subjects(t, "paused")...); len(got) > 0 {
		t.Errorf("those that sleep were called with %v", got)
	}
	due(t, "hourly")
	if err := consumers().Resume(t.Context(), "paused", byTest); err != nil {
		t.Fatal(err)
	}
	apply(t, define("later", func(d *consumer.Definition) { d.Start = consumer.StartHorizon }))
	for _, name := range []string{"hourly", "paused", "later"} {
		gets(name)
	}
}

// due brings the time of a scheduled consumer forward.
func due(t *testing.T, name string) {
	t.Helper()
	key := table.Key{PK: event.Subject{Type: event.Consumer, ID: name}.Key().PK, SK: "SCHEDULE"}
	var r struct {
		table.Head
	}
	until(t, "the time of "+name+" is known", soon, func() bool {
		err := rows().Change(t.Context(), key, ulid.Make().String(), func(u *dynamo.Update) {
			u.Set("next_ms", time.Now().UnixMilli()).If("attribute_exists(pk)")
		}, &r)
		return err == nil
	})
}

// asleep is how many events a consumer sleeps through. MiniStack's queries cost more the more rows
// a partition has, so that the usual run has fewer than `make bench`.
var asleep = flag.Int("asleep", 1000, "events that TestSleeperCatchesUp makes")

// TestSleeperCatchesUp: a consumer that was paused while many events happened catches up, with few
// calls: events of one subject in a window are one.
func TestSleeperCatchesUp(t *testing.T) {
	begin(t)
	const each = 50
	jobs := *asleep / each
	apply(t, consumer.Definition{Name: "sleeper", Filter: "Job+All{parent=sleepers}", Target: own(t), Paused: true,
		Coalesce: &consumer.Coalesce{}, Window: 90, Batch: 90, Start: consumer.StartHorizon})
	began := time.Now()
	happen(t, jobs, each)
	t.Logf("%d events were written in %s", jobs*each, time.Since(began).Round(time.Second))
	log := &eventlog.Log{Table: rows(), Now: time.Now, NewID: func() string { return ulid.Make().String() }}
	until(t, "all have their places", soon, func() bool {
		p, err := log.Partition(t.Context(), "sleepers")
		return err == nil && p.Head == int64(jobs*each)
	})
	t.Logf("all have their places after %s", time.Since(began).Round(time.Second))
	if err := consumers().Resume(t.Context(), "sleeper", byTest); err != nil {
		t.Fatal(err)
	}
	handled := func() (events, items int) {
		for _, b := range calls(t, "sleeper") {
			items += len(b.Events)
			for _, e := range b.Events {
				events += max(1, e.Count)
			}
		}
		return events, items
	}
	until(t, "it has caught up", soon, func() bool { n, _ := handled(); return n >= jobs*each })
	upTo := map[string]int64{}
	made := calls(t, "sleeper")
	for _, b := range made {
		for _, e := range b.Events {
			if e.Version-int64(max(1, e.Count)) != upTo[e.Subject.ID] {
				t.Errorf("%s: %d events up to version %d follow version %d", e.Subject.ID, e.Count, e.Version,
					upTo[e.Subject.ID])
			}
			upTo[e.Subject.ID] = e.Version
		}
	}
	events, items := handled()
	if events != jobs*each || items > events/5 || len(made) > events/20 {
		t.Errorf("%d events became %d items in %d calls", events, items, len(made))
	}
	t.Logf("%d events became %d items in %d calls, after %s", events, items, len(made),
		time.Since(began).Round(time.Second))
}

// happen writes events of jobs: those of one job in one transaction.
func happen(t *testing.T, jobs, each int) {
	t.Helper()
	tb := rows()
	for n := range jobs {
		s := event.Subject{Type: event.Job, ID: fmt.Sprintf("SLEEP-%05d", n)}
		tx := tb.Begin(ulid.Make().String())
		for version := 1; version <= each; version++ {
			e := event.New{Type: "job.repaired", Time: time.Now().UnixMilli(), Component: "e2e",
				Parents: []envelope.Ref{{Type: "Collection", ID: "sleepers"}}}
			if err := event.Append(tx, s, int64(version), e); err != nil {
				t.Fatal(err)
			}
		}
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestEventLoopEnds: two consumers that cause each other's events through the API stop at the depth
// limit, and the alarm's metric says so.
func TestEventLoopEnds(t *testing.T) {
	begin(t)
	target := own(t)
	const depth = 4
	for _, name := range []string{"loop-a", "loop-b"} {
		apply(t, consumer.Definition{Name: name, Filter: "Collection+Modify{id=" + name + "}", Target: target,
			MaxDepth: depth})
	}
	if _, err := client.Act(t.Context(), ingest.Target{Kind: ingest.TargetCollection, ID: "loop-a"},
		v1.Action{Action: "hold", Reason: "it begins a loop"}, ""); err != nil {
		t.Fatal(err)
	}
	before := sumOf(t, cloudwatch.Namespace, consumer.MetricDepth)
	until(t, "the depth limit is reached", soon, func() bool {
		return sumOf(t, cloudwatch.Namespace, consumer.MetricDepth) > before
	})
	deepest, n := 0, 0
	for _, name := range []string{"loop-a", "loop-b"} {
		for _, b := range calls(t, name) {
			n += len(b.Events)
			deepest = max(deepest, b.Events[0].Cause.Depth)
		}
	}
	if n <= depth || deepest != depth { // what is handled once more causes more
		t.Errorf("%d events were handled, the deepest at %d", n, deepest)
	}
}

// TestConsumersSurviveDeath: the function dies just before a handler is called, and just after one
// has made its effect. No event is lost, and none counts twice.
func TestConsumersSurviveDeath(t *testing.T) {
	begin(t)
	dir := t.TempDir()
	points := []crash.Point{{Stage: "consumer", LocalID: history.Name, Write: 0, Marker: filepath.Join(dir, "before")},
		{Stage: "consumer", LocalID: statistics.Name, Write: 1, Marker: filepath.Join(dir, "after")}}
	setCrashes(t, points)
	j := preserve(t, "deaths", newSource(t), "/deaths.txt")
	for _, p := range points {
		until(t, "the function dies for "+p.LocalID, soon, func() bool {
			_, err := os.Stat(p.Marker)
			return err == nil
		})
	}
	f, err := filter.Compile(history.Definition.Filter)
	if err != nil {
		t.Fatal(err)
	}
	last := int64(len(eventsOf(t, ingest.JobID(j.Batch, 1)))) // the job's event that it is Completed
	var facts []envelope.Event
	until(t, "all is handled", 2*soon, func() bool {
		facts, err = consumers().Log.Read(t.Context(), "deaths", 0, 1000)
		if err != nil {
			t.Fatal(err)
		}
		stored := slices.ContainsFunc(facts, func(e envelope.Event) bool { return e.Subject.Type == "Object" })
		ended := slices.ContainsFunc(facts, func(e envelope.Event) bool {
			return e.Subject.Type == "Job" && e.Version == last
		})
		return stored && ended && handled(t, history.Name, facts) && handled(t, statistics.Name, facts)
	})
	var counted statistics.Row
	if err := rows().Get(t.Context(), table.Key{PK: "STATISTICS#deaths", SK: "TOTAL#deaths"}, &counted); err != nil ||
		counted.Counts[statistics.Completed] != 1 || counted.Counts[statistics.Objects] != 1 {
		t.Errorf("the statistics are %+v, %v", counted, err)
	}
	happened := len(facts) - len(slices.DeleteFunc(slices.Clone(facts), f.Match))
	var kept []table.Head
	if _, err := rows().Page(t.Context(), table.Query{PK: "HISTORY#" + j.Identifiers.Primary}, &kept); err != nil ||
		len(kept) < happened || happened == 0 {
		t.Errorf("%d events happened to the object, its history has %d: %v", happened, len(kept), err)
	}
}

// handled reports whether a consumer has passed the last of these events that its filter selects.
func handled(t *testing.T, name string, facts []envelope.Event) bool {
	t.Helper()
	s, err := consumers().Show(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	f, err := filter.Compile(s.Filter)
	if err != nil {
		t.Fatal(err)
	}
	last := int64(0)
	for _, e := range facts {
		if f.Match(e) {
			last = e.Seq
		}
	}
	return slices.ContainsFunc(s.Places, func(p consumer.Place) bool {
		return p.Partition == facts[0].Partition && p.Seq >= last && !p.Running
	})
}
