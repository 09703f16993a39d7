package stage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"archivist/pkg/formats/bagit"
	"archivist/pkg/formats/checkm"
	"archivist/pkg/formats/container"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/workspace"
	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/fetch"
	"archivist/pkg/objects/aip"
)

// mostUnsaved is how many bytes of files are unpacked again at most if a worker dies, beside those of one part.
const mostUnsaved = 256 << 20

// unpack unpacks what is not unpacked yet. errStopped: the time is up. Of the container's own faults it returns a
// *container.RefusedError.
func (u *unpacking) unpack(ctx context.Context) error {
	if err := u.open(ctx); err != nil {
		return err
	}

	err := u.files(ctx)
	_ = u.side.Wait() // failures are noted
	if u.err != nil && !errors.Is(u.err, fetch.ErrStop) && (err == nil || errors.Is(err, errStopped)) {
		err = u.err
	}
	u.tell()
	return err
}

// open opens the container where the try before has stopped.
func (u *unpacking) open(ctx context.Context) (err error) {
	at := bucket.At{Context: ctx, Bucket: u.Work.Bucket, Key: u.Container.Source, ETag: u.ETag}
	u.reader, err = container.Open(u.Kind, at, u.Container.Size, u.limits, u.State)
	if err != nil {
		return err
	}

	// The names in a tar file are not known before it is read: it may be a bag by any manifest.
	u.asked = []string{"md5", "sha1"}
	_, size, known := u.reader.Total()
	if known {
		names := u.reader.Names()
		u.asked = bagit.Asked(names)
		if slices.Contains(names, innerManifest) {
			u.asked = slices.Sorted(maps.Keys(checkm.Lengths))
		}
	}

	if known || u.State == nil {
		return u.need(size)
	}
	return u.seen(ctx)
}

// seen tells the reader the names of the files of earlier tries.
func (u *unpacking) seen(ctx context.Context) error {
	for n := range u.finished() {
		segment, err := u.Work.Segment(ctx, u.job.ID, n)
		if err != nil {
			return err
		}
		for _, e := range segment {
			u.reader.Seen(nameOf(e))
		}
	}

	for _, e := range u.Files {
		u.reader.Seen(nameOf(*e))
	}
	if file, _ := u.reader.Current(); file != nil {
		u.reader.Seen(file.Name)
	}
	if u.Received != nil {
		u.reader.Seen(nameOf(*u.Received))
	}
	return nil
}

// finished is how many segments of the ledger are written, when the try begins.
func (u *unpacking) finished() int {
	done := u.State.Files - len(u.Files)
	if u.State.File != nil || u.Received != nil {
		done--
	}
	return done / workspace.SegmentFiles
}

// files unpacks one file after the other.
func (u *unpacking) files(ctx context.Context) (err error) {
	if u.State != nil {
		u.got = u.State.Files
	}
	if u.Received != nil {
		if err := u.complete(ctx); err != nil {
			return err
		}
	}

	for {
		file, read := u.reader.Current() // the one in whose middle the try before has stopped
		if file == nil {
			if err := u.between(ctx); err != nil {
				return err
			}

			file, err = u.reader.Next()
			if err == io.EOF {
				return u.last(ctx)
			}
			if err != nil {
				return err
			}
			u.got++
			if err := u.need(u.reader.Bytes() + file.Size); err != nil {
				return err
			}
		}

		if file.Size > u.Work.Limits.Part {
			err = u.large(ctx, file, read)
		} else {
			err = u.small(ctx, file)
		}
		if err != nil {
			return err
		}
	}
}

// between does what is due between two files: the end of a segment, a save, the end of the try.
func (u *unpacking) between(ctx context.Context) error {
	stop := u.stopped()
	full := len(u.Files) == workspace.SegmentFiles
	if !stop && !full && u.unsaved < mostUnsaved {
		return nil
	}

	if err := u.written(); err != nil {
		return err
	}

	if full {
		if err := u.segment(ctx); err != nil {
			return err
		}
	}

	err := u.save(ctx)
	if err == nil && stop {
		err = errStopped
	}
	return err
}

// segment finishes a segment of the ledger.
func (u *unpacking) segment(ctx context.Context) error {
	n := (u.got - 1) / workspace.SegmentFiles
	err := u.Work.PutSegment(ctx, u.job.ID, n, u.Files)
	if fault.Is(err, fault.Stale) {
		err = u.same(ctx, n, u.Files)
	}
	u.Files = nil
	return err
}

// small unpacks a file that fits into memory. It is written beside the next ones.
func (u *unpacking) small(ctx context.Context, file *container.File) error {
	data := make([]byte, 0, file.Size+1)
	for {
		n, err := u.reader.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
	}

	e, key := &aip.Entry{}, workspace.FileKey(u.job.ID, u.got-1)
	u.Files, u.unsaved = append(u.Files, e), u.unsaved+int64(len(data))
	u.side.Go(func() error {
		sums := fetch.NewDigester(u.asked...)
		_, _ = sums.Write(data) // a digester never fails
		if err := u.Work.Put(ctx, key, data, bucket.Condition{}); err != nil {
			u.fail(err)
			return nil
		}
		*e = u.entry(file, sums, key)
		u.look(ctx, e, bytes.NewReader(data))
		return nil
	})
	return nil
}

// last ends the container.
func (u *unpacking) last(ctx context.Context) error {
	if err := u.written(); err != nil {
		return err
	}

	rows, err := u.elsewhere(ctx)
	if err != nil {
		return err
	}

	if u.keep {
		if name := nameOf(u.Container); u.reader.Taken(name) {
			return &container.RefusedError{Name: name, Why: "it has the name of the container, which the collection " +
				"keeps. Submit the container under another file name"}
		}
		if why := u.scan(ctx, &u.Container); why != "" {
			return &container.RefusedError{Name: nameOf(u.Container), Why: why}
		}
		if u.err != nil {
			return u.err
		}
		u.got++
		u.kept = u.got
		u.Files = append(u.Files, &u.Container)
	}

	switch {
	case len(rows) > 0:
		return u.fetch(ctx, rows)
	case len(u.Files) > 0:
		return u.segment(ctx)
	}
	return nil
}

// unkept tells of folders without files: neither S3 nor OCFL has folders.
func unkept(folders []string) string {
	if len(folders) == 0 {
		return ""
	}
	return ingest.Cut(fmt.Sprintf("folders without files are not kept: %s", strings.Join(folders, ", ")), maxProblem)
}

// tell notes in the job how much is unpacked.
func (u *unpacking) tell() {
	if u.fetching > 0 {
		u.job.Checkpoint = u.progress()
		return
	}

	text := "unpacked: " + ingest.Counted(u.got, "file")
	if u.reader != nil {
		if files, _, known := u.reader.Total(); known {
			text = fmt.Sprintf("unpacked: %s of %s", ingest.Number(u.got), ingest.Counted(files, "file"))
		}
	}
	if u.partly != "" {
		text += ", " + u.partly
	}
	u.job.Checkpoint = text
}
