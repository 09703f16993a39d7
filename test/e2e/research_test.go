package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	awslambda "github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	ststypes "github.com/aws/aws-sdk-go-v2/service/sts/types"
	"github.com/oklog/ulid/v2"

	"archivist/pkg/kernel/lease"
	"archivist/pkg/research"
)

// Projects of research of these tests. The times are short: what waits for the end of a lease is to end.
const (
	researchProject = "queues"
	researchNames   = "demo," + researchProject + "," + opinions
	researchTimes   = "lease=75s,queue=60s,extension=30s"
)

// laboratory is research as a researcher and a curator see it who talk to the queues directly.
type laboratory struct {
	*testing.T
	store *research.Store
	queue string      // of pending work
	as    *sqs.Client // with the session of a researcher's role
}

// researcherRole are credentials of a researcher for the queue of a project.
func researcherRole(t *testing.T, project string) *ststypes.Credentials {
	t.Helper()
	got, err := sts.NewFromConfig(cfg).AssumeRole(t.Context(), &sts.AssumeRoleInput{
		RoleArn: aws.String(named("researcherRoles", project)), RoleSessionName: aws.String("rig")})
	if err != nil {
		t.Fatal(err)
	}
	return got.Credentials
}

// named is the value of a project in an output.
func named(output, project string) string {
	for pair := range strings.SplitSeq(out.All[output], ",") {
		name, value, _ := strings.Cut(pair, "=")
		if name == project {
			return value
		}
	}
	return ""
}

func newLaboratory(t *testing.T) *laboratory {
	tb := rows()
	newID := func() string { return ulid.Make().String() }
	l := &laboratory{T: t, queue: named("pendingQueues", researchProject),
		store: &research.Store{Table: tb, Leases: &lease.Store{Table: tb, Now: time.Now, NewID: newID}, Now: time.Now,
			NewID: newID, Times: research.Default, Projects: []string{researchProject},
			Analyses: map[string]func([]byte) error{"any": func([]byte) error { return nil }},
			Wake: func(ctx context.Context, project string) error {
				_, err := awslambda.NewFromConfig(cfg).Invoke(ctx, &awslambda.InvokeInput{
					FunctionName:   aws.String(out.All["pendingWorkFunction"]),
					InvocationType: lambdatypes.InvocationTypeEvent, Payload: []byte(`{"project":"` + project + `"}`)})
				return err
			}}}
	own := cfg.Copy()
	if !inProcess() { // it has no roles
		got := researcherRole(t, researchProject)
		own.Credentials = credentials.NewStaticCredentialsProvider(*got.AccessKeyId, *got.SecretAccessKey,
			*got.SessionToken)
	}
	l.as = sqs.NewFromConfig(own)
	return l
}

func (l *laboratory) send(output, body string) {
	l.Helper()
	_, err := queues().SendMessage(l.Context(), &sqs.SendMessageInput{QueueUrl: aws.String(out.All[output]),
		MessageBody: &body})
	if err != nil {
		l.Fatal(err)
	}
}

// curate sends a record to a queue, with a stable id.
func (l *laboratory) curate(output, project string, kind research.Kind, id string) {
	l.Helper()
	l.send(output, fmt.Sprintf(`{"project":%q,"kind":%q,"source":"e2e","id":%q,"url":"https://example.org/%s.wav",`+
		`"curated":"2026-11-22T10:00:00Z"}`, project, kind, id, id))
}

// dead are the messages in the dead-letter queue by their reasons, as far as they have been seen.
func (l *laboratory) dead(seen map[string]string) map[string]string {
	l.Helper()
	got, err := queues().ReceiveMessage(l.Context(), &sqs.ReceiveMessageInput{
		QueueUrl: aws.String(out.All["researchDeadQueue"]), MaxNumberOfMessages: 10, VisibilityTimeout: 1,
		MessageAttributeNames: []string{"All"}})
	if err != nil {
		l.Fatal(err)
	}
	for _, m := range got.Messages {
		seen[aws.ToString(m.MessageAttributes["reason"].StringValue)] = aws.ToString(m.Body)
	}
	return seen
}

// receive receives a work item, if one waits, and deletes its message, as a researcher does that has
// accepted it.
func (l *laboratory) receive() (m research.Message, is bool) {
	l.Helper()
	got, err := l.as.ReceiveMessage(l.Context(), &sqs.ReceiveMessageInput{QueueUrl: &l.queue})
	if err != nil {
		l.Fatal(err)
	}
	if len(got.Messages) == 0 {
		return m, false
	}
	err = json.Unmarshal([]byte(*got.Messages[0].Body), &m)
	if err == nil {
		_, err = l.as.DeleteMessage(l.Context(), &sqs.DeleteMessageInput{QueueUrl: &l.queue,
			ReceiptHandle: got.Messages[0].ReceiptHandle})
	}
	if err != nil {
		l.Fatal(err)
	}
	return m, true
}

// work accepts a work item and reports its results in reverse order: the final one is the first to come.
func (l *laboratory) work(m research.Message) {
	l.Helper()
	w, err := l.store.Accept(l.Context(), research.Acceptance{Lease: m.Lease, Researcher: "rig", Token: m.Lease})
	if err != nil || len(w.Clips) != len(m.Clips) {
		l.Fatalf("%+v, %v", w, err)
	}
	for i := len(m.Clips); i > 0; i-- {
		r := research.Report{Project: m.Project, Lease: m.Lease, Researcher: "rig", Analysis: w.Analysis.String(),
			Episode: m.Episode, Sequence: i, Clip: m.Clips[i-1],
			Hits: []research.Hit{{Offset: int64(i) * 1e9, Length: 1e9, Score: 0.9}}}
		if i == len(m.Clips) {
			r.Final, r.Count = true, len(m.Clips)
		}
		text, err := json.Marshal(r)
		if err != nil {
			l.Fatal(err)
		}
		l.send("completedWorkQueue", string(text))
	}
}

// TestResearchQueuesWork: what curators send becomes work items, what researchers send becomes results;
// what is wrong becomes a dead letter with its reason, and the rest goes on.
func TestResearchQueuesWork(t *testing.T) {
	begin(t)
	l := newLaboratory(t)
	ctx, by := t.Context(), research.By{Actor: "e2e"}
	err := l.store.Apply(ctx, research.Project{Name: researchProject,
		Analysis: research.Analysis{Name: "any", Version: "1"}}, by)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"one", "two"} {
		l.curate("curatedEpisodesQueue", researchProject, research.Episode, "episode-"+id)
		l.curate("curatedClipsQueue", researchProject, research.Clip, "clip-"+id)
	}
	l.send("curatedEpisodesQueue", "hello")
	l.curate("curatedClipsQueue", "nowhere", research.Clip, "clip-three")
	l.send("completedWorkQueue", `{"project":"queues"}`)
	seen := map[string]string{}
	until(t, "three messages are dead letters", soon, func() bool { return len(l.dead(seen)) == 3 })
	for part, body := range map[string]string{"the message is no curated record: column 1": "hello",
		`there is no research project "nowhere"`:             "clip-three",
		`episode: found ""; expected a key of 24 characters`: `"queues"`} { // LocalStack writes JSON anew
		if !slices.ContainsFunc(slices.Collect(maps.Keys(seen)), func(reason string) bool {
			return strings.Contains(reason, part) && strings.Contains(seen[reason], body)
		}) {
			t.Errorf("%q is not among the dead letters %q", part, seen)
		}
	}
	until(t, "all is curated", soon, func() bool { return l.status().Pairs == 4 })
	err = l.store.Heartbeat(ctx, researchProject, research.Researcher{Name: "rig", Capacity: 1})
	if err != nil {
		t.Fatal(err)
	}
	until(t, "all pairs are researched", soon, func() bool {
		m, is := l.receive()
		if is {
			l.work(m)
		}
		st := l.status()
		return st.Researched == st.Pairs && st.Leases == 0
	})
	st := l.status()
	if st.Pairs != 4 || st.Results != 4 || st.Leased+st.Open != 0 {
		t.Errorf("%+v", st)
	}
	err = l.store.Leave(ctx, researchProject, "rig")
	if err != nil {
		t.Error(err)
	}
}

func (l *laboratory) status() research.Status {
	l.Helper()
	st, err := l.store.Status(l.Context(), researchProject)
	if err != nil {
		l.Fatal(err)
	}
	return st
}

// TestPendingWorkExpires: a work item leaves its queue at the end of its time, and a researcher may receive
// from the queue of its own project only.
func TestPendingWorkExpires(t *testing.T) {
	begin(t)
	l := newLaboratory(t)
	got, err := queues().GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{QueueUrl: &l.queue,
		AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameMessageRetentionPeriod}})
	if err != nil || got.Attributes["MessageRetentionPeriod"] != "60" {
		t.Errorf("%+v, %v", got, err)
	}
	miniStackOnly(t, "LocalStack's core evaluates no policies")
	other := named("pendingQueues", "demo")
	_, err = l.as.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &other})
	if err == nil || !strings.Contains(err.Error(), "AccessDenied") {
		t.Errorf("it may receive from %s: %v", other, err)
	}
	_, err = l.as.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &l.queue, MessageBody: aws.String("{}")})
	if err == nil || !strings.Contains(err.Error(), "AccessDenied") {
		t.Errorf("it may send work items: %v", err)
	}
}
