// Package journal keeps records in a file, one per line, so that a process that was killed finds
// a prefix of them again: a last line that is not complete was never acknowledged, and is
// dropped.
//
// The format is the record as it is and a line feed, without a header: records are usually
// JSON. Only one process may have a journal open; nothing enforces that.
package journal

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
)

// Journal is a file that is open for appending. It survives the death of the process, not
// that of the machine: it does not wait until the disk has what was written. Its methods are
// not for concurrent use. What Append has returned without an error is in the file, in the
// order of the calls.
type Journal struct {
	file *os.File
	size int64 // bytes of complete lines
}

// Open opens the journal at path, which is made if it is not there, and calls each for every
// record, in order. An error of each ends the reading, and is returned with the number of its
// line; the file stays as it was.
func Open(path string, each func(record []byte) error) (*Journal, error) {
	file, err := os.OpenFile(filepath.Clean(path), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}

	j := &Journal{file: file}
	if err := j.restore(each); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), file.Close())
	}
	return j, nil
}

// restore reads what is there, and makes the journal ready for more.
func (j *Journal) restore(each func(record []byte) error) error {
	if err := j.replay(each); err != nil {
		return err
	}
	return j.back()
}

// replay reads all complete lines, and counts their bytes. Lines may be of any length.
func (j *Journal) replay(each func(record []byte) error) error {
	in := bufio.NewReaderSize(j.file, 64<<10)
	for n := 1; ; n++ {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil // what is left has no end
		}

		if err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}

		if err := each(line[:len(line)-1]); err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}

		j.size += int64(len(line))
	}
}

// back removes what follows the last complete line. The next record would otherwise be
// appended to a part of another.
func (j *Journal) back() error {
	if err := j.file.Truncate(j.size); err != nil {
		return err
	}
	_, err := j.file.Seek(j.size, io.SeekStart)
	return err
}

// Append adds a record, which has no line break. After an error the record is not in the
// journal; if even that cannot be achieved, nothing can be added any more. A part of a
// record, e.g. on a full disk, is removed again.
func (j *Journal) Append(record []byte) error {
	if bytes.IndexByte(record, '\n') >= 0 {
		return errors.New("journal: a record with a line break")
	}

	line := append(record[:len(record):len(record)], '\n')
	_, err := j.file.Write(line)
	if err != nil {
		if undone := j.back(); undone != nil {
			return errors.Join(err, undone, j.file.Close())
		}
		return err
	}

	j.size += int64(len(line))
	return nil
}

// Compact replaces all records by others that say the same. The file is replaced as a whole,
// or not at all. It writes a file beside it, and renames that, so a process that dies
// meanwhile leaves the former journal. After an error the former one is still in use, and a
// file ".new" may be left, which the next call writes over.
func (j *Journal) Compact(records iter.Seq2[[]byte, error]) error {
	next, err := os.Create(j.file.Name() + ".new")
	if err != nil {
		return err
	}

	size, err := writeAll(next, records)
	if err != nil {
		return errors.Join(err, next.Close())
	}
	if err := os.Rename(next.Name(), j.file.Name()); err != nil {
		return errors.Join(err, next.Close())
	}

	old := j.file
	j.file, j.size = next, size
	return old.Close()
}

// writeAll writes records as lines, and returns their bytes. The file's offset is then at its
// end.
func writeAll(file *os.File, records iter.Seq2[[]byte, error]) (size int64, err error) {
	out := bufio.NewWriterSize(file, 64<<10)
	for record, err := range records {
		if err != nil {
			return 0, err
		}
		_, err = out.Write(append(record[:len(record):len(record)], '\n'))
		if err != nil {
			return 0, err
		}
		size += int64(len(record)) + 1
	}
	return size, out.Flush()
}

// Close closes the file.
func (j *Journal) Close() error { return j.file.Close() }
