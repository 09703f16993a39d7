package stage_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/ingest/stage/stagetest"
)

// update submits files as an update of the object with a local id, as a zip file.
func (d *deposits) update(id string, files map[string]string, how ...func(*ingest.Batch)) *queue.Job {
	d.Helper()
	return d.send(fmt.Sprintf("%s-%d.zip", id, len(d.files)), zipped(files),
		slices.Concat([]func(*ingest.Batch){func(b *ingest.Batch) {
			b.LocalIDs, b.Mode = []string{id}, ingest.ModeUpdate
		}}, how)...)
}

// add submits files as the complete new state of the object with a local id.
func (d *deposits) add(id string, files map[string]string) *queue.Job {
	d.Helper()
	return d.update(id, files, func(b *ingest.Batch) { b.Mode = ingest.ModeAdd })
}

// TestUpdate: the version of an update has the files of the newest one, without those that it replaces or deletes, and
// its own. Unchanged content is not copied.
func TestUpdate(t *testing.T) {
	d := newDeposits(t)
	d.add("box", map[string]string{"a.txt": "a", "b.txt": "b", "c/d.txt": "d", "mrt-erc.txt": "who: Anna\nwhat: Box\n"})
	copies := d.S3.Calls["Copy"]
	j := d.update("box", map[string]string{"b.txt": "new b", "e/f.txt": "f",
		"mrt-delete.txt": "c/d.txt\r\n\nnowhere.txt\n"})
	want := map[string]string{"a.txt": "a", "b.txt": "new b", "e/f.txt": "f", "mrt-erc.txt": "who: Anna\nwhat: Box\n"}
	files := d.holds(j, want)
	if n := d.S3.Calls["Copy"] - copies; n != 2 {
		t.Errorf("%d files were copied; expected 2", n)
	}
	if m := j.Merged; m == nil || m.Kept != 2 || m.Deleted != 1 || m.Files != 4 || j.ObjectVersion != 2 ||
		j.Who != "Anna" {
		t.Errorf("%+v, version %d, who %s", m, j.ObjectVersion, j.Who)
	}
	if w := strings.Join(j.FileWarnings, " "); strings.Count(w, "nowhere.txt") != 1 || strings.Contains(w, "c/d.txt") {
		t.Errorf("warnings: %q", j.FileWarnings)
	}
	if e := files["a.txt"]; !strings.Contains(e.URL, "box-0.zip#a.txt") {
		t.Errorf("the source of a file that was kept is %s", e.URL)
	}

	obj, err := d.Stages.Root.Head(t.Context(), j.Primary)
	if err != nil || !slices.Contains(obj.SystemFiles(2), "system/mrt-delete.txt") {
		t.Errorf("system files %v, %v", obj.SystemFiles(2), err)
	}
	if j := d.update("box", map[string]string{"b.txt": "new b"}); !j.NoChange || j.ObjectVersion != 2 {
		t.Errorf("the same again: version %d, no change %v: %s", j.ObjectVersion, j.NoChange, j.Message)
	}
	if j := d.update("box", map[string]string{"mrt-delete.txt": "a.txt"}); len(d.holds(j, map[string]string{
		"b.txt": "new b", "e/f.txt": "f", "mrt-erc.txt": "who: Anna\nwhat: Box\n"})) != 3 || j.ObjectVersion != 3 {
		t.Errorf("version %d", j.ObjectVersion)
	}
	if j := d.add("other", map[string]string{"mrt-delete.txt": "a.txt"}); !strings.Contains(strings.Join(j.FileWarnings,
		" "), "in the mode update only") {
		t.Errorf("warnings of mrt-delete.txt in the mode add: %q", j.FileWarnings)
	}
}

// TestUpdateOfManyFiles: neither side fits into one segment of the ledger.
func TestUpdateOfManyFiles(t *testing.T) {
	d := newDeposits(t)
	first, second := map[string]string{}, map[string]string{}
	for i := range 700 {
		first[fmt.Sprintf("%d.txt", i)] = fmt.Sprint("file ", i)
		second[fmt.Sprintf("%d.txt", i+600)] = fmt.Sprint("another file ", i)
	}
	d.add("box", first)
	all := maps.Clone(first)
	maps.Copy(all, second)
	delete(all, "7.txt")
	second["mrt-delete.txt"] = "7.txt"
	d.holds(d.update("box", second), all)
}

// TestRefusedUpdates: an update that cannot be one fails for good, with what to do.
func TestRefusedUpdates(t *testing.T) {
	d := newDeposits(t)
	d.add("box", map[string]string{"a.txt": "a", "b/c.txt": "c"})
	for says, files := range map[string]map[string]string{
		`"a.txt", which the submission has, too`:        {"a.txt": "new", "mrt-delete.txt": "a.txt"},
		`"new.txt", which the submission has, too`:      {"new.txt": "new", "mrt-delete.txt": "new.txt"},
		"names all files of the object":                 {"mrt-delete.txt": "a.txt\nb/c.txt\n"},
		`"a.txt" would also be the folder`:              {"a.txt/x.txt": "x"},
		`folder "b" of the stored file "b/c.txt" would`: {"b": "b"},
		"mrt-delete.txt is not UTF-8":                   {"mrt-delete.txt": "\xff"},
	} {
		d.Refused(d.update("box", files).ID, says)
	}
	d.Refused(d.update("unknown", map[string]string{"a.txt": "a"}).ID, "no object of the collection has one")
	d.Refused(d.update("box", map[string]string{"x": "x"}, func(b *ingest.Batch) { b.IfVersion = 7 }).ID, "version 1")
	ark := func(b *ingest.Batch) { b.LocalIDs, b.Primary = nil, stagetest.OnShoulder("fk4nothing") }
	d.Refused(d.update("box", map[string]string{"x": "x"}, ark).ID, "there is nothing to update")
	d.holds(d.update("box", map[string]string{"new.txt": "n", "mrt-delete.txt": "b/c.txt"}),
		map[string]string{"a.txt": "a", "new.txt": "n"})
}

// TestUpdateInLine: an update that is submitted before the object is there waits for it, and one that finds another
// newest version than it began with is made for that.
func TestUpdateInLine(t *testing.T) {
	d := newDeposits(t)
	var jobs []string
	const add, update = ingest.ModeAdd, ingest.ModeUpdate
	for i, mode := range []string{add, update, update, add, update} {
		name := fmt.Sprintf("/%d.zip", i)
		d.files[name] = zipped(map[string]string{fmt.Sprint(i): mode})
		b, err := d.Machine.Queue.Submit(t.Context(), ingest.Batch{Collection: "bench", Mode: mode,
			LocalIDs: []string{"box"}, Payload: ingest.Payload{URL: d.Source.URL + name, Type: ingest.TypeContainer,
				Filename: name[1:]}}, "", nil, "me")
		if err != nil {
			t.Fatal(err)
		}
		jobs = append(jobs, ingest.JobID(b.Batch.ID, 1))
	}
	for range 6 {
		d.Drive()
	}
	last := d.Job(jobs[4])
	if last.ObjectVersion != 5 {
		t.Errorf("the last one is %s as version %d: %s", last.State, last.ObjectVersion, last.Message)
	}
	d.holds(last, map[string]string{"3": add, "4": update})
}
