package stage

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"archivist/pkg/formats/bagit"
	"archivist/pkg/formats/checkm"
	"archivist/pkg/formats/container"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/workspace"
	"archivist/pkg/kernel/source"
	"archivist/pkg/objects/aip"
)

// elsewhere are the files of a bag that are not in its container: fetch.txt says where they are (RFC 8493, section
// 2.2.3). It checks all that can be known of them before the first is fetched, and saves that all else is unpacked. A
// bag that is not valid whatever they are has none: it is refused when it is checked.
func (u *unpacking) elsewhere(ctx context.Context) ([]checkm.Row, error) {
	if u.got > maxBagFiles {
		return nil, nil
	}
	bag, err := u.bagOf(ctx, u.unpackedFiles(ctx))
	if err != nil || bag == nil {
		return nil, err
	}

	missing, problems, err := bagit.Fetches(ctx, bag)
	if err != nil || len(problems) > 0 || len(missing) == 0 {
		return nil, err
	}
	if n := u.got + len(missing); n > maxBagFiles {
		return nil, &container.RefusedError{Why: tooMany(n)}
	}

	rows, size, asked := make([]checkm.Row, len(missing)), int64(0), map[string]bool{}
	for i, f := range missing {
		rows[i] = rowOf(bag.root, f)
		if why := u.unacceptable(rows[i]); why != "" {
			return nil, &container.RefusedError{Why: fmt.Sprintf("line %d of fetch.txt: %s", f.Line,
				ingest.Cut(why, maxProblem))}
		}
		size = ingest.AddSizes(size, max(f.Size, 0))
		for algorithm := range f.Digests {
			asked[algorithm] = true
		}
	}

	u.Algorithms = slices.Sorted(maps.Keys(asked))
	if err := u.need(ingest.AddSizes(u.reader.Bytes(), size)); err != nil {
		return nil, err
	}
	return rows, u.save(ctx)
}

// unpackedFiles are the files of the container, when all are unpacked, and before the last segment is finished.
func (u *unpacking) unpackedFiles(ctx context.Context) iter.Seq2[aip.Entry, error] {
	return func(yield func(aip.Entry, error) bool) {
		for n := range (u.got - len(u.Files)) / workspace.SegmentFiles {
			segment, err := u.Work.Segment(ctx, u.job.ID, n)
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
		for _, e := range u.Files {
			if !yield(*e, nil) {
				return
			}
		}
	}
}

// strongest are algorithms, the strongest first.
var strongest = []string{"sha512", "sha384", "sha256", "sha224", "sha1", "md5"}

// rowOf is the row of a file that is fetched.
func rowOf(root string, f bagit.Fetch) checkm.Row {
	row := checkm.Row{URL: f.URL, Name: root + f.Path, Size: f.Size}
	for _, algorithm := range strongest {
		if digest := f.Digests[algorithm]; digest != "" {
			row.Algorithm, row.Digest = algorithm, digest
			break
		}
	}
	return row
}

// unacceptable returns why a file is not fetched, or "".
func (u *unpacking) unacceptable(row checkm.Row) string {
	if len(row.URL) > checkm.MaxURL {
		return fmt.Sprintf("the URL has %d bytes; at most %d are allowed", len(row.URL), checkm.MaxURL)
	}
	if err := source.CheckPayload(row.URL); err != nil {
		return err.Error()
	}
	if why := u.refuse(row.URL); why != "" {
		return why
	}

	file := &container.File{Name: row.Name, Size: max(row.Size, 0)}
	err := u.reader.Beside(file)
	if file.Warning != "" && len(u.notes) < maxProblems {
		u.notes = append(u.notes, ingest.Cut(row.Name, maxProblem/4)+": "+file.Warning)
	}
	refused := new(container.RefusedError)
	if errors.As(err, &refused) {
		return fmt.Sprintf("%s: %s", row.Name, refused.Why)
	}
	return ""
}

// fetch gets the files of a bag that are not in its container. In the ledger they are behind those that are, so its
// segments are finished as those of a manifest.
func (u *unpacking) fetch(ctx context.Context, rows []checkm.Row) error {
	inside := u.Files // of the segment that the container has begun
	first := (u.got - len(inside)) / workspace.SegmentFiles
	u.fetching, u.job.Files, u.got = len(rows), u.got+len(rows), u.got-len(inside)
	rows = append(make([]checkm.Row, len(inside)), rows...)

	done := map[int]bool{}
	if !u.First {
		var err error
		if done, err = u.Work.FinishedSegments(ctx, u.job.ID); err != nil {
			return err
		}
	}

	n := first
	for page := range slices.Chunk(rows, workspace.SegmentFiles) {
		if done[n] {
			u.got += len(page)
		} else if err := u.fetchPage(ctx, n, page, inside); err != nil {
			return err
		}
		n, inside = n+1, nil
	}
	return nil
}

// fetchPage gets the files of a segment of the ledger. Its first ones were in the container.
func (u *unpacking) fetchPage(ctx context.Context, n int, rows []checkm.Row, inside []*aip.Entry) error {
	entries, err := u.unfinished(ctx, n, len(rows))
	if err != nil {
		return err
	}
	copy(entries, inside)
	if err := u.rows(ctx, n, rows, entries); err != nil {
		return err
	}
	return u.need(u.came.bytes) // of those whose size the bag does not say
}
