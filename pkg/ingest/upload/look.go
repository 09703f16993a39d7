package upload

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"

	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// look is what was found of a file in the bucket.
type look struct {
	stored  bool
	problem string     // why not
	parts   *multipart // of a file that is sent in parts, and not stored
}

// multipart is an upload in parts that is under way.
type multipart struct {
	id   string
	has  map[int]bool // the numbers of the parts that are there
	list []bucket.SentPart
	size int64 // of these
}

// look looks for a file in the bucket. If all of its parts are there, it makes an object of them.
func (s *Store) look(ctx context.Context, row *Upload, f *File) (*look, error) {
	switch {
	case f.Stored:
		return &look{stored: true}, nil
	case s.inParts(f):
		return s.lookAtParts(ctx, row, f)
	case f.fresh:
		return &look{problem: unsent}, nil
	}
	why, err := s.whole(ctx, row, f)
	return &look{stored: err == nil && why == "", problem: why}, err
}

const unsent = "there is no such file in the upload yet; send it"

// whole returns why the object of a file is not what is listed, "" if it is.
func (s *Store) whole(ctx context.Context, row *Upload, f *File) (why string, err error) {
	size, sum, err := s.Work.Sums(ctx, row.objectKey(f.Sum()))
	if fault.Is(err, fault.NotFound) {
		return unsent, nil
	}
	if err != nil {
		return "", err
	}

	want, _ := hex.DecodeString(f.Sum()) // it was checked when it was listed
	switch {
	case size != f.Size:
		return fmt.Sprintf("%d bytes are stored, and %d are listed; compute its digest again, "+
			"and send it again", size,
			f.Size), nil
	case sum != nil && !bytes.Equal(sum, want):
		return fmt.Sprintf("the stored content has the SHA-256 %x; send it again", sum), nil
	}
	return "", nil
}

// lookAtParts looks for the parts of a file, and begins their upload if there is none.
func (s *Store) lookAtParts(ctx context.Context, row *Upload, f *File) (*look, error) {
	m, err := s.sent(ctx, row, f)
	if err != nil {
		return nil, err
	}

	if m == nil &&
		f.Parts != "" { // completed by a call whose answer was lost, or aborted by the bucket
		why, err := s.whole(ctx, row, f)
		if err != nil || why == "" {
			return &look{stored: err == nil}, err
		}
	}
	if m == nil {
		m, err = s.begin(ctx, row, f)
		if m == nil || err != nil {
			return nil, err
		}
		return &look{problem: unsent, parts: m}, nil
	}

	count := s.partsOf(f.Size)
	for n := 1; n <= count; n++ {
		if !m.has[n] {
			return &look{parts: m, problem: fmt.Sprintf("part %d of %d is missing; list the "+
				"file again, and send what is "+
				"missing", n, count)}, nil
		}
	}
	return s.join(ctx, row, f, m)
}

// join makes an object of all parts of a file.
func (s *Store) join(ctx context.Context, row *Upload, f *File, m *multipart) (*look, error) {
	err := s.Work.CompleteSent(ctx, row.objectKey(f.Sum()), m.id, m.list)
	if err != nil {
		return nil, err
	}
	why, err := s.whole(ctx, row, f)
	return &look{stored: err == nil && why == "", problem: why, parts: m}, err
}

// sent are the parts of a file that are in the bucket, of the right size; nil if there is no such multipart upload.
func (s *Store) sent(ctx context.Context, row *Upload, f *File) (*multipart, error) {
	if f.Parts == "" {
		return nil, nil
	}
	parts, err := s.Work.SentParts(ctx, row.objectKey(f.Sum()), f.Parts)
	if fault.Is(err, fault.NotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}

	m := &multipart{id: f.Parts, has: map[int]bool{}}
	for _, p := range parts {
		if p.Number <= s.partsOf(f.Size) && p.Size == s.sizeOf(f.Size, p.Number) {
			m.has[p.Number] = true
			m.list = append(m.list, p)
			m.size += p.Size
		}
	}
	return m, nil
}

// begin begins the multipart upload of a file, in place of one that the bucket does not have any more. If another call
// was faster, the other one counts.
func (s *Store) begin(ctx context.Context, row *Upload, f *File) (m *multipart, err error) {
	key := row.objectKey(f.Sum())
	id, err := s.Work.BeginSent(ctx, key)
	if err != nil {
		return nil, err
	}

	before := f.Parts
	f.Parts = id
	tx := s.Table.Begin(s.NewID())
	tx.Save(f)
	err = tx.Commit(ctx)
	if !fault.Is(err, fault.Stale) {
		return &multipart{id: id, has: map[int]bool{}}, err
	}

	f.Parts = before
	if err := s.Work.Abort(ctx, &bucket.Upload{Key: key, ID: id}); err != nil {
		return nil, err
	}
	var other File
	if err := s.Table.Get(ctx, table.Key{PK: f.PK, SK: f.SK}, &other); err != nil {
		return nil, err
	}
	*f = other
	if m, err = s.sent(ctx, row, f); m == nil && err == nil {
		err = fault.New(fault.Unavailable, "the file %s of the upload %s is being sent by "+
			"another call; try again", f.Sum(),
			row.ID)
	}
	return m, err
}

// uploaded is how many bytes of a file that does not count as stored are in the bucket.
func (s *Store) uploaded(ctx context.Context, row *Upload, f *File) (int64, error) {
	if s.inParts(f) {
		m, err := s.sent(ctx, row, f)
		if m != nil || err != nil {
			return sizeOf(m), err
		}
	}
	size, _, err := s.Work.Sums(ctx, row.objectKey(f.Sum()))
	if fault.Is(err, fault.NotFound) {
		return 0, nil
	}
	return size, err
}

func sizeOf(m *multipart) int64 {
	if m == nil {
		return 0
	}
	return m.size
}
