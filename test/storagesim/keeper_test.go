package storagesim

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/objects/fixity"
	"archivist/pkg/objects/ocfl"
	"archivist/pkg/objects/replica"
	"archivist/test/adversary"
)

// roots of the objects, as buckets. They are parts of keys, too.
const (
	storageRoot = "storage"
	copyRoot    = "copy"
)

// keeper is a process that checks, copies and repairs the object.
type keeper struct {
	*actor
	replica *replica.Replica
	checks  map[string]*fixity.Checker // by root
}

func (a *actor) keeper() keeper {
	r := &replica.Replica{Table: a.q.Table, NewID: a.w.newID, Now: time.Now, Inventory: a.s.Inventory,
		Root: a.s.Root, To: a.s.Root.Bucket}
	r.To.Name = copyRoot
	first := &fixity.Checker{Table: r.Table, NewID: r.NewID, Now: r.Now, At: fixity.InStorage, Root: r.Root,
		Limits: fixity.Limits{Call: int64(1000 + a.rng.IntN(50_000)), Day: 1 << 40}}
	second := *first
	second.At, second.Root, second.State = fixity.InCopy, r.SecondRoot(), r.Copied
	return keeper{a, r, map[string]*fixity.Checker{storageRoot: first, copyRoot: &second}}
}

// keep copies or checks the object, or has a damaged file of it repaired.
func (w *world) keep(a *actor) {
	a.sleep(time.Duration(1+a.rng.IntN(120)) * time.Second)
	if w.Calm || !w.recorded(a) {
		return // the components work on objects that are on record
	}
	a.end = time.Now().Add(life)
	defer func() { a.end = time.Time{} }()
	k := a.keeper()
	switch a.rng.IntN(5) {
	case 0, 1:
		k.copy()
	case 2:
		k.check(storageRoot)
	case 3:
		k.check(copyRoot)
	case 4:
		if keys := w.damaged(); len(keys) > 0 {
			k.repair(keys[a.rng.IntN(len(keys))])
		}
	}
}

// recorded reports whether a version of the object is on record.
func (w *world) recorded(a *actor) bool {
	a.direct = true
	defer func() { a.direct = false }()
	head, _, err := a.s.Inventory.Recorded(ctx, ark)
	return err == nil && head > 0
}

// late is when a call of a keeper must end.
func late() time.Time { return time.Now().Add(life) }

// since is when work began that takes several calls; the first of them notes it.
func (w *world) since(work string) time.Time {
	if w.begun[work].IsZero() {
		w.begun[work] = time.Now()
	}
	return w.begun[work]
}

// copy copies the object. A copy is called complete only if all content of its version was right when it was compared,
// which can be in an earlier call, and only what was damaged is called damaged.
func (k keeper) copy() bool {
	began := k.w.since("copy")
	r, err := k.replica.Copy(ctx, ark, late())
	switch {
	case fault.Is(err, fault.Invalid), fault.Is(err, fault.Conflict):
		k.w.Met("not copied")
		if k.w.harm == nil {
			k.w.check.fail("the copy of an object that is right: %v", err)
		}
		return false
	case err != nil:
		return false
	}
	delete(k.w.begun, "copy")
	k.w.Met("copied")
	for key, digest := range k.w.check.object(ark).needed {
		path := strings.TrimPrefix(key, storageRoot+"/"+prefixOf(ark))
		if n, _ := ocfl.VersionOf(path); n > r.Version {
			continue
		}
		second := copyRoot + strings.TrimPrefix(key, storageRoot)
		now, there := k.w.twin.Object(second)
		late := k.w.harm != nil && (r.At < began.UnixMilli() || !k.w.harm.at.Before(began))
		if sha(now) != digest && !(late && k.w.harm.has(second, now, there)) {
			k.w.check.fail("version %d is called copied, and %s is not right (there: %v)", r.Version, second, there)
		}
	}
	return true
}

// check checks a root. What was damaged all the time is found, and nothing is called damaged in a root in which
// nothing was.
func (k keeper) check(root string) (done bool) {
	began := k.w.since("check of " + root)
	r, err := k.checks[root].Check(ctx, ark, late())
	if err != nil {
		return errors.Is(err, replica.ErrNotCopied)
	}
	delete(k.w.begun, "check of "+root)
	k.w.Met("check of " + root + ": " + r.Outcome)
	k.w.log("  check of %s: %+v", root, r)
	bad := k.w.inPlace(root)
	harmed := k.w.harm != nil && k.w.harm.root == root
	switch {
	case r.Outcome == fixity.OK && len(bad) > 0 && k.w.harm.at.Before(began):
		k.w.check.fail("the check of %s says ok over damage (%s): %q", root, k.w.harm.kind, bad)
	case r.Outcome != fixity.OK && !harmed && !unfinished(r):
		k.w.check.fail("the check of %s, which is right, says %+v", root, r)
	}
	return true
}

// unfinished reports whether a check has found only what crashes and late workers leave, and the next deposit or the
// doctor removes: files of jobs that no version names and, if a version was recorded whose job is gone, a stale
// sidecar of the root, and the sidecar of a version that another job had claimed before.
func unfinished(r fixity.Result) bool {
	stale := slices.ContainsFunc(r.Problems, func(p fixity.Problem) bool {
		return p.Kind == fixity.BadSidecar && p.Key == ocfl.Inventory(ark, 0).Sidecar
	})
	return !slices.ContainsFunc(r.Problems, func(p fixity.Problem) bool {
		return p.Kind != fixity.Unnamed && !(stale && !strings.Contains(p.Key, "/content/"))
	})
}

// inPlace are the damaged keys of a root that are as the damage left them.
func (w *world) inPlace(root string) (keys []string) {
	for _, key := range w.damaged() {
		if now, there := w.twin.Object(key); w.harm.root == root && w.harm.has(key, now, there) {
			keys = append(keys, key)
		}
	}
	return keys
}

// repair has a file repaired from the other root, as a person does who confirms each plan. A file is called
// restored only if it is as it was, or as a later commit has left it.
func (k keeper) repair(key string) {
	root, file, _ := strings.Cut(key, "/")
	r, err := k.replica.Propose(ctx, ark, file, k.checks[root].At, "sim", "it is damaged")
	for range 20 {
		if err == nil && r.State == replica.Planned {
			r, err = k.replica.Confirm(ctx, ark, r.ID, r.Token, "sim")
		}
		if err != nil || r.State == replica.Done || r.State == replica.Refused || r.State == replica.Failed {
			break
		}
		r, err = k.replica.Advance(ctx, ark, r.ID, late())
	}
	if err != nil || r.State != replica.Done {
		return
	}
	k.w.Met("repaired in " + root)
	now, there := k.w.twin.Object(key)
	if !k.w.harm.has(key, now, there) {
		return
	}
	if was := k.w.harm.keys[key]; string(now) != string(was) {
		k.w.check.fail("%s is called restored, and is as damaged as before", key)
	}
}

// repairAll has what is damaged repaired from the other root, as far as it can be.
func (w *world) repairAll(a *actor) {
	if !w.mutant.keeper || a.rng.IntN(3) == 0 {
		return
	}
	a.direct = true
	defer func() { a.direct = false }()
	for _, key := range w.damaged() {
		a.keeper().repair(key)
	}
}

// kept fails unless the object can be copied and checked when all work has ended: both roots are right, and the
// copy is the same.
func (w *world) kept(a *actor) {
	if !w.mutant.keeper || !w.recorded(a) {
		return
	}
	a.direct = true
	defer func() { a.direct = false }()
	const most = 1000 // calls, each of which goes on where the one before has ended
	k := a.keeper()
	first, second := func() bool { return k.check(storageRoot) }, func() bool { return k.check(copyRoot) }
	for _, work := range []func() bool{
		k.copy, first, first, second, second} { // the first ends a check that began before
		for n := 0; w.check.err == nil && !work(); n++ {
			if n == most {
				w.check.fail("the object cannot be copied or checked in %d calls", most)
			}
		}
	}
	for _, root := range []string{storageRoot, copyRoot} {
		last, err := k.checks[root].At.Last(ctx, a.q.Table, ark)
		if err != nil || last[ark].Outcome != fixity.OK {
			w.check.fail("at rest, the last check of %s says %+v, %v", root, last[ark], err)
		}
	}
	w.same()
}

// same fails unless both roots have the same keys of the object, with the same content.
func (w *world) same() {
	names := map[string]int{}
	for _, root := range []string{storageRoot, copyRoot} {
		for _, key := range w.twin.Names(root + "/" + prefixOf(ark)) {
			names[strings.TrimPrefix(key, root)]++
		}
	}
	for name, n := range names {
		first, _ := w.twin.Object(storageRoot + name)
		second, _ := w.twin.Object(copyRoot + name)
		if n != 2 || string(first) != string(second) {
			w.check.fail("at rest, %s is in %d roots; the same: %v", name, n, string(first) == string(second))
		}
	}
}

// keptSuite is the tests with a keeper, and with damage in either root.
func keptSuite(t *testing.T, m mutant) adversary.Suite {
	s := damagedSuite(t, m)
	s.Covered = []string{"copied", "not copied", "check of storage: ok", "check of copy: ok", "repaired in storage",
		"repaired in copy", "damage: a lost prefix", "damage: a key that is not its own"}
	s.Simulate = func(seed uint64) (*adversary.World, error) {
		m.damage, m.keeper = true, true
		w := simulate(t, seed, m)
		return w.World, w.check.err
	}
	return s
}

// TestKeeper: whatever is damaged, in either root, between any two calls of deposits, copies, checks and repairs:
// no check says "ok" over damage, nothing is called copied or restored that is not, and in the end both roots have
// the same valid object.
func TestKeeper(t *testing.T) { keptSuite(t, mutant{}).Explore(t) }

// TestKeeperMutants: each comparison that is left out is caught.
func TestKeeperMutants(t *testing.T) { adversary.Catch(t, 1000, keeperMutants, keptSuite) }

// moreHarms are damages that the keeper tells of: a deposit asks for what it builds on, and not for every key.
var moreHarms = append(harms[:len(harms):len(harms)],
	harming{"a key that is not its own", false, func(_ *world, prefix string, _ *object,
		_ *rand.Rand) map[string][]byte {
		return map[string][]byte{prefix + "v1/content/stray.txt": []byte("stray")}
	}},
	harming{"a lost prefix", true, func(w *world, prefix string, _ *object, _ *rand.Rand) map[string][]byte {
		lost := map[string][]byte{}
		for _, key := range w.twin.Names(prefix) {
			lost[key] = nil
		}
		return lost
	}},
)

// inCopy are the same changes in the second root; nil if it does not have all of these keys.
func (w *world) inCopy(changes map[string][]byte) map[string][]byte {
	second := map[string][]byte{}
	for key, text := range changes {
		key = copyRoot + strings.TrimPrefix(key, storageRoot)
		if _, there := w.twin.Object(key); !there {
			return nil
		}
		second[key] = text
	}
	return second
}

// owns reports whether a key is of a committed version, or of the object as a whole.
func (o *object) owns(prefix, key string) bool {
	name := strings.TrimPrefix(key, prefix)
	if o.needed[key] != "" || name == "0=ocfl_object_1.1" {
		return true
	}
	folder, file, below := strings.Cut(name, "/")
	if !below {
		folder, file = "v1", name
	}
	n, err := strconv.Atoi(strings.TrimPrefix(folder, "v"))
	return err == nil && n <= len(o.versions) && (file == "inventory.json" || file == "inventory.json.sha512")
}
