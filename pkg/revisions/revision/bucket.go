package revision

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"archivist/pkg/events/envelope"
	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
	"archivist/pkg/revisions/workflow"
)

// What has ended for long goes into a bucket: what a revision has planned when all of it has ended,
// and each run by hand or by schedule by itself. An object is complete before the rows of its
// instances are removed, and is never removed. The row of the revision stays, and says how its
// instances have ended; so do definitions and all events.
//
//	revisions/{ref}/{n}.json               a revision, and the instances that it has planned
//	revisions/{ref}/{n}/{task}/{run}.json  a run

// BucketPrefix begins the keys of revisions and runs in the bucket.
const BucketPrefix = "revisions/"

// BucketObjects are Objects in a bucket, which must not expire: nothing else has what they contain.
type BucketObjects struct{ Bucket bucket.Bucket }

// Write writes an object.
func (b BucketObjects) Write(ctx context.Context, key string, data []byte) error {
	return b.Bucket.Put(ctx, key, data, bucket.Condition{})
}

// Read reads an object.
func (b BucketObjects) Read(ctx context.Context, key string) ([]byte, error) {
	data, _, err := b.Bucket.Read(ctx, key)
	return data, err
}

// List lists keys.
func (b BucketObjects) List(ctx context.Context, prefix,
	after string) (keys []string, more bool, err error) {
	page, next, err := b.Bucket.ListAfter(ctx, prefix, after)
	for _, o := range page {
		keys = append(keys, o.Key)
	}
	return keys, next != "", err
}

// BucketObject is the content of an object, as JSON: a revision with the instances that its commit has
// planned, or with one run. It does not change when it is there.
type BucketObject struct {
	// As it was when the object was written.
	Revision  Revision         `json:"revision"`
	Instances []Instance       `json:"instances"` // in their order
	Events    []envelope.Event `json:"events"`    // of each, in their order
}

// bucketRuns begins the keys of the runs of a revision. It ends in a slash, so it is no beginning of
// the key of the revision itself.
func bucketRuns(ref string, n int64) string { return BucketPrefix + revisionID(ref, n) + "/" }

// BucketKey is the key of what a revision has planned, or of a run. Numbers of runs have leading
// zeros, so that they are listed in their order.
func BucketKey(id ID) string {
	if id.Run == 0 {
		return BucketPrefix + revisionID(id.Ref, id.N) + ".json"
	}
	return fmt.Sprintf("%s%s/%09d.json", bucketRuns(id.Ref, id.N), id.Task, id.Run)
}

// runsRead is how many runs are read from the bucket for one page: each is a request, one after the
// other.
const runsRead = 50

// read reads an object of the bucket. A missing one is a NotFound, what may pass an Unavailable;
// one that is damaged is an error without a kind, since nobody can do anything about it but a
// person.
func (s *Store) read(ctx context.Context, key string) (k BucketObject, err error) {
	data, err := s.Bucket.Read(ctx, key)
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

// found reads an instance, from the bucket if it is there; then it has no rev. One that there is
// not has the rev 0 and an empty state.
func (s *Store) found(ctx context.Context, id string) (*instanceRow, error) {
	row, err := s.instanceRow(ctx, id)
	if err != nil || row.Rev > 0 || s.Bucket == nil {
		return row, err
	}

	at, err := ParseID(id)
	if err != nil || at.Task == "" {
		return row, nil // no instance has such an id
	}

	r, err := s.revisionRow(ctx, at.Ref, at.N)
	if err != nil || r.InBucket == 0 {
		return row, err
	}

	row.Instance, err = s.bucketInstance(ctx, r, at, row.Instance)
	return row, err
}

// bucketInstance reads an instance of a revision from the bucket. If it is not there, none is
// returned. That a revision's object is missing although its row says that it is there is an error
// without a kind: it is lost.
func (s *Store) bucketInstance(ctx context.Context, r *revisionRow, at ID,
	none Instance) (Instance, error) {
	if at.Run == 0 && r.Ends[at.Task] == "" {
		return none, nil
	}

	k, err := s.read(ctx, BucketKey(at))
	switch {
	case fault.Is(err, fault.NotFound) && at.Run > 0:
		return none, nil
	case fault.Is(err, fault.NotFound):
		// No NotFound: it is lost.
		return none, fmt.Errorf("%s went into the bucket, and is not there: %v", at, err)
	}

	i := slices.IndexFunc(k.Instances, func(in Instance) bool { return in.ID == at.String() })
	if i >= 0 {
		return k.Instances[i], nil
	}
	return none, err
}

// stateOf is the state of an instance that a revision has planned, also of one that is in the
// bucket: the revision's row has that, so no object is read. One that there must be, and is not, is
// an error without a kind: to plan on would take it for ended.
func (s *Store) stateOf(ctx context.Context, ref string, n int64,
	task string) (workflow.State, error) {
	r, err := s.instanceRow(ctx, instanceID(ref, n, task, 0))
	if err != nil || r.Rev > 0 {
		return r.State, err
	}
	old, err := s.revisionRow(ctx, ref, n)
	state := workflow.State(old.Ends[task])
	if err != nil || state != "" {
		return state, err
	}
	return "", fmt.Errorf("revision %d of %s has planned %s, but there is no instance of it", n,
		ref, task)
}

// addFromBucket adds those that are in the bucket to the known ones (by id), of instances that
// revisions have planned. It reads an object for each of these revisions, once.
func (s *Store) addFromBucket(ctx context.Context, rows []table.Key, known map[string]Instance) error {
	looked := map[string]bool{}
	for _, k := range rows {
		_, id, _ := strings.Cut(k.PK, "#")
		at, err := ParseID(id)
		_, have := known[id]
		revision := revisionID(at.Ref, at.N)
		if err != nil || have || looked[revision] || s.Bucket == nil {
			continue
		}

		looked[revision] = true
		r, err := s.revisionRow(ctx, at.Ref, at.N)
		if err != nil {
			return err
		}

		if r.Ends == nil {
			continue
		}

		err = s.addRevisionFromBucket(ctx, ID{Ref: at.Ref, N: at.N}, known)
		if err != nil {
			return err
		}
	}
	return nil
}

// addRevisionFromBucket adds what a revision has planned, from the bucket. What is known already stays: a row is
// newer than an object.
func (s *Store) addRevisionFromBucket(ctx context.Context, id ID, known map[string]Instance) error {
	k, err := s.read(ctx, BucketKey(id))
	for _, in := range k.Instances {
		_, have := known[in.ID]
		if !have {
			known[in.ID] = in
		}
	}
	return err
}

// bucketInstances reads instances of a revision from the bucket: at first those that it has planned, and
// then runs. after is "" at first, then the next of the page before; next is "" at the end. Runs
// are of each task in its own order.
func (s *Store) bucketInstances(ctx context.Context, r *revisionRow,
	after string) (page []Instance, next string, err error) {
	n := r.Revision.Number
	runs := bucketRuns(r.Archive, n)
	if after == "" && r.Ends != nil {
		k, err := s.read(ctx, BucketKey(ID{Ref: r.Archive, N: n}))
		return k.Instances, runs, err
	}

	keys, more, err := s.Bucket.List(ctx, runs, max(after, runs))
	if err != nil {
		return nil, "", fault.New(fault.Unavailable, "the objects below %s cannot be listed: %w",
			runs, err)
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
