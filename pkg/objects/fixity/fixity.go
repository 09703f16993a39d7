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
	"archivist/pkg/objects/ocfl"
)

// Outcomes of a check.
const (
	OK         = "ok"
	Damaged    = "damaged"    // a file has another digest, or is missing
	Unreadable = "unreadable" // no damage was found, but some file could not be read
)

// Kinds of problems of a file.
const (
	Mismatch   = "mismatch"
	Missing    = "missing"
	Unread     = "unreadable"
	BadSidecar = "sidecar" // the sidecar of an inventory is missing, or has no digest
	BadRecord  = "record"  // an inventory is not the one that is on record
	Unnamed    = "unnamed" // no inventory names the key, and nothing of the object may be there
)

// Problem is what is wrong with one file.
type Problem struct {
	Key      string `dynamo:"file_key" json:"key"` // in the storage bucket
	Kind     string `dynamo:"problem" json:"kind"`
	Expected string `dynamo:"expected,omitempty" json:"expected,omitempty"` // digest
	Actual   string `dynamo:"actual,omitempty" json:"actual,omitempty"`     // digest
	Reason   string `dynamo:"reason,omitempty" json:"reason,omitempty"`
}

// Result of a check of an object.
type Result struct {
	Outcome  string    `dynamo:"fixity_outcome,omitempty" json:"outcome"`
	Checked  int64     `dynamo:"checked_ms,omitempty" json:"checked"` // when it ended, milliseconds since 1970
	Version  int       `dynamo:"head_version,omitempty" json:"version"`
	Files    int       `dynamo:"files,omitempty" json:"files"`
	Bytes    int64     `dynamo:"bytes_read,omitempty" json:"bytes"`
	Problems []Problem `dynamo:"problems,omitempty" json:"problems,omitempty"`
	More     int       `dynamo:"more_problems,omitempty" json:"moreProblems,omitempty"` // that Problems does not list

	// OnRecord is the newest version whose inventory was compared with a digest outside of the storage
	// root. 0: none is on record, so the inventories were compared with each other only.
	OnRecord int `dynamo:"on_record,omitempty" json:"onRecord"`
}

// mostProblems is the maximum number of problems that a Result lists.
const mostProblems = 20

// add notes a problem. The worst of all decides the outcome: damage counts more than a file that
// could not be read.
func (r *Result) add(p Problem) {
	switch {
	case p.Kind != Unread:
		r.Outcome = Damaged
	case r.Outcome == OK:
		r.Outcome = Unreadable
	}

	if len(r.Problems) == mostProblems {
		r.More++
		return
	}

	r.Problems = append(r.Problems, p)
}

// Limits bound what checks read.
type Limits struct {
	Call int64 // bytes of one call
	Day  int64 // bytes of a day (UTC), of all calls together
}

// DefaultLimits: a call of some minutes reads less than 32 GiB. 1 TiB a day is 90 TiB in a quarter.
var DefaultLimits = Limits{Call: 32 << 30, Day: 1 << 40}

// Location is where the files are that are checked.
type Location string

// Locations. Their texts are sort keys of rows.
const (
	InStorage Location = "STATE"
	InCopy    Location = "COPY" // the second storage root
)

// Checker checks objects.
type Checker struct {
	Table  *table.Table
	NewID  func() string
	Now    func() time.Time
	At     Location
	Root   ocfl.Root // of that location
	Limits Limits

	// State is a text that changes when other work has changed the files of an object, and an
	// Unavailable while it does: then what a check has found is thrown away. nil: such work is told
	// apart by its keys.
	State func(ctx context.Context, ark string) (string, error)
}

// state is an object's row. Last stays while the next check runs, so that there is always a result
// to show.
type state struct {
	table.Head
	ARK  string `dynamo:"ark"`
	Last Result `dynamo:"last_check"`
	Run  *run   `dynamo:"in_progress,omitempty"`
}

// run is a check in progress: the next file, and what was found. All of it is saved at the end of
// each call, so its size is bounded.
type run struct {
	Result
	Started int64  `dynamo:"started_ms"`
	State   string `dynamo:"files_state,omitempty"` // what Checker.State was then
	Part    string `dynamo:"next_part"`             // of the object
	Number  int    `dynamo:"next_version"`          // of the next inventory
	Place   place  `dynamo:"next_place"`            // of the next content
	Path    int    `dynamo:"next_path"`             // of that content
	Key     string `dynamo:"next_key,omitempty"`    // the last key of the list that was compared
	File    *Part  `dynamo:"next_file,omitempty"`
	Failing int64  `dynamo:"failing_ms,omitempty"` // since when S3 does not deliver the next file
}

// place is an ocfl.Place.
type place struct {
	ETag   string `dynamo:"etag,omitempty"`
	At     int64  `dynamo:"at_byte,omitempty"`
	Digest string `dynamo:"digest,omitempty"`
}

func (l Location) key(ark string) table.Key { return table.Key{PK: "FIXITY#" + ark, SK: string(l)} }

// load reads the row of an object, or makes that of one that was never checked.
func (c *Checker) load(ctx context.Context, ark string) (*state, error) {
	s := &state{ARK: ark}
	key := c.At.key(ark)
	s.PK, s.SK = key.PK, key.SK
	err := c.Table.Get(ctx, s.Key(), s)
	if fault.Is(err, fault.NotFound) {
		err = nil
	}
	return s, err
}

// save writes the row. A Stale becomes an Unavailable: another call is checking this object. What
// this call has found is lost then.
func (c *Checker) save(ctx context.Context, s *state) error {
	tx := c.Table.Begin(c.NewID())
	tx.InsertOrSave(s)
	err := tx.Commit(ctx)
	if fault.Is(err, fault.Stale) {
		return fault.New(fault.Unavailable, "fixity: another call checks %s: %w", s.ARK, err)
	}
	return err
}

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
		err = fault.New(fault.Unavailable, "%s was changed during its check, which begins again: %w", w.ark, ErrStopped)
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
