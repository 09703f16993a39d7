// Package fixity reads the stored files of objects again, and compares their digests with those of
// the inventory. It never changes content.
//
// A check of an object covers all of its content of all versions, its inventories with their
// sidecars, its declaration, and the list of its keys. The digests of the content are those of the
// root inventory; that of the root inventory, and those of each version's, are compared with the rows
// of the inventory, which are outside of the storage root: so an object that was rolled back or
// tampered with is found, too. It takes as many calls as it needs: each reads a bounded number of
// bytes and saves how far it came, within a large file too. The bytes of a day are bounded for all
// objects together.
//
// The copies of objects in the second storage root are checked in the same way, by a Checker with
// that root.
//
//	FIXITY#{ark}  STATE        the last check of an object, and the one in progress
//	FIXITY#{ark}  COPY         the same of its copy in the second storage root
//	FIXITY        DAY#{date}   the bytes that were read on a day, in both roots
//
// A file with another digest, or none, is damage. A file that S3 does not deliver is none: the call
// returns an Unavailable and the file is tried again; after a day it is listed as unreadable.
package fixity

import (
	"context"
	"errors"
	"strconv"
	"time"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
	"archivist/pkg/objects/inventory"
)

// Check checks an object until a time, or continues a check in progress. If the time is over or the
// bytes of the call or of the day are used up, it has saved how far it came and returns an
// Unavailable: called again, it continues. With an error, the result is that of the check before.
func (c *Checker) Check(ctx context.Context, ark string, until time.Time) (Result, error) {
	s, err := c.load(ctx, ark)
	if err != nil {
		return Result{}, err
	}

	files, err := c.filesState(ctx, ark)
	if err != nil {
		return Result{}, err
	}

	// What was found before other work changed the files says nothing of them now.
	if s.Run == nil || s.Run.State != files {
		s.Run = &run{
			Result:  Result{Outcome: OK},
			Started: c.Now().UnixMilli(),
			State:   files,
			Part:    partDeclaration,
		}
	}

	granted, err := c.grant(ctx)
	if err != nil {
		return Result{}, err
	}

	w := &walk{Checker: c, ark: ark, run: s.Run, until: until, left: granted.bytes}
	checkErr := w.all(ctx)
	if checkErr == nil {
		checkErr = w.unchanged(ctx)
	}

	// The context may have ended: what was done is saved nevertheless.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveTime)
	defer cancel()
	if checkErr == nil {
		s.Last, s.Run = s.Run.Result, nil
		s.Last.Checked = c.Now().UnixMilli()
	}

	// What was checked is saved even if what was not read cannot be given back, and the other way round.
	if err := errors.Join(c.save(ctx, s), c.giveBack(ctx, granted, w.left)); err != nil {
		return Result{}, err
	}
	return s.Last, checkErr
}

// filesState changes when other work has changed files that a check can have read: what was found before a repair
// says nothing about the object after it.
func (c *Checker) filesState(ctx context.Context, ark string) (state string, err error) {
	if c.State != nil {
		if state, err = c.State(ctx, ark); err != nil {
			return "", err
		}
	}

	o, err := inventory.Store{Table: c.Table}.Object(ctx, ark)
	switch {
	case fault.Is(err, fault.NotFound): // its rows are lost; its files can be checked nevertheless
		return state, nil
	case err != nil:
		return "", fault.New(fault.Unavailable, "%w", err)
	case o.Repaired > 0:
		state += " repaired " + strconv.FormatInt(o.Repaired, 10)
	}
	return state, nil
}

// unchanged refuses, with an Unavailable, what was found while other work has changed the files.
func (w *walk) unchanged(ctx context.Context) error {
	now, err := w.filesState(ctx, w.ark)
	if err == nil && now != w.run.State {
		err = fault.New(fault.Unavailable,
			"%s was changed during its check, which begins again: %w", w.ark, ErrStopped)
	}
	return err
}

// saveTime limits the requests that save how far a call came.
const saveTime = 10 * time.Second

// Last returns the last check, at a location, of each object that was checked there. Others are
// left out, also those whose first check is in progress.
func (l Location) Last(ctx context.Context, t *table.Table, arks ...string) (map[string]Result, error) {
	var keys []table.Key
	for _, ark := range arks {
		keys = append(keys, l.key(ark))
	}

	rows, err := t.Many(ctx, keys)
	if err != nil {
		return nil, err
	}

	last := map[string]Result{}
	for _, raw := range rows {
		var s state
		if err := raw.Decode(&s); err != nil {
			return nil, err
		}
		if s.Last.Checked > 0 {
			last[s.ARK] = s.Last
		}
	}
	return last, nil
}
