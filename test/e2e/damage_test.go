package e2e

import (
	"flag"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/components/preservation"
	"archivist/pkg/formats/checkm"
	"archivist/pkg/objects/fixity"
	"archivist/pkg/objects/ocfl"
)

// damaging lets TestDamageByHand play: it takes long, and needs a second bucket.
var damaging = flag.Bool("damage", false, "play TestDamageByHand, with -replica on an emulator")

// names of files of an object, below its prefix.
const (
	rootInventory = "inventory.json"
	rootSidecar   = "inventory.json.sha512"
	declared      = "0=ocfl_object_1.1"
)

// harm is a kind of damage by hand, of an object of two versions. Its second version has a.txt of the first one, a new
// b.txt, and c.txt.
type harm struct {
	name string
	does func(c *cell, keys map[string]string) // keys are below the object's prefix, with their content
	path string                                // the depositor's file that is damaged; "" = none, it is c.txt then
	says string                                // what the message of a job that fails has, beside that it is damaged
	// unseen is why the validator calls the damaged object valid, "" if it does not.
	unseen string
	// byHand: the damage is nothing that a copy could replace, and a person removes it.
	byHand bool
	// byRecord: only the rows tell it.
	byRecord bool
}

var harms = []harm{
	{name: "a file has other bytes of the same size", path: "c.txt", says: "producer/c.txt",
		does: func(c *cell, keys map[string]string) {
			key := c.content(keys, "c.txt")
			keys[key] = "X" + keys[key][1:]
		}},
	{name: "a file is lost", path: "c.txt", says: "producer/c.txt",
		does: func(c *cell, keys map[string]string) { delete(keys, c.content(keys, "c.txt")) }},
	{name: "a version's folder is lost, with its files", path: "a.txt", says: "is missing",
		does: func(_ *cell, keys map[string]string) {
			maps.DeleteFunc(keys, func(key, _ string) bool { return strings.HasPrefix(key, "v1/") })
		}},
	{name: "a file that belongs to nothing", byHand: true,
		does: func(_ *cell, keys map[string]string) { keys["v1/content/stray.txt"] = "stray" }},
	{name: "a file of the newest version is that of another object", path: "c.txt", says: "producer/c.txt",
		does: func(c *cell, keys map[string]string) { keys[c.content(keys, "c.txt")] = c.other }},
	{name: "the root inventory lacks a file", says: "is on record with the inventory digest",
		does: func(_ *cell, keys map[string]string) { keys[rootInventory] = lacking(keys[rootInventory], "c.txt") }},
	{name: "inventories and sidecars are changed together", says: "is on record with the inventory digest",
		byRecord: true, unseen: "all of it agrees: only the digest on record, outside of the storage root, tells",
		does: func(_ *cell, keys map[string]string) {
			text := strings.ReplaceAll(keys[rootInventory], `["producer/c.txt"]`, `["producer/C.txt"]`)
			for _, folder := range []string{"", "v2/"} {
				keys[folder+rootInventory], keys[folder+rootSidecar] = text, sidecarOf(text)
			}
		}},
	{name: "the sidecar is garbled",
		does: func(_ *cell, keys map[string]string) { keys[rootSidecar] = "nonsense" }},
	{name: "the root inventory is that of version 1", says: "version 2 is on record", byRecord: true,
		does: func(_ *cell, keys map[string]string) {
			keys[rootInventory], keys[rootSidecar] = keys["v1/"+rootInventory], keys["v1/"+rootSidecar]
		}},
	{name: "a version's inventory is changed", says: "inventory",
		does: func(_ *cell, keys map[string]string) { keys["v2/"+rootInventory] += "\n" }},
	{name: "the whole prefix is lost", says: "there is no root inventory",
		does: func(_ *cell, keys map[string]string) { clear(keys) }},
	{name: "the declaration is lost",
		does: func(_ *cell, keys map[string]string) { delete(keys, declared) }},
}

// Cells in which less is kept than the promise. A test that finds another verdict there fails, too.
const (
	beside = "beside" // a version is stored that is right by itself; what is damaged of another is left to the check
	untold = "untold" // what follows from the record is made again, and nobody is told
)

// differing is why some acts on some damaged objects are not as promised, by act and damage.
func differing(act string, h harm) string {
	stores := act == "deposit" || act == "second version" || act == "same content" || act == "requeue"
	switch h.name {
	case "a file that belongs to nothing": // a deposit asks for what it builds on, and not for other keys
		if stores {
			return beside
		}
	case "a version's inventory is changed", "the declaration is lost", "the sidecar is garbled":
		if stores {
			return untold
		}
	case "a file has other bytes of the same size", "a file is lost",
		"a file of the newest version is that of another object": // the new version does not name it
		if act == "second version" {
			return beside
		}
	}
	return ""
}

// lacking is the text of an inventory without a file of the depositor: in its manifest, its states, its fixity.
func lacking(inventory, name string) string {
	entry := regexp.MustCompile(`"[0-9a-f]+":\["[^"\]]*producer/` + regexp.QuoteMeta(name) + `"\],?`)
	return strings.ReplaceAll(entry.ReplaceAllString(inventory, ""), ",}", "}")
}

func sidecarOf(inventory string) string { return string(ocfl.Sidecar(ocfl.SHA512([]byte(inventory)))) }

// act is what is done to an object that is damaged. It notes what the archive says.
type act struct {
	name string
	does func(c *cell)
}

var acts = []act{
	{"deposit", (*cell).deposit},
	{"second version", (*cell).secondVersion},
	{"same content", (*cell).sameContent},
	{"reindex", (*cell).reindex},
	{"replicate", (*cell).replicate},
	{"fixity", (*cell).fixity},
	{"repair", (*cell).repairs},
	{"requeue", (*cell).correction},
}

// TestDamageByHand: twelve kinds of damage to stored objects, and after each all that is done with an object. Nothing
// says that an object is right which is not, by a validator that is not ours; nothing that was committed is overwritten
// or lost; what fails says why, and what to do; after that, the object is valid, and the job that failed completes
// without anything being sent again.
func TestDamageByHand(t *testing.T) {
	begin(t)
	if !*damaging || *replica == "" {
		t.Skip("without -damage, or without -replica NAME")
	}
	cells := storeCells(t)
	t.Run("play", func(t *testing.T) {
		for _, c := range cells {
			t.Run(c.kind.name+"/"+c.act.name, func(t *testing.T) {
				t.Parallel()
				c.T = t
				c.play()
			})
		}
	})
	t.Logf("by %s:\n%s", *lane, tableOf(cells))
}

// play damages an object, does what is to be done, and has the object restored.
func (c *cell) play() {
	c.good = c.keys(out.StorageBucket)
	c.copies = c.keys(*replica)
	if v := c.validates(c.good, c.copies); !v[0].Valid || !v[1].Valid {
		c.Fatalf("before the damage: %+v", v)
	}

	c.bad = maps.Clone(c.good)
	c.kind.does(c, c.bad)
	c.set(c.bad)
	c.seen = c.validates(c.bad)[0]
	if c.seen.Valid != (c.kind.unseen != "") {
		c.Errorf("the validator says of the damaged object %+v", c.seen)
	}

	c.act.does(c)
	c.judge()
	if rounds, _ := c.restore(); c.differs == beside && rounds < 2 {
		c.wrong("no check has found what was damaged beside the new version")
	}
	c.requeue()
	c.finish()
}

// storeCells stores an object for each cell, in two batches: one for each version. It waits until both versions of all
// are copied, and a first check has found each right.
func storeCells(t *testing.T) (cells []*cell) {
	src := newSource(t)
	for _, k := range harms {
		for _, a := range acts {
			n := len(cells) + 1
			cells = append(cells, &cell{T: t, kind: k, act: a, src: src, local: fmt.Sprintf("damage-%02d", n),
				differs: differing(a.name, k),
				other:   fmt.Sprintf("the third file of another object than number %d", n)})
		}
	}
	for version := 1; version <= 2; version++ {
		var rows []checkm.Row
		for _, c := range cells {
			r := c.row(c.manifest(fmt.Sprint("v", version), c.files(version)))
			r.Local, r.Title = []string{c.local}, c.kind.name
			rows = append(rows, r)
		}
		url := src.list(t, fmt.Sprintf("/damage-v%d.checkm", version), "mrt-batch-manifest", rows...)
		in := v1.BatchRequest{Collection: "damage", Payload: v1.Payload{URL: url}}
		b, err := client.Submit(t.Context(), in, url)
		if err != nil {
			t.Fatal(err)
		}
		until(t, fmt.Sprintf("all have version %d", version), 2*soon, func() bool {
			now := batchOf(t, b.ID)
			if now.State == "Failed" {
				t.Fatalf("the batch is %+v", now)
			}
			return now.State == "Completed"
		})
	}
	awaitCells(t, cells)
	return cells
}

// awaitCells waits until the objects are copied and checked, and notes where they are.
func awaitCells(t *testing.T, cells []*cell) {
	until(t, "all objects are copied and checked", 2*soon, func() bool {
		objects, err := client.Objects(t.Context(), v1.Filter{Collection: "damage"})
		if err != nil {
			t.Fatal(err)
		}
		startRun(t, preservation.FixityCheck)
		ready := 0
		for _, o := range objects {
			i := slices.IndexFunc(cells, func(c *cell) bool { return slices.Contains(o.LocalIDs, c.local) })
			if i < 0 || o.Version != 2 {
				t.Fatalf("there is %+v", o)
			}
			cells[i].ark, cells[i].prefix = o.ARK, o.Stored
			if o.FixityOutcome == fixity.OK && o.FixityVersion == 2 && o.Copy != nil && o.Copy.Version == 2 {
				ready++
			}
		}
		return ready == len(cells)
	})
}
