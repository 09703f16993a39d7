package stage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/workspace"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/objects/aip"
)

// notTaken lists what a submission says of its files that the newest version does not have,
// although their content is the same: no version is made of it, and the depositor is told.
// Both lists of files are in the order of their paths.
func (s Store) notTaken(ctx context.Context, j *ingest.Job) ([]string, error) {
	system, err := s.Work.SystemFiles(ctx, j.ID)
	if err != nil {
		return nil, err
	}

	stored, err := s.Root.Head(ctx, j.Primary)
	if err != nil {
		return nil, err
	}

	next, stop := iter.Pull2(s.filesOf(ctx, system))
	defer stop()
	var notes ingest.Warnings
	err = aip.Head(s.Root, stored).Each(ctx, 0, func(was aip.Entry, _ int64) error {
		is, err, more := next()
		switch {
		case err != nil:
			return err
		case !more || is.Path != was.Path:
			return errOtherFiles
		}
		for _, what := range said(is, was) {
			notes.Add(fmt.Sprintf("%s: not taken, because the content is unchanged: %s", is.Path, what))
		}
		return nil
	})
	if errors.Is(err, errOtherFiles) || fault.Is(err, fault.NotFound) {
		return nil, nil // a version of other software has no such list
	}
	return notes.List("compare the submission with the files of the object"), err
}

// errOtherFiles ends the comparison of two lists that are not of the same files.
var errOtherFiles = errors.New("the lists have other files")

// filesOf is the list of files that was made for a job's version.
func (s Store) filesOf(ctx context.Context, system workspace.SystemFiles) iter.Seq2[aip.Entry, error] {
	for _, f := range system.Files {
		if f.Path == aip.ListName {
			return listed(ctx, s.Work.TextOf(f))
		}
	}
	return func(func(aip.Entry, error) bool) {}
}

// said is what a submission says of a file that the stored version does not. A date or a digest
// that is not said again is no difference.
func said(is, was aip.Entry) (what []string) {
	// The type that the name suggests is not one that the depositor has said.
	if is.MediaType != defaultType(is.Path) && is.MediaType != was.MediaType {
		what = append(what, fmt.Sprintf("the media type %s (stored: %s)", is.MediaType,
			cmp.Or(was.MediaType, "none")))
	}

	if is.Modified != "" && is.Modified != was.Modified {
		what = append(what, fmt.Sprintf("the date %s (stored: %s)", is.Modified, cmp.Or(was.Modified, "none")))
	}

	if is.Given != "" && was.Digests[is.Given] == "" {
		what = append(what, fmt.Sprintf("the digest %s, which was verified", is.Given))
	}
	return what
}
