package researcher

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/fetch"
)

// download is one download, by who has the lock of the part.
type download struct {
	*Cache
	media    Media
	path     string   // of the complete recording
	file     *os.File // the part
	resumed  bool     // it begins with what an earlier download has left
	progress func(done, whole int64)
}

// download makes a recording be there: by this process, or by another that was at it. It returns
// nil also if another has removed it meanwhile: the caller looks whether the recording is there.
//
// The lock of the part keeps two processes from writing it. What a process that died has left is
// continued. The recording appears under its name only when it is complete, verified and on the
// disk.
func (c *Cache) download(ctx context.Context, m Media, progress func(done, whole int64)) error {
	err := c.tooLarge(m.Size)
	if err != nil {
		return err
	}

	d := &download{Cache: c, media: m, path: filepath.Join(c.Dir, m.name()), progress: progress}
	part := d.path + partOf
	lock := flock.New(part, flock.SetFlag(os.O_RDWR|os.O_CREATE))
	_, err = lock.TryLockContext(ctx, lockWait)
	if err != nil {
		return interrupted(ctx, err)
	}

	defer func() { _ = lock.Unlock() }()
	if at(lock, part) == nil {
		return nil // another has completed or removed it
	}

	_, err = os.Stat(d.path)
	if err == nil {
		return local(os.Remove(part)) // another has completed one before
	}

	d.file, err = os.OpenFile(part, os.O_RDWR, 0o600)
	if err != nil {
		return local(err)
	}

	defer d.file.Close()
	err = d.complete(ctx)
	if err != nil {
		return err
	}

	now := d.Now()
	err = os.Chtimes(d.path+validatorOf, now, now)
	if err != nil {
		return local(err)
	}
	return local(os.Rename(part, d.path))
}

// errMismatch marks content that is not what the curator says.
var errMismatch = errors.New("another content")

// mismatch is an Invalid about content that is not what the curator says.
func mismatch(format string, args ...any) error {
	return &fault.Error{Kind: fault.Invalid, Msg: fmt.Sprintf(format, args...), Err: errMismatch}
}

// complete downloads and verifies the content. A part of an earlier download may be of other
// content although the server took its validator: then all is downloaded again.
func (d *download) complete(ctx context.Context) error {
	err := d.once(ctx)
	if errors.Is(err, errMismatch) && d.resumed {
		err = d.begin(fetch.Content{})
		if err != nil {
			return err
		}
		err = d.once(ctx)
	}

	if errors.Is(err, errMismatch) {
		return cmp.Or(d.begin(fetch.Content{}), err) // nothing of it is of use
	}
	return err
}

// once downloads what is missing, and verifies all of it. The client tries again by itself when a
// transfer breaks off, and goes on where it was.
func (d *download) once(ctx context.Context) error {
	err := d.Client.Get(ctx, d.media.URL, d.have, d.take)
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}

	if err != nil {
		return err
	}

	err = d.verify()
	if err != nil {
		return err
	}
	return local(d.file.Sync())
}

// have is the part that is there. A part whose validator cannot be read is not continued.
func (d *download) have() fetch.Partial {
	text, err := os.ReadFile(d.path + validatorOf)
	size, failed := d.file.Seek(0, io.SeekEnd)
	part := fetch.Partial{Offset: size}
	if err != nil || failed != nil || json.Unmarshal(text, &part.Content) != nil {
		return fetch.Partial{} // all is downloaded again
	}
	d.resumed = size > 0
	return part
}

// begin removes what is there, and says what content comes now. The part is emptied before the
// validator is written: a crash between the two leaves no old content with a new validator.
func (d *download) begin(content fetch.Content) error {
	d.resumed = false
	text, err := json.Marshal(content)
	if err != nil {
		return err
	}

	err = d.file.Truncate(0)
	if err != nil {
		return local(err)
	}
	_, err = d.file.Seek(0, io.SeekStart)
	if err != nil {
		return local(err)
	}
	return local(os.WriteFile(d.path+validatorOf, text, 0o600))
}

// take writes what the server sends, from the place on at which it begins. A server that does not
// continue the part begins at 0. Content is refused as soon as it is too long: the size that a
// server names need not be true.
func (d *download) take(s fetch.Stream) error {
	err := d.acceptable(s)
	if err != nil {
		return err
	}

	if s.From == 0 {
		err = d.begin(s.Content)
		if err != nil {
			return err
		}
	}

	err = d.room(max(s.Size-s.From, 0))
	if err != nil {
		return err
	}

	most := cmp.Or(d.media.Size, d.Limit)
	buf := make([]byte, 256<<10)
	for done := s.From; ; {
		n, err := s.Read(buf)
		done += int64(n)
		_, failed := d.file.Write(buf[:n])
		switch {
		case failed != nil:
			return local(failed)
		case done > most:
			return mismatch("the recording has more than %d bytes", most)
		}

		d.progress(done, max(s.Size, d.media.Size))
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// acceptable refuses content by what the server says of it, before it is downloaded. Content that
// is encoded has another digest and size than the curator's.
func (d *download) acceptable(s fetch.Stream) error {
	switch {
	case s.Encoding != "":
		return fault.New(fault.Invalid,
			"the server sends the recording encoded (%s), although it was asked not to",
			s.Encoding)
	case s.Size >= 0 && d.media.Size > 0 && s.Size != d.media.Size:
		return mismatch("the recording has %d bytes; its curator says %d", s.Size, d.media.Size)
	case s.Size >= 0:
		return d.tooLarge(s.Size)
	}
	return s.CheckEnd(d.media.Size > 0 || d.media.SHA256 != "")
}

// verify compares the content with what the curator says of it. It reads the whole file, also what
// an earlier download has left. Without a size and a digest there is nothing to compare.
func (d *download) verify() error {
	_, err := d.file.Seek(0, io.SeekStart)
	if err != nil {
		return local(err)
	}

	sum := sha256.New()
	size, err := io.Copy(sum, d.file)
	digest := hex.EncodeToString(sum.Sum(nil))
	switch {
	case err != nil:
		return local(err)
	case d.media.Size > 0 && size != d.media.Size:
		return mismatch("the recording has %d bytes; its curator says %d", size, d.media.Size)
	case d.media.SHA256 != "" && digest != d.media.SHA256:
		return mismatch("the recording has the SHA-256 %s; its curator says %s", digest,
			d.media.SHA256)
	}
	return nil
}
