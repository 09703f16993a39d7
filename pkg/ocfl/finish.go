package ocfl

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"archivist/pkg/bucket"
	"archivist/pkg/fault"
	"archivist/pkg/spill"
)

// MissingError says that content is not there which an inventory names.
type MissingError struct{ Key string }

// Error names the first key.
func (e *MissingError) Error() string {
	return "ocfl: " + e.Key + " is named by the inventory and not there"
}

// lookBack is how many versions before the newest Finish looks at. What a late worker
// wrote to an older one was there when an earlier Finish looked.
const lookBack = 10

// Finish repairs what a crash around a commit can leave: a version inventory that is
// not the root's, keys that no inventory names, a version that nobody committed, and
// at last a stale sidecar: while that is stale, the version is not finished. It makes
// sure that the newest version's content is there, else it returns a *MissingError.
// It returns the sha512 of the root inventory. A Lost says that the object changed
// meanwhile.
func (r Root) Finish(ctx context.Context, id string, o Owner) (digest string, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	prefix := Prefix(id)
	side, stands, err := r.Bucket.Read(ctx, prefix+sidecarName) // before the inventory: it is replaced only if it is older
	if err != nil && !fault.Is(err, fault.NotFound) {
		return "", err
	}
	head, err := r.headNumber(ctx, id)
	if err != nil {
		return "", err
	}
	folder := fmt.Sprintf("v%d/", head)
	named, writers := spill.New[bool](ctx), map[int][]string{}
	s, err := r.scan(ctx, prefix+inventoryName, visitor{manifest: func(_ string, paths []string) error {
		for _, p := range paths {
			if n, folder := writer(p); n > 0 && !slices.Contains(writers[n], folder) {
				writers[n] = append(writers[n], folder)
			}
			if strings.HasPrefix(p, folder) {
				if err := named.Add(prefix+p, true); err != nil {
					return err
				}
			}
		}
		return nil
	}})
	if err != nil {
		return "", err
	}
	if s.head != head {
		return "", fault.New(fault.Lost, "the object %s changed while it was read", id)
	}
	if err := r.versionInventory(ctx, prefix, folder, s); err != nil {
		return "", err
	}
	if err := r.sweep(ctx, prefix+folder, named); err != nil {
		return "", err
	}
	if err := r.sweepBefore(ctx, prefix, head, writers); err != nil {
		return "", err
	}
	if err := r.sweepNext(ctx, fmt.Sprintf("%sv%d/", prefix, head+1), o); err != nil {
		return "", err
	}
	if string(side) == string(sidecar(s.digest)) {
		return s.digest, nil
	}
	return s.digest, r.Bucket.Put(ctx, prefix+sidecarName, sidecar(s.digest), bucket.Condition{Absent: stands.ETag == "", ETag: stands.ETag})
}

// versionInventory makes the newest version's inventory and its sidecar agree with
// the root's. Both are what they have to be for ever: a late one does no harm.
func (r Root) versionInventory(ctx context.Context, prefix, folder string, s scanned) error {
	now, _, err := r.Bucket.Read(ctx, prefix+folder+sidecarName)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return err
	}
	if err != nil || string(now) != string(sidecar(s.digest)) {
		if err := r.Bucket.Put(ctx, prefix+folder+sidecarName, sidecar(s.digest), bucket.Condition{}); err != nil {
			return err
		}
	}
	same, err := r.holds(ctx, prefix+folder+inventoryName, s.digest)
	if err == nil && !same {
		_, err = r.Bucket.CopyFrom(ctx, r.Bucket, prefix+inventoryName, prefix+folder+inventoryName, s.ETag)
	}
	return err
}

// sweep removes keys of a committed version's folder that its inventory does not
// name: they are of a job that died, or was overtaken, and can never be named.
func (r Root) sweep(ctx context.Context, folder string, named *spill.Sorter[bool]) error {
	next, stop := iter.Pull2(named.Sorted())
	defer stop()
	name, err, more := next()
	listErr := r.Bucket.List(ctx, folder, func(key string, _ int64) error {
		if err == nil && more && name.Key < key && strings.HasPrefix(key, folder+"content/") {
			return &MissingError{name.Key}
		}
		if err != nil || key == folder+inventoryName || key == folder+sidecarName {
			return err
		}
		if more && name.Key == key {
			name, err, more = next()
			return err
		}
		return r.Bucket.Delete(ctx, key)
	})
	if err == nil && listErr == nil && more {
		err = &MissingError{name.Key}
	}
	return errors.Join(err, listErr)
}

// sweepBefore removes from the versions before the newest what late workers wrote
// there: folders that no inventory names.
func (r Root) sweepBefore(ctx context.Context, prefix string, head int, writers map[int][]string) error {
	for n := max(1, head-lookBack); n < head; n++ {
		content := fmt.Sprintf("%sv%d/content/", prefix, n)
		folders, err := r.Bucket.Folders(ctx, content)
		if err != nil {
			return err
		}
		for _, folder := range folders {
			if slices.Contains(writers[n], folder) {
				continue
			}
			if err := r.Bucket.List(ctx, content+folder+"/", func(key string, _ int64) error { return r.Bucket.Delete(ctx, key) }); err != nil {
				return err
			}
		}
	}
	return nil
}

// sweepNext removes what jobs that are over wrote of a version that nobody
// committed. What a late worker could still commit stays.
func (r Root) sweepNext(ctx context.Context, folder string, o Owner) error {
	over, all, found := map[string]bool{}, true, false
	err := r.Bucket.List(ctx, folder, func(key string, _ int64) error {
		found = true
		job, content := nextWriter(folder, key)
		if _, known := over[job]; known || !content {
			return nil
		}
		ended, err := o.Over(ctx, job)
		over[job] = ended
		all = all && ended
		return err
	})
	if err != nil || !found {
		return err
	}
	claims := map[string]string{} // ETags by key: another claim than this one is not removed
	for _, key := range []string{folder + inventoryName, folder + sidecarName} {
		info, err := r.Bucket.Head(ctx, key)
		if err != nil && !fault.Is(err, fault.NotFound) {
			return err
		}
		claims[key] = info.ETag
	}
	if err := o.Fence(ctx); err != nil {
		return err
	}
	return r.Bucket.List(ctx, folder, func(key string, _ int64) error {
		switch job, content := nextWriter(folder, key); {
		case content && over[job]:
			return r.Bucket.Delete(ctx, key)
		case !content && all && claims[key] != "":
			return r.Bucket.DeleteSame(ctx, key, claims[key])
		}
		return nil
	})
}

// nextWriter tells whose content a key of an uncommitted version's folder is.
func nextWriter(folder, key string) (job string, content bool) {
	rest, content := strings.CutPrefix(key, folder+"content/")
	name, _, _ := strings.Cut(rest, "/")
	return jobOf(name), content
}
