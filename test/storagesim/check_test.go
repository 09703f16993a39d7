package storagesim

import (
	"bytes"
	"crypto/sha512"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/guregu/dynamo/v2"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/kernel/table"
	"archivist/pkg/kernel/table/tabletest"
)

// checker sees every write to the storage root and to the jobs' rows, and keeps the
// first violation.
type checker struct {
	w       *world
	err     error
	blind   bool // what is written now is damage, or restores it
	jobs    map[string]queue.Job
	turn    map[string]int // when a job entered the queue
	storing map[string]time.Time
	objects map[string]*object // by prefix, "storage/…/"
	heard   map[string]int     // callbacks by URL and job
	asked   map[string]int     // requests for them, whether they arrived or not
}

// object is everything that was ever committed of one object.
type object struct {
	versions []version
	needed   map[string]string // sha512 of content, by key
}

// version is one that was committed.
type version struct {
	job   string
	text  string            // its block in the inventory
	state map[string]string // sha512 by logical path
}

// stored is an inventory as in the specification, as far as it is checked.
type stored struct {
	ID       string                     `json:"id"`
	Head     string                     `json:"head"`
	Manifest map[string][]string        `json:"manifest"`
	Versions map[string]json.RawMessage `json:"versions"`
}

func newChecker(w *world) *checker {
	return &checker{w: w, jobs: map[string]queue.Job{}, turn: map[string]int{}, storing: map[string]time.Time{},
		objects: map[string]*object{}, heard: map[string]int{}, asked: map[string]int{}}
}

func (c *checker) fail(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf(format, args...)
		c.w.log("VIOLATION %v", c.err)
	}
}

var rootInventory = regexp.MustCompile(`^(storage/[0-9a-f]{3}/[0-9a-f]{3}/[0-9a-f]{3}/[^/]+/)inventory\.json$`)

// written is called after each request that was sent to S3.
func (c *checker) written(op, key string) {
	if c.blind || !strings.HasPrefix(key, "storage/") || op == "GET object" || op == "HEAD object" || op == "List" {
		return
	}
	if m := rootInventory.FindStringSubmatch(key); m != nil {
		c.committed(m[1])
	}
	now, there := c.w.twin.Object(key)
	for _, o := range c.objects {
		// A late worker can try in vain to write what the damage has removed.
		if digest, needed := o.needed[key]; needed && !c.w.harm.has(key, now, there) {
			c.present(key, digest)
		}
	}
}

// present fails unless content that an inventory names is there.
func (c *checker) present(key, digest string) {
	data, there := c.w.twin.Object(key)
	if !there {
		c.fail("%s is gone, which a committed version names", key)
	} else if sha(data) != digest {
		c.fail("%s is another content than a committed version names", key)
	}
}

func sha(data []byte) string {
	sum := sha512.Sum512(data)
	return hex.EncodeToString(sum[:])
}

// committed records a root inventory as it is after a write.
func (c *checker) committed(prefix string) {
	data, there := c.w.twin.Object(prefix + "inventory.json")
	o := c.objects[prefix]
	if c.w.harm.has(prefix+"inventory.json", data, there) {
		return
	}
	if !there {
		if o != nil {
			c.fail("%s lost its root inventory", prefix)
		}
		return
	}
	if o == nil {
		o = &object{needed: map[string]string{}}
		c.objects[prefix] = o
	}
	var inv stored
	if err := json.Unmarshal(data, &inv); err != nil {
		c.fail("%s: %v", prefix, err)
		return
	}
	prev := len(o.versions)
	versions := parse(inv)
	if c.w.harm.cameBack(prefix+"inventory.json", len(versions)) {
		return
	}
	for i, v := range o.versions {
		if i >= len(versions) || versions[i].text != v.text {
			c.fail("%s: v%d was committed by %s, and is another now", prefix, i+1, v.job)
			return
		}
	}
	if len(versions) > prev+1 || inv.Head != "v"+strconv.Itoa(len(versions)) {
		c.fail("%s went from v%d to %s with %d versions", prefix, prev, inv.Head, len(versions))
	}
	o.versions = versions
	for digest, paths := range inv.Manifest {
		for _, p := range paths {
			if o.needed[prefix+p] == "" {
				o.needed[prefix+p] = digest
				if now, there := c.w.twin.Object(prefix + p); !c.w.harm.commits(prefix+p, now, there) {
					c.present(prefix+p, digest)
				}
			}
		}
	}
	for _, v := range versions {
		for path, digest := range v.state {
			if len(inv.Manifest[digest]) == 0 {
				c.fail("%s: the content of %s is in no manifest", prefix, path)
			}
		}
	}
	if len(versions) > prev {
		c.w.log("  committed v%d by %s", len(versions), versions[prev].job)
		c.order(versions)
	}
}

var content = regexp.MustCompile(`^v(\d+)/content/([^/.]+)\.`)

// writers are the jobs of the versions, by number. Each version has content of its own.
func (inv stored) writers() map[int]string {
	jobs := map[int]string{}
	for _, paths := range inv.Manifest {
		for _, p := range paths {
			if m := content.FindStringSubmatch(p); m != nil {
				n, _ := strconv.Atoi(m[1])
				jobs[n] = m[2]
			}
		}
	}
	return jobs
}

func parse(inv stored) []version {
	var out []version
	jobs := inv.writers()
	for n := 1; n <= len(inv.Versions); n++ {
		raw := inv.Versions["v"+strconv.Itoa(n)]
		var block struct{ State map[string][]string }
		_ = json.Unmarshal(raw, &block)
		v := version{text: string(raw), state: map[string]string{}}
		v.job = jobs[n]
		for digest, paths := range block.State {
			for _, p := range paths {
				v.state[p] = digest
			}
		}
		out = append(out, v)
	}
	return out
}

// order compares the newest version with those before. Versions are in the order in which
// the jobs entered the queue, except for jobs that were requeued, and a job has at most
// one. A job that was submitted earlier may pass those that entered the queue before it,
// since its batch was unpacked late.
func (c *checker) order(versions []version) {
	newest := versions[len(versions)-1]
	for i, v := range versions[:len(versions)-1] {
		if v.job == newest.job {
			c.fail("job %s committed v%d and v%d", v.job, i+1, len(versions))
		}
		came := c.turn[v.job] > c.turn[newest.job] && ingest.SubmittedAfter(v.job, newest.job)
		if came && c.jobs[newest.job].RetryCount == 0 {
			c.fail("v%d is by %s, which came after %s of v%d", i+1, v.job, newest.job, len(versions))
		}
	}
}

// sent is called when a worker sends a commit: it must hold its job, which it checked
// right before.
func (c *checker) sent(a *actor) {
	if j := c.jobs[a.job]; j.State != ingest.Storing || j.Exec != a.exec {
		c.fail("%s commits for job %s, which is %s in execution %d, not %d", a.name, a.job, j.State, j.Exec, a.exec)
	}
}

// rows is called with each write to the table.
func (c *checker) rows(changes []tabletest.Change) {
	for _, ch := range changes {
		sk, _ := ch.After["sk"].(*types.AttributeValueMemberS)
		if sk == nil || sk.Value != "JOB" {
			continue
		}
		var next queue.Job
		if err := dynamo.UnmarshalItem(ch.After, &next); err != nil {
			panic(err)
		}
		prev, known := c.jobs[next.Job.ID]
		if !known {
			c.turn[next.Job.ID] = len(c.turn)
		}
		c.jobs[next.Job.ID] = next
		if prev.State == next.State && prev.ObjectVersion == next.ObjectVersion {
			continue
		}
		c.w.log("  job %s is %s v%d: %s", next.Job.ID, next.State, next.ObjectVersion, next.Message)
		if next.ObjectVersion > 0 {
			c.holds(next)
		}
		c.overDamage(prev, next)
	}
}

// holds fails unless the version that a job names is committed and has the content of the
// job's source.
func (c *checker) holds(j queue.Job) {
	o := c.object(j.Primary)
	if o == nil || j.ObjectVersion > len(o.versions) {
		c.fail("job %s says v%d of %s, which is not committed", j.Job.ID, j.ObjectVersion, j.Primary)
		return
	}
	v := o.versions[j.ObjectVersion-1]
	if !j.NoChange && v.job != j.Job.ID {
		c.fail("job %s says v%d, which is by %s", j.Job.ID, j.ObjectVersion, v.job)
	}
	want := map[string]string{"producer/" + j.Filename: sha([]byte(contentOf(j.URL)))}
	if j.Corrects() {
		c.w.Met("corrected")
		want = o.versions[max(0, j.ObjectVersion-2)].producer()
	}
	if j.Updates() {
		want = c.updated(j, o)
	}
	if !maps.Equal(v.producer(), want) && !(j.Corrects() && j.NoChange) {
		c.fail("job %s: v%d has other files than its source gave", j.Job.ID, j.ObjectVersion)
	}
	if j.IfVersion > 0 && !j.NoChange && j.ObjectVersion != j.IfVersion+1 {
		c.fail("job %s was made for v%d and became v%d", j.Job.ID, j.IfVersion, j.ObjectVersion)
	}
}

// updated are the files that the version of an update has to have.
func (c *checker) updated(j queue.Job, o *object) map[string]string {
	c.w.Met("updated")
	before := j.ObjectVersion - 1
	if !j.NoChange {
		before--
	}
	if before < 0 {
		c.fail("job %s updated nothing", j.Job.ID)
		return nil
	}
	want := o.versions[before].producer()
	if j.Filename != deletions {
		want["producer/"+j.Filename] = sha([]byte(contentOf(j.URL)))
		return want
	}
	if want["producer/a.txt"] != "" {
		c.w.Met("deleted by an update")
	}
	delete(want, "producer/a.txt")
	return want
}

// producer are the depositor's files.
func (v version) producer() map[string]string {
	files := maps.Clone(v.state)
	maps.DeleteFunc(files, func(path, _ string) bool { return !strings.HasPrefix(path, "producer/") })
	return files
}

// local fails unless the local id names the object if its newest version has the id, and does not if a correction
// has withdrawn it. A job that has failed may have reserved it since.
func (c *checker) local() {
	o := c.object(ark)
	if o == nil || len(o.versions) == 0 {
		return
	}
	var ids string
	for key, digest := range o.needed {
		if digest == o.versions[len(o.versions)-1].state["system/mrt-mom.txt"] {
			data, _ := c.w.twin.Object(key)
			ids = string(data)
		}
	}
	named := c.w.fake.Row(table.Key{PK: "LOCAL#" + collected + "#" + localID, SK: "LOCAL"}) != nil
	withdrawn := strings.Contains(ids, "withdrawnLocalIdentifier: "+localID)
	if withdrawn {
		c.w.Met("withdrawn")
	}
	reserved := slices.ContainsFunc(slices.Collect(maps.Values(c.jobs)), func(j queue.Job) bool {
		return j.State == ingest.Failed && len(j.LocalIDs) > 0
	})
	if has := strings.Contains(ids, "\nlocalIdentifier: "+localID); has && !named || withdrawn && named && !reserved {
		c.fail("the local id names the object: %v; its newest version says %s", named, ids)
	}
}

func (c *checker) object(ark string) *object { return c.objects["storage/"+prefixOf(ark)] }

// open are the jobs that have not ended.
func (c *checker) open() (n int) {
	for _, j := range c.jobs {
		if j.State.Open() {
			n++
		}
	}
	return n
}

// uncleaned reports whether failed jobs have work files.
func (c *checker) uncleaned() bool {
	for _, j := range c.jobs {
		if j.Uncleaned() {
			return true
		}
	}
	return false
}

// atRest checks the final state of all jobs and objects, when all work has ended.
func (c *checker) atRest() {
	for _, id := range slices.Sorted(maps.Keys(c.jobs)) {
		j := c.jobs[id]
		if j.State.Open() {
			c.fail("job %s is still %s: %s", id, j.State, j.Message)
		}
		if j.State == ingest.Completed && j.ObjectVersion == 0 {
			c.fail("job %s is Completed without a version", id)
		}
		if (j.ObjectVersion > 0) != strings.HasPrefix(j.Message, "preserved as ") && j.State == ingest.Failed {
			c.fail("job %s is Failed v%d and says %q", id, j.ObjectVersion, j.Message)
		}
		if o := c.object(j.Primary); o != nil {
			for n, v := range o.versions {
				if v.job == id && j.ObjectVersion != n+1 {
					c.fail("job %s is %s v%d, and v%d is its", id, j.State, j.ObjectVersion, n+1)
				}
			}
		}
	}
	for _, prefix := range slices.Sorted(maps.Keys(c.objects)) {
		c.valid(prefix)
	}
	c.local()
}

// valid checks a stored object: every inventory and sidecar, all content, and that nothing
// else is there.
func (c *checker) valid(prefix string) {
	o := c.objects[prefix]
	named := map[string]bool{"0=ocfl_object_1.1": true}
	inventoryAt := func(folder string, n int) {
		data, there := c.w.twin.Object(prefix + folder + "inventory.json")
		side, _ := c.w.twin.Object(prefix + folder + "inventory.json.sha512")
		if !there || string(side) != sha(data)+" inventory.json\n" {
			c.fail("%s%s: the inventory is there: %v; its sidecar is %q", prefix, folder, there, side)
			return
		}
		var inv stored
		if err := json.Unmarshal(data, &inv); err != nil || inv.Head != "v"+strconv.Itoa(n) || len(inv.Versions) != n {
			c.fail("%s%s: the inventory has the head %s, %v", prefix, folder, inv.Head, err)
			return
		}
		for i, v := range parse(inv) {
			if v.text != o.versions[i].text {
				c.fail("%s%s: v%d is not as in the root inventory", prefix, folder, i+1)
			}
		}
		named[folder+"inventory.json"], named[folder+"inventory.json.sha512"] = true, true
	}
	inventoryAt("", len(o.versions))
	for n := range o.versions {
		inventoryAt(fmt.Sprintf("v%d/", n+1), n+1)
	}
	root, _ := c.w.twin.Object(prefix + "inventory.json")
	if head, _ := c.w.twin.Object(fmt.Sprintf("%sv%d/inventory.json", prefix, len(o.versions))); !bytes.Equal(root,
		head) {
		c.fail("%s: the head's inventory is not the root's", prefix)
	}
	for key, digest := range o.needed {
		c.present(key, digest)
		named[strings.TrimPrefix(key, prefix)] = true
	}
	for _, key := range c.w.twin.Names(prefix) {
		if !named[strings.TrimPrefix(key, prefix)] {
			c.fail("%s is there, and no inventory names it", key)
		}
	}
}
