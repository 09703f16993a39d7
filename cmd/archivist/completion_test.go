package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"archivist/cmd/archivist/command"
	"archivist/cmd/archivist/command/commandtest"
	v1 "archivist/pkg/api/v1"
)

// TestCandidates: what can come next, from the commands themselves.
func TestCandidates(t *testing.T) {
	home := commandtest.EmptyHome(t)
	file := filepath.Join(home, ".config", "archivist", "config.yaml")
	commandtest.Write(t, file, "profiles: {live: {api: https://live}, test: {api: https://test}}")
	c := with(t, "")
	c.Env["HOME"] = home
	for line, want := range map[string]string{
		"": "submit batch job object collection status queue operation event consumer component archive research " +
			"restore settings doctor explain login logout whoami token demo config completion help",
		"j":                                   "job",
		"job re":                              "receipt release requeue",
		"job list --st":                       "--state",
		"job list --state f":                  "Failed",
		"job list --state=f":                  "--state=Failed",
		"job list --state = f":                "Failed", // as bash splits it
		"job list --state =":                  strings.Join(v1.JobStates, " "),
		"batch list -c maps --state P":        "Pending Processing",
		"--profile ":                          "live test",
		"--profile live job sh":               "show",
		"object list --json t":                "title",
		"object list --json ark,t":            "ark,title",
		"submit https://example.org --type b": "batch-manifest",
		"completion ":                         "bash zsh fish",
		"help ex":                             "exit-codes",
		"object reindex --a":                  "--api --all --again",
		"job show ":                           "",
		"batch check-manifest ":               "",
	} {
		words := strings.Split(line, " ")
		if code := c.Args(append([]string{"__complete"}, words...)...); code != 0 {
			t.Fatal(code)
		}
		var got []string
		for l := range strings.Lines(c.Out.String()) {
			word, _, _ := strings.Cut(l, "\t")
			got = append(got, word)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: got %q, want %q", line, strings.Join(got, " "), want)
		}
	}
}

// build builds the command line.
func build(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("it builds the command line")
	}
	bin := filepath.Join(t.TempDir(), "archivist")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", bin, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return bin
}

// TestCompletionInShells: each shell, if it is there, takes its script and completes
// with it.
func TestCompletionInShells(t *testing.T) {
	bin := build(t)
	asks := map[string]string{
		"bash": `source <(archivist completion bash)
COMP_WORDS=(archivist job list --state = f); COMP_CWORD=5; _archivist; echo "${COMPREPLY[@]}"
COMP_WORDS=(archivist job re); COMP_CWORD=2; _archivist; echo "${COMPREPLY[@]}"`,
		"zsh": `autoload -U compinit; compinit -u -d "$1/zcompdump"; source <(archivist completion zsh)
_describe() { print -r -- "${values[@]%%:*}" }
for line in 'archivist job list --state f' 'archivist job re'; do words=(${=line}); CURRENT=$#words; _archivist; done`,
		"fish": `archivist completion fish | source
complete -C 'archivist job list --state f' | string split -f 1 \t | string join ' '
complete -C 'archivist job re' | string split -f 1 \t | string join ' '`,
	}
	for shell, script := range asks {
		t.Run(shell, func(t *testing.T) {
			path, err := exec.LookPath(shell)
			if err != nil {
				t.Skipf("there is no %s here; what its script asks is tested in TestCandidates", shell)
			}
			home := t.TempDir()
			flag := []string{"-c", script, shell, home}
			if shell == "fish" {
				flag = []string{"--no-config", "-c", script}
			}
			cmd := exec.CommandContext(t.Context(), path, flag...)
			cmd.Env = append(
				os.Environ(),
				"PATH="+filepath.Dir(bin)+":"+os.Getenv("PATH"),
				"HOME="+home,
				"TERM=dumb",
			)
			out, err := cmd.CombinedOutput()
			if err != nil || string(out) != "Failed\nreceipt release requeue\n" {
				t.Errorf("%v: %q", err, out)
			}
		})
	}
}

// TestProcessIsInterrupted: ^C ends the process with what shells expect of it.
func TestProcessIsInterrupted(t *testing.T) {
	asked := make(chan bool, 100)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(v1.Batch{ID: "B", State: v1.Processing})
		asked <- true
	}))
	defer srv.Close()

	var said bytes.Buffer
	cmd := exec.CommandContext(t.Context(), build(t), "batch", "show", "B", "--watch", "--api", srv.URL)
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	<-asked
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	err := cmd.Wait()
	if cmd.ProcessState.ExitCode() != command.ExitInterrupted || said.Len() > 0 {
		t.Errorf("%v: %s", err, &said)
	}
}
