package e2e

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"archivist/localstack"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/components/preservation"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/objects/fixity"
)

// cell is one object, a kind of damage to it, and what is done then. Maps are of keys below the object's prefix, with
// their content.
type cell struct {
	*testing.T
	kind  harm
	act   act
	src   *source
	local string // its local id
	other string // the content of a file of another object

	ark, prefix       string
	good, copies, bad map[string]string // stored and copied before the damage; stored right after it

	says   string   // what the archive says in answer
	right  bool     // that is that the object is right, or that something of it is preserved
	healed bool     // and that damaged files were replaced
	job    string   // the job that failed, if one did
	sent   []string // what its submission has at the source
	hand   []string // what a person did without a copy

	differs string // how the promise is known not to be kept; see differing

	// What the validator says of the damaged object, of that after the act, and of that in the end.
	seen, after, last localstack.Verdict
	wrongs            []string // promises that were broken
}

// wrong notes that a promise was broken.
func (c *cell) wrong(format string, args ...any) {
	c.Helper()
	text := fmt.Sprintf(format, args...)
	c.wrongs = append(c.wrongs, text)
	c.Error(text)
}

// files are what the depositor has of a version, by name.
func (c *cell) files(version int) map[string]string {
	all := map[string]string{"a.txt": "first file of " + c.local, "b.txt": "second file of " + c.local}
	if version == 2 {
		all["b.txt"], all["c.txt"] = "second file of "+c.local+", changed", "third file of "+c.local
	}
	return all
}

// manifest puts files and their manifest at the source, and returns the manifest's path.
func (c *cell) manifest(folder string, files map[string]string) (path string) {
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(files)) {
		path := fmt.Sprintf("/%s/%s/%s", c.local, folder, name)
		c.src.put(path, []byte(files[name]))
		c.sent = append(c.sent, path)
	}
	writeManifest(c.T, &text, c.src, c.sent[len(c.sent)-len(files):])
	path = fmt.Sprintf("/%s/%s.checkm", c.local, folder)
	c.src.put(path, []byte(text.String()))
	c.sent = append(c.sent, path)
	return path
}

// content is the key of a file of the depositor.
func (c *cell) content(keys map[string]string, name string) (key string) {
	for key = range keys {
		if strings.HasSuffix(key, "/producer/"+name) {
			return key
		}
	}
	c.Fatalf("no %s is stored", name)
	return ""
}

// keys are those of the object in a bucket.
func (c *cell) keys(bucket string) map[string]string {
	c.Helper()
	all := map[string]string{}
	pages := s3.NewListObjectsV2Paginator(buckets(), &s3.ListObjectsV2Input{Bucket: &bucket, Prefix: &c.prefix})
	for pages.HasMorePages() {
		page, err := pages.NextPage(c.Context())
		if err != nil {
			c.Fatal(err)
		}
		for _, o := range page.Contents {
			all[strings.TrimPrefix(*o.Key, c.prefix)] = storedIn(c.T, bucket, *o.Key)
		}
	}
	return all
}

// set makes the stored object have these keys and no others, with calls of S3.
func (c *cell) set(keys map[string]string) {
	c.Helper()
	now := c.keys(out.StorageBucket)
	for key := range now {
		if _, stays := keys[key]; !stays {
			c.put(key, nil)
		}
	}
	for key, text := range keys {
		if was, there := now[key]; !there || was != text {
			c.put(key, &text)
		}
	}
}

// put puts one key of the stored object, or removes it.
func (c *cell) put(key string, text *string) {
	c.Helper()
	var err error
	if text == nil {
		_, err = buckets().DeleteObject(c.Context(), &s3.DeleteObjectInput{Bucket: &out.StorageBucket,
			Key: aws.String(c.prefix + key)})
	} else {
		_, err = buckets().PutObject(c.Context(), &s3.PutObjectInput{Bucket: &out.StorageBucket,
			Key: aws.String(c.prefix + key), Body: strings.NewReader(*text)})
	}
	if err != nil {
		c.Fatal(err)
	}
}

// validates asks the validator for its verdicts of objects.
func (c *cell) validates(objects ...map[string]string) []localstack.Verdict {
	c.Helper()
	var folders []string
	for _, keys := range objects {
		folders = append(folders, filepath.Join(c.TempDir(), "object"))
		for key, text := range keys {
			to := filepath.Join(folders[len(folders)-1], filepath.FromSlash(key))
			if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
				c.Fatal(err)
			}
			if err := os.WriteFile(to, []byte(text), 0o644); err != nil {
				c.Fatal(err)
			}
		}
	}
	all, err := stack.Verdicts(c.Context(), folders...)
	if err != nil {
		c.Fatal(err)
	}
	return all
}

// lacks are the keys of what was committed that an object does not have as they were, and those that belong to
// nothing. After a new version the root inventory and its sidecar are those of that version.
func (c *cell) lacks(now map[string]string, version int) (keys []string) {
	for key, text := range c.good {
		if is, there := now[key]; (!there || is != text) && (version == 2 || !ofRoot(key)) {
			keys = append(keys, key)
		}
	}
	for key := range now {
		if _, was := c.good[key]; !was && !strings.HasPrefix(key, "v3/") {
			keys = append(keys, key)
		}
	}
	if version > 2 { // the root's files are those of the newest version, whose other keys the validator looks at
		for _, name := range []string{rootInventory, rootSidecar} {
			if now[name] == "" || now[name] != now[fmt.Sprintf("v%d/%s", version, name)] {
				keys = append(keys, name)
			}
		}
	}
	slices.Sort(keys)
	return keys
}

func ofRoot(key string) bool { return key == rootInventory || key == rootSidecar }

// version is the newest one on record.
func (c *cell) version() int {
	c.Helper()
	o, err := client.Object(c.Context(), c.ark)
	if err != nil {
		c.Fatal(err)
	}
	return o.Version
}

// events are those of an item of the object with a name, in their order.
func (c *cell) events(item, name string) (all []v1.ItemEvent) {
	c.Helper()
	list, err := client.ItemHistory(c.Context(), item, 10_000)
	if err != nil {
		c.Fatal(err)
	}
	for _, e := range list {
		if e.Name == name {
			all = append(all, e)
		}
	}
	return all
}

// startRun starts a run of a component, unless one is going.
func startRun(t *testing.T, component string) {
	t.Helper()
	_, err := client.StartRun(t.Context(), component, v1.ComponentRunRequest{Reason: "now"}, "")
	if err != nil && !fault.Is(err, fault.Conflict) {
		t.Fatal(err)
	}
}

// revoke lets a component work on an item again, once it does not work on it.
func (c *cell) revoke(item, event string) {
	c.Helper()
	again := v1.ItemAction{Action: "revoke", Events: []string{event}, Reason: "once more"}
	until(c.T, event+" is revoked", soon, func() bool {
		_, err := client.ActOnItem(c.Context(), item, again, "")
		if err != nil && !fault.Is(err, fault.Conflict) {
			c.Fatal(err)
		}
		return err == nil
	})
}

// check has the stored object checked, by a check that begins now.
func (c *cell) check() (last v1.FixityCheck) {
	c.Helper()
	item, began := "object:"+c.ark, time.Now().UTC().Truncate(time.Second)
	c.revoke(item, preservation.FixityChecked)
	known := len(c.events(item, preservation.FixityChecked))
	until(c.T, "the object is checked", 2*soon, func() bool {
		startRun(c.T, preservation.FixityCheck)
		now := len(c.events(item, preservation.FixityChecked))
		if now == known {
			return false
		}
		var err error
		last, err = client.Fixity(c.Context(), c.ark, v1.InStorage)
		if err != nil {
			c.Fatal(err)
		}
		at, err := time.Parse(time.RFC3339, last.Checked)
		if err != nil {
			c.Fatal(err)
		}
		if at.Before(began) { // it could not be checked
			c.revoke(item, preservation.FixityChecked)
			known = now
			return false
		}
		return true
	})
	return last
}

// restore does what a fixity check asks for, until one says ok: each file that it names is repaired from the copy, and
// what a copy cannot repair is put back, or removed, by hand.
func (c *cell) restore() (rounds, repaired int) {
	for rounds = 1; rounds <= 10; rounds++ {
		found := c.check()
		if found.Outcome == fixity.OK {
			return rounds, repaired
		}
		for _, p := range found.Problems {
			switch r := c.repair(p.Key); {
			case r.State == "done":
				repaired++
			case !strings.Contains(r.Problem, "there is nothing to repair"):
				c.byHand(strings.TrimPrefix(p.Key, c.prefix), r.Problem)
			}
		}
	}
	c.wrong("in %d rounds of checks and repairs the object does not become right", rounds-1)
	return rounds, repaired
}

// repair has one file repaired from its copy, with a plan that a person confirms.
func (c *cell) repair(key string) (r v1.Repair) {
	c.Helper()
	r, err := client.ProposeRepair(c.Context(), c.ark, v1.RepairRequest{File: key, Reason: "It is damaged."})
	if err != nil {
		c.Fatal(err)
	}
	r = c.leaves(r, "planning")
	if r.State != "planned" {
		return r
	}
	_, err = client.ConfirmRepair(c.Context(), c.ark, r.ID,
		v1.RepairConfirmation{Token: r.Token, Reason: "The plan is right."})
	if err != nil {
		c.Fatal(err)
	}
	return c.leaves(r, "planned", "confirmed")
}

// leaves waits until a repair is in none of some states.
func (c *cell) leaves(r v1.Repair, states ...string) v1.Repair {
	c.Helper()
	until(c.T, "the repair is not "+strings.Join(states, " or ")+" any more", 2*soon, func() bool {
		all, err := client.Repairs(c.Context(), c.ark)
		if err != nil {
			c.Fatal(err)
		}
		i := slices.IndexFunc(all, func(o v1.Repair) bool { return o.ID == r.ID })
		if i < 0 {
			c.Fatalf("there is no repair %s", r.ID)
		}
		r = all[i]
		return !slices.Contains(states, r.State)
	})
	return r
}

// byHand is what a person does about a key that no copy can repair.
func (c *cell) byHand(key, why string) {
	c.Helper()
	c.hand = append(c.hand, key+": "+why)
	text, was := c.good[key]
	if !c.kind.byHand || was {
		c.wrong("%s cannot be repaired from the copy: %s", key, why)
	}
	if was {
		c.put(key, &text)
		return
	}
	c.put(key, nil)
}
