package replica

import (
	"context"

	"archivist/pkg/kernel/bucket"
	"archivist/pkg/objects/fixity"
	"archivist/pkg/objects/ocfl"
)

// Kinds of differences between an object and its copy.
const (
	OnlyFirst  = "only-in-storage" // not copied, or lost in the copy
	OnlySecond = "only-in-copy"    // lost in the storage root, or left there by a copy that was not completed
	Size       = "size"
	Content    = "content"
	Unchecked  = "unchecked" // the same size, but other ETags: only the digests tell
)

// Difference is a key that is not the same in the storage root and in the copy.
type Difference struct {
	Key    string `json:"key"`
	Kind   string `json:"kind"`
	First  int64  `json:"storageBytes"`
	Second int64  `json:"copyBytes"`
}

// mostCompared is the size up to which the digests of two files are compared at once. ETags of
// files that were copied in parts differ, so larger ones are reported as Unchecked.
const mostCompared = 16 << 20

// Compare compares the keys of an object in both buckets, after a key ("" at the beginning), a page at a
// time. It returns the last key of the page, "" at the end. Nothing is changed. While a version is
// stored or copied, what is found may be on its way.
func (r *Replica) Compare(ctx context.Context, ark,
	after string) (all []Difference, next string, err error) {
	var sides [2][]bucket.Listed
	for i, b := range []bucket.Bucket{r.Root.Bucket, r.To} {
		page, last, err := b.ListAfter(ctx, ocfl.Prefix(ark), after)
		if err != nil {
			return nil, "", err
		}
		sides[i] = page
		// Only up to the lesser of both last keys the two pages are complete.
		if last != "" && (next == "" || last < next) {
			next = last // what is after it may be on the next page
		}
	}

	for {
		pair, ok := pop(&sides, next)
		if !ok {
			return all, next, nil
		}

		kind, err := r.differ(ctx, pair)
		if err != nil {
			return nil, "", err
		}

		if kind != "" {
			all = append(all,
				Difference{max(pair[0].Key, pair[1].Key), kind, pair[0].Size, pair[1].Size})
		}
	}
}

// pop removes the first key of two lists, up to a last one ("" for all). A side that does not have the
// key has the zero value.
func pop(sides *[2][]bucket.Listed, last string) (pair [2]bucket.Listed, ok bool) {
	key := ""
	for _, s := range sides {
		if len(s) > 0 && (key == "" || s[0].Key < key) {
			key = s[0].Key
		}
	}

	if key == "" || last != "" && key > last {
		return pair, false
	}

	for i, s := range sides {
		if len(s) > 0 && s[0].Key == key {
			pair[i], sides[i] = s[0], s[1:]
		}
	}
	return pair, true
}

// differ returns how two files differ, "" if they do not.
func (r *Replica) differ(ctx context.Context, pair [2]bucket.Listed) (string, error) {
	first, second := pair[0], pair[1]
	switch {
	case second.Key == "":
		return OnlyFirst, nil
	case first.Key == "":
		return OnlySecond, nil
	case first.Size != second.Size:
		return Size, nil
	// S3 gives equal bytes equal ETags only if they were written in the same way: so equal ETags
	// decide, and different ones do not.
	case first.ETag == second.ETag:
		return "", nil
	case first.Size > mostCompared:
		return Unchecked, nil
	}

	var digests []string
	for _, b := range []bucket.Bucket{r.Root.Bucket, r.To} {
		part := fixity.Part{Key: first.Key}
		digest, err := part.Digest(ctx, b, "", func(int64) int64 { return mostCompared })
		if err != nil {
			return "", err
		}
		digests = append(digests, digest)
	}

	if digests[0] != digests[1] {
		return Content, nil
	}
	return "", nil
}
