package stage_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"archivist/pkg/events/event"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue/queuetest"
	"archivist/pkg/ingest/stage/stagetest"
	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/table"
	"archivist/pkg/objects/ocfl"
)

// object is the stored object of a test, and its keys below its prefix.
type object struct {
	*twins
	ark, prefix string
}

// keys are the keys of the object with their content.
func (o object) keys() map[string]string {
	all := map[string]string{}
	for _, name := range o.S3.Names("storage/" + o.prefix) {
		data, _ := o.S3.Object(name)
		all[strings.TrimPrefix(name, "storage/"+o.prefix)] = string(data)
	}
	return all
}

// set makes the object have these keys and no others.
func (o object) set(keys map[string]string) {
	o.Helper()
	root := o.Stages.Root.Bucket
	for key := range o.keys() {
		if _, stays := keys[key]; !stays {
			if err := root.Delete(o.Context(), o.prefix+key); err != nil {
				o.Fatal(err)
			}
		}
	}
	for key, text := range keys {
		if err := root.Put(o.Context(), o.prefix+key, []byte(text), bucket.Condition{}); err != nil {
			o.Fatal(err)
		}
	}
}

// restored makes the object as it was, and requeues the job that was refused.
func (o object) restored(good map[string]string, job string) {
	o.Helper()
	o.set(good)
	if _, err := queuetest.Requeue(o.Context(), o.Machine.Queue, job, "it is restored", "me"); err != nil {
		o.Fatal(err)
	}
	o.Drive()
}

// without removes from the text of an inventory the content whose path ends in name.
func without(t *testing.T, inventory, name string) string {
	t.Helper()
	var all map[string]any
	if err := json.Unmarshal([]byte(inventory), &all); err != nil {
		t.Fatal(err)
	}
	gone, manifest := 0, all["manifest"].(map[string]any)
	for digest, paths := range manifest {
		if strings.HasSuffix(paths.([]any)[0].(string), name) {
			delete(manifest, digest)
			for _, v := range all["versions"].(map[string]any) {
				delete(v.(map[string]any)["state"].(map[string]any), digest)
			}
			gone++
		}
	}
	text, err := json.Marshal(struct { // its head comes before its manifest
		ID        any `json:"id"`
		Type      any `json:"type"`
		Algorithm any `json:"digestAlgorithm"`
		Head      any `json:"head"`
		Manifest  any `json:"manifest"`
		Versions  any `json:"versions"`
	}{all["id"], all["type"], all["digestAlgorithm"], all["head"], manifest, all["versions"]})
	if err != nil || gone != 1 {
		t.Fatal(gone, err)
	}
	return string(text)
}

func sidecarOf(inventory string) string { return string(ocfl.Sidecar(ocfl.SHA512([]byte(inventory)))) }

const (
	invJSON  = "inventory.json"
	sideJSON = "inventory.json.sha512"
)

// damages are ways to damage an object of two versions that no crash leaves.
var damages = map[string]func(t *testing.T, keys map[string]string){
	"a file left out of the root inventory": func(t *testing.T, keys map[string]string) {
		keys[invJSON] = without(t, keys[invJSON], "producer/one.txt")
	},
	"a file left out, with the sidecar": func(t *testing.T, keys map[string]string) {
		keys[invJSON] = without(t, keys[invJSON], "producer/one.txt")
		keys[sideJSON] = sidecarOf(keys[invJSON])
	},
	"a file left out of both inventories, with the sidecars": func(t *testing.T, keys map[string]string) {
		for _, folder := range []string{"", "v2/"} {
			keys[folder+invJSON] = without(t, keys[folder+invJSON], "producer/one.txt")
			keys[folder+sideJSON] = sidecarOf(keys[folder+invJSON])
		}
	},
	"put back to version 1": func(_ *testing.T, keys map[string]string) {
		keys[invJSON], keys[sideJSON] = keys["v1/"+invJSON], keys["v1/"+sideJSON]
	},
	"put back to version 1, without version 2": func(_ *testing.T, keys map[string]string) {
		keys[invJSON], keys[sideJSON] = keys["v1/"+invJSON], keys["v1/"+sideJSON]
		maps.DeleteFunc(keys, func(key, _ string) bool { return strings.HasPrefix(key, "v2/") })
	},
	"no root inventory": func(_ *testing.T, keys map[string]string) { delete(keys, invJSON) },
	"nothing left":      func(_ *testing.T, keys map[string]string) { clear(keys) },
	"a root inventory that breaks off": func(_ *testing.T, keys map[string]string) {
		keys[invJSON] = keys[invJSON][:len(keys[invJSON])/2]
	},
	"the root inventory of another object": func(_ *testing.T, keys map[string]string) {
		keys[invJSON] = strings.Replace(keys[invJSON], "ark:/99999/", "ark:/99999/x", 1)
	},
}

// unseen are those that can be told from an uncommitted version by the object's row only.
var unseen = []string{"put back to version 1", "put back to version 1, without version 2", "nothing left",
	"a file left out of both inventories, with the sidecars"}

// newDamaged makes an object of two versions.
func newDamaged(t *testing.T) object {
	w := newTwins(t)
	ark := w.Ended(w.Submit("one.txt"), 1, false).Primary
	w.Ended(w.Submit("two.txt"), 2, false)
	return object{w, ark, ocfl.Prefix(ark)}
}

// TestDamagedIsNotBuiltOn: nothing is written to a damaged object. Its deposit fails, says what
// differs and what to do, and is requeued once the object is restored.
func TestDamagedIsNotBuiltOn(t *testing.T) {
	for name, damage := range damages {
		for _, rows := range []bool{true, false} {
			if !rows && slices.Contains(unseen, name) {
				continue
			}
			t.Run(fmt.Sprintf("%s, its row there %v", name, rows), func(t *testing.T) {
				o := newDamaged(t)
				good := o.keys()
				bad := maps.Clone(good)
				damage(t, bad)
				o.set(bad)
				if !rows {
					o.Forget("OBJECT#")
				}
				for _, file := range []string{"three.txt", "two.txt"} { // a new version, and what is stored
					id := o.Submit(file, stagetest.Of(o.ark))
					j := o.Job(id)
					if j.State != ingest.Failed || j.NotRecoverable || j.ObjectVersion != 0 ||
						!strings.Contains(j.Message, "is damaged in the storage root") ||
						!strings.Contains(j.Message, "Then requeue the job") {
						t.Errorf("%s is %s v%d: %s", file, j.State, j.ObjectVersion, j.Message)
					}
					now := o.keys()
					maps.DeleteFunc(now, func(key, _ string) bool { // new content may wait below v3, or v2
						_, was := bad[key]
						return !was && strings.Contains(key, id)
					})
					if !maps.Equal(now, bad) {
						t.Errorf("%s changed the damaged object", file)
					}
					o.set(good)
					o.restored(good, id)
					if file == "three.txt" {
						o.Ended(id, 3, false)
						break // the next case begins again
					}
				}
			})
		}
	}
}

// TestSameOfDamaged: a deposit of what is stored already is not called unchanged over damage.
func TestSameOfDamaged(t *testing.T) {
	for name, damage := range damages {
		t.Run(name, func(t *testing.T) {
			o := newDamaged(t)
			good := o.keys()
			bad := maps.Clone(good)
			damage(t, bad)
			o.set(bad)
			id := o.Submit("two.txt", stagetest.Of(o.ark))
			if j := o.Job(id); j.State != ingest.Failed || j.NotRecoverable {
				t.Errorf("it is %s: %s", j.State, j.Message)
			}
			o.restored(good, id)
			o.Ended(id, 2, true)
		})
	}
}

// TestRecordedInventoryHeals: the row vouches for the root inventory, so its sidecar and the
// inventory of its version are made again by the next version.
func TestRecordedInventoryHeals(t *testing.T) {
	for name, damage := range map[string]func(keys map[string]string){
		"no sidecar":               func(keys map[string]string) { delete(keys, sideJSON) },
		"another sidecar":          func(keys map[string]string) { keys[sideJSON] = "nonsense" },
		"the sidecar of version 1": func(keys map[string]string) { keys[sideJSON] = keys["v1/"+sideJSON] },
	} {
		t.Run(name, func(t *testing.T) {
			o := newDamaged(t)
			bad := o.keys()
			damage(bad)
			delete(bad, "v2/"+invJSON)
			o.set(bad)
			o.Ended(o.Submit("three.txt", stagetest.Of(o.ark)), 3, false)
			now := o.keys()
			if now[sideJSON] != sidecarOf(now[invJSON]) || now["v2/"+sideJSON] != sidecarOf(now["v2/"+invJSON]) {
				t.Error("the sidecars differ from the inventories")
			}
		})
	}
}

// TestReindexOfDamaged: rows are not made from a damaged object: they would vouch for it.
func TestReindexOfDamaged(t *testing.T) {
	for name, damage := range damages {
		if slices.Contains(unseen, name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			o := newDamaged(t)
			bad := o.keys()
			damage(t, bad)
			o.set(bad)
			o.Forget("OBJECT#")
			_, _, err := o.Stages.Reindexer().Object(t.Context(), o.ark, "me", o.Machine.Queue.Now())
			if err == nil || !strings.Contains(err.Error(), "damaged") {
				t.Errorf("the reindex gave %v", err)
			}
			if _, err := o.Stages.Inventory.Object(t.Context(), o.ark); err == nil {
				t.Error("it has a row now")
			}
		})
	}
}

// TestGoodBytesHeal: a deposit that brings the bytes of a stored file which is damaged or missing puts
// them into its place once, and says so in the history and to the depositor.
func TestGoodBytesHeal(t *testing.T) {
	const text = "content of /two.txt"
	for name, damage := range map[string]func(keys map[string]string, file string){
		"another byte":  func(keys map[string]string, file string) { keys[file] = strings.ToUpper(text) },
		"cut off":       func(keys map[string]string, file string) { keys[file] = text[:5] },
		"missing":       func(keys map[string]string, file string) { delete(keys, file) },
		"another's":     func(keys map[string]string, file string) { keys[file] = "content of /one.txt" },
		"empty":         func(keys map[string]string, file string) { keys[file] = "" },
		"with a suffix": func(keys map[string]string, file string) { keys[file] += "!" },
	} {
		for _, file := range []string{"two.txt", "renamed.txt"} { // what is stored, and a new version
			t.Run(name+", "+file, func(t *testing.T) {
				o := newDamaged(t)
				bad, path := o.keys(), ""
				for key := range bad {
					if strings.HasSuffix(key, "producer/two.txt") {
						path = key
					}
				}
				damage(bad, path)
				o.set(bad)
				id := o.Submit("two.txt", stagetest.Of(o.ark), func(b *ingest.Batch) { b.Filename = file })
				version := 2
				if file != "two.txt" {
					version = 3
				}
				j := o.Ended(id, version, version == 2)
				if now := o.keys()[path]; now != text {
					t.Errorf("%s has %q", path, now)
				}
				if all := strings.Join(j.Warnings(), "\n"); !strings.Contains(all, "1 stored files") ||
					!strings.Contains(all, path) {
					t.Errorf("the depositor is told %q", all)
				}
				o.repairs(1)
				o.Submit("two.txt", stagetest.Of(o.ark), func(b *ingest.Batch) { b.Filename = file })
				o.repairs(1)
			})
		}
	}
}

// repairs fails unless the history of the object has so many repairs.
func (o object) repairs(want int) {
	o.Helper()
	var rows []event.Row
	_, err := o.Stages.Queue.Table.Page(o.Context(), table.Query{PK: "OBJECT#" + o.ark, Prefix: "EV#"}, &rows)
	got := 0
	for _, row := range rows {
		if row.Type == "object.repair" {
			got++
		}
	}
	if err != nil || got != want {
		o.Errorf("the history has %d repairs, %v; expected %d", got, err, want)
	}
}

// TestReportOfDamaged: the files of a preserved job are not told from an object that is not as the job stored it. The
// report says so instead.
func TestReportOfDamaged(t *testing.T) {
	w := newTwins(t)
	s := newSource(t, "one", "two")
	s.given.Store(map[string]string{"one": "good"})
	batch := w.deposit(s, "/batch", ingest.TypeBatchManifest)
	ark := w.Job(ingest.JobID(batch, 1)).Primary
	o := object{w, ark, ocfl.Prefix(ark)}
	bad := o.keys()
	bad[invJSON] = without(t, bad[invJSON], "producer/a.txt")
	bad[sideJSON] = sidecarOf(bad[invJSON])
	if first := w.report(batch); len(first.Completed) != 1 || len(first.Completed[0].FileDetails) != 1 {
		t.Fatalf("before the damage: %+v", first)
	}
	o.set(bad)
	s.given.Store(map[string]string{"one": "good", "two": "good"})
	w.requeue(batch, 2)
	w.Drive()
	w.updateReport(batch)
	w.Drive()
	now := w.report(batch)
	if len(now.Completed) != 2 || len(now.Completed[1].FileDetails) != 1 || len(now.Completed[0].FileDetails) > 0 ||
		!strings.Contains(now.Completed[0].Problem, "is damaged in the storage root") {
		t.Errorf("after it: %+v", now.Completed)
	}
}
