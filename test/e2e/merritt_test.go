package e2e

import (
	"encoding/xml"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"archivist/pkg/ingest"
)

// TestMerrittClients: curl and a program in Python submit the forms that Merritt documents, as its clients do, and the
// objects are preserved. A form that is sent again is the same batch; a wrong one is refused.
func TestMerrittClients(t *testing.T) {
	begin(t)
	src := newSource(t)
	src.put("/a.txt", []byte("content"))
	dir := t.TempDir()
	file := func(name, content string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	run := func(program string, args ...string) string {
		t.Helper()
		text, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v: %s", program, err, text)
		}
		return string(text)
	}

	letter := file("letter.txt", "Dear reader")
	curl := []string{"-s", "-u", "merritt:" + newToken(t, "merritt", "depositor:e2e").Text, "-F", "file=@" + letter,
		"-F", "type=file",
		"-F", "submitter=ann/Ann Blunt", "-F", "localIdentifier=merritt-curl", "-F", "title=A letter",
		"-F", "responseForm=xml", "-F", "profile=e2e",
		out.APIURL + "/poster/submit"}
	var state struct {
		Batch string `xml:"batchID"`
		Job   string `xml:"jobStates>jobState>jobID"`
	}
	text := run("curl", curl...)
	if err := xml.Unmarshal([]byte(text), &state); err != nil || state.Job == "" {
		t.Fatalf("%s: %v", text, err)
	}
	if again := run("curl", curl...); !strings.Contains(again, state.Batch) {
		t.Errorf("the same form: %s", again)
	}
	first := ends(t, state.Job, "Completed", soon)

	python := func(path, file string, fields ...string) []string {
		t.Helper()
		args := append([]string{"poster.py", out.APIURL + path, file, "responseForm=json", "profile=e2e",
			"submitter=bob"}, fields...)
		return strings.SplitN(strings.TrimSpace(run("python3", args...)), " ", 3)
	}
	got := python("/poster/update/"+first.Identifiers.Primary, file("more.txt", "More"), "type=file")
	second := ends(t, ingest.JobID(got[0], 1), "Completed", soon)
	if second.Identifiers.Primary != first.Identifiers.Primary {
		t.Errorf("the update is of %s, not %s", second.Identifiers.Primary, first.Identifiers.Primary)
	}
	files := map[string]bool{}
	list, err := client.Files(t.Context(), first.Identifiers.Primary, 2)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range list {
		files[f.Path] = true
	}
	if !files["producer/letter.txt"] || !files["producer/more.txt"] {
		t.Errorf("the second version has %v", files)
	}

	src.manifest(t, "/one.checkm", src.row("/a.txt"))
	manifest := file("one.checkm", string(src.files["/one.checkm"]))
	got = python("/object/ingest", manifest, "type=object-manifest", "localIdentifier=merritt-python")
	ends(t, ingest.JobID(got[0], 1), "Completed", soon)

	got = python("/poster/submit", letter, "digestType=md5", "digestValue="+strings.Repeat("0", 32))
	if got[0] != "400" || got[1] != "REQUEST_INVALID" || !strings.HasPrefix(got[2], "digestValue: the file") {
		t.Errorf("a wrong digest: %q", got)
	}
}
