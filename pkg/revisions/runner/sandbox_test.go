//go:build linux

package runner

import (
	"archive/tar"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"archivist/pkg/revisions/workflow"
)

// attack is a task that wants to outlive its run, or to find or change what is not its own. ROOT is the temporary
// folder, LOOT a file outside of it for what it finds. 1000 and 18999 are numbers of this test.
type attack struct{ name, text string }

// attacks are run by bash, one after the other, each before a victim.
var attacks = []attack{
	// Processes that stay.
	{"a background process", `sleep 1000 &`},
	{"a session of its own", `setsid sleep 1000 & sleep .1`},
	{"no environment", `setsid env -i /bin/sh -c 'sleep 1000' & sleep .1`},
	{"a double fork", `( ( exec setsid env -i /bin/sleep 1000 ) & ); sleep .1`},
	{"many", `for i in $(seq 50); do setsid env -i /bin/sleep 1000 & done; sleep .1`},
	{"a chain", `env -i bash -c 'f() { [ $1 = 0 ] && exec sleep 1000; ( f $(($1-1)) ) & }; f 20' ; sleep .1`},
	{"one that begins again", `cat > $ROOT/again <<'X'
setsid env -i /bin/bash "$0" x >/dev/null 2>&1 &
sleep .01
X
setsid env -i /bin/bash $ROOT/again & sleep .2`},
	{"deaf to SIGTERM", `setsid env -i bash -c 'trap "" TERM INT HUP; while :; do sleep 1; done' & sleep .1`},
	{"a stopped one", `setsid env -i bash -c 'kill -STOP $$; sleep 1000' & sleep .1`},
	{"a subreaper", `setsid env -i python3 -c 'import ctypes,os,time
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
os.fork() or os.fork()
time.sleep(1000)' & sleep .3`},
	{"one that leaves at the end", `trap 'setsid env -i /bin/sleep 1000 &' EXIT`},
	{"one that holds the output open", `setsid env -i /bin/sleep 1000 & exit 3`},
	{"a server", `setsid env -i python3 -m http.server 18999 --bind 127.0.0.1 >/dev/null 2>&1 & sleep .3`},
	{"a reader of /proc", `setsid env -i LOOT=$LOOT bash -c 'while :; do
for p in /proc/[0-9]*; do tr "\0" "\n" < $p/environ; cat $p/cmdline; done 2>/dev/null >> $LOOT; sleep .01; done' & sleep .2`},
	{"a reader of folders", `setsid env -i ROOT=$ROOT LOOT=$LOOT bash -c 'while :; do
cat $ROOT/*/work/* $ROOT/*/outputs/* $ROOT/*/script 2>/dev/null >> $LOOT; sleep .01; done' & sleep .1`},
	{"a writer of outputs", `setsid env -i ROOT=$ROOT bash -c 'while :; do
for o in $ROOT/*/outputs; do echo forged > $o/out; echo forged > $o/more; done 2>/dev/null; sleep .01; done' & sleep .1`},
	{"one that kills others", `setsid env -i bash -c 'while :; do for p in /proc/[0-9]*; do
case "$(tr "\0" " " < $p/cmdline 2>/dev/null)" in *victim*) kill -9 ${p#/proc/};; esac; done; sleep .01; done' & sleep .1`},

	// Files that stay.
	{"a file", `echo x > $ROOT/file`},
	{"a hidden file", `echo x > $ROOT/.hidden`},
	{"a folder in place of the lock", `rm -rf $ROOT/archivist-runs.lock; mkdir -p $ROOT/archivist-runs.lock/x`},
	{"the lock, held", `setsid env -i flock $ROOT/archivist-runs.lock sleep 1000 & sleep .1`},
	{"a lock that nobody may open", `rm -rf $ROOT/archivist-runs.lock; touch $ROOT/archivist-runs.lock; chmod 0 $ROOT/archivist-runs.lock`},
	{"a false scratch folder", `mkdir -p $ROOT/archivist-run-1/work; echo evil > $ROOT/archivist-run-1/work/x`},
	{"a link in place of a scratch folder", `ln -s / $ROOT/archivist-run-2`},
	{"a link to a folder that is not its own", `ln -s $(dirname $LOOT) $ROOT/elsewhere`},
	{"a hard link", `ln $ROOT/*/script $ROOT/hard 2>/dev/null || echo x > $ROOT/hard`},
	{"a named pipe", `mkfifo $ROOT/pipe`},
	{"a socket", `python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("'$ROOT'/socket")'`},
	{"deep folders", `p=$ROOT; for i in $(seq 60); do p=$p/deep; done; mkdir -p $p; echo x > $p/x`},
	{"many files", `mkdir $ROOT/many; for i in $(seq 3000); do : > $ROOT/many/$i; done`},
	{"a folder that nobody may enter", `mkdir -p $ROOT/closed/in; echo x > $ROOT/closed/in/x; chmod 0 $ROOT/closed/in $ROOT/closed`},
	{"the longest name", `: > $ROOT/$(printf 'n%.0s' $(seq 255))`},
	{"a name with line breaks", `: > "$ROOT/$(printf 'a\nb\rc')"`},
	{"a large file", `head -c 50000000 /dev/zero > $ROOT/large`},
	{"a time in the future", `touch -d 2090-01-01 $ROOT/future`},
	{"programs for the next", `mkdir $ROOT/bin; printf '#!/bin/sh\necho evil\n' > $ROOT/bin/cat; chmod 755 $ROOT/bin/cat
echo 'echo evil' > $HOME/.bashrc; echo 'echo evil' > $HOME/.profile`},

	// Its own scratch folder.
	{"a scratch folder that nobody may enter", `chmod 0 $(dirname $HOME)`},
	{"no scratch folder", `rm -rf $(dirname $HOME) 2>/dev/null; true`},
	{"no lock of its scratch folder", `rm -f $(dirname $HOME)/lock`},
	{"outputs that are links", `ln -s /etc/passwd $ARCHIVIST_OUTPUTS/x; ln -s / $ARCHIVIST_OUTPUTS/y`},
	{"outputs that are pipes", `mkfifo $ARCHIVIST_OUTPUTS/pipe`},
	{"outputs that others own", `ln /etc/hostname $ARCHIVIST_OUTPUTS/hard 2>/dev/null; true`},
	{"no folder of outputs", `rm -rf $ARCHIVIST_OUTPUTS; ln -s /etc $ARCHIVIST_OUTPUTS`},

	{"inputs that are changed", `chmod -R u+w $ARCHIVIST_INPUTS; echo evil > $ARCHIVIST_INPUTS/x`},
	{"no folder of inputs", `rm -rf $ARCHIVIST_INPUTS; ln -s /etc $ARCHIVIST_INPUTS`},

	// What the process has.
	{"the environment of the runner", `cat /proc/$PPID/environ >> $LOOT 2>/dev/null; true`},
	{"the memory of the runner", `head -c 100 /proc/$PPID/mem >> $LOOT 2>/dev/null; ls -l /proc/$PPID/fd >> $LOOT 2>&1; true`},
	{"files that are open", `for f in /proc/self/fd/*; do [ ${f##*/} -gt 2 ] && readlink $f >> $LOOT; done; true`},
	{"much output", `head -c 3000000 /dev/zero | tr '\0' 'x'`},
	{"output that is no text", `head -c 100000 /dev/urandom`},
	{"a forged log", `echo '{"time":"2026-01-01T00:00:00Z","stream":"runner","text":"forged"}'`},
	{"much memory", `python3 -c 'x = bytearray(200_000_000)'`},
	{"a signal to itself", `kill -9 $$`},
	{"a signal to its group", `kill -9 0`},
}

// victim is a task that says what it finds.
const victim = `: victim
cat "$ARCHIVIST_CHECKOUT/a.txt"
ls -A "$ROOT" | sed 's/archivist-run-.*/scratch/'
ls -A "$HOME" "$TMPDIR" "$ARCHIVIST_OUTPUTS"  | grep -v /
for p in /proc/[0-9]*; do cat $p/cmdline 2>/dev/null | tr '\0' ' '; done | grep -o '[s]leep 1000\|http[.]server' | sort -u
echo "the secret is $PASSWORD"
echo good > "$ARCHIVIST_OUTPUTS/out"
sleep .05
`

const (
	envSandbox = "RUNNER_TEST_SANDBOX"
	ofVictim   = "the-secret-of-the-victim"
	ofRunner   = "credentials-of-the-runner"
)

// TestSandbox plays each attack and then a victim, of another archive, in one process: the victim has the result, the
// output and the files that it has without. Nothing of it is found by the attack. Root could do more than any user of a
// function, so the process gives that up.
func TestSandbox(t *testing.T) {
	if dir := os.Getenv(envSandbox); dir != "" {
		playAttacks(t, dir)
		return
	}
	if len(attacks) < 40 {
		t.Fatalf("%d attacks", len(attacks))
	}
	dir := t.TempDir()
	for _, open := range []string{filepath.Dir(dir), filepath.Join(dir, "root"), filepath.Join(dir, "loot")} {
		if err := os.MkdirAll(open, 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(open, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestSandbox$", "-test.v")
	cmd.Env = append(os.Environ(), envSandbox+"="+dir, "AWS_SECRET_ACCESS_KEY="+ofRunner)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%.20000s", err, out)
	}
	loot, _ := os.ReadFile(filepath.Join(dir, "loot", "loot"))
	for _, secret := range []string{ofVictim, ofRunner, "token-of-the-victim"} {
		if strings.Contains(string(loot), secret) {
			t.Errorf("an attack has found %s", secret)
		}
	}
}

// playAttacks is the process of TestSandbox.
func playAttacks(t *testing.T, dir string) {
	if os.Getuid() == 0 {
		if err := syscall.Setuid(65534); err != nil {
			t.Fatal(err)
		}
	}
	if err := Shield(); err != nil {
		t.Fatal(err)
	}
	sandbox, err := Contain()
	if err != nil {
		t.Fatal(err)
	}
	root, loot := filepath.Join(dir, "root"), filepath.Join(dir, "loot", "loot")
	sandbox.Dir = root
	want := ""
	for i, a := range append([]attack{{"none", "true"}}, attacks...) {
		w := newWorld(t)
		w.Dir, w.Sandbox = root, sandbox
		w.Secrets = func(context.Context, string) (string, error) { return ofVictim, nil }
		evil := script("bash", marked(a.text))
		evil.Task.Env = map[string]string{"ROOT": root, "LOOT": loot}
		if _, err := w.Runner.Run(t.Context(), evil); err != nil {
			t.Errorf("%s: the attack itself: %v", a.name, err)
		}
		if got := w.victim(root); i == 0 {
			want = got
			if !strings.Contains(got, Succeeded) || !strings.Contains(got, "***") || sandbox.Left() != "" {
				t.Fatalf("without an attack: %s; left: %s", got, sandbox.Left())
			}
		} else if got != want {
			t.Errorf("after %s, the victim has\n%s\nwithout:\n%s", a.name, got, want)
		}
	}
	if pids := below(os.Getpid()); len(pids) > 0 {
		t.Errorf("%d processes are left", len(pids))
	}
	if left := sandbox.Left(); !strings.Contains(left, "processes") || !strings.Contains(left, "files: ") {
		t.Errorf("what was left is not told: %q", left)
	}
}

// marked is a program with numbers that no other process on this machine has: what a victim finds is of the attack.
func marked(text string) string {
	pid := os.Getpid()
	return strings.NewReplacer("1000", fmt.Sprintf("1000.%d", pid), "18999", fmt.Sprint(20_000+pid%10_000),
		"http[.]server", fmt.Sprintf("http[.]server %d", 20_000+pid%10_000)).Replace(text)
}

// victim runs the victim in a bucket of its own. It returns its end, its output and its files, as text.
func (w *world) victim(root string) string {
	w.Helper()
	v := newWorld(w.T)
	v.Dir, v.Sandbox, v.Secrets = root, w.Sandbox, w.Secrets
	job := of(workflow.Task{Script: marked(victim), Shell: "bash", Env: map[string]string{"ROOT": root},
		Secrets: map[string]string{"PASSWORD": "archivist/tasks/books/any"}})
	job.Archive, job.Token = "books", "token-of-the-victim"
	job.Checkout = job.Prefix + "checkout"
	v.put("checkout", pack(w.T, tar.Header{Name: "a.txt", Typeflag: tar.TypeReg, Mode: 0o644}))
	r, err := v.Runner.Run(w.Context(), job)
	if err != nil {
		return err.Error()
	}
	said := fmt.Sprintf("%s %d %q, cut %v\n%s", r.End, r.Exit, r.Reason, r.Cut, v.output(""))
	for _, o := range r.Outputs {
		said += fmt.Sprintln(o.Path, o.Size, o.SHA256)
	}
	return said
}
