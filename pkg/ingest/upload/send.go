package upload

import (
	"context"
	"encoding/hex"
	"maps"
	"slices"

	"golang.org/x/sync/errgroup"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// Listed is a file that an upload is to have.
type Listed struct {
	Sum  string // SHA-256 in lower-case hexadecimal
	Size int64
}

// Send says how a file is sent. A stored one has neither Put nor Parts.
type Send struct {
	Listed
	Stored  bool
	Put     *bucket.SignedPut
	Parts   *Parts
	Expires int64 // of the signed requests, milliseconds since 1970
}

// Parts says how a file is sent in parts.
type Parts struct {
	Size   int64 // of each but the last
	Count  int
	Stored []int  // the numbers of those that are there
	Next   []Part // signed requests for the next that are missing
}

// Part is the signed request for a part.
type Part struct {
	Number int
	URL    string
}

// Signed requests for parts in one answer: of one file, and of all.
const (
	mostParts  = 100
	mostSigned = 200
)

// chunk is how many rows of files one transaction writes, beside that of the upload and an event.
const chunk = 50

// side is how many files are looked at in the bucket at once.
const side = 8

// List adds files to an upload, at most MaxAtOnce, and returns how each is sent, in their order, each once. Those that
// were listed before are looked for in the bucket: what is there needs not be sent. So a client that was interrupted
// lists its files again, and sends the rest.
func (s *Store) List(ctx context.Context, id string, files []Listed) ([]Send, error) {
	files, err := distinct(files)
	if err != nil {
		return nil, err
	}

	rows := map[string]*File{}
	for part := range slices.Chunk(files, chunk) {
		err := s.Table.Again(ctx, "the upload "+id, func() error {
			return s.list(ctx, id, part,
				rows)
		})
		if err != nil {
			return nil, err
		}
	}

	var sums []string
	for _, f := range files {
		sums = append(sums, f.Sum)
	}
	found, err := s.find(ctx, id, sums, rows)
	if err != nil {
		return nil, err
	}
	return s.sign(ctx, id, files, found)
}

// distinct are the files, each once. What no upload can have is an Invalid.
func distinct(files []Listed) (out []Listed, err error) {
	if len(files) < 1 || len(files) > MaxAtOnce {
		return nil, fault.New(fault.Invalid, "files: found %d; expected 1 to %d", len(files),
			MaxAtOnce)
	}

	sizes := map[string]int64{}
	for _, f := range files {
		if err := checkSum(f.Sum); err != nil {
			return nil, err
		}
		if f.Size < 0 || f.Size > MaxSize {
			return nil, fault.New(fault.Invalid, "files: %s: found a size of %d; expected 0 to "+
				"%d bytes", f.Sum, f.Size,
				int64(MaxSize))
		}
		size, twice := sizes[f.Sum]
		if twice && size != f.Size {
			return nil, otherSize(f.Sum, size, f.Size)
		}
		if !twice {
			out = append(out, f)
		}
		sizes[f.Sum] = f.Size
	}
	return out, nil
}

// otherSize is the error about one content with two sizes.
func otherSize(sum string, was, is int64) error {
	return fault.New(fault.Invalid, "files: %s is listed with %d and with %d bytes, but has one "+
		"size. Compute its digest "+
		"and its size again: it may have changed meanwhile", sum, was, is)
}

// list is one try to add some files: in one transaction with what the upload has of them. rows gets the rows of all.
func (s *Store) list(ctx context.Context, id string, files []Listed, rows map[string]*File) error {
	row, err := s.opened(ctx, id)
	if err != nil {
		return err
	}

	known, err := s.files(ctx, id, files)
	if err != nil {
		return err
	}

	next, tx := *row, s.Table.Begin(s.NewID())
	added, err := next.add(files, known)
	if err != nil {
		return err
	}
	if next.ListedFiles > next.Files || next.ListedBytes > next.Bytes {
		return fault.New(fault.Invalid, "files: the upload %s was opened for %s with %d bytes; "+
			"with these it would have %s "+
			"with %d bytes. Open a new one for all files", id, ingest.Counted(int64(next.Files),
			"file"), next.Bytes,
			ingest.Number(next.ListedFiles), next.ListedBytes)
	}

	if len(added) > 0 {
		if err := s.write(tx, row, next, "", "", Detail{}); err != nil {
			return err
		}
		for _, f := range added {
			tx.Insert(f)
		}
		if err := tx.Commit(ctx); err != nil {
			return err
		}
	}
	maps.Copy(rows, known)
	return nil
}

// add counts files that are not known yet, and returns their rows; they are known then.
func (u *Upload) add(files []Listed, known map[string]*File) (added []*File, err error) {
	for _, f := range files {
		one := known[f.Sum]
		if one != nil && one.Size != f.Size {
			return nil, otherSize(f.Sum, one.Size, f.Size)
		}
		if one == nil {
			one = &File{Head: head(fileKey(u.ID, f.Sum)), Size: f.Size, fresh: true}
			known[f.Sum], added = one, append(added, one)
			u.ListedFiles++
			u.ListedBytes += f.Size
		}
	}
	return added, nil
}

// files are the rows of files that an upload has, by their SHA-256.
func (s *Store) files(ctx context.Context, id string, files []Listed) (map[string]*File, error) {
	keys := make([]table.Key, len(files))
	for i, f := range files {
		keys[i] = fileKey(id, f.Sum)
	}
	raw, err := s.Table.Many(ctx, keys)
	if err != nil {
		return nil, err
	}

	rows := map[string]*File{}
	for _, one := range raw {
		var f File
		if err := one.Decode(&f); err != nil {
			return nil, err
		}
		rows[f.Sum()] = &f
	}
	return rows, nil
}

// sign signs the requests for what is missing. That they are out is on the upload's row before they are given out: what
// removes the upload waits for them.
func (s *Store) sign(ctx context.Context, id string, files []Listed,
	found map[string]*look) ([]Send, error) {
	expires, err := s.promise(ctx, id)
	if err != nil {
		return nil, err
	}

	out, signed := make([]Send, len(files)), 0
	row, err := s.Upload(ctx, id)
	if err != nil {
		return nil, err
	}
	for i, f := range files {
		at := found[f.Sum]
		out[i] = Send{Listed: f, Stored: at.stored, Expires: expires}
		switch key := row.objectKey(f.Sum); {
		case at.stored:
		case at.parts == nil:
			sum, _ := hex.DecodeString(f.Sum) // checked before
			put, err := s.Work.SignPut(ctx, key, f.Size, sum, signedFor)
			if err != nil {
				return nil, err
			}
			out[i].Put = &put
		default:
			out[i].Parts, err = s.signParts(ctx, key, f.Size, at, min(mostParts, mostSigned-signed))
			if err != nil {
				return nil, err
			}
			signed += len(out[i].Parts.Next)
		}
	}
	return out, nil
}

// promise notes until when signed requests for an upload are out, and returns when those that are signed now end.
func (s *Store) promise(ctx context.Context, id string) (expires int64, err error) {
	err = s.Table.Again(ctx, "the upload "+id, func() error {
		row, err := s.opened(ctx, id)
		if err != nil {
			return err
		}
		expires = s.Now().Add(signedFor).UnixMilli()
		if row.SignedUntil >= expires+signedAhead.Milliseconds()/2 {
			return nil
		}

		next := *row
		next.SignedUntil = expires + signedAhead.Milliseconds()
		tx := s.Table.Begin(s.NewID())
		if err := s.write(tx, row, next, "", "", Detail{}); err != nil {
			return err
		}
		return tx.Commit(ctx)
	})
	return expires, err
}

// signParts signs requests for the next parts of a file, at most so many.
func (s *Store) signParts(ctx context.Context, key string, size int64, at *look, most int) (*Parts,
	error) {
	p := &Parts{Size: s.partSize(size), Count: s.partsOf(size), Stored: []int{}, Next: []Part{}}
	for n := 1; n <= p.Count; n++ {
		if at.parts.has[n] {
			p.Stored = append(p.Stored, n)
			continue
		}
		if len(p.Next) >= most {
			continue
		}
		to, err := s.Work.SignPart(ctx, key, at.parts.id, n, s.sizeOf(size, n), signedFor)
		if err != nil {
			return nil, err
		}
		p.Next = append(p.Next, Part{n, to})
	}
	return p, nil
}

// partSize is the size of the parts of a file; the last one has what is left.
func (s *Store) partSize(size int64) int64 { return bucket.Limits{Part: s.Part}.PartSize(size) }

func (s *Store) partsOf(size int64) int {
	part := s.partSize(size)
	return int((size + part - 1) / part)
}

// sizeOf is the size of part n.
func (s *Store) sizeOf(size int64, n int) int64 {
	part := s.partSize(size)
	return min(part, size-int64(n-1)*part)
}

// inParts reports whether a file is sent in parts.
func (s *Store) inParts(f *File) bool { return f.Size > s.Part }

// Sent is whether a file was found in the bucket; if not, Problem says what is wrong, and what to do.
type Sent struct {
	Sum     string
	Stored  bool
	Problem string
}

// Stored looks for files of an upload in the bucket, at most MaxAtOnce: those that are there, as they are listed, count
// as stored from then on. The answer is in their order, each once.
func (s *Store) Stored(ctx context.Context, id string, sums []string) ([]Sent, error) {
	if len(sums) < 1 || len(sums) > MaxAtOnce {
		return nil, fault.New(fault.Invalid, "files: found %d; expected 1 to %d", len(sums),
			MaxAtOnce)
	}
	if _, err := s.opened(ctx, id); err != nil {
		return nil, err
	}

	var once []string
	var files []Listed
	for _, sum := range sums {
		if err := checkSum(sum); err != nil {
			return nil, err
		}
		if !slices.Contains(once, sum) {
			once, files = append(once, sum), append(files, Listed{Sum: sum})
		}
	}
	rows, err := s.files(ctx, id, files)
	if err != nil {
		return nil, err
	}
	found, err := s.find(ctx, id, once, rows)
	if err != nil {
		return nil, err
	}

	out := make([]Sent, len(once))
	for i, sum := range once {
		out[i] = Sent{Sum: sum, Problem: "the upload does not list this file; list it first"}
		if at := found[sum]; at != nil {
			out[i].Stored, out[i].Problem = at.stored, at.problem
		}
	}
	return out, nil
}

// find looks for files in the bucket, and notes on their rows which are stored.
func (s *Store) find(ctx context.Context, id string, sums []string,
	rows map[string]*File) (map[string]*look, error) {
	row, err := s.opened(ctx, id)
	if err != nil {
		return nil, err
	}

	looks := make([]*look, len(sums))
	group, inTime := errgroup.WithContext(ctx)
	group.SetLimit(side)
	for i, sum := range sums {
		if f := rows[sum]; f != nil {
			group.Go(func() (err error) {
				looks[i], err = s.look(inTime, row, f)
				return err
			})
		}
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}

	found, news := map[string]*look{}, []Listed{}
	for i, sum := range sums {
		if looks[i] == nil {
			continue
		}
		found[sum] = looks[i]
		if looks[i].stored && !rows[sum].Stored {
			news = append(news, Listed{Sum: sum})
		}
	}
	for part := range slices.Chunk(news, chunk) {
		err := s.Table.Again(ctx, "the upload "+id, func() error { return s.store(ctx, id, part) })
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// store is one try to note that files are stored.
func (s *Store) store(ctx context.Context, id string, files []Listed) error {
	row, err := s.opened(ctx, id)
	if err != nil {
		return err
	}
	rows, err := s.files(ctx, id, files)
	if err != nil {
		return err
	}

	next, tx, changed := *row, s.Table.Begin(s.NewID()), false
	for _, f := range rows {
		if f.Stored {
			continue
		}
		f.Stored, changed = true, true
		next.StoredFiles++
		next.StoredBytes += f.Size
		tx.Save(f)
	}
	if !changed {
		return nil
	}
	if err := s.write(tx, row, next, "", "", Detail{}); err != nil {
		return err
	}
	return tx.Commit(ctx)
}

// Kept is a file of an upload, and how much of it is in the bucket.
type Kept struct {
	Listed
	Stored   bool
	Uploaded int64
}

// Files lists the files of an upload, in the order of their digests. Nothing is changed.
func (s *Store) Files(ctx context.Context, id, cursor string) (page queue.Page[Kept], err error) {
	row, err := s.Upload(ctx, id)
	if err != nil {
		return page, err
	}
	var files []File
	query := table.Query{PK: row.PK, Prefix: filePrefix, Cursor: cursor, Limit: MaxAtOnce}
	if page.Cursor, err = s.Table.Page(ctx, query, &files); err != nil {
		return page, err
	}

	page.Items = make([]Kept, len(files))
	group, inTime := errgroup.WithContext(ctx)
	group.SetLimit(side)
	for i := range files {
		f := &files[i]
		page.Items[i] = Kept{Listed{f.Sum(), f.Size}, f.Stored, f.Size}
		if !f.Stored {
			group.Go(func() (err error) {
				page.Items[i].Uploaded, err = s.uploaded(inTime, row, f)
				return err
			})
		}
	}
	return page, group.Wait()
}
