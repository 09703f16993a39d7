package inprocess

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sfn/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/ingest"
	service "archivist/pkg/ingest/queue"
)

// bubble plays a test on a system with the times of production, in a bubble. At the end the doctor finds nothing.
func bubble(t *testing.T, test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := begin(t, Settings{})
		w.each = 20 * time.Second // a test lasts an hour or two
		test(w)
		w.healthy()
	})
}

// healthy lets the doctor look at everything.
func (w *world) healthy() {
	w.Helper()
	o, err := w.api.Start(w.Context(), v1.OperationRequest{Action: "doctor",
		ActionOptions: v1.ActionOptions{Reason: "the end of the test"}}, "")
	w.must(err)
	w.until("the doctor is done", func() bool {
		o, err = w.api.Operation(w.Context(), o.ID)
		w.must(err)
		return o.State != "Running"
	})
	found, err := w.api.Findings(w.Context(), o.ID, 0)
	w.must(err)
	for _, f := range found {
		w.Errorf("the doctor finds %s of %s: %s", f.Invariant, f.Subject, f.Evidence)
	}
	if o.State != "Done" || o.Counts.Checked == 0 {
		w.Errorf("the doctor has checked nothing: %+v", o)
	}
}

// stored looks at the objects of a batch in the end, one or the two of two: one version each, with the content of
// their files. A job that nobody requeued was in each state once.
func (w *world) stored(batch v1.Batch) {
	w.Helper()
	for i, file := range []string{"/a.txt", "/c.txt"}[:batch.Counts.Expected] {
		j := w.job(batch.ID, i+1)
		if got := w.content(j, "producer"+file); got != string(w.src.files[file]) || j.Version != 1 {
			w.Errorf("%s has the version %d with %q", j.ID, j.Version, got)
		}
		if got := w.states(j.ID); j.RetryCount == 0 && !slices.Equal(got, usualStates) {
			w.Errorf("%s was in the states %v", j.ID, got)
		}
	}
	if c := batch.Counts; c.Completed != int64(c.Expected) || c.Expected == 0 {
		w.Errorf("the counts are %+v", c)
	}
}

// usualStates are those of a job for which all is well.
var usualStates = []ingest.State{ingest.Pending, ingest.Estimating, ingest.Provisioning, ingest.Downloading,
	ingest.Processing, ingest.Storing, ingest.Recording, ingest.Notify, ingest.Completed}

// states are those in which a job was, by its events, whose numbers have no gap.
func (w *world) states(job string) (all []ingest.State) {
	w.Helper()
	events, err := w.api.Events(w.Context(), job)
	w.must(err)
	for i, e := range events {
		var c service.Change
		w.must(json.Unmarshal(e.Detail, &c))
		if e.Version != int64(i+1) {
			w.Errorf("event %d of %s has the number %d", i+1, job, e.Version)
		}
		if e.Type == "job.state" {
			all = append(all, ingest.State(c.To))
		}
	}
	return all
}

// downloading submits two objects, and waits until both download. Their files come after open.
func (w *world) downloading() (batch string) {
	w.Helper()
	w.src.gate = make(chan struct{})
	batch = w.two()
	w.until("both jobs download", func() bool { return w.src.waiting("/a.txt") && w.src.waiting("/c.txt") })
	return batch
}

// execution is a running execution of a job.
func (w *world) execution(job string) string {
	w.Helper()
	all, err := sfn.NewFromConfig(w.Config()).ListExecutions(w.Context(), &sfn.ListExecutionsInput{
		StateMachineArn: aws.String(machineARN(jobMachine)), StatusFilter: types.ExecutionStatusRunning})
	w.must(err)
	i := slices.IndexFunc(all.Executions, func(x types.ExecutionListItem) bool {
		return strings.HasPrefix(*x.Name, job+"-")
	})
	if i < 0 {
		w.Fatalf("no execution of %s runs", job)
	}
	return *all.Executions[i].ExecutionArn
}

func (w *world) batch(id string) v1.Batch {
	w.Helper()
	b, err := w.api.Batch(w.Context(), id)
	w.must(err)
	return b
}

// ended waits for a state of a job.
func (w *world) ended(job, state string) v1.Job {
	w.Helper()
	var j v1.Job
	w.until(job+" is "+state, func() bool {
		var err error
		j, err = w.api.Job(w.Context(), job)
		w.must(err)
		return j.State == state
	})
	return j
}

// TestStoreDiesBeforeEachWrite: the function of Store dies before one of its calls that change something, which is
// also just after the one before, until none is left. The object is stored once, with its content.
func TestStoreDiesBeforeEachWrite(t *testing.T) {
	died := 0
	for met := 1; met > 0; {
		bubble(t, func(w *world) {
			at, _ := w.KillAt(Point{Function: fnStage + "store", Call: died + 1})
			w.src.put("/a.txt", "content of a")
			w.stored(w.completed(w.submit(w.src.batch(w.T, w.src.object(w.T, "one", "/a.txt")))))
			met = at()
			died += met
		})
	}
	if died < 15 {
		t.Errorf("Store died %d times; it makes more writes than that", died)
	}
	t.Logf("Store died before %d different writes", died)
}

// TestEveryMessageIsLostOnce: the first message to each stage is lost. The sweep sends another after the grace of the
// stage.
func TestEveryMessageIsLostOnce(t *testing.T) {
	bubble(t, func(w *world) {
		var allowed time.Duration
		for _, st := range ingest.Stages {
			w.Lose(st.Name, 1)
			allowed += ingest.Timings["production"].Times(st).Grace + 5*time.Minute
		}
		began := time.Now()
		batch := w.completed(w.two())
		w.stored(batch)
		if n := w.repairs(w.job(batch.ID, 1).ID) + w.repairs(w.job(batch.ID, 2).ID); n != 6 {
			w.Errorf("%d repairs of jobs, not one for each of their six stages", n)
		}
		if took := time.Since(began); took > allowed {
			w.Errorf("the batch took %s, allowed were %s", took, allowed)
		}
	})
}

// TestMessagesComeTwice: each message comes twice. The second does nothing, and its answer is refused without harm.
func TestMessagesComeTwice(t *testing.T) {
	bubble(t, func(w *world) {
		for _, st := range ingest.Stages {
			w.Repeat(st.Name, 100)
		}
		w.Repeat(queueWake, 1000)
		batch := w.completed(w.two())
		w.stored(batch)
		if n := w.repairs(w.job(batch.ID, 1).ID) + w.repairs(w.job(batch.ID, 2).ID); n != 0 {
			w.Errorf("%d repairs", n)
		}
	})
}

// TestAnswersAreLost: a function dies after its work is in the table, and before it answers the token. Its message
// comes back, and then the token is answered; the step is not done again.
func TestAnswersAreLost(t *testing.T) {
	bubble(t, func(w *world) {
		var died []func() int
		for _, st := range ingest.Stages {
			met, _ := w.KillAt(Point{Function: fnStage + st.Name, Operation: "SendTaskSuccess", Call: 1})
			died = append(died, met)
		}
		batch := w.completed(w.two())
		w.stored(batch)
		w.mailed("bob@example.org", "2 objects preserved: "+batch.ID)
		n := 0
		for _, met := range died {
			n += met()
		}
		if n < len(ingest.Stages)-1 { // Estimate answers that the job is parked
			w.Errorf("%d answers were lost", n)
		}
	})
}

// TestExecutionStoppedByAPerson: a person stops the execution of a job. The job fails with that reason, the other one
// does not; requeued it completes.
func TestExecutionStoppedByAPerson(t *testing.T) {
	bubble(t, func(w *world) {
		id := w.downloading()
		job := ingest.JobID(id, 1)
		_, err := sfn.NewFromConfig(w.Config()).StopExecution(w.Context(), &sfn.StopExecutionInput{
			ExecutionArn: aws.String(w.execution(job)), Cause: aws.String("tired of it")})
		w.must(err)
		began := time.Now()
		j := w.ended(job, "Failed")
		if !strings.Contains(j.Message, "stopped its execution") || !strings.Contains(j.Message, "tired of it") {
			w.Errorf("the stopped job says %q", j.Message)
		}
		if took := time.Since(began); took > 10*time.Minute {
			w.Errorf("the job failed after %s", took)
		}
		w.src.open()
		w.ended(ingest.JobID(id, 2), "Completed")
		_, err = w.api.ActOnJob(w.Context(), job, v1.Action{Action: "requeue", Reason: "it was a mistake"}, "")
		w.must(err)
		w.ended(job, "Completed")
		_, err = w.api.Act(w.Context(), ingest.Target{Kind: ingest.TargetBatch, ID: id},
			v1.Action{Action: "update-report", Reason: "all is well"}, "")
		w.must(err)
		w.until("the batch is reported again", func() bool { return w.batch(id).State == "Completed" })
		w.stored(w.batch(id))
	})
}

// TestOperatorFailsAJobThatDownloads: a person fails a job. The system stops its execution, and what the worker then
// reports has no effect.
func TestOperatorFailsAJobThatDownloads(t *testing.T) {
	bubble(t, func(w *world) {
		id := w.downloading()
		job := ingest.JobID(id, 1)
		arn := w.execution(job)
		_, err := w.api.ActOnJob(w.Context(), job, v1.Action{Action: "fail", Reason: "sent by mistake"}, "")
		w.must(err)
		w.until("its execution is stopped", func() bool {
			x, err := sfn.NewFromConfig(w.Config()).DescribeExecution(w.Context(),
				&sfn.DescribeExecutionInput{ExecutionArn: &arn})
			return err == nil && x.Status == types.ExecutionStatusAborted && aws.ToString(x.Error) == "Superseded"
		})
		w.src.open()
		w.ended(ingest.JobID(id, 2), "Completed")
		w.until("the batch ends", func() bool { return w.batch(id).State == "Failed" })
		if j := w.job(id, 1); j.State != "Failed" || j.Version != 0 || !strings.Contains(j.Message, "sent by mistake") {
			w.Errorf("the job is %+v", j)
		}
	})
}

// TestFaultsAtOnce: while jobs download, their workers die, the first message of each later stage is lost, an
// execution is stopped by a person and the scheduler misses five minutes.
func TestFaultsAtOnce(t *testing.T) {
	bubble(t, func(w *world) {
		id := w.downloading()
		for _, st := range ingest.Stages[3:] {
			w.Lose(st.Name, 1)
		}
		if n := w.Kill(fnStage + "download"); n != 2 {
			w.Errorf("%d workers were killed", n)
		}
		rules := eventbridge.NewFromConfig(w.Config())
		_, err := rules.DisableRule(w.Context(), &eventbridge.DisableRuleInput{Name: aws.String(ruleMinute)})
		w.must(err)
		_, err = sfn.NewFromConfig(w.Config()).StopExecution(w.Context(), &sfn.StopExecutionInput{
			ExecutionArn: aws.String(w.execution(ingest.JobID(id, 1))), Cause: aws.String("tired of it")})
		w.must(err)
		w.src.open()
		time.Sleep(5 * time.Minute)
		_, err = rules.EnableRule(w.Context(), &eventbridge.EnableRuleInput{Name: aws.String(ruleMinute)})
		w.must(err)
		w.ended(ingest.JobID(id, 1), "Failed")
		_, err = w.api.ActOnJob(w.Context(), ingest.JobID(id, 1), v1.Action{Action: "requeue", Reason: "go on"}, "")
		w.must(err)
		w.ended(ingest.JobID(id, 2), "Completed")
		w.ended(ingest.JobID(id, 1), "Completed")
		w.stored(w.completed(id))
		if n := w.repairs(ingest.JobID(id, 1)) + w.repairs(ingest.JobID(id, 2)); n < 3 {
			w.Errorf("%d repairs", n)
		}
	})
}

// TestPoisonIsADeadLetter: a function that always dies gets each message as often as its queue says; then the
// message is a dead letter. When the function works again, so does the job.
func TestPoisonIsADeadLetter(t *testing.T) {
	bubble(t, func(w *world) {
		times := ingest.Timings["production"].Times(ingest.Stages[4])
		died, off := w.KillAt(Point{Function: fnStage + "store"})
		id := w.two()
		dead, err := w.queues.named(queueDead)
		w.must(err)
		began := time.Now()
		w.until("a dead letter", func() bool { return dead.counts()["ApproximateNumberOfMessages"] != "0" })
		took, least := time.Since(began), time.Duration(times.Receives)*times.Visibility
		if took < least || took > least+30*time.Minute {
			w.Errorf("the first dead letter came after %s, expected were %s", took, least)
		}
		if n := died(); n < times.Receives {
			w.Errorf("the function died %d times", n)
		}
		got, err := sqs.NewFromConfig(w.Config()).ReceiveMessage(w.Context(), &sqs.ReceiveMessageInput{
			QueueUrl: aws.String(QueueURL(queueDead))})
		w.must(err)
		if len(got.Messages) != 1 || !strings.Contains(*got.Messages[0].Body, fmt.Sprintf("%q", id[:10])[1:10]) ||
			!strings.Contains(*got.Messages[0].Body, `"state":"Storing"`) {
			w.Errorf("the dead letter is %+v", got.Messages)
		}
		off()
		w.stored(w.completed(id))
	})
}

// TestConsumersDie: the function of the consumers dies before each seventh of its writes. What consumers have made of
// the events in the end is what they make of them without that: nothing is left out, and nothing counted twice.
func TestConsumersDie(t *testing.T) {
	want, _ := consumed(t, 0)
	got, died := consumed(t, 7)
	if got != want {
		t.Errorf("after %d deaths\n%s\nwithout\n%s", died, got, want)
	}
	if died < 10 || !strings.Contains(want, "Objects:2") || !strings.Contains(want, "Completed:2") {
		t.Errorf("the function died %d times; made was %s", died, want)
	}
	t.Logf("the function died %d times", died)
}

// consumed is what consumers have made of a batch of two objects, when their function dies before each nth write.
func consumed(t *testing.T, each int) (made string, died int) {
	t.Helper()
	bubble(t, func(w *world) {
		var points []func() int
		for call := each; each > 0 && call < 700; call += each {
			met, _ := w.KillAt(Point{Function: fnConsumer, Call: call})
			points = append(points, met)
		}
		batch := w.completed(w.two())
		time.Sleep(2 * time.Hour)
		counts, err := w.api.StatisticsOf(w.Context(), "maps", "", "")
		w.must(err)
		made = fmt.Sprintf("%+v", counts.EventCounts)
		for n := 1; n <= 2; n++ {
			h, err := w.api.History(w.Context(), w.job(batch.ID, n).Identifiers.Primary)
			w.must(err)
			var happened []string
			for _, e := range h {
				happened = append(happened, e.Type)
			}
			slices.Sort(happened)
			made += "\n" + strings.Join(happened, " ")
		}
		for _, met := range points {
			died += met()
		}
	})
	return made, died
}
