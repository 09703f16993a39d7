package workspace

import (
	"context"
	"fmt"
	"iter"
	"path"

	"archivist/pkg/formats/checkm"
	"archivist/pkg/ingest"
	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/objects/aip"
	"archivist/pkg/objects/ocfl"
)

// SegmentFiles is how many files a segment of the ledger has. The ledger is in the
// manifest's order; no step needs all of it at once.
const SegmentFiles = 500

// FinishedSegments are the numbers of the ledger's segments that are written.
func (s Store) FinishedSegments(ctx context.Context, job string) (map[int]bool, error) {
	done := map[int]bool{}
	err := s.List(ctx, segmentPrefix(job), func(o bucket.Listed) error {
		var n int
		if _, err := fmt.Sscanf(path.Base(o.Key), "%06d.json", &n); err == nil {
			done[n] = true
		}
		return nil
	})
	return done, err
}

// Entries gives every file of the job's ledger. It reads one segment at a time. A missing one is a
// NotFound, which ends it.
func (s Store) Entries(ctx context.Context, j *ingest.Job) iter.Seq2[aip.Entry, error] {
	return func(yield func(aip.Entry, error) bool) {
		for n := range (j.Files + SegmentFiles - 1) / SegmentFiles {
			segment, err := s.Segment(ctx, j.ID, n)
			if err != nil {
				yield(aip.Entry{}, err)
				return
			}
			for _, e := range segment {
				if !yield(e, nil) {
					return
				}
			}
		}
	}
}

// Segment reads a finished segment of the ledger. One that is not finished is a NotFound.
func (s Store) Segment(ctx context.Context, job string, n int) (segment []aip.Entry, err error) {
	err = s.GetJSON(ctx, segmentKey(job, n), &segment)
	return segment, err
}

// PutSegment finishes a segment of the ledger. It is never written again: a late worker
// gets a Stale.
func (s Store) PutSegment(ctx context.Context, job string, n int, entries []*aip.Entry) error {
	return s.PutJSON(ctx, segmentKey(job, n), entries, bucket.Condition{Absent: true})
}

// Unfinished reads the files of a segment that are there; nil is one that is not there yet.
func (s Store) Unfinished(ctx context.Context, job string, n, files int) ([]*aip.Entry, error) {
	entries := make([]*aip.Entry, files)
	err := s.GetJSON(ctx, unfinishedKey(job, n), &entries)
	if fault.Is(err, fault.NotFound) {
		err = nil
	}
	return entries, err
}

// PutUnfinished saves the files of a segment that are there. The last write wins: what it leaves
// out is fetched again.
func (s Store) PutUnfinished(ctx context.Context, job string, n int, entries []*aip.Entry) error {
	return s.PutJSON(ctx, unfinishedKey(job, n), entries, bucket.Condition{})
}

// Rows calls each with the files that the job is to download, in order. manifest is the
// job's manifest, if its payload is one.
func Rows(ctx context.Context, j *ingest.Job, manifest ocfl.Text,
	each func(checkm.Row) error) error {
	if j.Payload.Type != ingest.TypeObjectManifest {
		return each(FileRow(j))
	}
	body, err := manifest(ctx)
	if err != nil {
		return err
	}
	defer body.Close()
	_, _, err = checkm.Read(body, checkm.Options{}, each)
	return err
}

// FileRow is the row of a payload that is one file. Its size is -1 if none is given.
func FileRow(j *ingest.Job) checkm.Row {
	size := int64(-1)
	if j.Payload.Size > 0 || j.Payload.Empty {
		size = j.Payload.Size
	}
	return checkm.Row{
		URL:       j.URL,
		Algorithm: j.Payload.Algorithm,
		Digest:    j.Payload.Digest,
		Size:      size,
		Name:      j.Payload.Filename,
	}
}

// Segments calls each with the job's rows, by segments of the ledger.
func (s Store) Segments(ctx context.Context, j *ingest.Job,
	each func(n int, rows []checkm.Row) error) error {
	n, segment := 0, make([]checkm.Row, 0, SegmentFiles)
	err := Rows(ctx, j, s.Text(ManifestKey(j)), func(r checkm.Row) error {
		segment = append(segment, r)
		if len(segment) < SegmentFiles {
			return nil
		}
		err := each(n, segment)
		// The slice is used again: each must not keep it.
		n, segment = n+1, segment[:0]
		return err
	})
	if err == nil && len(segment) > 0 {
		err = each(n, segment)
	}
	return err
}
