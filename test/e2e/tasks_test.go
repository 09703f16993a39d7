package e2e

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/revisions/runner"
)

// password is the value of the secret that the tasks of the tests may name.
const password = "a-password-of-the-tests"

// scripts are tasks that run at once, one for each promise about runs.
const scripts = `
- name: live
  script: |
    echo begun; echo $$ >{DIR}/live
    until [ -e {DIR}/goon ]; do sleep 0.1; done
    echo "to stderr" >&2
- name: slow
  timeout: 2s
  script: echo $$ >{DIR}/slow; echo partial >"$ARCHIVIST_OUTPUTS/partial"; while :; do sleep 0.1; done
- name: fails
  command: echo "there is no such sheet" >&2; exit 3
- name: again
  retries: {attempts: 3, backoff: 1s}
  command: echo "try $ARCHIVIST_ATTEMPT"; [ "$ARCHIVIST_ATTEMPT" = 3 ]
- name: makes
  outputs: ["*.txt"]
  script: |
    mkdir "$ARCHIVIST_OUTPUTS/a"; cat "$ARCHIVIST_CHECKOUT/sheet.txt" >"$ARCHIVIST_OUTPUTS/a/sheet"
    echo "$ARCHIVIST_ARCHIVE $ARCHIVIST_REVISION $ARCHIVIST_TASK $ARCHIVIST_BASE_REVISION" >run.txt; echo x >other
- name: tells
  secrets: {PASSWORD: archivist/tasks/scripts/e2e}
  command: echo "it is $PASSWORD and $ARCHIVIST_RUN_TOKEN."; echo "$PASSWORD" | sed s/-of/-OF/ >{DIR}/told
- name: asks
  secrets: {PASSWORD: archivist/tasks/scripts/none}
  command: echo not run
- name: leaves
  script: |
    echo "$PWD" "$TMPDIR" "$ARCHIVIST_CHECKOUT" "$ARCHIVIST_OUTPUTS" >{DIR}/folders
    echo x >work; echo x >"$TMPDIR/t"; setsid sleep 600 & echo $! >{DIR}/left
- name: looks
  env: {ENDPOINT: "%[1]s", WORK: "%[2]s", STORAGE: "%[3]s", TABLE: "%[4]s"}
  script: |
    env >"$ARCHIVIST_OUTPUTS/env"
    for at in "$WORK/runs/" "$WORK/runs/scripts/1/checkout.tar.gz" "$STORAGE/0=ocfl_1.1"; do
      curl -sS -o answer -w '%%{http_code}\n' "$ENDPOINT/$at"
    done
    curl -sS -H 'X-Amz-Target: DynamoDB_20120810.Scan' -H 'Content-Type: application/x-amz-json-1.0' \
      -d "{\"TableName\": \"$TABLE\"}" "$ENDPOINT/"
- name: dies
  retries: {attempts: 2, backoff: 1s}
  script: |
    echo "attempt $ARCHIVIST_ATTEMPT"; sleep 2
    if [ "$ARCHIVIST_ATTEMPT" = 1 ]; then echo $$ >{DIR}/orphan; kill -KILL $PPID; sleep 600; fi
- name: frozen
  command: echo $PPID >{DIR}/runner; echo $$ >{DIR}/frozen; kill -STOP $PPID; sleep 60
- name: timed
  triggers: [{schedule: {cron: "* * * * *"}}]
  command: echo "on time"
- name: waits
  env: {API: "%[5]s", PROGRAM: "%[6]s", TOKEN: "%[7]s"}
  script: |
    curl -sS -o answer -w '%%{http_code}\n' -H "Archivist-Run: $ARCHIVIST_RUN_TOKEN" \
      -H "Authorization: Bearer $TOKEN" \
      "$API/v1/archives/$ARCHIVIST_ARCHIVE/revisions/$ARCHIVIST_REVISION"
    export ARCHIVIST_API="$API" ARCHIVIST_TOKEN="$TOKEN"
    "$PROGRAM" archive revision show "$ARCHIVIST_ARCHIVE/$ARCHIVIST_REVISION" --watch 2>&1
    echo "ended with $?"
`

// TestTaskRuns: tasks are run as docs/revisions.md says.
func TestTaskRuns(t *testing.T) {
	begin(t)
	secret(t, "archivist/tasks/scripts/e2e", password)
	a := newArchive(t, "scripts")
	program, err := command()
	if err != nil {
		t.Fatal(err)
	}
	n := a.begin(fmt.Sprintf(scripts, out.EndpointURL, out.WorkBucket, out.StorageBucket, out.TableName, out.APIURL,
		program, tokens.admin))
	frozen := a.freezes(a.id(n, "frozen"))
	a.live(a.id(n, "live"))
	for name, state := range map[string]string{"slow": "failed", "fails": "failed", "again": "succeeded",
		"makes": "succeeded", "tells": "succeeded", "leaves": "succeeded", "looks": "succeeded",
		"dies": "succeeded", "waits": "succeeded"} {
		a.becomes(a.id(n, name), state)
	}
	a.gone(a.pid("slow"))
	a.tried(a.id(n, "slow"), "timed-out: timed out after 2s")
	a.tried(a.id(n, "fails"), "failed: exit code 3")
	a.tried(a.id(n, "again"), "failed: exit code 1", "failed: exit code 1", "succeeded: ")
	for attempt, text := range []string{"try 3\n", "try 1\n", "try 2\n", "try 3\n"} { // 0 is the newest
		a.logged(a.id(n, "again"), attempt, text)
	}
	a.logged(a.id(n, "fails"), 0, "there is no such sheet\n")
	a.cancelledInTime(a.id(n, "frozen"), frozen)
	t.Run("outputs", func(t *testing.T) { a.on(t).kept(n) })
	t.Run("secrets", func(t *testing.T) { a.on(t).masked(n) })
	t.Run("policies", func(t *testing.T) { a.on(t).refused(a.id(n, "asks")) })
	t.Run("scratch", func(t *testing.T) { a.on(t).left() })
	t.Run("credentials", func(t *testing.T) { a.on(t).looked(a.id(n, "looks")) })
	t.Run("death", func(t *testing.T) { a.on(t).died(a.id(n, "dies")) })
	waited := a.log(a.id(n, "waits"), 0)
	if !strings.HasPrefix(waited, "409\n") || !strings.Contains(waited, "would wait for itself") ||
		strings.Contains(waited, "ended with 0") {
		t.Errorf("a task that waits for its own revision: %q", waited)
	}
	a.timed(n)
}

// timed waits for the run of a task that is started each minute.
func (a *versioned) timed(n int64) {
	a.Helper()
	id := a.id(n, "timed") + "/1"
	if got := a.becomes(id, "succeeded"); got.Trigger != "schedule" {
		a.Errorf("the run by schedule is %+v", got)
	}
	a.logged(id, 0, "on time\n")
}

// secret makes a secret.
func secret(t *testing.T, name, value string) {
	t.Helper()
	if _, err := secretsmanager.NewFromConfig(cfg).CreateSecret(t.Context(),
		&secretsmanager.CreateSecretInput{Name: &name, SecretString: &value}); err != nil {
		t.Fatal(err)
	}
}

// freezes cancels a task whose runner cannot go on, so that nobody sees that. It returns the process of the runner.
func (a *versioned) freezes(id string) (runner int) {
	a.Helper()
	task := a.process("frozen")
	runner = a.pid("runner")
	a.Cleanup(func() { // the runner, and the group of the task
		_ = syscall.Kill(runner, syscall.SIGKILL)
		_ = syscall.Kill(-task, syscall.SIGKILL)
	})
	until(a.T, "the runner is frozen", soon, func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", runner))
		return err == nil && strings.Contains(string(stat), ") T ")
	})
	act := v1.TaskAction{Action: "cancel", Reason: "it hangs"}
	if _, err := client.ActOnTask(a.Context(), id, act, ""); err != nil {
		a.Fatal(err)
	}
	return runner
}

// cancelledInTime looks at a run that could not see that it was cancelled: after the grace its execution is stopped.
func (a *versioned) cancelledInTime(id string, runner int) {
	a.Helper()
	got := a.becomes(id, "cancelled")
	if got.Reason != "it hangs; it did not end by itself" || len(got.Attempts) != 1 {
		a.Errorf("it is %+v", got)
	}
	if !onCore() { // LocalStack's core ends an execution when its function answers, and this one does not
		a.stopped(got.Attempts[0].Execution)
	}
	if !alive(runner) {
		a.Error("the runner could have seen that it was cancelled")
	}
}

// live looks at the output of a task while it runs. Its end waits for us.
func (a *versioned) live(id string) {
	a.Helper()
	pid := a.process("live")
	until(a.T, "the output is there while the task runs", soon, func() bool { return a.log(id, 0) == "begun\n" })
	if got := a.becomes(id, "running"); !alive(pid) {
		a.Fatalf("it has ended: %+v", got)
	}
	a.tells("goon")
	a.becomes(id, "succeeded")
	page, err := client.TaskLog(a.Context(), id, 0, "")
	if err != nil || !page.Ended || len(page.Parts) != 2 || page.Parts[1].Stream != "stderr" ||
		page.Parts[1].Text != "to stderr\n" {
		a.Errorf("in the end the log is %+v, %v", page, err)
	}
}

// tried compares the attempts of a task with how they should have ended: "END: REASON".
func (a *versioned) tried(id string, want ...string) {
	a.Helper()
	got, err := client.Task(a.Context(), id)
	if err != nil {
		a.Fatal(err)
	}
	var all []string
	for i, x := range got.Attempts {
		all = append(all, x.End+": "+x.Reason)
		if x.Attempt != i+1 || x.Began == "" || x.Ended < x.Began {
			a.Errorf("%s: the attempt %d is %+v", id, i+1, x)
		}
	}
	if !slices.Equal(all, want) {
		a.Errorf("the attempts of %s ended %q; expected %q", id, all, want)
	}
}

// logged compares the beginning of the output of an attempt.
func (a *versioned) logged(id string, attempt int, want string) {
	a.Helper()
	if got := a.log(id, attempt); !strings.HasPrefix(got, want) {
		a.Errorf("attempt %d of %s says %q; expected %q", attempt, id, got, want)
	}
}

// kept compares what tasks have left: by the API, and in the bucket.
func (a *versioned) kept(n int64) {
	id := a.id(n, "makes")
	a.leaves(id, map[string]string{"a/sheet": "0", "run.txt": fmt.Sprintf("scripts %d makes 0\n", n)})
	a.leaves(a.id(n, "slow"), map[string]string{"partial": "partial\n"})
	a.leaves(a.id(n, "fails"), map[string]string{})
}

func (a *versioned) leaves(id string, want map[string]string) {
	a.Helper()
	got, err := client.TaskOutputs(a.Context(), id, 0)
	if err != nil || len(got) != len(want) {
		a.Errorf("%s has left %+v, %v", id, got, err)
	}
	for _, o := range got {
		body, err := client.TaskOutput(a.Context(), id, 0, o.Path)
		if err != nil {
			a.Fatal(err)
		}
		data, err := io.ReadAll(body)
		if err = errors.Join(err, body.Close()); err != nil {
			a.Fatal(err)
		}
		digest := sha256.Sum256(data)
		if string(data) != want[o.Path] || o.SHA256 != hex.EncodeToString(digest[:]) || o.Size != int64(len(data)) {
			a.Errorf("%s: %+v is %q; expected %q", id, o, data, want[o.Path])
		}
		stored := a.stored(id)
		if !slices.ContainsFunc(slices.Collect(maps.Keys(stored)), func(key string) bool {
			return strings.HasSuffix(key, "/outputs/"+o.Path) && stored[key] == string(data)
		}) {
			a.Errorf("the bucket does not have %s", o.Path)
		}
	}
}

// stored are the objects of all attempts of a task, or of a whole archive.
func (a *versioned) stored(id string) map[string]string {
	a.Helper()
	all := map[string]string{}
	pages := s3.NewListObjectsV2Paginator(buckets(), &s3.ListObjectsV2Input{Bucket: &out.WorkBucket,
		Prefix: aws.String(runner.Prefix + id + "/")})
	for pages.HasMorePages() {
		page, err := pages.NextPage(a.Context())
		if err != nil {
			a.Fatal(err)
		}
		for _, o := range page.Contents {
			got, err := buckets().GetObject(a.Context(), &s3.GetObjectInput{Bucket: &out.WorkBucket, Key: o.Key})
			if err != nil {
				a.Fatal(err)
			}
			data, err := io.ReadAll(got.Body)
			if err = errors.Join(err, got.Body.Close()); err != nil {
				a.Fatal(err)
			}
			all[*o.Key] = string(data)
		}
	}
	return all
}

// masked looks for a secret, and for the token of a run, in all that is stored and logged.
func (a *versioned) masked(n int64) {
	if got := a.log(a.id(n, "tells"), 0); got != "it is *** and ***.\n" {
		a.Errorf("the log says %q", got)
	}
	if got := a.lines("told"); !slices.Equal(got, []string{"a-password-OF-the-tests"}) {
		a.Errorf("the task got the secret %q", got)
	}
	objects := a.stored(a.name)
	if len(objects) < 20 {
		a.Fatalf("the archive has %d objects", len(objects))
	}
	for key, text := range objects {
		if strings.Contains(text, password) {
			a.Errorf("the secret is in %s", key)
		}
	}
	if onCore() {
		return // it does not answer with what functions log
	}
	for _, name := range []string{"revisions", "taskcontrol", "taskrunner"} {
		lines, err := stack.Logs(a.Context(), functionOf(a.T, name))
		if err != nil || len(lines) == 0 || strings.Contains(strings.Join(lines, "\n"), password) {
			a.Errorf("the log of %s: it has %d lines and perhaps the secret, or %v", name, len(lines), err)
		}
	}
}

// refused looks at a task that asks for a secret that is not there.
func (a *versioned) refused(id string) {
	if onCore() {
		a.Skip("LocalStack's core evaluates no policies")
	}
	got := a.becomes(id, "failed")
	if len(got.Attempts) != 1 || got.Attempts[0].End != "broken" ||
		!strings.Contains(got.Reason, "archivist/tasks/scripts/none") || strings.Contains(a.log(id, 0), "not run") {
		a.Errorf("a task that asks for a secret of others: %+v", got)
	}
}

// left looks for what a run should not leave: its folders, and a process in a session of its own.
func (a *versioned) left() {
	folders := a.lines("folders")
	if len(folders) != 4 {
		a.Fatalf("the folders are %q", folders)
	}
	for _, folder := range folders {
		if _, err := os.Stat(folder); !os.IsNotExist(err) {
			a.Errorf("%s is still there: %v", folder, err)
		}
	}
	if pid := a.pid("left"); alive(pid) {
		a.Errorf("the process %d goes on", pid)
	}
}

// looked looks at what a task can find and reach.
func (a *versioned) looked(id string) {
	const expected = " ENDPOINT WORK STORAGE TABLE PATH HOME TMPDIR LANG PWD SHLVL _ "
	for key, text := range a.stored(id) {
		if !strings.HasSuffix(key, "/outputs/env") {
			continue
		}
		for line := range strings.Lines(text) {
			name, _, _ := strings.Cut(line, "=")
			if !strings.Contains(expected, " "+name+" ") && !strings.HasPrefix(name, "ARCHIVIST_") {
				a.Errorf("the task finds %s", line)
			}
		}
	}
	got := a.log(id, 0)
	refused := strings.HasPrefix(got, "403\n403\n403\n") && strings.Contains(got, "MissingAuthenticationToken")
	if !refused && !onCore() { // LocalStack's core lets in who has no key
		a.Errorf("calls without credentials are answered %q", got)
	}
}

// died looks at a run whose function was killed: that is said, and only the task's own retry repeats it.
func (a *versioned) died(id string) {
	got, err := client.Task(a.Context(), id)
	if err != nil || len(got.Attempts) != 2 || got.Attempts[0].End != "broken" ||
		!strings.Contains(got.Attempts[0].Reason, "the runner") || got.Attempts[1].End != "succeeded" {
		a.Errorf("the task is %+v, %v", got, err)
	}
	a.logged(id, 2, "attempt 2\n")
	a.gone(a.pid("orphan"))
}
