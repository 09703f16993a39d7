// Package reindex tests that the inventory can be rebuilt from the storage root alone:
// after random histories every row of the inventory is deleted and made again.
package reindex

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"archivist/pkg/formats/ark"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/collection"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/ingest/queue/queuetest"
	"archivist/pkg/ingest/reindex"
	"archivist/pkg/ingest/stage"
	"archivist/pkg/ingest/stage/stagetest"
	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/bucket/buckettest"
	"archivist/pkg/kernel/table/tabletest"
	"archivist/pkg/objects/ocfl"
	"archivist/test/adversary/seeds"
)

// shoulders by collection.
var shoulders = map[string]string{"maps": "fk7", "letters": "fk8"}

// object is what the test expects of a stored object.
type object struct {
	collection string
	ids        []string
	head       int
}

// world is one deployment on twins, with what was submitted to it.
type world struct {
	testing.TB
	rng     *rand.Rand
	m       *queuetest.Machine
	s       *stage.Stages
	rows    *tabletest.Fake
	source  string
	files   map[string]string // what the source serves, by path; others are generated
	fails   map[string]string // the stage that fails for a job, by its file's name
	jobs    []string
	said    map[string]string // how a job was submitted
	objects map[string]*object
}

func newWorld(t testing.TB, seed uint64) *world {
	w := &world{
		TB: t, rng: rand.New(rand.NewPCG(seed, 8)), rows: tabletest.New(), files: map[string]string{},
		fails: map[string]string{}, said: map[string]string{}, objects: map[string]*object{},
	}
	s3 := httptest.NewServer(buckettest.New(t.TempDir()))
	source := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		text, has := w.files[r.URL.Path]
		if !has {
			text = "content of " + r.URL.Path
		}
		_, _ = out.Write([]byte(text))
	}))
	t.Cleanup(s3.Close)
	t.Cleanup(source.Close)
	w.source = source.URL
	w.m = queuetest.New(tabletest.Table(w.rows), time.Now, 50)
	w.s = stagetest.New(w.m, s3.URL)
	draws := 0
	// Many names differ in their first character only, so that the same one is often drawn again, but not so often that
	// a job finds no other: it would be tried again later than the test looks.
	number := func(n int) int {
		draws++
		if draws%9 == 1 || w.rng.IntN(6) == 0 {
			return w.rng.IntN(n)
		}
		return 0
	}
	w.s.Draw = func(string, int) func(int) int { return number }
	for name, shoulder := range shoulders {
		if err := w.s.Collections.Put(t.Context(), name, collection.Profile{Shoulder: shoulder},
			collection.By{Actor: "me"}, 0); err != nil {
			t.Fatal(err)
		}
	}
	real := w.m.Step
	w.m.Step = func(st ingest.Stage) queue.Step {
		return func(ctx context.Context, h *queue.Claim) (ingest.Result, error) {
			if h.Job != nil && w.fails[h.Job.Filename] == st.Name {
				return ingest.Fail(true, "stopped by the test"), nil
			}
			return real(st)(ctx, h)
		}
	}
	return w
}

// one of some values.
func one[T any](w *world, of ...T) T { return of[w.rng.IntN(len(of))] }

// some ids out of a few, so that they collide.
func (w *world) some(most int) (ids []string) {
	for range w.rng.IntN(most + 1) {
		if id := fmt.Sprintf("id %d", w.rng.IntN(8)); !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// primary is an ark of a submission: mostly none, or one that exists or could exist.
func (w *world) primary(of string) string {
	arks := slices.Sorted(maps.Keys(w.objects))
	if n := w.rng.IntN(10); n < 3 && len(arks) > 0 {
		return one(w, arks...) // another collection's, too
	} else if n == 3 {
		return onShoulder(shoulders[of] + one(w, "1", "2"))
	}
	return ""
}

// submit submits something to a collection, with identifiers in one of their places.
func (w *world) submit(to string) string {
	w.Helper()
	n := len(w.jobs)
	in := ingest.Batch{
		Collection: to, Mode: "add", Primary: w.primary(to), LocalIDs: w.some(2),
		Payload: ingest.Payload{
			URL: fmt.Sprintf("%s/%d", w.source, n), Type: ingest.TypeFile, Filename: fmt.Sprintf("%d.txt", n),
		},
		Metadata: ingest.Metadata{What: one(w, "", fmt.Sprint("title ", n))},
	}
	switch w.rng.IntN(3) {
	case 0: // in the package
		in.Filename = "mrt-erc.txt"
		where := strings.Join(append(w.some(3), w.primary(to)), "; ")
		w.files[fmt.Sprintf("/%d", n)] = fmt.Sprintf("who: %d\nwhere: %s\n", n, where)
	case 1: // in a row of a manifest
		w.files[fmt.Sprintf("/%d.checkm", n)] = fmt.Sprintf(
			rowManifest, w.source, n, n, in.Primary, strings.Join(in.LocalIDs, ";"), in.What)
		in = ingest.Batch{Collection: to, Mode: "add", Payload: ingest.Payload{
			URL: fmt.Sprintf("%s/%d.checkm", w.source, n), Type: ingest.TypeSingleFileBatch,
		}}
	}
	if at := w.rng.IntN(8); at < 3 && in.Filename != "mrt-erc.txt" {
		w.fails[fmt.Sprintf("%d.txt", n)] = []string{"download", "store", "record"}[at]
	}
	return w.send(in)
}

const rowManifest = `#%%checkm_0.7
#%%profile | http://uc3.cdlib.org/registry/ingest/manifest/mrt-single-file-batch-manifest
#%%prefix | mrt: | http://merritt.cdlib.org/terms#
#%%prefix | nfo: | http://www.semanticdesktop.org/ontologies/2007/03/22/nfo#
#%%fields | nfo:fileUrl | nfo:hashAlgorithm | nfo:hashValue | nfo:fileSize | nfo:fileLastModified | nfo:fileName | mrt:primaryIdentifier | mrt:localIdentifier | mrt:creator | mrt:title | mrt:date
%s/%d | | | | | %d.txt | %s | %s | | %s |
#%%eof
`

// send submits a batch of one job and runs what can run.
func (w *world) send(in ingest.Batch) string {
	w.Helper()
	b, err := w.m.Queue.Submit(w.Context(), in, "", nil, "me")
	if err != nil {
		w.Fatal(err)
	}
	job := ingest.JobID(b.ID, 1)
	w.jobs = append(w.jobs, job)
	w.said[job] = fmt.Sprintf("%s: %q %q from %s", in.Collection, in.Primary, in.LocalIDs, in.Filename)
	w.run()
	return job
}

func (w *world) run() {
	w.Helper()
	if err := w.m.Run(w.Context(), 5); err != nil {
		w.Fatal(err)
	}
	w.learn()
}

func (w *world) job(id string) *queue.Job {
	w.Helper()
	j, err := w.m.Queue.Job(w.Context(), id)
	if err != nil {
		w.Fatal(err)
	}
	return j
}

// learn notes what is stored, from the jobs.
func (w *world) learn() {
	w.Helper()
	for _, id := range w.jobs {
		j := w.job(id)
		if j.State == ingest.Failed && j.ObjectVersion == 0 || j.State != ingest.Failed && j.State != ingest.Completed {
			continue
		}
		o := w.objects[j.Primary]
		if o == nil {
			o = &object{collection: j.Collection}
			w.objects[j.Primary] = o
		}
		if o.collection != j.Collection {
			w.Fatalf("%s of %s is a version of %s, an object of %s (%s)",
				id, j.Collection, j.Primary, o.collection, w.said[id])
		}
		o.head = max(o.head, j.ObjectVersion)
		for _, local := range j.LocalIDs {
			if !slices.Contains(o.ids, local) {
				o.ids = append(o.ids, local)
			}
		}
	}
}

// history makes a random history.
func (w *world) history() {
	w.Helper()
	names := slices.Sorted(maps.Keys(shoulders))
	for range 10 + w.rng.IntN(8) {
		if failed := w.failed(); len(failed) > 0 && w.rng.IntN(4) == 0 {
			id := one(w, failed...)
			delete(w.fails, w.job(id).Filename)
			if _, err := queuetest.RequeueConfirmed(w.Context(), w.m.Queue, id, "again", "me"); err != nil {
				w.Fatalf("requeue %s: %v", id, err)
			}
			w.run()
			continue
		}
		w.submit(one(w, names...))
	}
}

// failed are the jobs that can be requeued.
func (w *world) failed() (ids []string) {
	for _, id := range w.jobs {
		if j := w.job(id); j.State == ingest.Failed && !j.NotRecoverable {
			ids = append(ids, id)
		}
	}
	return ids
}

// reindex reindexes the whole storage root, a little at a time.
func (w *world) reindex() (sum reindex.Result) {
	w.Helper()
	for cursor, pages := "", 0; pages == 0 || cursor != ""; pages++ {
		until := time.Now().Add(time.Duration(w.rng.IntN(50)) * time.Millisecond)
		page, err := w.s.Reindexer().All(w.Context(), cursor, "", "me", until)
		if err != nil || pages > 1000 {
			w.Fatalf("page %d: %v", pages, err)
		}
		cursor = page.Cursor
		sum.Objects += page.Objects
		sum.Changed += page.Changed
		sum.Failed = append(sum.Failed, page.Failed...)
	}
	return sum
}

// damage makes some objects in the storage root unreadable, and returns which.
func (w *world) damage() map[string]bool {
	spoiled := map[string]bool{}
	arks := slices.Sorted(maps.Keys(w.objects))
	for range min(w.rng.IntN(3), len(arks)-1) {
		ark := one(w, arks...)
		key := ocfl.Prefix(ark) + "inventory.json"
		if err := w.s.Root.Bucket.Put(w.Context(), key, []byte("{}"), bucket.Condition{}); err != nil {
			w.Fatal(err)
		}
		spoiled[ark] = true
	}
	return spoiled
}

// TestStorageRootAlone: after any history, the inventory is rebuilt from the storage root
// alone.
func TestStorageRootAlone(t *testing.T) {
	t.Log(seeds.Each(t, func(t *seeds.T, seed uint64) {
		w := newWorld(t, seed)
		w.history()
		if sum := w.reindex(); len(sum.Failed) > 0 || sum.Objects != len(w.objects) {
			t.Fatalf("before: %d objects for %d, %+v", sum.Objects, len(w.objects), sum.Failed)
		}
		before := w.inventory(nil)
		spoiled := w.damage()
		w.forget()
		w.foreign(spoiled, 2)
		sum := w.reindex()
		if len(sum.Failed) != len(spoiled) || sum.Changed != len(w.objects)-len(spoiled) {
			t.Errorf("%d of %d objects were brought back, %d are spoiled; listed are %+v",
				sum.Changed, len(w.objects), len(spoiled), sum.Failed)
		}
		w.equal(before, w.inventory(spoiled), spoiled)
		w.found(spoiled)
		w.foreign(spoiled, len(w.objects))
		w.minted(spoiled)
	}))
}

// found submits with each id of each object, and fails unless that object is found.
func (w *world) found(spoiled map[string]bool) {
	for _, ark := range slices.Sorted(maps.Keys(w.objects)) {
		o := w.objects[ark]
		for _, id := range slices.Clone(o.ids) {
			if spoiled[ark] {
				continue
			}
			n := o.head + 1
			job := w.send(w.plain(o.collection, "", id))
			if j := w.job(job); j.State != ingest.Completed || j.Primary != ark || j.ObjectVersion != n {
				w.Errorf("%q of %s is %s v%d, not %s v%d: %s %s",
					id, o.collection, j.Primary, j.ObjectVersion, ark, n, j.State, j.Message)
			}
		}
	}
}

// foreign submits to some objects from another collection, and fails if that changes them.
func (w *world) foreign(spoiled map[string]bool, most int) {
	for _, ark := range slices.Sorted(maps.Keys(w.objects))[:min(most, len(w.objects))] {
		o := w.objects[ark]
		other := map[string]string{"maps": "letters", "letters": "maps"}[o.collection]
		if spoiled[ark] {
			continue
		}
		job := w.send(w.plain(other, ark))
		j := w.job(job)
		stored, err := w.s.Root.Head(w.Context(), ark)
		if err != nil {
			w.Fatal(err)
		}
		refused := j.State == ingest.Failed && j.NotRecoverable && !strings.Contains(j.Message, o.collection)
		if !refused || stored.Head != o.head {
			w.Errorf("%s of %s, submitted by %s: %s %q; it has %d versions, had %d",
				ark, o.collection, other, j.State, j.Message, stored.Head, o.head)
		}
	}
}

// minted submits without identifiers, and fails unless that makes new objects.
func (w *world) minted(spoiled map[string]bool) {
	for range 4 {
		old := maps.Clone(w.objects)
		j := w.job(w.send(w.plain("maps", "")))
		if j.Primary == "" && metSpoiled(j.Message, spoiled) {
			continue // the unreadable object may be the job's own; real arks do not collide
		}
		if j.State != ingest.Completed || j.ObjectVersion != 1 || old[j.Primary] != nil || spoiled[j.Primary] {
			w.Errorf("%s v%d is no new object: %s %s", j.Primary, j.ObjectVersion, j.State, j.Message)
		}
	}
}

// metSpoiled reports whether a message names the inventory of a spoiled object.
func metSpoiled(message string, spoiled map[string]bool) bool {
	for ark := range spoiled {
		if strings.Contains(message, ocfl.Prefix(ark)) {
			return true
		}
	}
	return false
}

// plain is a submission of a file with new content.
func (w *world) plain(to, ark string, ids ...string) ingest.Batch {
	n := len(w.jobs)
	return ingest.Batch{Collection: to, Mode: "add", Primary: ark, LocalIDs: ids, Payload: ingest.Payload{
		URL: fmt.Sprintf("%s/%d", w.source, n), Type: ingest.TypeFile, Filename: fmt.Sprintf("plain %d.txt", n),
	}}
}

// onShoulder is an ark with its check character.
func onShoulder(name string) string {
	return "ark:/99999/" + name + string(ark.CheckCharacter("99999/"+name))
}
