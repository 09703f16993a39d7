package ocfl

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/bucket/buckettest"
	"archivist/pkg/kernel/fetch"
)

// inventory is the whole of one, as the specification has it.
type inventory struct {
	ID              string              `json:"id"`
	Type            string              `json:"type"`
	DigestAlgorithm string              `json:"digestAlgorithm"`
	Head            string              `json:"head"`
	Manifest        map[string][]string `json:"manifest"`
	Versions        map[string]struct {
		Version
		State map[string][]string `json:"state"`
	} `json:"versions"`
	Fixity map[string]map[string][]string `json:"fixity"`
}

const id = "ark:/99999/fk4tq65d6k"

type fixture struct {
	twin *buckettest.Twin
	root Root
}

func open(t testing.TB) fixture {
	twin, buckets := buckettest.Open(t, "storage", "work")
	buckets[0].Limits.Part, buckets[1].Limits.Part = 5000, 5000 // inventories go in parts
	return fixture{twin, Root{Bucket: buckets[0], Work: buckets[1]}}
}

// file puts content into the work bucket.
func (f fixture) file(t testing.TB, path, content string) File {
	d := fetch.NewDigester("md5", "sha1")
	_, _ = d.Write([]byte(content))
	key := "jobs/" + path
	if err := f.root.Work.Put(context.Background(), key, []byte(content), bucket.Condition{}); err != nil {
		t.Fatal(err)
	}
	return File{Path: path, Size: d.Size, Digests: d.Sums(), CRC64: d.CRC64NVME(), Source: key}
}

func all(files []File) iter.Seq2[File, error] {
	return func(yield func(File, error) bool) {
		for _, f := range files {
			if !yield(f, nil) {
				return
			}
		}
	}
}

// prepare and commit do the same as a job at Storing.
func (f fixture) prepare(t testing.TB, job string, files []File) (Prepared, []Content) {
	ctx := context.Background()
	w := f.root.Work.Writer(ctx, "inventory-"+job, bucket.Condition{})
	var contents []Content
	p, err := f.root.Prepare(ctx, Draft{ID: id, Job: job, Files: all(files),
		Version: Version{Created: time.UnixMilli(1000), Message: "by " + job}}, w, func(c Content) error {
		contents = append(contents, c)
		return nil
	})
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return p, contents
}

// text opens an inventory that was prepared.
func (f fixture) text(key string) Text {
	return func(ctx context.Context) (io.ReadCloser, error) {
		body, _, err := f.root.Work.Open(ctx, key)
		return body, err
	}
}

func always() bool { return true }

// owner is the owner of the lock; all other jobs have ended.
func owner() Owner {
	return Owner{
		Fence: func(context.Context) error { return nil },
		Ended: func(context.Context, string) (bool, error) { return true, nil },
		Alone: func() bool { return true },
	}
}

func (f fixture) commit(t testing.TB, p Prepared, job string, contents []Content) error {
	return f.commitAs(t, owner(), p, job, contents)
}

func (f fixture) commitAs(t testing.TB, o Owner, p Prepared, job string, contents []Content) error {
	ctx, just := context.Background(), (*Published)(nil)
	if !p.NoChange && !p.Written {
		if p.Follows == "" {
			if err := f.root.Declare(ctx, id); err != nil {
				t.Fatal(err)
			}
		}
		for _, c := range contents {
			if err := f.root.Copy(ctx, id, c, always); err != nil {
				t.Fatal(err)
			}
		}
		var err error
		if just, err = f.root.Publish(ctx, p, f.text("inventory-"+job), o); err != nil {
			return err
		}
	}
	_, err := f.root.Finish(ctx, id, o, just)
	return err
}

func (f fixture) read(t testing.TB, key string) []byte {
	data, _, err := f.root.Bucket.Read(context.Background(), Prefix(id)+key)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// check compares the stored object with the states that were committed.
func (f fixture) check(t testing.TB, states []map[string]string) {
	var inv inventory
	if err := json.Unmarshal(f.read(t, inventoryName), &inv); err != nil {
		t.Fatal(err)
	}
	if len(inv.Versions) != len(states) || inv.Head != fmt.Sprintf("v%d", len(states)) || inv.ID != id {
		t.Fatalf("%s has %d versions and head %s, expected %d", inv.ID, len(inv.Versions), inv.Head, len(states))
	}
	named := map[string]bool{objectDeclaration: true, inventoryName: true, sidecarName: true}
	for n, want := range states {
		v := fmt.Sprintf("v%d", n+1)
		named[v+"/"+inventoryName], named[v+"/"+sidecarName] = true, true
		got := map[string]string{}
		for digest, paths := range inv.Versions[v].State {
			content := string(f.read(t, inv.Manifest[digest][0]))
			for _, p := range paths {
				got[p] = content
			}
		}
		if !maps.Equal(got, want) {
			t.Fatalf("%s is %v, expected %v", v, got, want)
		}
	}
	contents, fixed := map[string]bool{}, 0
	for _, paths := range inv.Manifest {
		for _, p := range paths {
			named[p], contents[p] = true, true
		}
	}
	for name, block := range inv.Fixity {
		for digest, paths := range block {
			for _, p := range paths {
				d := fetch.NewDigester(name)
				_, _ = d.Write(f.read(t, p))
				if d.Sums()[name] != digest || !contents[p] {
					t.Fatalf("fixity: %s of %s is not %s", name, p, digest)
				}
				fixed++
			}
		}
	}
	if fixed != 3*len(contents) {
		t.Fatalf("%d digests in fixity of %d contents", fixed, len(contents))
	}
	err := f.root.Bucket.List(context.Background(), Prefix(id), func(o bucket.Listed) error {
		if !named[strings.TrimPrefix(o.Key, Prefix(id))] {
			t.Fatalf("%s is there, and no inventory names it", o.Key)
		}
		return nil
	})
	if head := f.read(t, inv.Head+"/"+inventoryName); err != nil || !bytes.Equal(head, f.read(t, inventoryName)) {
		t.Fatalf("the head's inventory is not the root's, %v", err)
	}
}

// Versions of random files, with jobs that die half-way before them, have exactly the bytes
// that were committed, and nothing else is left.
func TestVersions(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		f := open(t)
		var states []map[string]string
		for n := range rapid.IntRange(1, 5).Draw(rt, "versions") {
			paths := []string{"producer/a", "producer/b/ä \"x\"", "producer/c", "producer/d%20",
				"producer/" + strings.Repeat("long/", 220) + "e"}
			texts := []string{"", "one", "two", "three", strings.Repeat("four", 3000)}
			state := rapid.MapOf(rapid.SampledFrom(paths), rapid.SampledFrom(texts)).Draw(rt, "state")
			state["system/job"] = fmt.Sprint("job ", n)
			var files []File
			for _, path := range slices.Sorted(maps.Keys(state)) {
				files = append(files, f.file(t, path, state[path]))
			}
			if rapid.Bool().Draw(rt, "a dead job before") {
				its := f.file(t, "producer/of the dead", fmt.Sprint(n))
				dead, contents := f.prepare(t, fmt.Sprint("dead", n), append([]File{its}, files...))
				for _, c := range contents {
					if err := f.root.Copy(t.Context(), id, c, always); err != nil {
						t.Fatal(err)
					}
				}
				if rapid.Bool().Draw(rt, "claimed") {
					key := fmt.Sprintf("%sv%d/%s", Prefix(id), dead.Number, inventoryName)
					text := f.text(fmt.Sprint("inventory-dead", n))
					if err := f.root.claim(t.Context(), key, dead, text, owner()); err != nil {
						t.Fatal(err)
					}
				}
			}
			job := fmt.Sprint("job", n)
			p, contents := f.prepare(t, job, files)
			if err := f.commit(t, p, job, contents); err != nil {
				t.Fatal(err)
			}
			same := len(states) > 0 && maps.Equal(producer(states[len(states)-1]), producer(state))
			if same != p.NoChange {
				t.Fatalf("no change is %v, expected %v", p.NoChange, same)
			}
			if !same {
				states = append(states, state)
			}
			if again, _ := f.prepare(t, job, files); again.Written == same || again.Number != p.Number {
				t.Fatalf("prepared again: %+v", again)
			}
		}
		f.check(t, states)
		stored, err := f.root.Head(t.Context(), id)
		if err != nil || stored.Head != len(states) {
			t.Fatalf("%+v, %v", stored, err)
		}
		for n, state := range states {
			for path, content := range state {
				d := fetch.NewDigester()
				_, _ = d.Write([]byte(content))
				key, err := f.root.Content(t.Context(), stored, d.Sums()["sha512"])
				data, _, readErr := f.root.Bucket.Read(t.Context(), key)
				if err != nil || readErr != nil || string(data) != content {
					t.Fatalf("%s of v%d: %q, %v, %v", path, n+1, data, err, readErr)
				}
			}
		}
	})
}

func producer(state map[string]string) map[string]string {
	out := maps.Clone(state)
	maps.DeleteFunc(out, func(path, _ string) bool { return !strings.HasPrefix(path, "producer/") })
	return out
}

// A crash before any S3 write of a commit leaves the object in its old or its new state,
// and a second try succeeds.
func TestDiesAnywhere(t *testing.T) {
	for at := 1; ; at++ {
		f := open(t)
		one := []File{f.file(t, "producer/a", "one"), f.file(t, "system/job", "job1")}
		p, contents := f.prepare(t, "job1", one)
		if err := f.commit(t, p, "job1", contents); err != nil {
			t.Fatal(err)
		}
		two := []File{f.file(t, "producer/a", "two"), f.file(t, "producer/b", "one"), f.file(t, "system/job", "job2")}
		p, contents = f.prepare(t, "job2", two)
		writes, died := 0, false
		f.twin.Before = func(op, _ string) int {
			if op == "GET object" || op == "HEAD object" || op == "List" {
				return 0
			}
			writes++
			if writes >= at {
				died = true
				return 503
			}
			return 0
		}
		func() { // as far as it gets
			ctx := t.Context()
			_ = f.root.Declare(ctx, id)
			for _, c := range contents {
				_ = f.root.Copy(ctx, id, c, always)
			}
			if just, err := f.root.Publish(ctx, p, f.text("inventory-job2"), owner()); err == nil {
				_, _ = f.root.Finish(ctx, id, owner(), just)
			}
		}()
		f.twin.Before = nil
		state, err := f.root.State(t.Context(), p)
		if err != nil || state == Overtaken {
			t.Fatalf("after a crash at write %d: %s, %v", at, state, err)
		}
		if state == Open {
			if err := f.commit(t, p, "job2", contents); err != nil {
				t.Fatal(err)
			}
		} else if _, err := f.root.Finish(t.Context(), id, owner(), nil); err != nil {
			t.Fatal(err)
		}
		f.check(t, []map[string]string{
			{"producer/a": "one", "system/job": "job1"},
			{"producer/a": "two", "producer/b": "one", "system/job": "job2"},
		})
		if !died {
			if at < 7 {
				t.Errorf("a commit has %d writes only", at-1)
			}
			return
		}
	}
}

// A large copy that has to stop continues where it was, and copies no part twice.
func TestCopyResumes(t *testing.T) {
	f := open(t)
	f.root.Bucket.Limits.Copy, f.root.Bucket.Limits.CopyPart = 1000, 100
	content := strings.Repeat("0123456789", 900)
	c := Content{File: f.file(t, "producer/a", content), To: "v1/content/job/producer/a"}
	tries := 0
	for err := ErrStop; errors.Is(err, ErrStop); tries++ {
		asked := 0
		err = f.root.Copy(t.Context(), id, c, func() bool { asked++; return asked == 1 })
		if err != nil && !errors.Is(err, ErrStop) {
			t.Fatal(err)
		}
		if err == nil {
			break
		}
	}
	if tries != 5 || f.twin.Calls["UploadPartCopy"] != 90 || f.twin.Calls["Begin"] != 1 {
		t.Errorf("stopped %d times, %v", tries, f.twin.Calls)
	}
	if got := string(f.read(t, c.To)); got != content {
		t.Errorf("%d bytes were copied of %d, or others", len(got), len(content))
	}
	if err := f.root.Copy(t.Context(), id, c, always); err != nil || f.twin.Calls["UploadPartCopy"] != 90 {
		t.Errorf("what is there is copied again: %v, %v", err, f.twin.Calls)
	}
}

// A copy that was begun for a version that was overtaken starts over for the next version.
func TestCopyToAnotherVersion(t *testing.T) {
	f := open(t)
	f.root.Bucket.Limits.Copy, f.root.Bucket.Limits.CopyPart = 1000, 100
	content := strings.Repeat("0123456789", 900)
	c := Content{File: f.file(t, "producer/a", content), To: "v1/content/job/producer/a"}
	asked := 0
	once := func() bool { asked++; return asked == 1 }
	if err := f.root.Copy(t.Context(), id, c, once); !errors.Is(err, ErrStop) {
		t.Fatalf("the copy did not stop: %v", err)
	}
	c.To = "v2/content/job/producer/a"
	if err := f.root.Copy(t.Context(), id, c, always); err != nil {
		t.Fatal(err)
	}
	if got := string(f.read(t, c.To)); got != content || f.twin.Calls["Begin"] != 2 {
		t.Errorf("%d bytes were copied of %d, or others, in %d uploads", len(got), len(content), f.twin.Calls["Begin"])
	}
}

// A copy that differs from the download is detected, whatever S3 reports.
func TestCopyIsVerified(t *testing.T) {
	f := open(t)
	file := f.file(t, "producer/a", strings.Repeat("x", 9000))
	file.Source = f.file(t, "producer/other", strings.Repeat("y", 9000)).Source
	if err := f.root.Copy(t.Context(), id, Content{File: file, To: "v1/content/job/producer/a"}, always); err == nil {
		t.Error("other content was accepted")
	}
}

// TestAllKnownDigests: each digest that a depositor gave of some bytes is in the
// fixity block: for another file of the same bytes, and for bytes that are stored.
func TestAllKnownDigests(t *testing.T) {
	f := open(t)
	given := func(path, content string, algorithms ...string) File {
		file := f.file(t, path, content)
		for _, name := range []string{"md5", "sha1"} {
			if !slices.Contains(algorithms, name) {
				delete(file.Digests, name)
			}
		}
		return file
	}
	fixity := func() map[string]map[string][]string {
		var inv inventory
		if err := json.Unmarshal(f.read(t, inventoryName), &inv); err != nil {
			t.Fatal(err)
		}
		return inv.Fixity
	}
	both, later := given("producer/x", "equal", "md5", "sha1"), given("producer/x", "later", "md5", "sha1")
	p, contents := f.prepare(t, "one", []File{given("producer/a", "equal", "md5"), given("producer/b", "equal", "sha1"),
		given("producer/c", "later")})
	if err := f.commit(t, p, "one", contents); err != nil {
		t.Fatal(err)
	}
	if got := fixity(); len(got["md5"][both.Digests["md5"]]) != 1 || len(got["sha1"][both.Digests["sha1"]]) != 1 {
		t.Errorf("digests of equal bytes are missing: %v", got)
	}
	for n, algorithm := range []string{"md5", "sha1"} {
		job := "again" + algorithm
		name := fmt.Sprintf("producer/d%d", n)
		p, contents = f.prepare(t, job, []File{given(name, "later", algorithm), f.file(t, "system/job.txt", job)})
		if err := f.commit(t, p, job, contents); err != nil {
			t.Fatal(err)
		}
	}
	got := fixity()
	for _, algorithm := range []string{"md5", "sha1", "sha256"} {
		paths := got[algorithm][later.Digests[algorithm]]
		if len(paths) != 1 || paths[0] != "v1/content/one/producer/c" {
			t.Errorf("%s of stored bytes: %v", algorithm, paths)
		}
	}
}

// TestLongPaths: content whose path is too long for S3 or a file system is stored at
// another path. The logical path stays, and no other file's content can have that path.
func TestLongPaths(t *testing.T) {
	f := open(t)
	longest := strings.Repeat("s", 255)
	segment, key := "producer/"+strings.Repeat("ü", 128), "producer"+strings.Repeat("/"+longest, 4)
	digest := f.file(t, segment, "segment").Digests["sha512"]
	fits := "producer/" + longest
	trap := "producer/by-digest/" + digest
	p, contents := f.prepare(t, "one", []File{f.file(t, segment, "segment"), f.file(t, key, "key"),
		f.file(t, fits, "fits"), f.file(t, trap, "trap")})
	to := map[string]string{}
	for _, c := range contents {
		to[c.Path] = c.To
		for s := range strings.SplitSeq(c.To, "/") {
			if len(s) > 255 {
				t.Errorf("%s is stored at %s", c.Path, c.To)
			}
		}
		if len(Prefix(id)+c.To) > 1024 {
			t.Errorf("the key of %s has %d bytes", c.Path, len(Prefix(id)+c.To))
		}
	}
	const folder = "v1/content/one/"
	if to[fits] != folder+fits || to[trap] != folder+trap || to[segment] != folder+"by-digest/"+digest {
		t.Errorf("%v", to)
	}
	if err := f.commit(t, p, "one", contents); err != nil {
		t.Fatal(err)
	}
	f.check(t, []map[string]string{{segment: "segment", key: "key", fits: "fits", trap: "trap"}})
}
