package runner

import (
	"strings"
	"testing"

	"archivist/pkg/kernel/bucket"
	"archivist/pkg/revisions/workflow"
)

// giver runs a task that leaves files, and returns it as an input.
func (w *world) giver(folder, text string) Input {
	w.Helper()
	job := command(text)
	job.Prefix = "runs/" + folder + "/"
	r := w.run(job)
	w.expect(r, Succeeded, 0, "")
	return Input{Folder: folder, Of: "maps/7/" + folder, Prefix: job.Prefix, Files: len(r.Outputs),
		List: ListDigest(r.Outputs)}
}

// object writes an object.
func (w *world) object(key, data string) {
	w.Helper()
	if err := w.Bucket.Put(w.Context(), key, []byte(data), bucket.Condition{}); err != nil {
		w.Fatal(err)
	}
}

// TestInputs: a task finds what others have left, in folders that it cannot change. One that has left nothing is an
// empty folder.
func TestInputs(t *testing.T) {
	w := newWorld(t)
	job := command(`cd $ARCHIVIST_INPUTS && find . -printf '%p %m\n' | sort && cat index/a/b.txt "PREV/pages/c d.txt"`)
	job.Inputs = []Input{
		w.giver("index", `mkdir $ARCHIVIST_OUTPUTS/a && echo index >$ARCHIVIST_OUTPUTS/a/b.txt`),
		w.giver("PREV/pages", `echo pages >"$ARCHIVIST_OUTPUTS/c d.txt"; ls $ARCHIVIST_INPUTS`),
		{Folder: "empty", Of: "maps/7/empty"}, {Folder: "none"}}
	w.expect(w.run(job), Succeeded, 0, "")
	want := ". 555\n./PREV 555\n./PREV/pages 555\n./PREV/pages/c d.txt 444\n./empty 555\n./index 555\n./index/a 555\n" +
		"./index/a/b.txt 444\n./none 555\nindex\npages\n"
	if got := w.output("stdout"); got != want {
		t.Errorf("found %s", got)
	}
}

// TestInputsRefused: what is not what was kept is found before the task begins, whichever of the parts was changed.
func TestInputsRefused(t *testing.T) {
	w := newWorld(t)
	const text = `echo x >$ARCHIVIST_OUTPUTS/a.txt`
	change := func(key, data string) func(*Input) {
		return func(in *Input) { w.object(in.Prefix+key, data) }
	}
	remove := func(key string) func(*Input) {
		return func(in *Input) {
			if err := w.work.Delete(t.Context(), in.Prefix+key); err != nil {
				t.Fatal(err)
			}
		}
	}
	damaged := func(name string) string {
		return `the output "a.txt" of maps/7/` + name + " is not what was kept: it is damaged"
	}
	for name, c := range map[string]struct {
		damage func(*Input)
		reason string
	}{
		"content": {change("outputs/a.txt", "y\n"), damaged("content")},
		"shorter": {change("outputs/a.txt", "x"), damaged("shorter")},
		"longer":  {change("outputs/a.txt", "x\nx"), damaged("longer")},
		"missing": {remove("outputs/a.txt"), `the output "a.txt" of maps/7/missing is missing`},
		"list":    {remove("result"), "the list of the outputs of maps/7/list is missing"},
		// The list and its file fit together, and are not what was recorded.
		"forged": {func(in *Input) {
			change("outputs/a.txt", "y\n")(in)
			change("result", `{"end": "succeeded", "outputs": [{"path": "a.txt", "size": 2, "sha256": `+
				`"3b6a3b8d0f2a5bbde0a9c1ed3cbfc8bba6ea5b0f3e8e8d9db4f0d5d0e6a0b0a6"}]}`)(in)
		}, "the list of the outputs of maps/7/forged is not the one that was recorded"},
		"large": {func(in *Input) {
			huge := []Output{{Path: "a.txt", Size: MaxInputSize + 1, SHA256: strings.Repeat("0", 64)}}
			change("result", `{"end": "succeeded", "outputs": [{"path": "a.txt", "size": 2147483649, "sha256": "`+
				huge[0].SHA256+`"}]}`)(in)
			in.List = ListDigest(huge)
		}, "the inputs have 2147483649 bytes; a task can be given at most 2147483648"},
	} {
		in := w.giver(name, text)
		c.damage(&in)
		job := command("echo begun")
		job.Prefix, job.Inputs = "runs/get-"+name+"/", []Input{in}
		r := w.run(job)
		if r.End != Broken || r.Reason != c.reason || r.Unstarted {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// TestInputOutside: no path of an input leads out of its folder.
func TestInputOutside(t *testing.T) {
	w := newWorld(t)
	out := []Output{{Path: "../../evil", Size: 2,
		SHA256: "73cb3858a687a8494ca3323053016282f3dad39d42cf62ca4e79dda2aac7d9ac"}}
	w.object("runs/evil/result", `{"end": "succeeded", "outputs": [{"path": "../../evil", "size": 2, "sha256": "`+
		out[0].SHA256+`"}]}`)
	w.object("runs/evil/outputs/../../evil", "x\n")
	job := command("echo begun")
	job.Inputs = []Input{{Folder: "a", Of: "maps/7/a", Prefix: "runs/evil/", Files: 1, List: ListDigest(out)}}
	_, err := w.Runner.Run(t.Context(), job)
	if err == nil || !strings.Contains(err.Error(), "path escapes from parent") {
		t.Errorf("a path that leads out: %v", err)
	}
}

// TestParametersAreVariables: what is set, and defaults for the rest.
func TestParametersAreVariables(t *testing.T) {
	w, pdf := newWorld(t), "pdf"
	job := of(workflow.Task{Command: `echo "$FORMAT $VERSION"`, Parameters: map[string]workflow.Parameter{
		"FORMAT": {Type: workflow.String, Default: &pdf}, "VERSION": {Type: workflow.Integer}}})
	job.Parameters = map[string]string{"VERSION": "3"}
	w.expect(w.run(job), Succeeded, 0, "")
	if got := w.output("stdout"); got != "pdf 3\n" {
		t.Errorf("found %q", got)
	}
	job.Prefix, job.Parameters = "runs/missing/", nil
	w.expect(w.run(job), Broken, -1, "parameters.VERSION is missing: the task build has no default for it")
}

// TestOutputsThatCannotBeFiles: two outputs of which one would be the folder of the other.
func TestOutputsThatCannotBeFiles(t *testing.T) {
	w := newWorld(t)
	job := of(workflow.Task{Command: `echo x >$ARCHIVIST_OUTPUTS/a; mkdir a; echo y >a/b`, Outputs: []string{"a/*"}})
	w.expect(w.run(job), Failed, 0, `an output could not be kept: "a" is a file in one of the two folders, and the `+
		`folder of "a/b" in the other`)
}
