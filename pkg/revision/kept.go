package revision

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"archivist/pkg/fault"
	"archivist/pkg/table"
)

// keptCursor begins the cursor of a list that goes on in the bucket, behind a key.
const keptCursor = "kept:"

// runsRead is how many runs are read from the bucket for one page: each is a request.
const runsRead = 50

// read reads an object of the bucket.
func (s *Store) read(ctx context.Context, key string) (k Kept, err error) {
	data, err := s.Kept.Read(ctx, key)
	if fault.Is(err, fault.NotFound) {
		return k, err
	}
	if err != nil {
		return k, fault.New(fault.Unavailable, "the object %s cannot be read: %w", key, err)
	}
	err = json.Unmarshal(data, &k)
	if err != nil {
		err = fmt.Errorf("the object %s is damaged: %w", key, err)
	}
	return k, err
}

// found reads an instance, from the bucket if it is there; then it has no rev.
func (s *Store) found(ctx context.Context, id string) (*instanceRow, error) {
	row, err := s.instanceRow(ctx, id)
	if err != nil || row.Rev > 0 || s.Kept == nil {
		return row, err
	}
	at, err := ParseID(id)
	if err != nil || at.Task == "" {
		return row, nil // no instance has such an id
	}
	r, err := s.revisionRow(ctx, at.Ref, at.N)
	if err != nil || r.Kept == 0 {
		return row, err
	}
	row.Instance, err = s.keptInstance(ctx, r, at, row.Instance)
	return row, err
}

// keptInstance reads an instance of a revision from the bucket. If it is not there, none is returned.
func (s *Store) keptInstance(ctx context.Context, r *revisionRow, at ID, none Instance) (Instance, error) {
	if at.Run == 0 && r.Ends[at.Task] == "" {
		return none, nil
	}
	k, err := s.read(ctx, KeptKey(at))
	switch {
	case fault.Is(err, fault.NotFound) && at.Run > 0:
		return none, nil
	case fault.Is(err, fault.NotFound):
		return none, fmt.Errorf("%s went into the bucket, and is not there: %v", at, err) // no NotFound: it is lost
	}
	i := slices.IndexFunc(k.Instances, func(in Instance) bool { return in.ID == at.String() })
	if i >= 0 {
		return k.Instances[i], nil
	}
	return none, err
}

// keptAmong adds those that are in the bucket to the known ones, of instances that revisions have planned. It reads an
// object for each of these revisions.
func (s *Store) keptAmong(ctx context.Context, rows []table.Key, known map[string]Instance) error {
	looked := map[string]bool{}
	for _, k := range rows {
		_, id, _ := strings.Cut(k.PK, "#")
		at, err := ParseID(id)
		_, have := known[id]
		revision := revisionID(at.Ref, at.N)
		if err != nil || have || looked[revision] || s.Kept == nil {
			continue
		}
		looked[revision] = true
		r, err := s.revisionRow(ctx, at.Ref, at.N)
		if err == nil && r.Ends != nil {
			err = s.addKept(ctx, ID{Ref: at.Ref, N: at.N}, known)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// addKept adds what a revision has planned, from the bucket.
func (s *Store) addKept(ctx context.Context, id ID, known map[string]Instance) error {
	k, err := s.read(ctx, KeptKey(id))
	for _, in := range k.Instances {
		_, have := known[in.ID]
		if !have {
			known[in.ID] = in
		}
	}
	return err
}

// keptOf reads instances of a revision from the bucket: at first those that it has planned, and then runs. after is ""
// at first, and next is "" at the end.
func (s *Store) keptOf(ctx context.Context, r *revisionRow, after string) (page []Instance, next string, err error) {
	n := r.Revision.Number
	runs := keptRuns(r.Archive, n)
	if after == "" && r.Ends != nil {
		k, err := s.read(ctx, KeptKey(ID{Ref: r.Archive, N: n}))
		return k.Instances, runs, err
	}
	keys, more, err := s.Kept.List(ctx, runs, max(after, runs))
	if err != nil {
		return nil, "", fault.New(fault.Unavailable, "the objects below %s cannot be listed: %w", runs, err)
	}
	if len(keys) > runsRead {
		keys, more = keys[:runsRead], true
	}
	for _, key := range keys {
		k, err := s.read(ctx, key)
		if err != nil {
			return nil, "", err
		}
		page, next = append(page, k.Instances...), key
	}
	if !more {
		next = ""
	}
	return page, next, nil
}

// planKept adds what is in the bucket to a plan.
func (s *Store) planKept(ctx context.Context, r *revisionRow, p *Plan) error {
	r, err := s.revisionRow(ctx, r.Archive, r.Revision.Number) // some may have gone there since it was read
	if err != nil || r.Kept == 0 {
		return err
	}
	known := map[string]bool{}
	for _, in := range p.Tasks {
		known[in.ID] = true
	}
	after := ""
	for {
		page, next, err := s.keptOf(ctx, r, after)
		if err != nil {
			return err
		}
		for _, in := range page {
			if !known[in.ID] {
				p.Tasks = append(p.Tasks, in)
			}
		}
		p.More = p.More || next != "" && len(p.Tasks) >= plannedMost
		if next == "" || p.More {
			break
		}
		after = next
	}
	slices.SortFunc(p.Tasks, func(a, b Instance) int { return strings.Compare(a.Order, b.Order) })
	return nil
}

// keptNext is the cursor behind the last instance of a revision that is in the table.
func (s *Store) keptNext(ctx context.Context, ref string, n int64) (string, error) {
	r, err := s.revisionRow(ctx, ref, n)
	if err != nil || r.Kept == 0 || s.Kept == nil {
		return "", err
	}
	return keptCursor, nil
}

// instancesKept is a page of Instances from the bucket.
func (s *Store) instancesKept(ctx context.Context, ref string, f Filter, cursor string) (page []Instance, next string,
	err error) {
	r, err := s.revisionRow(ctx, ref, f.Revision)
	if err != nil || r.Kept == 0 || s.Kept == nil {
		return nil, "", err
	}
	all, next, err := s.keptOf(ctx, r, strings.TrimPrefix(cursor, keptCursor))
	if err != nil {
		return nil, "", err
	}
	var at []table.Key
	for _, in := range all {
		at = append(at, taskSubject(in.ID).Key())
	}
	rows, err := s.Table.Many(ctx, at) // they were listed already
	for _, in := range all {
		_, there := rows[taskSubject(in.ID).Key()]
		if !there && f.selects(in) {
			page = append(page, in)
		}
	}
	if next != "" {
		next = keptCursor + next
	}
	return page, next, err
}
