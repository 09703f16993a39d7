package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/app/boot"
	"archivist/pkg/app/crash"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
)

// TestStoreSurvivesDeathBeforeEachWrite: the function of Store dies before each of its
// writes, each time in another job. Messages that come back and the sweep bring every
// job to its end.
func TestStoreSurvivesDeathBeforeEachWrite(t *testing.T) {
	begin(t)
	const writes = 18 // more than Store makes for one file; the last ones find nothing to kill
	src := newSource(t)
	dir := t.TempDir()
	var all []crash.Point
	for n := 1; n <= writes; n++ {
		all = append(all, crash.Point{Stage: "store", LocalID: fmt.Sprintf("kill-%d", n), Write: int64(n),
			Marker: filepath.Join(dir, fmt.Sprint(n))})
	}
	setCrashes(t, all)
	jobs := map[int]string{}
	for n := 1; n <= writes; n++ {
		_, jobs[n] = submit(t, src.put(fmt.Sprintf("/kill-%d.txt", n), fmt.Appendf(nil, "content of %d", n)), "file",
			fmt.Sprintf("kill-%d", n))
	}
	died := 0
	var done []v1.Job
	for n := 1; n <= writes; n++ {
		j := ends(t, jobs[n], "Completed", soon)
		done = append(done, j)
		if got := string(content(t, j, fmt.Sprintf("producer/kill-%d.txt", n))); got != fmt.Sprintf("content of %d",
			n) {
			t.Errorf("job %d stored %q", n, got)
		}
		if _, err := os.Stat(filepath.Join(dir, fmt.Sprint(n))); err == nil {
			died++
		}
	}
	if died < 15 {
		t.Errorf("the function died %d times; Store makes more writes than that", died)
	}
	t.Logf("Store died before %d different writes", died)
	validObjects(t, done...)
}

// deaths are where processes end, for the tests that are under way.
var deaths struct {
	sync.Mutex
	of map[string][]crash.Point // by test
}

// setCrashes says where processes end until the end of the test.
func setCrashes(t *testing.T, points []crash.Point) {
	t.Helper()
	write := func(points []crash.Point) {
		deaths.Lock()
		defer deaths.Unlock()
		if deaths.of == nil {
			deaths.of = map[string][]crash.Point{}
		}
		deaths.of[t.Name()] = points
		data, err := json.Marshal(slices.Concat(slices.Collect(maps.Values(deaths.of))...))
		if err == nil {
			err = os.WriteFile(crashes, data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { write(nil) })
	write(points)
}

// TestJobsSurviveSimultaneousFaults: functions are killed while jobs download, the first
// message of each stage is lost, an execution is stopped by hand, and the scheduler
// misses five ticks. Every job ends as it should.
func TestJobsSurviveSimultaneousFaults(t *testing.T) {
	begin(t)
	before := repairs(t)
	src := newSource(t)
	dropped := dropFirst(t)
	jobs, release := heldJobs(t, src, 6)
	started := time.Now()
	atOnce := 3
	if onCore() {
		atOnce = 1 // its queues give their functions one message after another
	}
	until(t, "jobs download", soon, func() bool {
		return inState(t, jobs, "Downloading") >= atOnce && src.underWay() >= atOnce
	})
	if killed := killFunctions(t); killed < atOnce {
		t.Errorf("%d functions were killed", killed)
	}
	ticking.Store(false)
	time.AfterFunc(5*tickEach, func() { ticking.Store(true) })

	stopped := ""
	if !onCore() { // it does not stop an execution that waits for its token
		stopped = stopOne(t, jobs)
	}
	release()
	var done []v1.Job
	for i, job := range jobs {
		if job == stopped {
			failedByHand(t, job)
		}
		j := ends(t, job, "Completed", 2*soon)
		if got := content(t, j, fmt.Sprintf("producer/big-%d.bin", i)); len(got) != 200_000 {
			t.Errorf("job %d stored %d bytes", i, len(got))
		}
		done = append(done, j)
	}
	for stage, ok := range dropped() {
		if !ok {
			t.Errorf("no message of %s was dropped", stage)
		}
	}
	n := repairs(t) - before
	if n < 1 {
		t.Errorf("the repair metric rose by %v", n)
	}
	t.Logf("%v repairs, all jobs ended after %s", n, time.Since(started).Round(time.Second))
	validObjects(t, done...)
}

// heldJobs submits n files whose second half is held back until the returned function is
// called.
func heldJobs(t *testing.T, src *source, n int) (jobs []string, release func()) {
	t.Helper()
	var all []func()
	for i := range n {
		path := fmt.Sprintf("/big-%d.bin", i)
		src.put(path, []byte(strings.Repeat(fmt.Sprint(i), 200_000)))
		all = append(all, src.hold(path))
		_, job := submit(t, src.URL+path, "file", fmt.Sprintf("faults-%d", i))
		jobs = append(jobs, job)
	}
	return jobs, func() {
		for _, f := range all {
			f()
		}
	}
}

// failedByHand looks at a job whose execution a person stopped, and requeues it.
func failedByHand(t *testing.T, job string) {
	t.Helper()
	j := ends(t, job, "Failed", soon)
	if !strings.Contains(j.Message, "stopped its execution") || !strings.Contains(j.Message, "tired of it") {
		t.Errorf("the stopped job says %q", j.Message)
	}
	if err := requeue(t, job); err != nil {
		t.Fatal(err)
	}
}

func inState(t *testing.T, jobs []string, state string) (n int) {
	for _, j := range jobs {
		if jobOf(t, j).State == state {
			n++
		}
	}
	return n
}

// dropFirst takes the first message of every stage of a job out of its queue
// before its function can see it.
func dropFirst(t *testing.T) (dropped func() map[string]bool) {
	functions := lambda.NewFromConfig(cfg)
	maps, err := functions.ListEventSourceMappings(t.Context(), &lambda.ListEventSourceMappingsInput{})
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	t.Cleanup(wg.Wait) // t.Context ends before
	done := map[string]bool{}
	for _, st := range ingest.Stages {
		url := out.All["queue"+st.Name]
		name := url[strings.LastIndex(url, "/")+1:]
		for _, m := range maps.EventSourceMappings {
			if !strings.HasSuffix(aws.ToString(m.EventSourceArn), ":"+name) {
				continue
			}
			done[st.Name] = false
			enable(t, functions, *m.UUID, false)
			wg.Go(func() {
				ok := drop(t, url)
				enable(t, functions, *m.UUID, true)
				mu.Lock()
				done[st.Name] = ok
				mu.Unlock()
			})
		}
	}
	if len(done) != len(ingest.Stages) {
		t.Fatalf("%d of %d stages have a queue and a function", len(done), len(ingest.Stages))
	}
	return func() map[string]bool {
		mu.Lock()
		defer mu.Unlock()
		return done
	}
}

func enable(t *testing.T, c *lambda.Client, uuid string, on bool) {
	if _, err := c.UpdateEventSourceMapping(context.WithoutCancel(t.Context()),
		&lambda.UpdateEventSourceMappingInput{UUID: &uuid, Enabled: &on}); err != nil {
		t.Error(err)
	}
}

func drop(t *testing.T, url string) bool {
	for t.Context().Err() == nil {
		got, err := queues().ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &url, WaitTimeSeconds: 5,
			MaxNumberOfMessages: 1})
		if err != nil {
			return false
		}
		for _, m := range got.Messages {
			_, err := queues().DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: &url,
				ReceiptHandle: m.ReceiptHandle})
			return err == nil
		}
	}
	return false
}

// worker is a process of a function of this stack: its folder in /proc, and its stage ("" of
// those that have none).
type worker struct{ dir, stage string }

func functionsOf(t *testing.T) (found []worker) {
	t.Helper()
	procs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range procs {
		exe, err := os.Readlink(p + "/exe")
		if err != nil || !strings.HasPrefix(filepath.Base(exe), "bootstrap") {
			continue
		}
		env, err := os.ReadFile(p + "/environ")
		if err != nil || !strings.Contains(string(env), boot.EnvTable+"="+out.TableName) ||
			!strings.Contains(string(env), fmt.Sprint(stack.Port)) {
			continue
		}
		_, stage, _ := strings.Cut(string(env), boot.EnvStage+"=")
		stage, _, _ = strings.Cut(stage, "\x00")
		found = append(found, worker{p, stage})
	}
	return found
}

// killFunctions ends every process that serves a function of this stack, with
// SIGKILL.
func killFunctions(t *testing.T) (killed int) {
	t.Helper()
	for _, p := range functionsOf(t) {
		pid, err := strconv.Atoi(filepath.Base(p.dir))
		if err != nil {
			t.Fatal(err)
		}
		if syscall.Kill(pid, syscall.SIGKILL) == nil {
			killed++
		}
	}
	return killed
}

// executionsOf is how many executions a job has had.
func executionsOf(t *testing.T, job string) (n int64) {
	t.Helper()
	for _, e := range eventsOf(t, job) {
		var c queue.Change
		decode(t, e, &c)
		n = max(n, c.Exec)
	}
	return n
}

// executionOf is the ARN of a job's newest execution.
func executionOf(t *testing.T, job string) string {
	t.Helper()
	name := queue.ExecutionName(job, executionsOf(t, job))
	return strings.Replace(out.All["jobMachine"], ":stateMachine:", ":execution:", 1) + ":" + name
}

// stopOne stops the execution of a job that downloads, as a person would in the
// console.
func stopOne(t *testing.T, jobs []string) (stopped string) {
	t.Helper()
	for _, id := range jobs {
		if jobOf(t, id).State != "Downloading" {
			continue
		}
		arn := executionOf(t, id)
		if _, err := machines().StopExecution(t.Context(), &sfn.StopExecutionInput{ExecutionArn: &arn,
			Cause: aws.String("tired of it")}); err != nil {
			t.Fatal(err)
		}
		return id
	}
	t.Fatal("no job downloads")
	return ""
}
