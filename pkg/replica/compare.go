package replica

import (
	"context"

	"archivist/pkg/bucket"
	"archivist/pkg/fixity"
	"archivist/pkg/ocfl"
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
// time. It returns the last key of the page, "" at the end.
func (r *Replica) Compare(ctx context.Context, ark, after string) (all []Difference, next string, err error) {
	first, firstNext, err := r.Root.Bucket.ListAfter(ctx, ocfl.Prefix(ark), after)
	if err != nil {
		return nil, "", err
	}
	second, secondNext, err := r.To.ListAfter(ctx, ocfl.Prefix(ark), after)
	if err != nil {
		return nil, "", err
	}
	// What is after the end of a page that is not the last may be on its next page.
	next = firstNext
	if next == "" || secondNext != "" && secondNext < next {
		next = secondNext
	}
	in := func(page []bucket.Listed) bool { return len(page) > 0 && (next == "" || page[0].Key <= next) }
	for in(first) || in(second) {
		switch {
		case !in(second) || in(first) && first[0].Key < second[0].Key:
			all = append(all, Difference{first[0].Key, OnlyFirst, first[0].Size, 0})
			first = first[1:]
		case !in(first) || second[0].Key < first[0].Key:
			all = append(all, Difference{second[0].Key, OnlySecond, 0, second[0].Size})
			second = second[1:]
		default:
			kind, err := r.differ(ctx, first[0], second[0])
			if err != nil {
				return nil, "", err
			}
			if kind != "" {
				all = append(all, Difference{first[0].Key, kind, first[0].Size, second[0].Size})
			}
			first, second = first[1:], second[1:]
		}
	}
	return all, next, nil
}

// differ returns how two files of the same key differ, "" if they do not.
func (r *Replica) differ(ctx context.Context, first, second bucket.Listed) (string, error) {
	switch {
	case first.Size != second.Size:
		return Size, nil
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
