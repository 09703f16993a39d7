package doctor

import (
	"context"

	"golang.org/x/sync/errgroup"

	"archivist/pkg/events/check"
	"archivist/pkg/kernel/bucket"
	"archivist/pkg/objects/ocfl"
)

// atOnce is the number of rows, or of objects, that are checked at once. Each check waits for
// the table or S3 most of its time.
const atOnce = 16

// stored is the keys of one object of the storage root, or one key that belongs to no object:
// then it has no prefix. The keys are in order, and at least one.
type stored struct {
	prefix string
	keys   []bucket.Listed
}

func (s stored) last() string { return s.keys[len(s.keys)-1].Key }

// checkStorage checks the objects of the next keys of the storage root. An object that does
// not end in this page is checked by the next one. One of more keys than a page has is
// checked alone, in as many pages as it takes.
//
// A listing has at most a thousand keys, and says nothing of where objects end. So the last
// object of a page is left to the next one, unless the listing ends with it. If one object
// fills the page, checkLarge lists its keys itself. The cursor is always the last key of a
// whole object, or, while a large object is checked, a key inside of it: that is how the next
// page tells them apart.
func checkStorage(ctx context.Context, p *page) error {
	keys, next, err := p.root().Bucket.ListAfter(ctx, "", p.cursor.At)
	if err != nil || len(keys) == 0 {
		p.cursor.At = ""
		return err
	}

	all := byObject(keys)
	// The page before has stopped inside of this object.
	if prefix := all[0].prefix; prefix != "" && prefix == ocfl.Folder(p.cursor.At) {
		return p.checkLarge(ctx, prefix, p.cursor.At)
	}

	if end := all[len(all)-1]; next != "" && end.prefix != "" {
		if len(all) == 1 {
			return p.checkLarge(ctx, end.prefix, "")
		}
		all = all[:len(all)-1]
		next = all[len(all)-1].last()
	}

	for first := true; len(all) > 0 && (first || !p.enough()); first = false {
		n, err := p.checkPart(ctx, all[:min(atOnce, len(all))])
		if err != nil {
			return err
		}
		all = all[n:]
	}

	if len(all) == 0 {
		p.cursor.At = next
	}
	return nil
}

// byObject groups keys, which are in order. Keys outside of objects are groups of one key
// each. The order is kept.
func byObject(keys []bucket.Listed) (all []stored) {
	for _, k := range keys {
		prefix := ocfl.Folder(k.Key)
		if n := len(all); n > 0 && prefix != "" && all[n-1].prefix == prefix {
			all[n-1].keys = append(all[n-1].keys, k)
		} else {
			all = append(all, stored{prefix, []bucket.Listed{k}})
		}
	}
	return all
}

// checkPart checks some objects at once, and reports them in their order, as many as the page
// takes. It returns their number. If that is less than all, the page is full: the others were
// checked in vain, and are checked again.
func (p *page) checkPart(ctx context.Context, part []stored) (reported int, err error) {
	found := make([][]check.Problem, len(part))
	side, inTime := errgroup.WithContext(ctx)
	for i, s := range part {
		side.Go(func() (err error) {
			if s.prefix == "" {
				found[i] = strayKey(s.keys[0].Key)
				return nil
			}
			found[i], _, err = p.checkStored(inTime, s.prefix, "", s.keys)
			return err
		})
	}

	if err := side.Wait(); err != nil {
		return 0, err
	}

	for i, s := range part {
		if i > 0 && p.enough() {
			return i, nil
		}
		if err := p.report(ctx, found[i]); err != nil {
			return i, err
		}
		p.out.Checked++
		p.cursor.At = s.last()
	}
	return len(part), nil
}

// checkLarge checks an object of very many keys, after a key. It moves the cursor to where
// the check stopped, or behind the object at its end.
func (p *page) checkLarge(ctx context.Context, prefix, after string) error {
	found, next, err := p.checkStored(ctx, prefix, after, nil)
	if err != nil {
		return err
	}

	if err := p.report(ctx, found); err != nil {
		return err
	}

	p.out.Checked++
	p.cursor.At = next
	if next == "" {
		p.cursor.At = ocfl.After(prefix)
	}
	return nil
}

// strayKey is the problem of a key that belongs to no object.
func strayKey(key string) []check.Problem {
	if ocfl.IsOwn(key) {
		return nil
	}
	return []check.Problem{{
		Invariant: "storage-key",
		Subject:   key,
		Evidence:  "the key belongs to no object, and is not one of the storage root's own files",
		Command:   "find out what wrote it; Archivist does not remove it",
	}}
}
