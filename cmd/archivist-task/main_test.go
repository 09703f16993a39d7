package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"archivist/pkg/kernel/bucket/buckettest"
	"archivist/pkg/revisions/runner"
	"archivist/pkg/revisions/workflow"
)

// envMain makes the test's binary the program.
const envMain = "ARCHIVIST_TASK_TEST_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(envMain) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

const prefix = "runs/maps/7/build/000001-e1/"

// container is a process of the program, with the variables that a container on Fargate has, a bucket and a secret.
type container struct {
	*testing.T
	s3     *buckettest.Twin
	cmd    *exec.Cmd
	output bytes.Buffer
}

// start starts the program for a task in an image that is made for some command.
func start(t *testing.T, task workflow.Task, made ...string) *container {
	t.Helper()
	t.Parallel()
	c := &container{T: t, s3: buckettest.New("")}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".GetSecretValue") {
			_, _ = w.Write([]byte(`{"SecretString": "correct horse"}`))
			return
		}
		c.s3.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	task.Name, task.Image = "build", "registry.example.org/vips:8.15"
	if task.Timeout == 0 {
		task.Timeout = time.Minute
	}
	job := runner.Job{ID: "maps/7/build/1", Archive: "maps", Revision: 7, Attempt: 1, Task: task, Bucket: "work",
		Prefix: prefix, Token: "token-of-the-run"}
	data, err := json.Marshal(job)
	if err != nil {
		t.Fatal(err)
	}
	c.put(server.URL, runner.JobKey, data)
	c.cmd = exec.Command(os.Args[0], made...)
	c.cmd.Env = []string{envMain + "=1", "PATH=" + os.Getenv("PATH"), "TMPDIR=" + filepath.Join(t.TempDir(), "new"),
		"VIPS_CONCURRENCY=2", "ARCHIVIST_WORK_BUCKET=work", "ARCHIVIST_JOB=" + prefix + runner.JobKey,
		"AWS_ENDPOINT_URL=" + server.URL, "AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=test",
		"AWS_SECRET_ACCESS_KEY=hidden", "ECS_CONTAINER_METADATA_URI_V4=http://169.254.170.2/v4/x"}
	c.cmd.Stdout, c.cmd.Stderr = &c.output, &c.output
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.cmd.Process.Kill() })
	return c
}

// put stores an object below the prefix of the job.
func (c *container) put(url, key string, data []byte) {
	c.Helper()
	r, err := http.NewRequestWithContext(c.Context(), http.MethodPut, url+"/work/"+prefix+key, bytes.NewReader(data))
	if err != nil {
		c.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil || answer.StatusCode != http.StatusOK {
		c.Fatalf("%v, %v", answer, err)
	}
	_ = answer.Body.Close()
}

// says waits until the program's log in the bucket has a text.
func (c *container) says(text string) {
	c.Helper()
	for end := time.Now().Add(5 * time.Minute); !strings.Contains(c.log(), text); {
		if time.Now().After(end) {
			c.Fatalf("it does not say %q, but %q\n%s", text, c.log(), &c.output)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// log is what is stored of the output.
func (c *container) log() string {
	var all strings.Builder
	for _, name := range c.s3.Names("work/" + prefix + runner.LogFolder) {
		data, _ := c.s3.Object(name)
		var p runner.Part
		for dec := json.NewDecoder(bytes.NewReader(data)); dec.Decode(&p) == nil; {
			all.WriteString(p.Text)
		}
	}
	return all.String()
}

// ends waits for the end of the program: its exit code is 0. The result is that in the bucket.
func (c *container) ends(end string, exit int, reason string) (r runner.Result) {
	c.Helper()
	err := c.cmd.Wait()
	data, _ := c.s3.Object("work/" + prefix + runner.ResultKey)
	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	if err != nil || r.End != end || r.Exit != exit || r.Reason != reason {
		c.Fatalf("%v, and %+v; want %s with %d, %q; the output:\n%s\n%s", err, r, end, exit, reason, c.log(), &c.output)
	}
	return r
}

// TestSuccess: a task has the variables of the image, of its definition and its secrets, and none of those by which
// the program has its role. What it makes is kept.
func TestSuccess(t *testing.T) {
	c := start(t, workflow.Task{Shell: "sh", Env: map[string]string{"SIZE": "400"},
		Secrets: map[string]string{"PASSWORD": "archivist/tasks/maps/x"}, Script: `
			echo "$VIPS_CONCURRENCY $SIZE $ARCHIVIST_REVISION $PASSWORD" >&2
			echo "leaked: $(env | grep -c -e ^AWS_ -e ^ECS_ -e ^ARCHIVIST_JOB -e ^ARCHIVIST_WORK)"
			echo made >"$ARCHIVIST_OUTPUTS/a.txt"`})
	r := c.ends(runner.Succeeded, 0, "")
	made, _ := c.s3.Object("work/" + prefix + runner.OutputFolder + "a.txt")
	if said := c.log(); !strings.Contains(said, "2 400 7 ***\n") || !strings.Contains(said, "leaked: 0\n") ||
		string(made) != "made\n" || len(r.Outputs) != 1 {
		t.Errorf("it said %q, and made %q: %+v", said, made, r.Outputs)
	}
}

// TestMade: without command and script, what the image is made for is run.
func TestMade(t *testing.T) {
	c := start(t, workflow.Task{}, "sh", "-c", `echo "made for $0"; exit 3`, "this")
	c.ends(runner.Failed, 3, "exit code 3")
	if c.log() != "made for this\n" {
		t.Errorf("it said %q", c.log())
	}
}

// TestNothingToRun: an image that is made for nothing, too, is said to be.
func TestNothingToRun(t *testing.T) {
	c := start(t, workflow.Task{})
	c.ends(runner.Broken, -1,
		"the task has neither a command nor a script, and the image registry.example.org/vips:8.15 has no CMD")
}

func TestTimeOut(t *testing.T) {
	c := start(t, workflow.Task{Command: "echo begun; exec sleep 60", Timeout: time.Second})
	c.ends(runner.TimedOut, -1, "timed out after 1s")
}

// TestCancel: the program looks whether its run is cancelled.
func TestCancel(t *testing.T) {
	c := start(t, workflow.Task{Command: "echo begun; exec sleep 60"})
	c.says("begun")
	url := strings.TrimPrefix(c.cmd.Env[6], "AWS_ENDPOINT_URL=")
	c.put(url, runner.CancelKey, []byte("the page was wrong"))
	c.ends(runner.Cancelled, -1, "the page was wrong")
}

// TestStopped: a container that is stopped, as Step Functions does with one whose execution is stopped, ends its
// processes, and says that.
func TestStopped(t *testing.T) {
	c := start(t, workflow.Task{Shell: "sh", Script: "echo begun; trap 'echo asked; exit 0' TERM; sleep 60 & wait"})
	c.says("begun")
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	c.ends(runner.Broken, 0, "the runner was asked to stop")
	if c.log() != "begun\nasked\n" {
		t.Errorf("it said %q", c.log())
	}
}

// TestKilled: a container that is killed leaves the claim and the log, and no result.
func TestKilled(t *testing.T) {
	c := start(t, workflow.Task{Command: "echo begun; exec sleep 5"})
	c.says("begun")
	if err := c.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := c.cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != -1 {
		t.Fatal(err)
	}
	_, claimed := c.s3.Object("work/" + prefix + runner.StartedKey)
	_, ended := c.s3.Object("work/" + prefix + runner.ResultKey)
	if !claimed || ended {
		t.Errorf("a claim %v, a result %v", claimed, ended)
	}
}

// TestNoJob: without its job the program fails, and its log says why.
func TestNoJob(t *testing.T) {
	c := &container{T: t}
	_, buckets := buckettest.Open(t, "work")
	c.cmd = exec.Command(os.Args[0])
	c.cmd.Env = []string{envMain + "=1", "ARCHIVIST_WORK_BUCKET=work", "ARCHIVIST_JOB=runs/none/job",
		fmt.Sprint("AWS_ENDPOINT_URL=", *buckets[0].Client.Options().BaseEndpoint), "AWS_REGION=us-east-1",
		"AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test", "TMPDIR=" + t.TempDir()}
	out, err := c.cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "the job runs/none/job: ") ||
		!strings.Contains(string(out), "there is no such object") {
		t.Errorf("%v: %s", err, out)
	}
}
