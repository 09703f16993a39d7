package ocfl

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/fault"
)

// A large file whose place has other content of the same size is copied all the same.
func TestCopyOverOther(t *testing.T) {
	f := open(t)
	c := Content{File: f.file(t, "producer/a", strings.Repeat("x", 9000)), To: "v1/content/job/producer/a"}
	other := []byte(strings.Repeat("y", 9000))
	if err := f.root.Bucket.Put(t.Context(), Prefix(id)+c.To, other, bucket.Condition{}); err != nil {
		t.Fatal(err)
	}
	if err := f.root.Copy(t.Context(), id, c, always); err != nil {
		t.Fatal(err)
	}
	if got := string(f.read(t, c.To)); strings.Trim(got, "x") != "" {
		t.Errorf("there is still other content: %.20q", got)
	}
}

// A copy whose upload S3 has removed, because it was too old, begins anew at the next try.
func TestCopyAfterRemovedUpload(t *testing.T) {
	f, ctx := open(t), t.Context()
	f.root.Bucket.Limits.Copy, f.root.Bucket.Limits.CopyPart = 1000, 100
	c := Content{File: f.file(t, "producer/a", strings.Repeat("0123456789", 900)), To: "v1/content/job/producer/a"}
	asked := 0
	if err := f.root.Copy(ctx, id, c, func() bool { asked++; return asked == 1 }); err != ErrStop {
		t.Fatal(err)
	}
	note, _, err := f.root.Work.Read(ctx, c.Source+".copy")
	if err != nil {
		t.Fatal(err)
	}
	var u bucket.Upload
	if err := json.Unmarshal(note, &u); err != nil {
		t.Fatal(err)
	}
	if err := f.root.Bucket.Abort(ctx, &u); err != nil {
		t.Fatal(err)
	}
	if err := f.root.Copy(ctx, id, c, always); !fault.Is(err, fault.NotFound) {
		t.Errorf("the try that meets it: %v", err)
	}
	if err := f.root.Copy(ctx, id, c, always); err != nil || f.twin.Calls["Begin"] != 2 {
		t.Errorf("the next try: %v, %d uploads", err, f.twin.Calls["Begin"])
	}
}

// A worker that finishes a version does not replace the sidecar of a newer one, which another worker has stored
// meanwhile.
func TestLateSidecar(t *testing.T) {
	f, ctx := open(t), t.Context()
	both := owner() // the second job goes on
	both.Ended = func(_ context.Context, job string) (bool, error) { return job != "second", nil }
	publish := func(job, text string) *Published {
		t.Helper()
		p, contents := f.prepare(t, job, []File{f.file(t, "producer/a", text)})
		for _, c := range contents {
			if err := f.root.Copy(ctx, id, c, always); err != nil {
				t.Fatal(err)
			}
		}
		just, err := f.root.Publish(ctx, p, f.text("inventory-"+job), both)
		if err != nil {
			t.Fatal(err)
		}
		return just
	}
	if err := f.root.Declare(ctx, id); err != nil {
		t.Fatal(err)
	}
	publish("first", "one")
	f.twin.Before = func(op, _ string) int {
		if op == "List" { // of the late worker
			f.twin.Before = nil
			if _, err := f.root.Finish(ctx, id, both, publish("second", "two")); err != nil {
				t.Error(err)
			}
		}
		return 0
	}
	if _, err := f.root.Finish(ctx, id, both, nil); err != nil && !fault.Is(err, fault.Stale) {
		t.Error(err)
	}
	f.check(t, []map[string]string{{"producer/a": "one"}, {"producer/a": "two"}})
	stored, err := f.root.Head(ctx, id)
	if err != nil || string(f.read(t, sidecarName)) != string(Sidecar(stored.Digest)) {
		t.Errorf("the sidecar is %s, %v", f.read(t, sidecarName), err)
	}
}

// What a late worker of a job that has ended leaves in the folder of an earlier version is removed with the next
// versions, not with the next one only.
func TestLeftInEarlierVersions(t *testing.T) {
	f := open(t)
	var states []map[string]string
	store := func(job, text string) {
		t.Helper()
		p, contents := f.prepare(t, job, []File{f.file(t, "producer/a", text)})
		if err := f.commit(t, p, job, contents); err != nil {
			t.Fatal(err)
		}
		states = append(states, map[string]string{"producer/a": text})
	}
	store("first", "one")
	store("second", "two")
	key := Prefix(id) + "v1/content/dead/producer/x"
	if err := f.root.Bucket.Put(t.Context(), key, []byte("x"), bucket.Condition{}); err != nil {
		t.Fatal(err)
	}
	store("third", "three")
	f.check(t, states)
}

// A sidecar in the folder of the newest version that is not that of its inventory, as an earlier claim leaves one, is
// replaced.
func TestWrongSidecarOfVersion(t *testing.T) {
	f := open(t)
	p, contents := f.prepare(t, "first", []File{f.file(t, "producer/a", "one")})
	if err := f.commit(t, p, "first", contents); err != nil {
		t.Fatal(err)
	}
	key := Prefix(id) + "v1/" + sidecarName
	if err := f.root.Bucket.Put(t.Context(), key, Sidecar("0000"), bucket.Condition{}); err != nil {
		t.Fatal(err)
	}
	digest, err := f.root.Finish(t.Context(), id, owner(), nil)
	if got := string(f.read(t, "v1/"+sidecarName)); err != nil || got != string(Sidecar(digest)) {
		t.Errorf("the sidecar is %s, %v", got, err)
	}
}

// TestMadeAgain: what follows from the root inventory and was lost or changed is made again with the next version,
// whose readers could not tell it any more.
func TestMadeAgain(t *testing.T) {
	for name, harm := range map[string]func(get func(string) string, put func(key, text string)){
		"the declaration is lost": func(_ func(string) string, put func(key, text string)) {
			put(objectDeclaration, "")
		},
		"the version's inventory is changed": func(get func(string) string, put func(key, text string)) {
			put("v1/"+inventoryName, get("v1/"+inventoryName)+"\n")
		},
		"the version's inventory is lost": func(_ func(string) string, put func(key, text string)) {
			put("v1/"+inventoryName, "")
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := open(t)
			get, put := f.byHand(t)
			store := func(job string) (digest string) {
				t.Helper()
				p, contents := f.prepare(t, job, []File{f.file(t, "producer/a", job)})
				o := owner()
				o.Ended = func(_ context.Context, other string) (bool, error) { return other != job, nil }
				if err := f.commitAs(t, o, p, job, contents); err != nil {
					t.Fatal(err)
				}
				return p.Digest
			}
			one := store("one")
			f.root.Recorded = func(context.Context, string) (int, string, error) { return 1, one, nil }
			kept := map[string]string{}
			for _, key := range []string{objectDeclaration, "v1/" + inventoryName, "v1/" + sidecarName} {
				kept[key] = get(key)
			}
			harm(get, put)
			store("two")
			for key, text := range kept {
				if now := get(key); now != text {
					t.Errorf("%s is %q", key, now)
				}
			}
			f.check(t, []map[string]string{{"producer/a": "one"}, {"producer/a": "two"}})
		})
	}
}
