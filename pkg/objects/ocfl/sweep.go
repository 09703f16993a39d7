package ocfl

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/spill"
)

// sweep removes keys below an object's prefix that no inventory names, and that no worker
// can still commit. A declaration that was lost is written again: the list tells it, which is read anyway.
//
// The newest version is first: if content of it is missing, nothing of the other folders is
// removed.
func (r Root) sweep(ctx context.Context, prefix string, head int, c *contents, o Owner) error {
	l, err := r.list(ctx, prefix)
	if err != nil {
		return err
	}

	if !l.declared(prefix) {
		if err := r.declare(ctx, prefix); err != nil {
			return err
		}
	}

	if err := l.sweepHead(ctx, fmt.Sprintf("%sv%d/", prefix, head), c.named); err != nil {
		return err
	}

	if err := l.sweepBefore(ctx, prefix, head, c.writers); err != nil {
		return err
	}
	return l.sweepNext(ctx, fmt.Sprintf("%sv%d/", prefix, head+1), o)
}

// listing lists what is below an object's prefix: an object of few keys is listed once, a
// larger one folder by folder.
type listing struct {
	bucket bucket.Bucket
	few    []bucket.Listed
	many   bool
}

// list begins with one request: of most objects it lists everything.
func (r Root) list(ctx context.Context, prefix string) (l listing, err error) {
	l.bucket = r.Bucket
	l.few, l.many, err = r.Bucket.Few(ctx, prefix)
	return l, err
}

// declared reports whether the object has its declaration, which is the first of its keys.
func (l listing) declared(prefix string) bool {
	return len(l.few) > 0 && l.few[0].Key == prefix+objectDeclaration
}

// each calls f with every object below a folder, in order of the keys.
func (l listing) each(ctx context.Context, folder string, f func(bucket.Listed) error) error {
	if l.many {
		return l.bucket.List(ctx, folder, f)
	}

	for _, o := range l.few {
		if strings.HasPrefix(o.Key, folder) {
			if err := f(o); err != nil {
				return err
			}
		}
	}
	return nil
}

// sweepHead removes keys of the newest version's folder that its inventory does not name:
// they are of a job that died or was overtaken, and no inventory will name them. Both the
// keys and the names are in order. A name without a key is a MissingError.
func (l listing) sweepHead(ctx context.Context, folder string, named *spill.Sorter[bool]) error {
	next, stop := iter.Pull2(named.Sorted())
	defer stop()

	name, err, more := next()
	if err != nil {
		return err
	}

	err = l.each(ctx, folder, func(o bucket.Listed) (err error) {
		switch {
		case more && name.Key == o.Key:
			name, err, more = next()
			return err
		case more && name.Key < o.Key && strings.HasPrefix(o.Key, folder+"content/"):
			return &MissingError{name.Key}
		case o.Key == folder+inventoryName, o.Key == folder+sidecarName:
			return nil
		}
		return l.bucket.Delete(ctx, o.Key)
	})
	if err == nil && more {
		err = &MissingError{name.Key}
	}
	return err
}

// sweepBefore removes from the versions before the newest what late workers wrote
// there: folders that no inventory names. A folder that a version's inventory names is kept as a
// whole.
func (l listing) sweepBefore(ctx context.Context, prefix string, head int,
	writers map[int][]string) error {
	for n := max(1, head-lookBack); n < head; n++ {
		content := fmt.Sprintf("%sv%d/content/", prefix, n)
		folders, err := l.folders(ctx, content)
		if err != nil {
			return err
		}

		for _, folder := range folders {
			if slices.Contains(writers[n], folder) {
				continue
			}
			err := l.each(ctx, content+folder+"/",
				func(o bucket.Listed) error { return l.bucket.Delete(ctx, o.Key) })
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// folders are the names between a prefix, which ends in a slash, and the next slash.
func (l listing) folders(ctx context.Context, prefix string) (names []string, err error) {
	if l.many {
		return l.bucket.Folders(ctx, prefix)
	}

	err = l.each(ctx, prefix, func(o bucket.Listed) error {
		if name, _, in := strings.Cut(o.Key[len(prefix):], "/"); in &&
			!slices.Contains(names, name) {
			names = append(names, name)
		}
		return nil
	})
	return names, err
}

// sweepNext removes what ended jobs wrote of an uncommitted version. What a late worker
// could still commit stays.
func (l listing) sweepNext(ctx context.Context, folder string, o Owner) error {
	u := uncommitted{folder: folder, ended: map[string]bool{}, claims: map[string]string{}}
	err := l.each(ctx, folder, func(k bucket.Listed) error { return u.note(ctx, k, o) })
	if err != nil || len(u.ended)+len(u.claims) == 0 {
		return err
	}
	// Before the first removal: a job that has the lock by now could need what is removed.
	if err := o.Fence(ctx); err != nil {
		return err
	}
	return l.each(ctx, folder, func(k bucket.Listed) error { return u.remove(ctx, l.bucket, k) })
}

// uncommitted is the content of an uncommitted version's folder.
type uncommitted struct {
	folder string
	ended  map[string]bool   // by the jobs that wrote content
	claims map[string]string // ETags by the keys of inventories and sidecars
}

// note notes a claim, or whether the job that wrote some content has ended.
func (u uncommitted) note(ctx context.Context, k bucket.Listed, o Owner) error {
	job, content := nextWriter(u.folder, k.Key)
	if !content {
		u.claims[k.Key] = k.ETag
		return nil
	}

	if _, known := u.ended[job]; known {
		return nil
	}

	ended, err := o.Ended(ctx, job)
	u.ended[job] = ended
	return err
}

// remove removes content of a job that has ended, and the claim once all have ended. A
// claim that has changed meanwhile stays. A key that was not there in the first listing stays: its
// writer is at work.
func (u uncommitted) remove(ctx context.Context, b bucket.Bucket, k bucket.Listed) error {
	job, content := nextWriter(u.folder, k.Key)
	switch {
	case content && u.ended[job]:
		return b.Delete(ctx, k.Key)
	case !content && u.allEnded() && u.claims[k.Key] != "":
		return b.DeleteSame(ctx, k.Key, u.claims[k.Key])
	}
	return nil
}

// allEnded is true, too, if there are claims only: their jobs have left no content.
func (u uncommitted) allEnded() bool {
	for _, ended := range u.ended {
		if !ended {
			return false
		}
	}
	return true
}

// nextWriter is the job that wrote a key of an uncommitted version's folder, if that is
// content.
func nextWriter(folder, key string) (job string, content bool) {
	rest, content := strings.CutPrefix(key, folder+"content/")
	name, _, _ := strings.Cut(rest, "/")
	return jobOf(name), content
}
