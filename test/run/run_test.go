package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"archivist/test/plan"
)

func in(t *testing.T, dir string) { t.Chdir(dir) }

// TestCounts: what go test reports is counted, and what failed is shown.
func TestCounts(t *testing.T) {
	var log bytes.Buffer
	r := newReader(&log)
	err := r.read(strings.NewReader(`{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"a is fine\n"}
{"Action":"pass","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestB","Output":"b is wrong\n"}
{"Action":"fail","Package":"p","Test":"TestB"}
{"Action":"skip","Package":"p","Test":"TestC"}
{"Action":"fail","Package":"p"}
installing something
`))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := r.now(), (counts{1, 1, 1}); got != want {
		t.Errorf("counts %v, want %v", got, want)
	}
	failure := r.failure()
	if !strings.Contains(failure, "b is wrong") || strings.Contains(failure, "a is fine") ||
		!strings.Contains(failure, "installing something") {
		t.Errorf("shown of the failure:\n%s", failure)
	}
	if !strings.Contains(log.String(), "a is fine") {
		t.Errorf("the log lacks what a test printed:\n%s", log.String())
	}
}

func TestCountedCommands(t *testing.T) {
	for command, want := range map[string]string{
		"go test ./pkg/x":                   "go test -json ./pkg/x",
		"tool with dynamodb go test ./p -v": "tool with dynamodb go test -json ./p -v",
		"go vet ./...":                      "go vet ./...",
	} {
		if got := strings.Join(counted(strings.Fields(command)), " "); got != want {
			t.Errorf("%s: %s, want %s", command, got, want)
		}
	}
}

// TestPlay: a part that fails, or hangs, fails the run, and does not stop the other parts.
func TestPlay(t *testing.T) {
	in(t, t.TempDir())
	out, err := os.Create("out")
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	parts := []plan.Part{
		{Name: "wrong", Lane: plan.Process, Command: "false", Limit: time.Hour},
		{Name: "right", Lane: plan.Process, Command: "echo hello", Limit: time.Hour},
		{Name: "hangs", Lane: plan.Emulators, Command: "sleep 100000", Limit: time.Millisecond},
		{Name: "missing", Lane: plan.Emulators, Command: "no-such-command", Limit: time.Hour},
	}
	results := newPlayer(out, parts).play(context.Background())
	got := map[string]string{}
	for _, r := range results {
		got[r.part.Name] = ""
		if r.err != nil {
			got[r.part.Name] = r.err.Error()
		}
	}
	if len(got) != len(parts) || got["wrong"] == "" || got["right"] != "" || got["missing"] == "" ||
		got["hangs"] != "it did not end in 1ms" {
		t.Errorf("results %q", got)
	}

	var shown bytes.Buffer
	if err := report(&shown, []string{"test"}, plan.Commit{}, results, time.Minute); err == nil {
		t.Error("the run passed")
	}
	if !strings.HasSuffix(shown.String(), "\n0 passed, 0 failed, 0 skipped\n") {
		t.Errorf("shown:\n%s", shown.String())
	}
	text, err := os.ReadFile(".local/test/right.log")
	if err != nil || string(text) != "hello\n" {
		t.Errorf("log %q, %v", text, err)
	}
}

// TestNoLaneWaits: of two sets, a lane goes on with the second while another lane still plays the first.
func TestNoLaneWaits(t *testing.T) {
	in(t, t.TempDir())
	out, err := os.Create("out")
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	if err := syscall.Mkfifo("pipe", 0o600); err != nil {
		t.Fatal(err)
	}
	// Each of the last two ends only if the other is played at the same time.
	parts := slices.Concat([]plan.Part{{Name: "one", Lane: plan.Process, Command: "cat pipe", Limit: time.Minute},
		{Name: "short", Lane: plan.Emulators, Command: "true", Limit: time.Minute}},
		[]plan.Part{{Name: "of the second", Lane: plan.Emulators, Command: "cp /dev/null pipe", Limit: time.Minute}})
	for _, r := range newPlayer(out, parts).play(t.Context()) {
		if r.err != nil {
			t.Errorf("%s: %v", r.part.Name, r.err)
		}
	}
}

// TestSets: what CI plays has all parts of both sets, each once; a set that nobody knows is refused.
func TestSets(t *testing.T) {
	if err := command(t.Context(), []string{"-list", "test", "test-more"}); err != nil {
		t.Error(err)
	}
	if err := command(t.Context(), []string{"-list", "test", "none"}); !errors.Is(err, errUsage) {
		t.Error(err)
	}
	names := map[string]bool{}
	for _, set := range []plan.Set{plan.Test, plan.More} {
		for _, p := range plan.Of(set, plan.Commit{}) {
			if names[p.Name] {
				t.Errorf("two parts are called %q", p.Name)
			}
			names[p.Name] = true
		}
	}
}

// TestInterrupted: an interrupted run fails, and plays nothing more.
func TestInterrupted(t *testing.T) {
	in(t, t.TempDir())
	out, err := os.Create("out")
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	never := plan.Part{Name: "never", Lane: plan.Process, Command: "true", Limit: time.Hour}
	results := newPlayer(out, []plan.Part{never}).play(ctx)
	if len(results) != 0 {
		t.Errorf("results %v", results)
	}
}
