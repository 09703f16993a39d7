package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"archivist/localstack"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/fault"
)

// repositories serves the Git repositories of all tests, to read and to push to.
var repositories = sync.OnceValues(func() (*gitServer, error) {
	folder := filepath.Join(filepath.Dir(crashes), "git")
	handler, err := localstack.GitHandler(folder)
	if err != nil {
		return nil, err
	}
	return &gitServer{httptest.NewServer(handler).URL, folder}, os.MkdirAll(folder, 0o755)
})

type gitServer struct{ url, folder string }

// versioned is an archive of a test, with its repository.
type versioned struct {
	*testing.T
	name string
	url  string
	repo *localstack.Repository
	dir  string   // for what tasks and the test tell each other: {DIR} in the definitions
	made []string // hashes of its commits

	message string // of the next commits
}

// newArchive makes a repository and registers it. It is deleted at the end of the test. The archive is not asked for
// its newest revision: what a test does not notify is not known.
func newArchive(t *testing.T, name string) *versioned {
	t.Helper()
	served, err := repositories()
	if err != nil {
		t.Fatal(err)
	}
	repo, err := localstack.NewRepository(t.Context(), filepath.Join(served.folder, name+".git"))
	if err != nil {
		t.Fatal(err)
	}
	a := &versioned{T: t, name: name, url: served.url + "/" + name + ".git", repo: repo, dir: t.TempDir(),
		message: "a commit"}
	a.register(v1.ArchiveLocation{Kind: "git", URL: a.url, Branch: "main"})
	return a
}

// on is the archive in a part of its test.
func (a *versioned) on(t *testing.T) *versioned {
	part := *a
	part.T = t
	return &part
}

// register makes what is at a location the archive.
func (a *versioned) register(at v1.ArchiveLocation) {
	a.Helper()
	if _, err := client.PutArchive(a.Context(), a.name, v1.ArchiveDefinition{Baseline: 1, ReconcileSeconds: -1,
		Location: at}); err != nil {
		a.Fatal(err)
	}
	a.Cleanup(func() {
		_, err := client.ActOnArchive(context.WithoutCancel(a.Context()), a.name,
			v1.ArchiveAction{Action: "delete", Reason: "the end of the test"})
		if err != nil && !fault.Is(err, fault.NotFound) {
			a.Error(err)
		}
	})
}

// commits makes a revision with a definition, and returns its number. {DIR} in the definition is the folder of the
// test.
func (a *versioned) commits(definition string) (n int64) {
	a.Helper()
	hash, err := a.repo.Commit(a.Context(), a.message, map[string]string{
		"_workflows/all.yaml": strings.ReplaceAll(definition, "{DIR}", a.dir), "sheet.txt": fmt.Sprint(len(a.made))})
	if err != nil {
		a.Fatal(err)
	}
	a.made = append(a.made, hash)
	return int64(len(a.made))
}

// notify says that a revision was committed.
func (a *versioned) notify(n int64) {
	a.Helper()
	_, err := client.NotifyRevision(a.Context(), a.name, v1.RevisionNotice{Revision: n, Transaction: a.made[n-1]}, "")
	if err != nil {
		a.Error(err)
	}
}

// begin makes a revision with a definition, and notifies it.
func (a *versioned) begin(definition string) (n int64) {
	a.Helper()
	n = a.commits(definition)
	a.notify(n)
	return n
}

// act acts on the archive.
func (a *versioned) act(action string) {
	a.Helper()
	_, err := client.ActOnArchive(a.Context(), a.name, v1.ArchiveAction{Action: action, Reason: "a test"})
	if err != nil {
		a.Fatal(err)
	}
}

func (a *versioned) id(n int64, task string) string { return fmt.Sprintf("%s/%d/%s", a.name, n, task) }

// becomes waits until a task is in a state.
func (a *versioned) becomes(id, state string) (got v1.TaskDetails) {
	a.Helper()
	until(a.T, id+" is "+state, soon, func() (is bool) {
		var err error
		got, err = client.Task(a.Context(), id)
		if err == nil && got.State != state && isEnd(got.State) {
			a.Fatalf("%s is %s (%s) with %+v; expected %s", id, got.State, got.Reason, got.Attempts, state)
		}
		return err == nil && got.State == state
	})
	return got
}

func isEnd(state string) bool {
	switch state {
	case "succeeded", "failed", "cancelled", "superseded", "skipped":
		return true
	}
	return false
}

// ended waits until all tasks of a revision have ended.
func (a *versioned) ended(n int64) (got v1.RevisionPlan) {
	a.Helper()
	until(a.T, fmt.Sprintf("all tasks of %s/%d end", a.name, n), soon, func() bool {
		var err error
		got, err = client.RevisionPlan(a.Context(), a.name, n, "")
		return err == nil && got.Planned != "" && got.Ended == got.Tasks
	})
	return got
}

// log is the output of an attempt, so far: all streams together.
func (a *versioned) log(id string, attempt int) (text string) {
	a.Helper()
	for from := ""; ; {
		page, err := client.TaskLog(a.Context(), id, attempt, from)
		if err != nil {
			a.Fatal(err)
		}
		for _, p := range page.Parts {
			text += p.Text
		}
		if page.Next == from || len(page.Parts) == 0 {
			return text
		}
		from = page.Next
	}
}

// file is a path in the folder of the test.
func (a *versioned) file(name string) string { return filepath.Join(a.dir, name) }

// tells writes a file for which a task waits.
func (a *versioned) tells(name string) {
	a.Helper()
	if err := os.WriteFile(a.file(name), nil, 0o644); err != nil {
		a.Fatal(err)
	}
}

// lines are those that tasks have written to a file.
func (a *versioned) lines(name string) []string {
	a.Helper()
	data, err := os.ReadFile(a.file(name))
	if err != nil && !os.IsNotExist(err) {
		a.Fatal(err)
	}
	return strings.Fields(string(data))
}

// pid is the number of a process that a task has written to a file.
func (a *versioned) pid(name string) int {
	a.Helper()
	pid, err := strconv.Atoi(strings.Join(a.lines(name), ""))
	if err != nil {
		a.Fatal(err)
	}
	return pid
}

// process waits until a task has written the number of a process to a file, and returns it.
func (a *versioned) process(name string) (pid int) {
	a.Helper()
	until(a.T, "a process writes "+name, soon, func() bool {
		if all := a.lines(name); len(all) > 0 {
			pid, _ = strconv.Atoi(all[0])
		}
		return pid > 0
	})
	if !alive(pid) {
		a.Fatalf("the process %d of %s is not there: where are the functions?", pid, name)
	}
	return pid
}

// alive reports whether a process of this machine has not ended.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if os.IsNotExist(err) || errors.Is(err, syscall.ESRCH) {
		return false
	}
	return !bytes.Contains(stat, []byte(") Z "))
}

// gone waits until a process has ended.
func (a *versioned) gone(pid int) {
	a.Helper()
	until(a.T, fmt.Sprintf("the process %d ends", pid), soon, func() bool { return !alive(pid) })
}

// command is the program archivist.
var command = sync.OnceValues(func() (string, error) {
	at := filepath.Join(filepath.Dir(crashes), "archivist")
	_, err := stack.Run(context.Background(), stack.Path(), os.Environ(), "go", "build", "-o", at, "./cmd/archivist")
	return at, err
})

// archivist runs the command, and returns what it prints and how it ends.
func (a *versioned) archivist(args ...string) (text string, err error) {
	a.Helper()
	at, err := command()
	if err != nil {
		a.Fatal(err)
	}
	cmd := exec.CommandContext(a.Context(), at, args...)
	cmd.Dir, cmd.Env = a.dir, append(os.Environ(), "ARCHIVIST_API="+out.APIURL)
	data, err := cmd.CombinedOutput()
	return string(data), err
}

// timeOf reads a time of the API.
func (a *versioned) timeOf(text string) time.Time {
	a.Helper()
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		a.Fatal(err)
	}
	return at
}
