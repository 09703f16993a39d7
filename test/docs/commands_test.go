package docs

import (
	"bytes"
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"archivist/pkg/app/boot"
)

var aws = flag.String("aws", "",
	"path of the AWS command line (version 1): check the commands that need an AWS account")

// buildCommandLine builds the command line as dist/archivist of a folder, with the demo beside it.
func buildCommandLine(t *testing.T, folder string) string {
	t.Helper()
	binary := filepath.Join(folder, "dist", "archivist")
	said, err := exec.Command("go", "build", "-o", filepath.Dir(binary)+"/", "archivist/cmd/archivist",
		"archivist/cmd/archivist-demo").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	return binary
}

// stubs stand for the programs of the blocks that need an AWS account. They check what
// they are asked for, do nothing, and answer something. They log refusals: a shell
// script goes on after one.
var stubs = map[string]string{
	// It validates what it sends before it finds that nobody answers.
	"aws": `"$AWS" "$@" --endpoint-url http://127.0.0.1:9 >"$REFUSED.last" 2>&1
grep -q "Could not connect" "$REFUSED.last" || { echo "aws $*"; cat "$REFUSED.last"; } >>"$REFUSED"
echo value`,
	"npx":  `[ "$*" = "aws-cdk bootstrap aws://ACCOUNT/REGION" ] || echo "npx $*" >>"$REFUSED"`,
	"make": `command make -n -C "$REPOSITORY" "$@" >/dev/null 2>"$REFUSED.last" || { echo "make $*"; cat "$REFUSED.last"; } >>"$REFUSED"`,
	"archivist": `"$ARCHIVIST" "$@" >/dev/null 2>"$REFUSED.last"
status=$?
# 3: the API knows nothing of it, so the command and its flags are right.
case $status in 0|3) ;; *) { echo "archivist $*: exit status $status"; cat "$REFUSED.last"; } >>"$REFUSED" ;; esac
echo '{}'`,
}

// TestRemoteCommands: commands that need an AWS account exist, with the options and
// the values that they are given. The blocks run in a shell as they are shown, with
// programs that only check.
func TestRemoteCommands(t *testing.T) {
	if *aws == "" {
		t.Skip("needs the AWS command line: -aws PATH")
	}
	folder := t.TempDir()
	env := stubbed(t, folder)
	if err := os.WriteFile(filepath.Join(folder, "maps.json"), []byte("{}"), 0o644); err != nil { // the reader's
		t.Fatal(err)
	}
	checked := 0
	for _, document := range documents(t) {
		var script bytes.Buffer
		for _, b := range blocksOf(t, document) {
			if b.remote && b.language == "sh" {
				checked++
				script.WriteString(strings.Join(b.lines, "\n") + "\n")
			}
		}
		shell := exec.CommandContext(t.Context(), "bash", "-e")
		shell.Dir, shell.Env, shell.Stdin = folder, env, &script
		if said, err := shell.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", document, err, said)
		}
		refused := filepath.Join(folder, "refused")
		if complaints, err := os.ReadFile(refused); err == nil {
			t.Errorf("%s: %s", document, complaints)
			_ = os.Remove(refused)
		}
	}
	if checked < 15 {
		t.Errorf("%d blocks were checked", checked)
	}
}

// stubbed is an environment in which programs only check what they are asked for. They
// write what they refuse to the file "refused" of a folder.
func stubbed(t *testing.T, folder string) []string {
	t.Helper()
	program, err := filepath.Abs(*aws)
	if err != nil {
		t.Fatal(err)
	}
	repository, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(folder, "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, script := range stubs {
		script = "#!/bin/bash\n" + strings.ReplaceAll(script, "command make", lookPath(t, "make")) + "\n"
		if err := os.WriteFile(filepath.Join(bin, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	api := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(api.Close)
	return append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"),
		"AWS="+program, "ARCHIVIST="+buildCommandLine(t, folder), "REPOSITORY="+repository,
		"REFUSED="+filepath.Join(folder, "refused"), "ARCHIVIST_API="+api.URL, "XDG_CACHE_HOME="+t.TempDir(),
		"AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test", "AWS_REGION=us-east-1", "AWS_DEFAULT_REGION=us-east-1",
		"AWS_MAX_ATTEMPTS=1", "AWS_RETRY_MODE=standard")
}

func lookPath(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

var (
	inline    = regexp.MustCompile("`((?:dist/)?archivist|make) ([a-z][^`]*)`")
	firstWord = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)
)

// TestNamedCommands: commands that a sentence names are there.
func TestNamedCommands(t *testing.T) {
	archivist := buildCommandLine(t, t.TempDir())
	makefile := read(t, filepath.Join(root, "Makefile"))
	known := map[string]bool{}
	checked := 0
	for _, document := range append(documents(t), screens) {
		prose := "`" + strings.Join(shown, "`\n`") + "`"
		if document != screens {
			prose = fenced.ReplaceAllString(read(t, filepath.Join(root, document)), "")
		}
		for _, m := range inline.FindAllStringSubmatch(prose, -1) {
			words := strings.Fields(m[2])
			if end := slices.IndexFunc(words, func(w string) bool { return !firstWord.MatchString(w) }); end >= 0 {
				words = words[:end]
			}
			checked++
			if m[1] == "make" {
				if !strings.Contains(makefile, "\n"+words[0]+":") {
					t.Errorf("%s: there is no target %s", document, words[0])
				}
				continue
			}
			command := strings.Join(words, " ")
			if !known[command] && !hasHelp(archivist, words) && (document != notes || !isRenamed(archivist, words)) {
				t.Errorf("%s: there is no command archivist %s", document, command)
			}
			known[command] = true
		}
	}
	if checked < 30 {
		t.Errorf("%d commands were checked", checked)
	}
}

// notes are of many releases: what they name can have another name now.
const notes = "docs/upgrading.md"

// isRenamed reports whether the command line answers a command with its new name.
func isRenamed(archivist string, words []string) bool {
	said, _ := exec.Command(archivist, words...).CombinedOutput()
	return strings.Contains(string(said), " is now: archivist ")
}

// hasHelp reports whether the command line has help for exactly this command or topic.
func hasHelp(archivist string, words []string) bool {
	if words[0] == "help" {
		return exec.Command(archivist, words...).Run() == nil
	}
	said, err := exec.Command(archivist, append(slices.Clone(words), "--help")...).CombinedOutput()
	return err == nil && strings.Contains(string(said), "archivist "+strings.Join(words, " "))
}

// TestSettings: docs/deploy.md has every setting of a deployment, and no other.
func TestSettings(t *testing.T) {
	code := read(t, filepath.Join(root, "infra/read.go"))
	settings := map[string]bool{}
	for _, m := range regexp.MustCompile(`\b(?:context|text)\("([A-Za-z]+)"`).FindAllStringSubmatch(code, -1) {
		settings[m[1]] = true
	}
	limits := boot.DefaultLimits
	for name := range limits.Named() {
		settings[name] = true
	}
	// of local stacks; of naan's row; of earlier releases
	for _, internal := range []string{"local", "timing", "crashes", "code", "authorizer", "testArks", "apiKeys"} {
		delete(settings, internal)
	}
	described := describedSettings(t)
	if len(settings) < 12 {
		t.Fatalf("found the settings %v", settings)
	}
	for name := range settings {
		if !described[name] {
			t.Errorf("docs/deploy.md does not describe the setting %s", name)
		}
	}
	for name := range described {
		if !settings[name] {
			t.Errorf("docs/deploy.md describes %s, which is no setting", name)
		}
	}
}

// describedSettings are those of the table in docs/deploy.md.
func describedSettings(t *testing.T) map[string]bool {
	t.Helper()
	_, table, _ := strings.Cut(read(t, filepath.Join(root, "docs/deploy.md")), "## Settings")
	table, _, _ = strings.Cut(table, "\n## ")
	described := map[string]bool{}
	for line := range strings.Lines(table) {
		first, _, _ := strings.Cut(strings.TrimPrefix(line, "| "), " |")
		for _, m := range regexp.MustCompile("`([A-Za-z]+)`").FindAllStringSubmatch(first, -1) {
			described[m[1]] = true
		}
	}
	return described
}
