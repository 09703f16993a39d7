package storagesim

import (
	"bytes"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/kernel/bucket"
	"archivist/pkg/objects/ocfl"
	"archivist/test/adversary"
)

// harm is damage that a disk or a hand does to the stored object, once in a seed.
type harm struct {
	kind     string
	root     string
	at       time.Time
	versions int               // of the object then
	keys     map[string][]byte // as they were; nil: not there
	bad      map[string][]byte // as they were made; nil: removed

	// Those that no committed version named then, as they were.
	uncommitted map[string][]byte
}

// harming is a kind of damage. That of inventories is done only while the newest version is on record: without
// a record, an object that was put back as a whole cannot be told from one that never went on.
type harming struct {
	kind      string
	inventory bool
	// do returns the keys that change, with their new content; nil removes a key.
	do func(w *world, prefix string, o *object, rng *rand.Rand) map[string][]byte
}

var harms = []harming{
	{"other bytes", false, func(w *world, _ string, o *object, rng *rand.Rand) map[string][]byte {
		return map[string][]byte{o.anyContent(rng): []byte("damaged")}
	}},
	{"a lost file", false, func(w *world, _ string, o *object, rng *rand.Rand) map[string][]byte {
		return map[string][]byte{o.anyContent(rng): nil}
	}},
	{"put back", true, func(w *world, prefix string, o *object, _ *rand.Rand) map[string][]byte {
		if len(o.versions) < 2 {
			return nil
		}
		before := prefix + "v" + strconv.Itoa(len(o.versions)-1) + "/"
		text, _ := w.twin.Object(before + "inventory.json")
		side, _ := w.twin.Object(before + "inventory.json.sha512")
		return map[string][]byte{prefix + "inventory.json": text, prefix + "inventory.json.sha512": side}
	}},
	{"tampered with", true, func(w *world, prefix string, _ *object, _ *rand.Rand) map[string][]byte {
		text, _ := w.twin.Object(prefix + "inventory.json")
		text = bytes.ReplaceAll(text, []byte("ingest of job"), []byte("INGEST of job"))
		return map[string][]byte{prefix + "inventory.json": text,
			prefix + "inventory.json.sha512": []byte(sha(text) + " inventory.json\n")}
	}},
	{"no root inventory", true, func(_ *world, prefix string, _ *object, _ *rand.Rand) map[string][]byte {
		return map[string][]byte{prefix + "inventory.json": nil}
	}},
	{"another sidecar", true, func(_ *world, prefix string, _ *object, _ *rand.Rand) map[string][]byte {
		return map[string][]byte{prefix + "inventory.json.sha512": []byte("nonsense")}
	}},
	{"the version's inventory", true, func(_ *world, prefix string, o *object, _ *rand.Rand) map[string][]byte {
		return map[string][]byte{prefix + "v" + strconv.Itoa(len(o.versions)) + "/inventory.json": []byte("{}")}
	}},
}

// anyContent is a key of content that a version names.
func (o *object) anyContent(rng *rand.Rand) string {
	keys := make([]string, 0, len(o.needed))
	for key := range o.needed {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys[rng.IntN(len(keys))]
}

// damage damages the object, if it has a version. It is not a call of the system: the checker keeps what
// was committed.
func (w *world) damage(a *actor) {
	o := w.check.object(ark)
	if w.harm != nil || o == nil || len(o.versions) == 0 {
		return
	}
	kinds, root := harms, storageRoot
	if w.mutant.keeper {
		kinds = moreHarms
	}
	h := kinds[a.rng.IntN(len(kinds))]
	a.direct = true
	defer func() { a.direct = false }()
	if h.inventory {
		head, _, err := a.s.Inventory.Recorded(ctx, ark)
		if err != nil || head != len(o.versions) {
			return
		}
	}
	prefix := storageRoot + "/" + prefixOf(ark)
	changes := h.do(w, prefix, o, a.rng)
	if w.mutant.keeper && !h.inventory && a.rng.IntN(2) == 0 {
		changes, root = w.inCopy(changes), copyRoot
	}
	if len(changes) == 0 {
		return
	}
	w.harm = &harm{kind: h.kind, root: root, at: time.Now(), versions: len(o.versions), keys: map[string][]byte{},
		bad: changes, uncommitted: map[string][]byte{}}
	w.Met("damage: " + h.kind)
	for _, key := range slices.Sorted(maps.Keys(changes)) {
		w.log("DAMAGE %s: %s", h.kind, key)
		// What a job has not committed yet is not restored.
		data, there := w.twin.Object(key)
		if !there || root == copyRoot || o.owns(prefix, key) {
			w.harm.keys[key] = data
		} else {
			w.harm.uncommitted[key] = data
		}
		w.overwrite(a, key, changes[key])
	}
}

// overwrite puts a key in place, without the checker.
func (w *world) overwrite(a *actor, key string, text []byte) {
	w.check.blind = true
	defer func() { w.check.blind = false }()
	root := a.s.Root.Bucket
	root.Name, key, _ = strings.Cut(key, "/")
	var err error
	if text == nil {
		err = root.Delete(ctx, key)
	} else {
		err = root.Put(ctx, key, text, bucket.Condition{})
	}
	if err != nil {
		w.check.fail("damage: %v", err)
	}
}

// has reports whether a key is as the damage left it: a request that S3 refused has not changed it.
func (h *harm) has(key string, now []byte, there bool) bool {
	if h == nil {
		return false
	}
	bad, harmed := h.bad[key]
	return harmed && there == (bad != nil) && bytes.Equal(now, bad)
}

// cameBack reports whether a root inventory that the damage has removed is there again with fewer versions than it
// had: the condition of an early commit, that there is none, holds for a request that comes late.
func (h *harm) cameBack(key string, versions int) bool {
	if h == nil {
		return false
	}
	bad, harmed := h.bad[key]
	return harmed && bad == nil && versions < h.versions
}

// commits reports whether a key that a version names, which is committed now, is as the damage left it before: the
// request came late, and no worker could look again. It is one of those that are restored then.
func (h *harm) commits(key string, now []byte, there bool) bool {
	if !h.has(key, now, there) {
		return false
	}
	version, _, _ := strings.Cut(key, "/content/")
	for _, k := range []string{key, version + "/inventory.json", version + "/inventory.json.sha512"} {
		if was, known := h.uncommitted[k]; known {
			h.keys[k] = was
		}
	}
	return true
}

// damaged are the keys that are not as they were before the damage, and that no later commit has replaced.
func (w *world) damaged() (keys []string) {
	if w.harm == nil {
		return nil
	}
	for _, key := range slices.Sorted(maps.Keys(w.harm.keys)) {
		now, there := w.twin.Object(key)
		was, o := w.harm.keys[key], w.check.object(ark)
		_, file, _ := strings.Cut(key, "/")
		if digest := o.needed[storageRoot+"/"+file]; digest != "" && there && sha(now) == digest {
			continue
		}
		if there != (was != nil) || !bytes.Equal(now, was) {
			keys = append(keys, key)
		}
	}
	return slices.DeleteFunc(keys, func(key string) bool { return w.sidecarAnew(key, keys) })
}

// sidecarAnew reports whether a key is that of a sidecar which was written again since, for an inventory that is not
// damaged: what was there before the damage may have been a late worker's.
func (w *world) sidecarAnew(key string, damaged []string) bool {
	inventory, is := strings.CutSuffix(key, ".sha512")
	if !is || slices.Contains(damaged, inventory) {
		return false
	}
	now, _ := w.twin.Object(key)
	of, there := w.twin.Object(inventory)
	return there && bytes.Equal(now, ocfl.Sidecar(ocfl.SHA512(of)))
}

// restore is what an operator does about the damage: what is not as it was is put back. What was healed, or
// was followed by another version, stays.
func (w *world) restore(a *actor) {
	if w.harm == nil {
		return
	}
	w.repairAll(a)
	a.direct = true
	defer func() { a.direct = false }()
	bad := w.damaged()
	root, _ := w.twin.Object("storage/" + prefixOf(ark) + "inventory.json")
	followed := w.harm.versions < len(w.check.object(ark).versions)
	for _, key := range bad {
		name := key[strings.LastIndexByte(key, '/')+1:]
		top := strings.TrimPrefix(key, "storage/"+prefixOf(ark)) == name
		now, there := w.twin.Object(key)
		if top && followed && len(root) > 0 && !w.harm.has(key, now, there) {
			continue // the root's own files are those of a later version
		}
		w.log("RESTORED %s", key)
		w.Met("restored by a person: " + w.harm.kind)
		w.overwrite(a, key, w.harm.keys[key])
	}
	if len(bad) == 0 {
		w.Met("healed: " + w.harm.kind)
	}
}

// overDamage fails if a job has passed Storing although the object was damaged before it first came
// there: a worker of it that is late may have asked for the stored files before.
func (c *checker) overDamage(prev, next queue.Job) {
	if _, known := c.storing[next.Job.ID]; !known && next.State == ingest.Storing {
		c.storing[next.Job.ID] = time.Now()
	}
	if c.w.harm == nil || prev.State != ingest.Storing || next.State != ingest.Recording ||
		!c.w.harm.at.Before(c.storing[next.Job.ID]) {
		return
	}
	root := "storage/" + prefixOf(ark) + "inventory.json"
	// A root inventory that a later version has replaced is not the damaged one any more.
	if now, there := c.w.twin.Object(root); next.NoChange && c.w.harm.has(root, now, there) {
		c.fail("job %s found no change in a root inventory that is damaged: %s", next.Job.ID, c.w.harm.kind)
	}
	o := c.object(next.Primary)
	if o == nil || next.ObjectVersion > len(o.versions) || !next.NoChange && next.ObjectVersion <= c.w.harm.versions {
		return // its own version was committed before
	}
	for path, digest := range o.versions[next.ObjectVersion-1].state {
		if next.NoChange && !strings.HasPrefix(path, "producer/") {
			continue // the submission brings no system file of that version: the fixity check reads them
		}
		for key, needed := range o.needed {
			if needed == digest {
				c.present(key, digest)
			}
		}
	}
}

// damagedSuite is the tests with damage.
func damagedSuite(t *testing.T, m mutant) adversary.Suite {
	s := suite(t, m)
	s.Covered = append(s.Covered, "damage: put back", "damage: a lost file", "healed: other bytes")
	s.Simulate = func(seed uint64) (*adversary.World, error) {
		m.damage = true
		w := simulate(t, seed, m)
		return w.World, w.check.err
	}
	return s
}

// TestDamage: whatever is damaged, and whenever: nothing is built on damage, nothing that was committed is
// overwritten, and all work ends once what cannot be healed is restored.
func TestDamage(t *testing.T) { damagedSuite(t, mutant{}).Explore(t) }

// TestDamageMutants: each comparison that is left out is caught.
func TestDamageMutants(t *testing.T) {
	adversary.Catch(t, 1000, damageMutants, damagedSuite)
}
