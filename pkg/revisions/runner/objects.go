package runner

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/fault"
)

// Objects are what a runner reads and writes: the objects of a bucket (package bucket), or those of a Folder. A
// missing one is a fault.NotFound, a failed condition a fault.Stale. An object is there when it was written as a
// whole.
type Objects interface {
	Read(ctx context.Context, key string) ([]byte, bucket.Info, error)
	Open(ctx context.Context, key string) (io.ReadCloser, bucket.Info, error)
	Put(ctx context.Context, key string, data []byte, c bucket.Condition) error
	Create(ctx context.Context, key string, c bucket.Condition, write func(io.Writer) error) error
}

// Folder has objects as files of this computer, by their keys: for a task that is played without a deployment.
// One process uses it.
type Folder string

// path is the file of a key, which does not lead out of the folder.
func (f Folder) path(key string) (string, error) {
	if !filepath.IsLocal(filepath.FromSlash(key)) {
		return "", fault.New(fault.Invalid, "the key %q leads out of the folder", key)
	}
	return filepath.Join(string(f), filepath.FromSlash(key)), nil
}

// Open is that of Objects.
func (f Folder) Open(_ context.Context, key string) (io.ReadCloser, bucket.Info, error) {
	name, err := f.path(key)
	if err != nil {
		return nil, bucket.Info{}, err
	}

	file, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		err = fault.New(fault.NotFound, "there is no object %s", key)
	}
	return file, bucket.Info{}, err
}

// Read is that of Objects.
func (f Folder) Read(ctx context.Context, key string) ([]byte, bucket.Info, error) {
	file, info, err := f.Open(ctx, key)
	if err != nil {
		return nil, info, err
	}
	data, err := io.ReadAll(file)
	return data, info, errors.Join(err, file.Close())
}

// Put is that of Objects.
func (f Folder) Put(ctx context.Context, key string, data []byte, c bucket.Condition) error {
	return f.Create(ctx, key, c, func(w io.Writer) error {
		_, err := io.Copy(w, bytes.NewReader(data))
		return err
	})
}

// Create is that of Objects. Of conditions, it knows Absent.
func (f Folder) Create(_ context.Context, key string, c bucket.Condition, write func(io.Writer) error) error {
	name, err := f.path(key)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(name), 0o700)
	}

	if err != nil {
		return err
	}

	part, err := os.CreateTemp(string(f), "part-*")
	if err != nil {
		return err
	}

	defer os.Remove(part.Name())
	err = errors.Join(write(part), part.Close())
	switch {
	case err != nil:
		return err
	case !c.Absent:
		return os.Rename(part.Name(), name)
	}

	err = os.Link(part.Name(), name) // unlike a rename, it replaces nothing
	if errors.Is(err, fs.ErrExist) {
		return fault.New(fault.Stale, "there is an object %s", key)
	}
	return err
}

var _ Objects = Folder("")
