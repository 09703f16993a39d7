package stage

import (
	"context"
	"errors"
	"fmt"
	"io"

	"archivist/pkg/formats/container"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/workspace"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/fetch"
)

// large unpacks a file part by part, from where the try before has stopped.
func (u *unpacking) large(ctx context.Context, file *container.File, read int64) (err error) {
	if err := u.written(); err != nil {
		return err
	}

	sums, key := fetch.NewDigester(u.asked...), workspace.FileKey(u.job.ID, u.got-1)
	if read > 0 {
		err = sums.Restore(u.Digests)
	} else {
		err = u.begin(ctx, key)
	}

	for buf := make([]byte, u.Work.Limits.PartSize(file.Size)); err == nil; {
		n := 0
		for n < len(buf) && err == nil {
			var m int
			m, err = u.reader.Read(buf[n:])
			n += m
		}

		if err != nil && err != io.EOF {
			return err
		}

		last := err == io.EOF
		if err = u.part(ctx, sums, buf[:n]); err != nil {
			return err
		}

		if last {
			return u.whole(ctx, file, sums, key)
		}

		u.partly = fmt.Sprintf("%s of %s bytes of %s", ingest.Number(sums.Size), ingest.Number(file.Size),
			ingest.Cut(file.Name, maxProblem/4))
		u.Digests, err = sums.State()
		if err == nil {
			err = u.save(ctx)
		}
		if err == nil && u.TimeUp() {
			err = errStopped
		}
	}
	return err
}

// begin begins the upload of a large file.
func (u *unpacking) begin(ctx context.Context, key string) error {
	s, err := u.reader.State()
	if err != nil {
		return err
	}
	u.Before = &s
	u.Upload, err = u.Work.Begin(ctx, key)
	return err
}

// part uploads the next part of a large file.
func (u *unpacking) part(ctx context.Context, sums *fetch.Digester, data []byte) error {
	if len(data) == 0 {
		return nil
	}

	err := u.Work.Add(ctx, u.Upload, data)
	if fault.Is(err, fault.NotFound) {
		why := fmt.Errorf("the upload of %s was removed as too old, or completed by another worker; the file is "+
			"unpacked again", u.Upload.Key)
		u.State, u.Upload, u.Digests = u.Before, nil, fetch.State{}
		return errors.Join(why, u.Work.PutUnpacking(ctx, u.job.ID, u.Unpacking))
	}
	_, _ = sums.Write(data) // a digester never fails
	return err
}

// whole ends a large file. That all its parts are there is saved first: a worker that dies in between leaves an upload
// of which nobody knows whether it was completed.
func (u *unpacking) whole(ctx context.Context, file *container.File, sums *fetch.Digester, key string) error {
	e := u.entry(file, sums, key)
	u.Received, u.Before, u.Digests, u.partly = &e, nil, fetch.State{}, ""
	if err := u.save(ctx); err != nil {
		return err
	}
	return u.complete(ctx)
}

// complete makes the parts of a large file the file. It can be repeated.
func (u *unpacking) complete(ctx context.Context) error {
	if err := u.Work.Complete(ctx, u.Upload); err != nil {
		return err
	}
	e := u.Received
	u.look(ctx, e, nil)
	u.Files, u.Upload, u.Received = append(u.Files, e), nil, nil
	return nil
}
