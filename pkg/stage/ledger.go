package stage

import (
	"context"
	"fmt"
	"iter"
	"path"

	"archivist/pkg/aip"
	"archivist/pkg/bucket"
	"archivist/pkg/checkm"
	"archivist/pkg/ingest"
	"archivist/pkg/ocfl"
	"archivist/pkg/workspace"
)

// segmentFiles is how many files a segment of the ledger has. The ledger is in the
// manifest's order; nobody needs all of it at once.
const segmentFiles = 500

func segmentPrefix(job string) string     { return workspace.Prefix(job) + "ledger/" }
func segmentKey(job string, n int) string { return fmt.Sprintf("%s%06d.json", segmentPrefix(job), n) }
func unfinishedKey(job string, n int) string {
	return fmt.Sprintf("%sunfinished/%06d.json", workspace.Prefix(job), n)
}

// segments are the numbers of the segments that are finished.
func (s *Stages) segments(ctx context.Context, job string) (map[int]bool, error) {
	done := map[int]bool{}
	err := s.Work.List(ctx, segmentPrefix(job), func(o bucket.Listed) error {
		var n int
		if _, err := fmt.Sscanf(path.Base(o.Key), "%06d.json", &n); err == nil {
			done[n] = true
		}
		return nil
	})
	return done, err
}

// entries gives every file of the job's ledger.
func (s *Stages) entries(ctx context.Context, j *ingest.Job) iter.Seq2[aip.Entry, error] {
	return func(yield func(aip.Entry, error) bool) {
		for n := range (j.Files + segmentFiles - 1) / segmentFiles {
			var segment []aip.Entry
			if err := s.Work.GetJSON(ctx, segmentKey(j.ID, n), &segment); err != nil {
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

// rows gives each the files that the job is to download, in order. manifest is the
// job's, if its payload is one.
func rows(ctx context.Context, j *ingest.Job, manifest ocfl.Text, each func(checkm.Row) error) error {
	if j.Payload.Type != ingest.TypeObjectManifest {
		return each(fileRow(j))
	}
	body, err := manifest(ctx)
	if err != nil {
		return err
	}
	defer body.Close()
	_, _, err = checkm.Read(body, checkm.Options{}, each)
	return err
}

func fileRow(j *ingest.Job) checkm.Row {
	size := int64(-1)
	if j.Payload.Size > 0 || j.Payload.Empty {
		size = j.Payload.Size
	}
	return checkm.Row{URL: j.URL, Algorithm: j.Payload.Algorithm, Digest: j.Payload.Digest, Size: size, Name: j.Payload.Filename}
}

// inSegments gives each the job's rows by segments.
func (s *Stages) inSegments(ctx context.Context, j *ingest.Job, each func(n int, rows []checkm.Row) error) error {
	n, segment := 0, make([]checkm.Row, 0, segmentFiles)
	err := rows(ctx, j, s.Work.Text(workspace.ManifestKey(j)), func(r checkm.Row) error {
		segment = append(segment, r)
		if len(segment) < segmentFiles {
			return nil
		}
		err := each(n, segment)
		n, segment = n+1, segment[:0]
		return err
	})
	if err == nil && len(segment) > 0 {
		err = each(n, segment)
	}
	return err
}
