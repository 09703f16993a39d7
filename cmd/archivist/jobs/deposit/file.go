package deposit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"archivist/pkg/api/v1/plan"
)

// open opens a file that has not changed since it was listed.
func open(f *plan.File) (*os.File, error) {
	info, err := os.Lstat(f.Path)
	if err == nil && info.Mode()&os.ModeType&^os.ModeSymlink != 0 {
		return nil, changed(f) // a pipe would wait for its writer
	}
	in, err := os.Open(f.Path)
	if err != nil {
		return nil, unreadable(f.Path, err)
	}
	if err := unchanged(f, in); err != nil {
		in.Close()
		return nil, err
	}
	return in, nil
}

// unchanged checks that an open file is as it was listed.
func unchanged(f *plan.File, in *os.File) error {
	info, err := in.Stat()
	switch {
	case err != nil:
		return unreadable(f.Path, err)
	case !info.Mode().IsRegular() || info.Size() != f.Size || !info.ModTime().Equal(f.Modified):
		return changed(f)
	}
	return nil
}

// FileError says that a file cannot be sent: it is not readable, or not what it was.
type FileError struct{ Text string }

// Error returns the text, with the name of the file.
func (e *FileError) Error() string { return e.Text }

// changed is the error of a file that is not as it was.
func changed(f *plan.File) error {
	return &FileError{fmt.Sprintf("%q has changed since it was listed", f.Path)}
}

// unreadable is the error of a file that cannot be read.
func unreadable(name string, err error) error {
	var cause *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &FileError{fmt.Sprintf("%q is not there", name)}
	case errors.Is(err, fs.ErrPermission):
		return &FileError{fmt.Sprintf("%q cannot be read: you have no permission", name)}
	case errors.As(err, &cause):
		err = cause.Err
	}
	return &FileError{fmt.Sprintf("%q cannot be read: %v", name, err)}
}
