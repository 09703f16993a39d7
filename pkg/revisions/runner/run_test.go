package runner

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/revisions/workflow"
)

// TestEnds: how a process ends is how the run ends, and it is stored.
func TestEnds(t *testing.T) {
	for name, c := range map[string]struct {
		job    Job
		end    string
		exit   int
		reason string
		said   string
	}{
		"success":   {command("echo a; echo b >&2"), Succeeded, 0, "", "a\n"},
		"nothing":   {command(""), Succeeded, 0, "", ""},
		"exit code": {command("echo a; exit 3"), Failed, 3, "exit code 3", "a\n"},
		"signal":    {command("kill -SEGV $$"), Failed, -1, "signal segmentation fault", ""},
		"killed":    {command("kill -9 $$"), Failed, -1, "signal killed", ""},
		"not there": {command("no-such-program"), Failed, 127, "exit code 127", ""},
		"sh":        {script("sh", "echo $0 | sed 's,.*/,,'"), Succeeded, 0, "", "script\n"},
		"bash":      {script("bash", "a=(1 2); echo ${a[1]}"), Succeeded, 0, "", "2\n"},
		"python":    {script("python3", "import sys; print(6*7); sys.exit(4)"), Failed, 4, "", "42\n"},
		"absolute":  {script("/bin/sh", "echo a"), Succeeded, 0, "", "a\n"},
		"no shell":  {script("cobol", "x"), Broken, -1, `the shell "cobol" is not there; there are bash, sh`, ""},
		"relative":  {script("./sh", "x"), Broken, -1, `the shell "./sh" is not there`, ""},
		"too large": {command(strings.Repeat("x", 200_000)), Broken, -1, "argument list too long", ""},
		"no secret": {of(workflow.Task{Command: "x", Secrets: map[string]string{"A": "archivist/tasks/maps/b"}}),
			Broken, -1, "no secret archivist/tasks/maps/b", ""},
		"secret of another": {of(workflow.Task{Command: "x", Secrets: map[string]string{"A": "archivist/tasks/map/b"}}),
			Broken, -1, "is not one of this archive: expected archivist/tasks/maps/…", ""},
		"NUL": {of(workflow.Task{Command: "x", Env: map[string]string{"A": "\x00"}}), Broken, -1,
			"variable A has a NUL", ""},
		"SIGTERM":       {command("kill $$; sleep 9"), Failed, -1, "signal terminated", ""},
		"bytes":         {script("bash", `printf 'a\xff\xe2\x82|\e[1mb\0'`), Succeeded, 0, "", "a\uFFFD|\x1b[1mb\x00"},
		"split letters": {script("bash", `printf '\xe2'; sleep .1; printf '\x82'; sleep .1; printf '\xac'`), Succeeded, 0, "", "€"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			r := w.run(c.job)
			w.expect(r, c.end, c.exit, c.reason)
			if said := w.output("stdout"); said != c.said {
				t.Errorf("it said %q, want %q", said, c.said)
			}
			if r.LogSize != int64(len(w.output(""))) || r.Cut || r.Started.IsZero() || r.Ended.Before(r.Started) {
				t.Errorf("%+v", r)
			}
			found, err := Look(t.Context(), w.Bucket, c.job.Prefix)
			if err != nil || found.Result == nil || found.Result.Reason != r.Reason ||
				!found.Result.Ended.Equal(r.Ended) {
				t.Errorf("stored is %+v, %v", found.Result, err)
			}
		})
	}
}

// TestRefused: what cannot be a Job is not run, and nothing is written.
func TestRefused(t *testing.T) {
	w := newWorld(t)
	for reason, job := range map[string]func(*Job){
		"for the bucket other": func(j *Job) { j.Bucket = "other" },
		"the prefix is":        func(j *Job) { j.Prefix = "objects/a/" },
		"ends in a slash":      func(j *Job) { j.Prefix = "runs/a" },
		"neither a command":    func(j *Job) { j.Task.Command, j.Task.Image = "", "x" },
		"and not both":         func(j *Job) { j.Task.Script = "x" },
		"no time-out":          func(j *Job) { j.Task.Timeout = 0 },
	} {
		j := command("true")
		job(&j)
		w.expect(w.run(j), Broken, -1, reason)
	}
	if names := w.S3.Names(""); len(names) > 0 {
		t.Errorf("written is %v", names)
	}
}

// TestEnvironment: the processes get the variables of the task and of the run, and none of the function.
func TestEnvironment(t *testing.T) {
	t.Setenv("AWS_SECRET_ACCESS_KEY", "of the function")
	t.Setenv("AWS_SESSION_TOKEN", "of the function")
	w := newWorld(t)
	w.Secrets = func(_ context.Context, name string) (string, error) { return "value of " + name, nil }
	job := of(workflow.Task{
		Command: `env -0 | sort -z | tr '\0' '\n'; pwd; ls -A "$HOME" "$TMPDIR" "$ARCHIVIST_OUTPUTS"`,
		Env:     map[string]string{"A": "b c", "ARCHIVIST_TASK": "another", "LANG": "de_DE.UTF-8"},
		Secrets: map[string]string{"KEY": "archivist/tasks/maps/key"}})
	w.expect(w.run(job), Succeeded, 0, "")
	said := strings.Split(w.output("stdout"), "\n")
	at := slices.IndexFunc(said, func(line string) bool { return strings.HasPrefix(line, "HOME=") })
	dir := filepath.Dir(strings.TrimPrefix(said[at], "HOME="))
	want := []string{"A=b c", "ARCHIVIST_ARCHIVE=maps", "ARCHIVIST_ATTEMPT=1", "ARCHIVIST_BASE_REVISION=5",
		"ARCHIVIST_CHECKOUT=" + dir + "/checkout", "ARCHIVIST_INPUTS=" + dir + "/inputs",
		"ARCHIVIST_OUTPUTS=" + dir + "/outputs", "ARCHIVIST_REVISION=7", "ARCHIVIST_RUN=maps/7/build/1",
		"ARCHIVIST_RUN_TOKEN=***", "ARCHIVIST_TASK=build", "HOME=" + dir + "/work", "KEY=***", "LANG=de_DE.UTF-8",
		"PATH=" + searchPath, "PWD=" + dir + "/work", "TMPDIR=" + dir + "/tmp", dir + "/work",
		dir + "/outputs:", "", dir + "/tmp:", "", dir + "/work:", ""}
	if !slices.Equal(slices.DeleteFunc(said, func(s string) bool {
		return strings.HasPrefix(s, "_=") || strings.HasPrefix(s, "OLDPWD") || strings.HasPrefix(s, "SHLVL")
	}), want) {
		t.Errorf("%q, want %q", said, want)
	}
}

// TestCheckout: the files of the revision are there, and nobody can write to them; nothing is unpacked elsewhere.
func TestCheckout(t *testing.T) {
	file, dir, link := byte(tar.TypeReg), byte(tar.TypeDir), byte(tar.TypeSymlink)
	packed := pack(t, tar.Header{Name: "a b.txt", Typeflag: file, Mode: 0o644},
		tar.Header{Name: "d/", Typeflag: dir, Mode: 0o755}, tar.Header{Name: "d/run", Typeflag: file, Mode: 0o755},
		tar.Header{Name: "d/to", Typeflag: link, Linkname: "run"})
	w := newWorld(t)
	w.put("checkout", packed)
	job := command(`cd "$ARCHIVIST_CHECKOUT" && find . -printf '%p %m %l\n' | sort && cat 'a b.txt' d/to`)
	job.Checkout = job.Prefix + "checkout"
	w.expect(w.run(job), Succeeded, 0, "")
	want := ". 555 \n./a b.txt 444 \n./d 555 \n./d/run 555 \n./d/to 777 run\na b.txt\nd/run\n"
	if said := w.output("stdout"); said != want {
		t.Errorf("there is %q, want %q", said, want)
	}

	for name, c := range map[string]struct {
		packed []byte
		reason string
	}{
		"missing":  {nil, "the files of the revision: s3: get"},
		"no pack":  {[]byte("text"), "cannot be unpacked"},
		"cut":      {packed[:len(packed)/2], "cannot be unpacked"},
		"out":      {pack(t, tar.Header{Name: "../x", Typeflag: file}), "cannot be unpacked"},
		"absolute": {pack(t, tar.Header{Name: "/tmp/x", Typeflag: file}), "cannot be unpacked"},
		"through a link": {pack(t, tar.Header{Name: "l", Typeflag: link, Linkname: "/tmp"},
			tar.Header{Name: "l/x", Typeflag: file}), "cannot be unpacked"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if c.packed != nil {
				w.put("checkout", c.packed)
			}
			w.expect(w.run(job), Broken, -1, c.reason)
		})
	}
}

// TestRepeat: a repeated call has the same answer and runs nothing; also two at once run the task once.
func TestRepeat(t *testing.T) {
	w := newWorld(t)
	mark := filepath.Join(t.TempDir(), "ran")
	job := command("echo x >>" + mark + "; sleep .3")
	var calls sync.WaitGroup
	results := make([]Result, 3)
	for i := range results {
		r := w.runner(w.work, t.TempDir())
		calls.Go(func() {
			var err error
			results[i], err = r.Run(t.Context(), job)
			if err != nil {
				t.Error(err)
			}
		})
	}
	calls.Wait()
	results = append(results, w.run(job))
	for _, r := range results {
		w.expect(r, Succeeded, 0, "")
		if !r.Ended.Equal(results[0].Ended) {
			t.Errorf("%+v and %+v", r, results[0])
		}
	}
	if data, _ := os.ReadFile(mark); string(data) != "x\n" {
		t.Errorf("it ran %q", data)
	}
}

// TestDied: a call that finds an attempt begun waits as long as the other can go on; then the result is that it
// died, for everybody.
func TestDied(t *testing.T) {
	w := newWorld(t)
	w.put(StartedKey, fmt.Appendf(nil, `{"id":"x","started":"2026-11-01T00:00:00Z","until":%q}`,
		time.Now().Add(time.Hour).Format(time.RFC3339Nano)))
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err := w.Runner.Run(ctx, command("true"))
	if !fault.Is(err, fault.Unavailable) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	late := time.Now().Add(time.Hour + skew)
	w.Now = func() time.Time { return late }
	w.expect(w.run(command("true")), Broken, -1, "the runner died while it ran")
	if len(w.parts()) > 0 {
		t.Error("it ran")
	}
	// The first call was only slow: what is stored is its answer, too.
	x := &run{Runner: w.Runner, pace: quick, job: command("true"), result: Result{End: Succeeded}}
	w.expect(x.finish(t.Context()), Broken, -1, "the runner died while it ran")
}

// TestUnavailable: while the bucket or the secrets cannot be reached nothing is begun, and a later call succeeds.
func TestUnavailable(t *testing.T) {
	w := newWorld(t)
	w.put("checkout", pack(t, tar.Header{Name: "a", Typeflag: tar.TypeReg}))
	job := of(workflow.Task{Command: "true", Secrets: map[string]string{"A": "archivist/tasks/maps/b"}})
	job.Checkout = job.Prefix + "checkout"
	w.Secrets = func(context.Context, string) (string, error) { return "", errors.New("slow down") }
	r, err := w.Runner.Run(t.Context(), job)
	if err == nil || !strings.Contains(err.Error(), "secret archivist/tasks/maps/b for A: slow down") {
		t.Errorf("%+v, %v", r, err)
	}
	w.Secrets = func(context.Context, string) (string, error) { return "secret", nil }
	for _, key := range []string{ResultKey, StartedKey, "checkout"} {
		w.S3.Before = func(_, name string) int {
			if strings.HasSuffix(name, "/"+key) {
				return http.StatusServiceUnavailable
			}
			return 0
		}
		if r, err := w.Runner.Run(t.Context(), job); err == nil || final(err) {
			t.Errorf("%s: %+v, %v", key, r, err)
		}
		w.S3.Before = nil
		if found, err := Look(t.Context(), w.Bucket, job.Prefix); err != nil || found != (Found{}) {
			t.Errorf("%s: found is %+v, %v", key, found, err)
		}
	}
	w.expect(w.run(job), Succeeded, 0, "")
}

// TestBucketFails: that the bucket fails while a task runs does not change how it ends. What it said is kept
// once the bucket can be reached, each part as it was first sent.
func TestBucketFails(t *testing.T) {
	w := newWorld(t)
	n := 0
	w.S3.Before = func(op, name string) int {
		if op == "PUT object" && !strings.HasSuffix(name, StartedKey) {
			n++
			if n%3 != 0 {
				return http.StatusServiceUnavailable
			}
		}
		return 0
	}
	r := w.run(script("bash", "for i in 1 2 3 4 5 6; do echo $i; sleep .05; done"))
	w.S3.Before = nil
	w.expect(r, Succeeded, 0, "")
	if said := w.output("stdout"); said != "1\n2\n3\n4\n5\n6\n" || r.Cut {
		t.Errorf("it said %q", said)
	}

	w = newWorld(t)
	w.S3.Before = func(op, name string) int {
		if op == "PUT object" && !strings.HasSuffix(name, StartedKey) {
			return http.StatusServiceUnavailable
		}
		return 0
	}
	r = w.run(command("echo a"))
	w.S3.Before = nil
	w.expect(r, Succeeded, 0, "")
	if !r.Cut {
		t.Errorf("nothing of the output is stored: %+v", r)
	}
}

// TestClose: an attempt that was closed before its claim is not begun, also by a runner that has prepared it already;
// one that a runner has begun is not closed.
func TestClose(t *testing.T) {
	w := newWorld(t)
	job := command("touch ran")
	for range 2 {
		ok, err := Close(t.Context(), w.Bucket, job.Prefix, w.Now())
		if err != nil || !ok {
			t.Fatalf("closed: %v, %v", ok, err)
		}
	}
	x := &run{Runner: w.Runner, pace: usual, job: job}
	if mine, err := x.take(t.Context()); mine || err != nil {
		t.Errorf("taken: %v, %v", mine, err)
	}
	other := command("true")
	other.Prefix += "other/"
	w.run(other)
	if ok, err := Close(t.Context(), w.Bucket, other.Prefix, w.Now()); ok || err != nil {
		t.Errorf("an attempt that has begun is closed: %v, %v", ok, err)
	}
}
