package aip

import (
	"context"
	"errors"
	"strings"
)

// The kinds of changes between two versions.
const (
	Added   = "added"
	Changed = "changed"
	Removed = "removed"
)

// Change is a producer's file that differs between two versions of an object.
type Change struct {
	Kind    string
	Was, Is *Entry // as it was, and as it is; nil if it was added or removed
}

// Places are the bytes at which the next lines of the lists of files of two versions begin.
type Places struct{ Was, Is int64 }

// Bounds of one call of Changes: lines that are read, and lines of one request.
const (
	mostLines = 50_000
	atOnce    = 1000
)

// Changes compares the producer's files of a version with those of an earlier one, by their paths and contents, from
// places in both lists on. was is nil for the first version: then all files are added. It returns at most some
// changes, in the order of paths, and the places from which to go on, nil at the end. A call that has read very many
// lines may return fewer changes, or none, before the end.
func Changes(ctx context.Context, was *Version, is Version, from Places, most int) ([]Change,
	*Places, error) {
	before, after := &lines{at: from.Was, end: true}, &lines{of: is, at: from.Is}
	if was != nil {
		before.of, before.end = *was, false
	}

	var all []Change
	for passed := 0; len(all) < most && passed < mostLines; passed++ {
		old, err := before.peek(ctx)
		if err != nil {
			return nil, nil, err
		}
		now, err := after.peek(ctx)
		if err != nil {
			return nil, nil, err
		}
		if old == nil && now == nil {
			return all, nil, nil
		}

		switch order := orderOf(old, now); {
		case order < 0:
			all = append(all, Change{Removed, old, nil})
			before.pass()
		case order > 0:
			all = append(all, Change{Added, nil, now})
			after.pass()
		default:
			if old.Digests["sha512"] != now.Digests["sha512"] {
				all = append(all, Change{Changed, old, now})
			}
			before.pass()
			after.pass()
		}
	}
	return all, &Places{before.at, after.at}, nil
}

// orderOf says which of two lines comes first: below 0 the first, above 0 the second, 0 for the same path. One that is
// nil is behind the end of its list; at most one is.
func orderOf(a, b *Entry) int {
	switch {
	case b == nil:
		return -1
	case a == nil:
		return 1
	}
	return strings.Compare(a.Path, b.Path)
}

// lines reads a list of files line by line.
type lines struct {
	of   Version
	at   int64 // where the next line begins
	some []line
	end  bool // there are no lines behind some
}

// line is a line, and where the next one begins.
type line struct {
	entry Entry
	next  int64
}

// peek is the next line, nil at the end.
func (l *lines) peek(ctx context.Context) (*Entry, error) {
	if len(l.some) == 0 && !l.end {
		err := l.of.Each(ctx, l.at, func(e Entry, next int64) error {
			l.some = append(l.some, line{e, next})
			if len(l.some) == atOnce {
				return errEnough
			}
			return nil
		})
		if err != nil && !errors.Is(err, errEnough) {
			return nil, err
		}
		l.end = err == nil
	}
	if len(l.some) == 0 {
		return nil, nil
	}
	return &l.some[0].entry, nil
}

// pass passes the next line.
func (l *lines) pass() { l.at, l.some = l.some[0].next, l.some[1:] }
