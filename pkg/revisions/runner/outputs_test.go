package runner

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"
	"testing"

	"archivist/pkg/revisions/workflow"
)

// TestOutputs: the files in the folder for outputs are kept, and those that match the task's patterns, whole and
// under their paths. Links are not.
func TestOutputs(t *testing.T) {
	w := newWorld(t)
	w.work.Limits.Part = 5 << 20
	job := of(workflow.Task{Shell: "bash", Outputs: []string{"build/**/*.pdf", "log.txt"}, Script: `
mkdir -p "$ARCHIVIST_OUTPUTS/a b/ü" build/x/y
printf 'one' >"$ARCHIVIST_OUTPUTS/a b/ü/c'\"&<.txt"
: >"$ARCHIVIST_OUTPUTS/empty"
head -c 12000000 /dev/zero >"$ARCHIVIST_OUTPUTS/large"
for f in build/1.pdf build/x/y/2.pdf build/x/3.txt log.txt other.txt; do echo $f >$f; done
ln -s /etc/passwd "$ARCHIVIST_OUTPUTS/passwd"
ln -s /etc "$ARCHIVIST_OUTPUTS/etc"
ln -s /etc/passwd build/passwd.pdf
mkfifo "$ARCHIVIST_OUTPUTS/pipe"
exit 3`})
	r := w.run(job)
	w.expect(r, Failed, 3, "exit code 3")
	want := map[string]string{"a b/ü/c'\"&<.txt": "one", "empty": "", "large": strings.Repeat("\x00", 12_000_000),
		"build/1.pdf": "build/1.pdf\n", "build/x/y/2.pdf": "build/x/y/2.pdf\n", "log.txt": "log.txt\n"}
	for _, out := range r.Outputs {
		content, there := want[out.Path]
		sum := sha256.Sum256([]byte(content))
		data, _ := w.S3.Object("work/runs/maps/7/build/1/outputs/" + out.Path)
		if !there || out.Size != int64(len(content)) || out.SHA256 != hex.EncodeToString(sum[:]) ||
			string(data) != content {
			t.Errorf("%+v", out)
		}
	}
	names := w.S3.Names("work/runs/maps/7/build/1/outputs/")
	if len(r.Outputs) != len(want) || len(names) != len(want) {
		t.Errorf("%d outputs, kept are %q", len(r.Outputs), names)
	}
	for _, said := range []string{`"passwd" is not kept: it is a link`, `"etc" is not kept: it is a link`,
		`"build/passwd.pdf" is not kept: it is a link`, `"pipe" is not kept: it is a pipe`} {
		if !strings.Contains(w.output(Note), said) {
			t.Errorf("it does not say %s: %q", said, w.output(Note))
		}
	}
}

// TestOutputsRefused: a run whose outputs cannot be kept has failed, with the path; and nothing from outside of
// the scratch is kept.
func TestOutputsRefused(t *testing.T) {
	for reason, text := range map[string]string{
		"more than 1000 files":                 `cd $ARCHIVIST_OUTPUTS; touch {1..1001}`,
		`"x\ny": the name has a control`:       `touch $ARCHIVIST_OUTPUTS/$'x\ny'`,
		`"x\xff": the name is not in UTF-8`:    `touch $ARCHIVIST_OUTPUTS/$'x\xff'`,
		"the path is too long":                 `cd $ARCHIVIST_OUTPUTS; n=$(printf 'x%.0s' {1..200}); p=$n/$n/$n/$n/$n/$n; mkdir -p $p; touch $p/y`,
		`"b": the outputs have more than`:      `cd $ARCHIVIST_OUTPUTS; truncate -s 600M a b`,
		`"log.txt" is both in the folder`:      `touch log.txt $ARCHIVIST_OUTPUTS/log.txt`,
		"paths are too long for a list":        `cd $ARCHIVIST_OUTPUTS; n=$(printf 'x%.0s' {1..180}); for i in {1..900}; do >$n$i; done`,
		"path escapes from parent":             `rm -r $ARCHIVIST_OUTPUTS; ln -s /etc $ARCHIVIST_OUTPUTS`,
		"openat outputs: no such file":         `rm -r $ARCHIVIST_OUTPUTS`,
		`"x": s3: put runs/maps/7/build/1/out`: `touch $ARCHIVIST_OUTPUTS/x`,
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.S3.Before = func(_, name string) int {
				if strings.HasSuffix(name, "/outputs/x") {
					return http.StatusServiceUnavailable
				}
				return 0
			}
			r := w.run(of(workflow.Task{Shell: "bash", Script: text, Outputs: []string{"log.txt"}}))
			w.expect(r, Failed, 0, "an output could not be kept: ")
			if !strings.Contains(r.Reason, reason) {
				t.Errorf("because %s", r.Reason)
			}
			if names := w.S3.Names("work/runs/maps/7/build/1/outputs/"); len(names) > 0 {
				t.Errorf("kept are %q", names)
			}
		})
	}
}
