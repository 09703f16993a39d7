package ocfl

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"

	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/fault"
)

// A job whose object has a newer version gets an error, and changes nothing.
func TestOvertaken(t *testing.T) {
	f := open(t)
	slow, slowContents := f.prepare(t, "slow", []File{f.file(t, "producer/a", "slow")})
	p, contents := f.prepare(t, "quick", []File{f.file(t, "producer/a", "quick")})
	if err := f.commit(t, p, "quick", contents); err != nil {
		t.Fatal(err)
	}
	if state, err := f.root.State(t.Context(), slow); err != nil || state != Overtaken {
		t.Errorf("the state is %s, %v", state, err)
	}
	lost := owner()
	lost.Fence = func(context.Context) error { return fault.New(fault.Stale, "the lock is another's") }
	if _, err := f.root.Publish(t.Context(), slow, f.text("inventory-slow"), lost); !fault.Is(err, fault.Stale) {
		t.Errorf("publishing gave %v", err)
	}
	f.check(t, []map[string]string{{"producer/a": "quick"}})
	_ = slowContents
}

// A claim of the job itself, made in another try, stays while a worker of that try may
// commit it. If it did, the claim is never replaced.
func TestOwnClaim(t *testing.T) {
	f := open(t)
	ctx := t.Context()
	one, contents := f.prepare(t, "job", []File{f.file(t, "producer/a", "one")})
	text, _, err := f.root.Work.Read(ctx, "inventory-job")
	if err != nil {
		t.Fatal(err)
	}
	earlier := func(context.Context) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text)), nil }
	key := Prefix(id) + "v1/" + inventoryName
	if err := f.root.claim(ctx, key, one, earlier, owner()); err != nil {
		t.Fatal(err)
	}
	two, _ := f.prepare(t, "job", []File{f.file(t, "producer/b", "two")})
	again := owner()
	again.Job, again.Alone = "job", func() bool { return false }
	var claimed *ClaimedError
	_, err = f.root.Publish(ctx, two, f.text("inventory-job"), again)
	if !errors.As(err, &claimed) || claimed.Job != "job" {
		t.Errorf("the claim of an earlier try was taken over: %v", err)
	}
	for _, c := range contents {
		if err := f.root.Copy(ctx, id, c, always); err != nil {
			t.Fatal(err)
		}
	}
	late := f.root.put(ctx, Prefix(id)+inventoryName, one, earlier, bucket.Condition{Absent: true}, nil)
	if late != nil {
		t.Fatal(late) // the commit
	}
	again.Alone = func() bool { return true }
	if _, err := f.root.Publish(ctx, two, f.text("inventory-job"), again); !fault.Is(err, fault.Stale) {
		t.Errorf("after the earlier try committed: %v", err)
	}
	if stands := f.read(t, "v1/"+inventoryName); !bytes.Equal(stands, text) {
		t.Error("the inventory of a committed version was replaced")
	}
}

// A late worker removes nothing of a job that stores now, and missing content is found at
// the end.
func TestLateFinish(t *testing.T) {
	f := open(t)
	ctx := t.Context()
	one := []File{f.file(t, "producer/a", "one"), f.file(t, "producer/b", "two")}
	p, contents := f.prepare(t, "first", one)
	if err := f.commit(t, p, "first", contents); err != nil {
		t.Fatal(err)
	}
	p, contents = f.prepare(t, "second", []File{f.file(t, "producer/a", "three"), f.file(t, "producer/b", "four")})
	for _, c := range contents {
		if err := f.root.Copy(ctx, id, c, always); err != nil {
			t.Fatal(err)
		}
	}
	late := owner()
	late.Ended = func(_ context.Context, job string) (bool, error) { return job != "second", nil }
	if _, err := f.root.Finish(ctx, id, late, nil); err != nil {
		t.Fatal(err)
	}
	if err := f.commit(t, p, "second", nil); err != nil { // its content was copied before
		t.Fatal(err)
	}
	f.check(t, []map[string]string{
		{"producer/a": "one", "producer/b": "two"},
		{"producer/a": "three", "producer/b": "four"},
	})
	for _, c := range contents {
		if err := f.root.Bucket.Delete(ctx, Prefix(id)+c.To); err != nil {
			t.Fatal(err)
		}
		var missing *MissingError
		if _, err := f.root.Finish(ctx, id, late, nil); !errors.As(err, &missing) || missing.Key != Prefix(id)+c.To {
			t.Errorf("%s is gone, and Finish says %v", c.To, err)
		}
		for _, other := range contents {
			if other.To != c.To {
				f.read(t, other.To) // what is named stays, whatever is missing before it
			}
		}
		if err := f.root.Copy(ctx, id, c, always); err != nil {
			t.Fatal(err)
		}
	}
}

// A prepared inventory that was overwritten is not committed.
func TestPreparedByAnother(t *testing.T) {
	f := open(t)
	p, contents := f.prepare(t, "job", []File{f.file(t, "producer/a", "one")})
	_, _ = f.prepare(t, "other", []File{f.file(t, "producer/b", "two")})
	for _, c := range contents {
		if err := f.root.Copy(t.Context(), id, c, always); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := f.root.Publish(t.Context(), p, f.text("inventory-other"), owner()); !fault.Is(err, fault.Stale) {
		t.Errorf("publishing gave %v", err)
	}
	if _, err := f.root.Head(t.Context(), id); !fault.Is(err, fault.NotFound) {
		t.Errorf("something was committed: %v", err)
	}
}

// What a job that may still commit has claimed and copied stays. Once it has ended, both
// are removed, unless the claim has changed by then.
func TestUncommittedStays(t *testing.T) {
	f := open(t)
	ctx := t.Context()
	p, contents := f.prepare(t, "first", []File{f.file(t, "producer/a", "one")})
	if err := f.commit(t, p, "first", contents); err != nil {
		t.Fatal(err)
	}
	running, contents := f.prepare(t, "second", []File{f.file(t, "producer/a", "two")})
	for _, c := range contents {
		if err := f.root.Copy(ctx, id, c, always); err != nil {
			t.Fatal(err)
		}
	}
	claim := Prefix(id) + "v2/" + inventoryName
	if err := f.root.claim(ctx, claim, running, f.text("inventory-second"), owner()); err != nil {
		t.Fatal(err)
	}
	exists := func(key string) bool {
		t.Helper()
		_, err := f.root.Bucket.Head(ctx, key)
		if err != nil && !fault.Is(err, fault.NotFound) {
			t.Fatal(err)
		}
		return err == nil
	}

	o, asked := owner(), 0
	o.Ended = func(context.Context, string) (bool, error) { return false, nil }
	o.Fence = func(context.Context) error { asked++; return nil }
	if _, err := f.root.Finish(ctx, id, o, nil); err != nil {
		t.Fatal(err)
	}
	if !exists(claim) || !exists(Prefix(id)+contents[0].To) || asked == 0 {
		t.Error("the claim or the content of a job that may still commit is gone, or the fence was not asked")
	}

	o.Ended = func(context.Context, string) (bool, error) { return true, nil }
	replaced := false
	o.Fence = func(context.Context) error { // another job claims the version right now
		if replaced {
			return nil
		}
		replaced = true
		return f.root.Bucket.Put(ctx, claim, []byte("{}"), bucket.Condition{})
	}
	if _, err := f.root.Finish(ctx, id, o, nil); err != nil && !fault.Is(err, fault.Stale) {
		t.Fatal(err)
	}
	if !exists(claim) || exists(Prefix(id)+contents[0].To) {
		t.Error("another's claim is gone, or the content of a job that has ended is there")
	}
	if _, err := f.root.Finish(ctx, id, o, nil); err != nil {
		t.Fatal(err)
	}
	if exists(claim) {
		t.Error("a claim that no worker can commit is there")
	}
	f.check(t, []map[string]string{{"producer/a": "one"}})
}
