package research

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/RoaringBitmap/roaring/v2"

	"archivist/pkg/kernel/definition"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// A rowSet is rows of some kinds that were read together, as they are stored. Its methods decode
// them: a row that does not exist is one with Rev 0 and its key, so that it can be filled and
// inserted.
type rowSet map[table.Key]table.Raw

// read reads rows consistently, in one request for each hundred. Each is as it was at some moment
// of the read: a change that depends on several is safe only because it has a condition on each of
// them.
func (s *Store) read(ctx context.Context, keys ...table.Key) (rowSet, error) {
	return s.Table.Many(ctx, keys)
}

// decode decodes a row, if it exists; else row stays as it is.
func (all rowSet) decode(k table.Key, row any) error {
	raw, ok := all[k]
	if !ok {
		return nil
	}
	return raw.Decode(row)
}

// project is a project; one that does not exist is a NotFound, and a definition that cannot be read
// an Invalid.
func (all rowSet) project(name string) (*projectRow, error) {
	r := &projectRow{}
	err := all.decode(projectKey(name), r)
	if err != nil {
		return nil, err
	}

	if r.Rev == 0 {
		return nil, fault.New(fault.NotFound, "there is no research project %q",
			definition.Clip(name, 60))
	}

	err = json.Unmarshal([]byte(r.Text), &r.def)
	if err != nil {
		return nil, fault.New(fault.Invalid, "project %s: its row is damaged: %w", name, err)
	}
	return r, nil
}

// episode is an episode of a project. An error without a kind means that its row is damaged.
func (all rowSet) episode(project, key string) (*episodeRow, error) {
	k := episodeKey(project, key)
	r := &episodeRow{Head: newHead(k), Project: project, Name: key}
	err := all.decode(k, r)
	if err != nil {
		return nil, fmt.Errorf("episode %s of %s: %w", key, project, err)
	}

	err = r.unpack()
	if err != nil {
		return nil, fmt.Errorf("episode %s of %s: %w", key, project, err)
	}
	return r, nil
}

// unpack decodes what the attributes of an episode say, if its row exists.
func (e *episodeRow) unpack() (err error) {
	if e.Rev > 0 {
		err = json.Unmarshal([]byte(e.Text), &e.media)
	}
	if err != nil {
		return err
	}
	for _, b := range []struct {
		of **roaring.Bitmap
		is []byte
	}{{&e.researched, e.Researched}, {&e.waiting, e.Waiting}, {&e.differs, e.Differs},
		{&e.found, e.Found}} {
		if *b.of, err = bits(b.is); err != nil {
			return err
		}
	}

	// What an earlier version has added is not tallied: it did not keep these attributes.
	e.tallied = e.Tallied == int64(e.researched.GetCardinality())
	if !e.tallied {
		e.found.Clear()
	}
	return nil
}

// begin forgets what belongs to an earlier analysis: pairs of that exclude none of the present one.
func (e *episodeRow) begin(generation int64) {
	if e.Generation >= generation {
		return
	}
	e.Generation, e.Leased, e.Tally = generation, nil, Tally{}
	e.researched, e.waiting, e.differs = roaring.New(), roaring.New(), roaring.New()
	e.found, e.tallied = roaring.New(), true
}

// clip is a clip of a project. An error without a kind means that its row is damaged.
func (all rowSet) clip(project, key string) (*clipRow, error) {
	k := clipKey(project, key)
	r := &clipRow{Head: newHead(k), Project: project, Name: key}
	err := all.decode(k, r)
	if err != nil {
		return nil, fmt.Errorf("clip %s of %s: %w", key, project, err)
	}

	if r.Rev == 0 {
		return r, nil
	}

	err = json.Unmarshal([]byte(r.Text), &r.media)
	if err != nil {
		return nil, fmt.Errorf("clip %s of %s: %w", key, project, err)
	}
	return r, nil
}

// lease is the lease of that id.
func (all rowSet) lease(id string) (*leaseRow, error) {
	k := leaseKey(id)
	r := &leaseRow{Head: newHead(k), Lease: Lease{ID: id}}
	return r, all.decode(k, r)
}

// projectRow reads a project; a NotFound if there is none.
func (s *Store) projectRow(ctx context.Context, name string) (*projectRow, error) {
	all, err := s.read(ctx, projectKey(name))
	if err != nil {
		return nil, err
	}
	return all.project(name)
}

// The same rows, each read alone.

// episodeRow reads an episode; Rev 0 if there is none.
func (s *Store) episodeRow(ctx context.Context, project, key string) (*episodeRow, error) {
	all, err := s.read(ctx, episodeKey(project, key))
	if err != nil {
		return nil, err
	}
	return all.episode(project, key)
}

// clipRow reads a clip; Rev 0 if there is none.
func (s *Store) clipRow(ctx context.Context, project, key string) (*clipRow, error) {
	all, err := s.read(ctx, clipKey(project, key))
	if err != nil {
		return nil, err
	}
	return all.clip(project, key)
}

// leaseRow reads a lease; Rev 0 if there is none.
func (s *Store) leaseRow(ctx context.Context, id string) (*leaseRow, error) {
	all, err := s.read(ctx, leaseKey(id))
	if err != nil {
		return nil, err
	}
	return all.lease(id)
}

// leases reads leases by their ids, in that order. Those that do not exist are left out.
func (s *Store) leases(ctx context.Context, ids []string) (found []*leaseRow, err error) {
	var at []table.Key
	for _, id := range ids {
		at = append(at, leaseKey(id))
	}

	all, err := s.read(ctx, at...)
	if err != nil {
		return nil, err
	}

	for _, id := range ids {
		r, err := all.lease(id)
		if err != nil {
			return nil, err
		}
		if r.Rev > 0 {
			found = append(found, r)
		}
	}
	return found, nil
}

// Lease returns a lease; a NotFound also means one that ended some weeks ago (keptDays).
func (s *Store) Lease(ctx context.Context, id string) (Lease, error) {
	r, err := s.leaseRow(ctx, id)
	if err != nil {
		return Lease{}, err
	}
	return r.Lease, r.found()
}

// sums are the numbers of the present analysis: the sum of its shards.
func (s *Store) sums(ctx context.Context, row *projectRow) (sum generationRow, err error) {
	var rows []generationRow
	q := table.Query{PK: countsPK(row.Name), Prefix: fmt.Sprintf("round#%06d#", row.Generation)}
	_, err = s.Table.Page(ctx, q, &rows)
	for _, r := range rows {
		sum.Pairs, sum.Results, sum.Reviews = sum.Pairs+r.Pairs, sum.Results+r.Results,
			sum.Reviews+r.Reviews
		sum.Differ, sum.Waiting = sum.Differ+r.Differ, sum.Waiting+r.Waiting
	}
	return sum, err
}
