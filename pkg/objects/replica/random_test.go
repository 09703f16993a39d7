package replica

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/objects/fixity"
	"archivist/pkg/objects/ocfl"
	"archivist/test/adversary/seeds"
)

// history is a random history of an object whose files are damaged, in either root, between any two steps.
type history struct {
	*world
	rng   *rand.Rand
	right map[int]map[string]string // the files of the object, by its newest version
	head  int
	n     int // of damages: no two are the same
	log   []string
}

// TestDamageInEitherRoot: files are flipped, lost, exchanged, rolled back and added by hand, in the storage root and
// in the copy, between deposits, copies, checks and repairs. A check says "ok" if, and only if, its root has what it
// must have; a copy is called complete only if all content of the version is right; a repair restores what can be
// restored and changes nothing else; and in the end all is right again, but for what was wrong in both roots.
func TestDamageInEitherRoot(t *testing.T) {
	played := seeds.Each(t, func(t *seeds.T, seed uint64) {
		h := &history{world: newWorld(t), rng: rand.New(rand.NewPCG(seed, 1)), right: map[int]map[string]string{}}
		h.head = 2
		h.right[2] = h.files("storage")
		defer func() {
			if t.Failed() || seeds.Alone() {
				t.Logf("seed %d:\n%s", seed, strings.Join(h.log, "\n"))
			}
		}()
		for range 5 + h.rng.IntN(25) {
			h.step()
		}
		h.heal()
	})
	t.Log(played)
}

func (h *history) say(format string, args ...any) {
	h.log = append(h.log, fmt.Sprintf("%3d %s", len(h.log)+1, fmt.Sprintf(format, args...)))
}

func (h *history) fail(format string, args ...any) {
	h.Helper()
	h.Fatalf("%s\n%s", fmt.Sprintf(format, args...), strings.Join(h.log, "\n"))
}

func (h *history) step() {
	switch h.rng.IntN(8) {
	case 0:
		h.deposit()
	case 1, 2:
		h.copyObject()
	case 3, 4:
		h.damage(h.either())
	case 5, 6:
		h.checkRoot(h.either())
	case 7:
		h.repairOne(h.either(), "")
	}
}

func (h *history) either() string { return []string{"storage", "copy"}[h.rng.IntN(2)] }

// last is the last copy, and whether none is being made.
func (h *history) last() (Result, bool) {
	s, err := h.replica(h.table(through)).load(h.Context(), ark)
	if err != nil {
		h.fail("%v", err)
	}
	return s.Last, s.Run == nil
}

// must is what a root must have; nil if that is not known: there is no copy, or one is being made.
func (h *history) must(root string) map[string]string {
	if root == "storage" {
		return h.right[h.head]
	}
	last, settled := h.last()
	if !settled {
		return nil
	}
	return h.right[last.Version]
}

// wrong are the files of a root that are not as they must be.
func (h *history) wrong(root string) (names []string) {
	must, is := h.must(root), h.files(root)
	for name := range must {
		if text, there := is[name]; !there || text != must[name] {
			names = append(names, name)
		}
	}
	for name := range is {
		if _, ok := must[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// deposit stores a version, if the object is as it must be: what a deposit does with damage is not of this package.
func (h *history) deposit() {
	if len(h.wrong("storage")) > 0 {
		return
	}
	h.store(map[string]string{"a.txt": "one", fmt.Sprintf("of%d.txt", h.head+1): fmt.Sprint("version ", h.head+1)})
	h.head++
	h.right[h.head] = h.files("storage")
	h.say("version %d is stored", h.head)
}

// copyObject copies the object, in calls of any length; it may be cut off.
func (h *history) copyObject() {
	clean := len(h.wrong("storage")) == 0 && (h.must("copy") == nil || len(h.wrong("copy")) == 0)
	before := h.files("storage")
	had, _ := h.last()
	for h.rng.IntN(6) > 0 {
		h.tick = time.Duration(h.rng.IntN(20)) * time.Second
		_, err := h.replica(h.table(through)).Copy(h.Context(), ark, h.until())
		h.tick = 0
		if !maps.Equal(before, h.files("storage")) {
			h.fail("the copy has changed the storage root")
		}
		switch {
		case errors.Is(err, fixity.ErrStopped):
			continue
		case err != nil && (clean || fault.Of(err) == ""):
			h.fail("the copy of an object that is right: %v", err)
		case err != nil:
			h.say("not copied: %v", err)
			return
		}
		last, _ := h.last()
		h.say("version %d is copied", last.Version)
		if last.Version != h.head {
			h.fail("version %d is called copied", last.Version)
		}
		if last == had {
			return // nothing was to be copied; what is damaged since is found by the check
		}
		for name, text := range h.right[h.head] {
			if strings.Contains(name, "/content/") && h.files("copy")[name] != text {
				h.fail("%s of the copy is %q, and called copied", name, h.files("copy")[name])
			}
		}
		return
	}
	h.say("the copy is cut off")
}

// damage changes a root by hand.
func (h *history) damage(root string) {
	must := h.must(root)
	names := slices.Sorted(maps.Keys(must))
	if len(names) == 0 {
		return
	}
	b := h.bucketOf(root)
	name, kind := names[h.rng.IntN(len(names))], h.rng.IntN(5)
	if h.rng.IntN(3) == 0 {
		name = []string{"inventory.json", "inventory.json.sha512"}[h.rng.IntN(2)]
	}
	h.n++
	key := ocfl.Prefix(ark) + name
	switch kind {
	case 0:
		if err := b.Delete(h.Context(), key); err != nil {
			h.fail("%v", err)
		}
	case 1:
		h.put(b, ocfl.Prefix(ark)+fmt.Sprintf("v%d/content/stray%d.txt", 1+h.rng.IntN(h.head), h.n), "stray")
	case 2:
		h.put(b, key, fmt.Sprint("damage ", h.n))
	case 3: // one byte
		text := []byte(must[name])
		if len(text) == 0 {
			return
		}
		text[h.rng.IntN(len(text))] ^= 1
		h.put(b, key, string(text))
	case 4: // rolled back, with or without its sidecar
		h.put(b, ocfl.Prefix(ark)+"inventory.json", must["v1/inventory.json"])
		if h.rng.IntN(2) == 0 {
			h.put(b, ocfl.Prefix(ark)+"inventory.json.sha512", must["v1/inventory.json.sha512"])
		}
	}
	h.say("damage %d of kind %d in %s: %s", h.n, kind, root, name)
}

// checkRoot checks a root, in calls that read any number of bytes.
func (h *history) checkRoot(root string) {
	c := h.checker()
	if root == "storage" {
		c.At, c.Root, c.State = fixity.InStorage, h.replica(c.Table).Root, nil
	}
	must := h.must(root)
	for {
		c.Limits.Call = int64(1000 + h.rng.IntN(5000))
		r, err := c.Check(h.Context(), ark, h.until())
		wrong := h.wrong(root)
		switch {
		case errors.Is(err, fixity.ErrStopped):
			continue
		case must == nil && errors.Is(err, ErrNotCopied):
			return
		case err != nil || must == nil:
			h.fail("check of %s, of which %q are wrong: %+v, %v", root, wrong, r, err)
		case (r.Outcome == fixity.OK) != (len(wrong) == 0) || r.Outcome == fixity.Unreadable:
			h.fail("check of %s, of which %q are wrong: %+v", root, wrong, r)
		}
		h.say("check of %s: %s", root, r.Outcome)
		for _, p := range r.Problems {
			name := strings.TrimPrefix(p.Key, ocfl.Prefix(ark))
			if !slices.Contains(wrong, name) && !slices.Contains(wrong, name+".sha512") {
				h.fail("check of %s names %s, but %q are wrong", root, name, wrong)
			}
		}
		return
	}
}

// restorable reports whether a file of a root can be restored from the other root: that has it, and an inventory that
// is as recorded says which digest it has.
func (h *history) restorable(root, name string) bool {
	must := h.must(root)
	text, named := must[name]
	other := map[string]string{"storage": "copy", "copy": "storage"}[root]
	source := h.files(other)
	from := name
	if root == "copy" && (name == "inventory.json" || name == "inventory.json.sha512") {
		last, _ := h.last()
		from = fmt.Sprintf("v%d/%s", last.Version, name)
	}
	if got, there := source[from]; !named || !there || got != text {
		return false
	}
	if !strings.Contains(name, "/content/") {
		return true
	}
	return h.files(root)["inventory.json"] == must["inventory.json"] ||
		source["inventory.json"] == must["inventory.json"]
}

// repairOne has a file of a root repaired, one that is wrong by preference.
func (h *history) repairOne(root, name string) (done bool) {
	must, wrong := h.must(root), h.wrong(root)
	if len(must) == 0 {
		return false
	}
	if name == "" && len(wrong) > 0 && h.rng.IntN(4) > 0 {
		name = wrong[h.rng.IntN(len(wrong))]
	}
	if name == "" {
		names := slices.Sorted(maps.Keys(must))
		name = names[h.rng.IntN(len(names))]
	}
	at := map[string]fixity.Location{"storage": fixity.InStorage, "copy": fixity.InCopy}[root]
	can := slices.Contains(wrong, name) && h.restorable(root, name)
	first, second := h.files("storage"), h.files("copy")
	row := h.advance(h.proposeAt(at, ocfl.Prefix(ark)+name))
	if row.State == Planned {
		row = h.advance(h.confirm(row))
	}
	h.say("repair of %s in %s: %s %s", name, root, row.State, row.Problem)
	if can != (row.State == Done) || !can && row.State != Refused {
		h.fail("repair of %s in %s, of which %q are wrong: can be restored %v, but %+v", name, root, wrong, can, row)
	}
	if can {
		map[string]map[string]string{"storage": first, "copy": second}[root][name] = must[name]
	}
	if !maps.Equal(first, h.files("storage")) || !maps.Equal(second, h.files("copy")) {
		h.fail("the repair has changed another file, or has not restored this one")
	}
	return can
}

// heal repairs all that can be repaired; what is wrong in both roots comes from a backup, one file after another:
// with an inventory from there, others can be repaired.
func (h *history) heal() {
	for h.repairAll() || h.fromBackup("storage") || h.fromBackup("copy") {
	}
	h.say("all is repaired")
	h.checkRoot("storage")
	for range 100 {
		if _, settled := h.last(); settled {
			break
		}
		h.copyObject()
	}
	h.checkRoot("copy")
}

// repairAll has each wrong file of both roots repaired that can be.
func (h *history) repairAll() (any bool) {
	for _, root := range []string{"storage", "copy"} {
		for _, name := range h.wrong(root) {
			if _, named := h.must(root)[name]; named {
				any = h.repairOne(root, name) || any
			}
		}
	}
	return any
}

// fromBackup brings the first wrong file of a root from a backup, or removes it if it does not belong there.
func (h *history) fromBackup(root string) bool {
	b, must, wrong := h.bucketOf(root), h.must(root), h.wrong(root)
	if must == nil || len(wrong) == 0 {
		return false
	}
	if h.restorable(root, wrong[0]) {
		h.fail("%s of %s can be restored, and was not", wrong[0], root)
	}
	key := ocfl.Prefix(ark) + wrong[0]
	if text, named := must[wrong[0]]; named {
		h.put(b, key, text)
	} else if err := b.Delete(h.Context(), key); err != nil {
		h.fail("%v", err)
	}
	h.say("%s of %s comes from a backup", wrong[0], root)
	return true
}

func (h *history) bucketOf(root string) bucket.Bucket {
	if root == "copy" {
		return h.to
	}
	return h.root.Bucket
}
