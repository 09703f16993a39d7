package console_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/aws/aws-lambda-go/lambda"

	"archivist/localstack"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/formats/checkm"
	"archivist/pkg/kernel/fault"
)

// brokenVar names a file. The program of this test, with that in its environment, is a function, which fails
// while there is such a file.
const brokenVar = "CONSOLE_TEST_BROKEN"

// beFunction is a function until the process is ended.
func beFunction(broken string) {
	lambda.Start(func(context.Context, json.RawMessage) (json.RawMessage, error) {
		if _, err := os.Stat(broken); err == nil {
			return nil, errors.New(hostile)
		}
		return json.RawMessage("{}"), nil
	})
}

// functions are those of the demo: one works, one always fails, and one fails while the file w.broken is there.
func (w *world) functions() (all []localstack.UserFunction, err error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	for name, broken := range map[string]string{"works": "/nowhere/at/all", "breaks": program, "outside": w.broken} {
		all = append(all, localstack.UserFunction{Name: name,
			Command: fmt.Sprintf("%s='%s' exec '%s'", brokenVar, broken, program)})
	}
	return all, nil
}

// function is the ARN of one of them.
func function(name string) string { return "arn:aws:lambda:us-east-1:000000000000:function:" + name }

// scenes lets happen what is not of ingest.
func (w *world) scenes(ctx context.Context) error {
	for _, scene := range []func(context.Context) error{w.line, w.outside, w.archive, w.research, w.examine} {
		if err := scene(ctx); err != nil {
			return err
		}
	}
	_, err := w.api.OpenUpload(ctx, v1.UploadRequest{Collection: "maps", Files: 2, Bytes: 10, Note: first(200)}, "")
	return err
}

// item is what has passed the first component of the line, and failed at the second.
const item = "item:one"

// line makes two components, and an item that fails at the second of them.
func (w *world) line(ctx context.Context) error {
	for _, c := range []struct{ name, after, event, function string }{
		{"first", "Received", "First_done", "works"}, {"second", "First_done", "Second_done", "breaks"}} {
		_, err := w.api.ApplyComponent(ctx, v1.ComponentDefinition{Name: c.name, Event: c.event,
			Description: first(200), PastSuccess: []string{c.after}, Future: []string{c.event},
			Types: []string{"delivery"},
			Wake:  true, Runnable: v1.ComponentRunnable{Lambda: function(c.function)}}, first(200), "")
		if err != nil {
			return err
		}
	}
	return w.fails(ctx, item)
}

// fails makes an item that fails at the second component.
func (w *world) fails(ctx context.Context, item string) error {
	before, err := w.api.Component(ctx, "second")
	if err != nil {
		return err
	}
	in := v1.ItemRequest{ID: item, Reason: first(200), ItemShape: v1.ItemShape{Types: []string{"delivery"}}}
	if _, err := w.api.CreateItem(ctx, in, ""); err != nil {
		return err
	}
	happened := v1.ItemAction{Action: "event", Event: "Received", Reason: first(200)}
	if _, err := w.api.ActOnItem(ctx, item, happened, ""); err != nil {
		return err
	}
	return until(ctx, "the item has failed", func() (bool, error) {
		is, err := w.api.Component(ctx, "second")
		return is.Counts.Failed == before.Counts.Failed+1 && is.Counts.Running == 0 && is.Filling == nil, err
	})
}

// outside makes a consumer that parks what it cannot handle, and replays events to it.
func (w *world) outside(ctx context.Context) error {
	_, err := w.api.ApplyConsumer(ctx, v1.ConsumerDefinition{Name: "outside", Filter: "Object+Create",
		Description: first(200), Target: v1.ConsumerTarget{Lambda: function("outside")}, Retries: -1,
		Start: "horizon"}, first(200))
	if err != nil {
		return err
	}
	if err := w.parked(ctx, func(n int64) bool { return n > 0 }); err != nil {
		return err
	}
	_, err = w.api.StartReplay(ctx, "outside", v1.ReplayRequest{Reason: first(200)}, "")
	return err
}

// parked waits until the consumer has handled all, and parked so many events.
func (w *world) parked(ctx context.Context, enough func(n int64) bool) error {
	return until(ctx, "events are parked", func() (bool, error) {
		is, err := w.api.Consumer(ctx, "outside")
		return enough(is.Parked) && is.Behind == 0, err
	})
}

// tasks of the archive: one writes what would be an element and an escape, one leaves a file, one fails, one waits.
const tasks = `[{name: write, command: 'printf "<script>evil()</script>\n\033[1m\342\200\256x"; echo x > left.txt',
outputs: [left.txt]}, {name: break, command: 'exit 3'}, {name: after, command: 'true', depends: [write]}]`

// book are the files of the archive, by their names.
var book = map[string]string{"_workflows/all.yaml": tasks, "text.txt": "a text"}

// live are the files of an archive whose first task waits for the file w.goes.
func (w *world) live() map[string]string {
	return map[string]string{"_workflows/all.yaml": `[{name: one, command: 'until [ -e ` + w.goes + ` ]; do sleep 0.1; done'},
{name: two, command: 'true', depends: [one]}]`}
}

// archive makes the archive book, and waits until the tasks of its revision have ended.
func (w *world) archive(ctx context.Context) error {
	return w.archived(ctx, "book", func(plan v1.RevisionPlan) bool { return plan.Ended == plan.Tasks })
}

// archived registers an object of the depositor's server as an archive, and waits until its revision is planned, and is
// as it should be.
func (w *world) archived(ctx context.Context, name string, enough func(plan v1.RevisionPlan) bool) error {
	in := v1.BatchRequest{Collection: "maps",
		Payload: v1.Payload{URL: w.files.URL + "/" + name + ".checkm", Type: "object-manifest"}}
	jobs, err := w.submit(ctx, in, v1.Completed)
	if err != nil {
		return err
	}
	_, err = w.api.PutArchive(ctx, name, v1.ArchiveDefinition{Title: first(200), ReconcileSeconds: -1,
		Location: v1.ArchiveLocation{Kind: "object", ARK: jobs[0].Identifiers.Primary}})
	if err != nil {
		return err
	}
	return until(ctx, "the revision is planned", func() (bool, error) {
		plan, err := w.api.RevisionPlan(ctx, name, 1, "")
		if fault.Is(err, fault.NotFound) {
			return false, nil
		}
		return plan.Planned != "" && enough(plan), err
	})
}

// manifestOf is the manifest of an object that is an archive.
func (w *world) manifestOf(name string, files map[string]string) (string, error) {
	var rows []checkm.Row
	for file, text := range files {
		rows = append(rows, checkm.Row{URL: w.files.URL + "/" + name + "/" + file, Name: file, Size: int64(len(text))})
	}
	var b strings.Builder
	err := checkm.Write(&b, objectManifest, rows)
	return b.String(), err
}

// objectManifest is the profile of manifests of one object.
const objectManifest = "http://uc3.cdlib.org/registry/ingest/manifest/mrt-ingest-manifest"

// faults are the files of a manifest, of which the source does not give three until it is corrected.
var faults = map[string]string{"good.txt": "This one is good\n", "absent.txt": "It is not there\n",
	"closed.txt": "It may not be read\n", "gone.txt": "It is gone\n"}

// faulty are the rows of that manifest.
func (w *world) faulty() (rows []checkm.Row) {
	for _, name := range slices.Sorted(maps.Keys(faults)) {
		sum := sha256.Sum256([]byte(faults[name]))
		rows = append(rows, checkm.Row{URL: w.files.URL + "/faults/" + name, Name: name,
			Size: int64(len(faults[name])), Algorithm: "sha256", Digest: hex.EncodeToString(sum[:])})
	}
	return rows
}

// serveFault answers with one of its files.
func (w *world) serveFault(rw http.ResponseWriter, name string) {
	refused := map[string]int{"absent.txt": http.StatusNotFound, "closed.txt": http.StatusForbidden,
		"gone.txt": http.StatusGone}[name]
	if refused > 0 && !w.corrected.Load() {
		http.Error(rw, "no", refused)
		return
	}
	fmt.Fprint(rw, faults[name])
}

// research makes a project in which a clip was found in an episode, at 75.5 s. A person has to accept that.
func (w *world) research(ctx context.Context) error {
	const project, researcher = localstack.ResearchProject, "bench"
	_, err := w.api.ApplyResearch(ctx, v1.ResearchDefinition{Name: project, Description: first(200), Review: true,
		Analysis: v1.ResearchAnalysis{Name: "correlation", Version: "1"},
		Feeds: []v1.ResearchFeed{{URL: w.files.URL + "/feed.xml", Source: "stream", Kind: "episode",
			EveryMinutes: 60}}}, first(200))
	for _, kind := range []string{v1.Episodes, v1.Clips} {
		if err != nil {
			return err
		}
		var out []v1.ResearchRecorded
		out, err = w.api.Curate(ctx, project, kind, []v1.ResearchRecord{{Source: "radio", ID: kind + "-one",
			Title: first(200), URL: w.files.URL + "/" + kind + ".wav", Curated: "1999-12-31T10:00:00Z"}})
		if err == nil && out[0].Problem != "" {
			err = errors.New(out[0].Problem)
		}
	}
	if err != nil {
		return err
	}
	if _, err := w.api.Hello(ctx, project, v1.ResearchHello{Researcher: researcher, Capacity: 1,
		Host: first(60)}); err != nil {
		return err
	}
	var work *v1.ResearchWork
	err = until(ctx, "a work item is there", func() (there bool, err error) {
		work, err = w.api.NextWork(ctx, project, v1.ResearchNext{Researcher: researcher, Token: "first"})
		return work != nil, err
	})
	if err != nil {
		return err
	}
	if err := w.api.ReportWork(ctx, project, v1.ResearchReport{Project: project, Lease: work.Lease.ID,
		Researcher: researcher, Analysis: "correlation@1", Episode: work.Episode.Key, Clip: work.Clips[0].Key,
		Sequence: 1, Final: true, Count: 1,
		Waveform: &v1.ResearchWaveform{Length: 180_000_000_000, Peaks: peaks()},
		Hits:     []v1.ResearchHit{{Offset: 75_500_000_000, Length: 2_000_000_000, Score: 0.9}}}); err != nil {
		return err
	}
	w.place = "deed?" + url.Values{"kind": {"episode"}, "deed": {"accept"}, "id": {project, work.Episode.Key},
		"episode": {work.Episode.Key}, "clip": {work.Clips[0].Key}, "lease": {work.Lease.ID}, "hit": {"1"}}.Encode()
	return until(ctx, "the pair is researched", func() (bool, error) {
		is, err := w.api.ResearchStatus(ctx, project)
		return is.Coverage.Researched == 1, err
	})
}

// examine lets the doctor look at everything.
func (w *world) examine(ctx context.Context) error {
	op, err := w.api.Start(ctx, v1.OperationRequest{Action: v1.Doctor,
		ActionOptions: v1.ActionOptions{Reason: first(200)}}, "")
	if err != nil {
		return err
	}
	return until(ctx, "the doctor is done", func() (bool, error) {
		o, err := w.api.Operation(ctx, op.ID)
		return o.State == v1.OperationDone, err
	})
}

// fault makes the file that lets the function outside fail.
func (w *world) fault() error {
	dir, err := os.MkdirTemp("", "archivist-console-")
	if err != nil {
		return err
	}
	w.broken, w.goes = filepath.Join(dir, "broken"), filepath.Join(dir, "goes")
	return os.WriteFile(w.broken, nil, 0o644)
}

// peaks are those of a waveform.
func peaks() []byte {
	all := make([]byte, 600)
	for i := range all {
		all[i] = byte(i % 256)
	}
	return all
}
