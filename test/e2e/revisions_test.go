package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sfn/types"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/fault"
)

// TestRevisionsInAnyOrder: six revisions are notified at once in a random order, each three times. They are planned
// and run in the order of their numbers.
func TestRevisionsInAnyOrder(t *testing.T) {
	begin(t)
	a := newArchive(t, "orders")
	const definition = `
- name: index
  depends: PREV
  command: echo "$ARCHIVIST_REVISION" >>{DIR}/order
- name: count
  lock: one
  command: echo "$ARCHIVIST_REVISION" >>{DIR}/locked
`
	var want []string
	for n := range 6 {
		a.commits(definition)
		want = append(want, fmt.Sprint(n+1))
	}
	order := append(append(rand.Perm(6), rand.Perm(6)...), rand.Perm(6)...)
	var all sync.WaitGroup
	for _, i := range order {
		all.Go(func() { a.notify(int64(i + 1)) })
	}
	all.Wait()
	for n := range int64(6) {
		for _, task := range a.ended(n + 1).Plan {
			if task.State != "succeeded" || task.Run != 0 {
				t.Errorf("%s is %s: %s", task.ID, task.State, task.Reason)
			}
		}
	}
	for _, file := range []string{"order", "locked"} {
		if got := a.lines(file); !slices.Equal(got, want) {
			t.Errorf("notified as %v; %s is %v", order, file, got)
		}
	}
}

// ofTheText is the example of the requirement. Indexing waits for us in revision 3, so that the build of revision 2
// runs by then. That build ends only if it is stopped.
const ofTheText = `
- name: indexing
  depends:
    - PREV
  command: until [ "$ARCHIVIST_REVISION" != 3 ] || [ -e {DIR}/index3 ]; do sleep 0.1; done
- name: build-PDF
  depends:
    - indexing
  cancels:
    - PREV
  script: |
    echo $$ >{DIR}/build$ARCHIVIST_REVISION
    while [ "$ARCHIVIST_REVISION" = 2 ]; do echo beat; sleep 0.1; done
`

// TestRevisionsOfTheText: the sequence of the requirement. Revision 3 is notified before revision 2; the build of
// revision 2 is superseded while it runs, and stopped.
func TestRevisionsOfTheText(t *testing.T) {
	begin(t)
	a := newArchive(t, "text")
	a.commits("[]")
	a.commits(ofTheText)
	a.commits(ofTheText)
	a.notify(1)
	a.notify(3)
	until(t, "the gap is seen", soon, func() bool {
		got, err := client.Explain(t.Context(), a.name+"/3")
		_, known := client.RevisionPlan(t.Context(), a.name, 2, "") // after a while the archive is asked for it
		return err == nil && got.Root().WaitsFor == "gap" || known == nil
	})
	a.notify(2)
	build := a.process("build2")
	a.becomes(a.id(3, "indexing"), "running")
	a.tells("index3")
	newer := a.becomes(a.id(3, "build-PDF"), "succeeded")
	a.gone(build)
	older := a.becomes(a.id(2, "build-PDF"), "superseded")
	if older.By != newer.ID || len(older.Attempts) != 1 ||
		a.timeOf(newer.Attempts[0].Started).Before(a.timeOf(older.Attempts[0].Ended)) {
		t.Errorf("the older build is %+v, the newer one %+v", older, newer)
	}
	a.sequence("1/COMMIT succeeded", "2/COMMIT succeeded", "2/indexing running", "2/indexing succeeded",
		"2/build-PDF running", "3/indexing succeeded", "2/build-PDF superseded", "3/build-PDF running",
		"3/build-PDF succeeded")
	a.sequence("2/COMMIT succeeded", "3/COMMIT succeeded", "3/indexing running")
	a.sequence("2/indexing succeeded", "3/indexing running")
}

// sequence compares the times at which tasks of the archive came into states, each as "N/NAME STATE": none may be
// before the one that is named before it.
func (a *versioned) sequence(want ...string) {
	a.Helper()
	before := v1.Event{}
	for _, text := range want {
		id, state, _ := strings.Cut(text, " ")
		events, err := client.TaskEvents(a.Context(), a.name+"/"+id)
		if err != nil {
			a.Fatal(err)
		}
		i := slices.IndexFunc(events, func(e v1.Event) bool {
			var d struct{ State, To string } // of task.planned and of task.state
			if strings.HasPrefix(e.Type, "task.") {
				decode(a.T, e, &d)
			}
			return d.To == state || d.State == state
		})
		if i < 0 {
			a.Errorf("%s was never %s: %+v", id, state, events)
			return
		}
		const millis = 10 // characters of a ULID
		if before.ID != "" && events[i].ID[:millis] < before.ID[:millis] {
			a.Errorf("%s by %s, before the one that should be before: %+v", text, events[i].ID, before)
		}
		before = events[i]
	}
}

const endless = `
- name: endless
  script: |
    echo $$ >{DIR}/endless$ARCHIVIST_REVISION
    while :; do echo beat; sleep 0.1; done
- name: after
  depends: endless
- name: report
  triggers: [manual]
  command: echo "report of $ARCHIVIST_REVISION"
`

// TestRevisionsAreOperated: a person pauses an archive, cancels a task that runs, resumes, runs a task by hand, and
// deletes the archive while tasks run. Processes end with their tasks.
func TestRevisionsAreOperated(t *testing.T) {
	begin(t)
	a := newArchive(t, "acts")
	a.begin(endless)
	first := a.process("endless1")
	a.does("archive", "pause", a.name, "--reason", "the repository is moved")
	a.begin(endless)
	if got, err := client.Explain(t.Context(), a.name+"/2"); err != nil || got.Root().WaitsFor != "hold" {
		t.Errorf("revision 2 waits for %+v, %v", got, err)
	}
	waiting := a.starts("report", 1)
	if got, err := client.Explain(t.Context(), waiting); err != nil || got.Root().WaitsFor != "hold" {
		t.Errorf("%s waits for %+v, %v", waiting, got, err)
	}
	if !alive(first) {
		t.Error("what ran when the archive was paused does not go on")
	}
	a.does("archive", "task", "cancel", a.id(1, "endless"), "--reason", "it hangs")
	a.gone(first)
	got := a.becomes(a.id(1, "endless"), "cancelled")
	if got.Reason != "it hangs" || got.Attempts[0].End != "cancelled" {
		t.Errorf("it was cancelled: %+v", got)
	}
	if got := a.becomes(a.id(1, "after"), "skipped"); got.Root != a.id(1, "endless") {
		t.Errorf("what depends on it is %+v", got)
	}
	if got, err := client.Task(t.Context(), waiting); err != nil || got.State != "ready" {
		t.Errorf("while the archive is paused, the run by hand is %+v, %v", got, err)
	}
	a.does("archive", "resume", a.name, "--reason", "it was moved")
	second := a.process("endless2")
	a.becomes(waiting, "succeeded")
	a.logged(waiting, 0, "report of 1\n")
	again := a.starts("report", 2)
	a.becomes(again, "succeeded")
	a.logged(again, 0, "report of 2\n")
	a.deletedWhile(second)
}

// does runs the command, which has to succeed.
func (a *versioned) does(args ...string) string {
	a.Helper()
	text, err := a.archivist(args...)
	if err != nil {
		a.Fatalf("archivist %s: %v\n%s", strings.Join(args, " "), err, text)
	}
	return text
}

// starts runs a task by hand, twice with the same key: that is one run, whose id is returned. It is the nth run.
func (a *versioned) starts(task string, n int64) (id string) {
	a.Helper()
	for range 2 {
		text := a.does("archive", "task", "run", a.name, task, "--revision", fmt.Sprint(n),
			"--key", fmt.Sprint(task, n), "--json", "id")
		var got v1.Task
		if err := json.Unmarshal([]byte(text), &got); err != nil || id != "" && got.ID != id {
			a.Fatalf("the run is %s, before it was %s: %v", text, id, err)
		}
		id = got.ID
	}
	if want := fmt.Sprintf("%s/%d/%s/%d", a.name, n, task, n); id != want {
		a.Errorf("the run is %s; expected %s", id, want)
	}
	return id
}

// deletedWhile deletes the archive while a process of one of its tasks runs: nothing of it goes on.
func (a *versioned) deletedWhile(pid int) {
	a.Helper()
	all, err := client.Tasks(a.Context(), a.name, v1.TaskFilter{})
	if err != nil || len(all) != 8 {
		a.Fatalf("the archive has %d tasks, %v", len(all), err)
	}
	a.act("delete")
	a.gone(pid)
	until(a.T, "the archive is deleted", soon, func() bool {
		_, err := client.Archive(a.Context(), a.name)
		return fault.Is(err, fault.NotFound)
	})
	for _, task := range all {
		got, err := client.Task(a.Context(), task.ID)
		if err != nil || !isEnd(got.State) || !isEnd(task.State) && got.State != "cancelled" {
			a.Errorf("%s was %s and is %s, %v", task.ID, task.State, got.State, err)
		}
		for _, x := range got.Attempts {
			a.stopped(x.Execution)
		}
	}
	if _, err := client.NotifyRevision(a.Context(), a.name, v1.RevisionNotice{Revision: 3}, ""); !fault.Is(err,
		fault.NotFound) {
		a.Errorf("a revision of a deleted archive: %v", err)
	}
}

// stopped waits until an execution does not run.
func (a *versioned) stopped(execution string) {
	a.Helper()
	arn := aws.String(strings.Replace(out.All["taskMachine"], ":stateMachine:", ":execution:", 1) + ":" + execution)
	until(a.T, "the execution "+execution+" ends", soon, func() bool {
		got, err := machines().DescribeExecution(a.Context(), &sfn.DescribeExecutionInput{ExecutionArn: arn})
		if err != nil {
			a.Fatal(err)
		}
		return got.Status != types.ExecutionStatusRunning
	})
}

const converts = `
- name: convert
  env: {URL: "%s"}
  script: |
    set -e
    git clone -q "$URL" copy; cd copy
    echo "by revision $ARCHIVIST_REVISION" >made.txt; git add -A
    git config user.name Task; git config user.email task@example.org
    git commit -q -m "Converted" -m "Archivist-Run: $ARCHIVIST_RUN_TOKEN"
    git push -q origin HEAD:main
- name: index
  command: cat "$ARCHIVIST_CHECKOUT/made.txt" >>{DIR}/indexed || true
`

// TestRevisionsMadeByTasks: a task commits to its own archive. The hook of the documents notifies that. The revision
// has its maker, which it does not start again. A token that is forged is refused, in a commit and in a call.
func TestRevisionsMadeByTasks(t *testing.T) {
	begin(t)
	a := newArchive(t, "commits")
	a.hook()
	a.message = "Mine\n\nArchivist-Run: commits/1/index:0123456789abcdef0123456789abcdef"
	a.commits("- {name: index}")
	forged := a.ended(1)
	if forged.MadeBy != "" || !strings.Contains(forged.Reason, "the token of the commit was not accepted") {
		t.Errorf("a commit with a forged token is %+v", forged.ArchiveRevision)
	}
	a.message = "Everything"
	a.commits(fmt.Sprintf(converts, a.url))
	made := a.ended(3)
	if made.MadeBy != a.id(2, "convert") || !slices.Equal(made.Chain, []string{"convert"}) {
		t.Errorf("the revision of the task is %+v", made.ArchiveRevision)
	}
	if got := a.becomes(a.id(3, "convert"), "skipped"); !strings.HasPrefix(got.Reason, "loop: ") {
		t.Errorf("the task that made it is %+v", got)
	}
	a.becomes(a.id(3, "index"), "succeeded")
	if got := a.lines("indexed"); !slices.Equal(got, []string{"by", "revision", "2"}) {
		t.Errorf("indexed is %q", got)
	}
	_, err := client.NotifyRevision(t.Context(), a.name, v1.RevisionNotice{Revision: 4}, "commits/2/convert:0123456789")
	if !fault.Is(err, fault.Denied) {
		t.Errorf("a notice with a forged token: %v", err)
	}
	if _, err := client.RevisionPlan(t.Context(), a.name, 4, ""); !fault.Is(err, fault.NotFound) {
		t.Errorf("there is a revision 4: %v", err)
	}
}

// hook makes the hook of the documents that of the repository.
func (a *versioned) hook() {
	a.Helper()
	document, err := os.ReadFile(stack.Path("docs", "revisions.md"))
	if err != nil {
		a.Fatal(err)
	}
	_, script, _ := strings.Cut(string(document), "`hooks/post-receive`")
	_, script, _ = strings.Cut(script, "```text\n")
	script, _, found := strings.Cut(script, "```")
	settings := regexp.MustCompile("(?m)^API=.*$")
	if !found || !settings.MatchString(script) {
		a.Fatalf("docs/revisions.md has no hook of Git: %q", script)
	}
	script = settings.ReplaceAllString(script, "API="+out.APIURL+" TOKEN="+tokens.admin+" ARCHIVE="+a.name+
		" BRANCH=main")
	if err := os.WriteFile(filepath.Join(a.repo.Bare, "hooks", "post-receive"), []byte(script), 0o755); err != nil {
		a.Fatal(err)
	}
}
