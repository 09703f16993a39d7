package runner

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"archivist/pkg/kernel/bucket"
	"archivist/pkg/revisions/workflow"
)

// kept is a file that is to be kept.
type kept struct {
	root *os.Root // in which no path and no link leads out
	file string   // in root
	path string   // by which it is kept
	size int64
}

// keepOutputs keeps the files that the task made. If one cannot be kept, a run that has succeeded
// has failed: others may count on its outputs. All are checked before the first is kept; those that
// were kept before an error stay in the Result.
func (x *run) keepOutputs(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, Saving)
	defer cancel()
	err := x.keepAll(ctx)
	switch {
	case err == nil:
	case x.result.End == Succeeded:
		x.end(Failed, "an output could not be kept: %v", err)
	default:
		x.result.Reason += fmt.Sprintf("; an output could not be kept: %v", err)
	}
}

// keepAll keeps all files, one after the other, and adds each to the Result. The files of a folder
// share a root, so the first and the last file have all roots.
func (x *run) keepAll(ctx context.Context) error {
	files, err := x.collect()
	if len(files) > 0 {
		defer files[len(files)-1].root.Close()
		defer files[0].root.Close()
	}

	if err != nil {
		return err
	}

	for _, f := range files {
		out, err := x.keep(ctx, f)
		if err != nil {
			return err
		}
		x.result.Outputs = append(x.result.Outputs, out)
	}
	return nil
}

// collect finds the files to keep: all in the folder for outputs, and those in the working folder
// that match the task's patterns. Links are not followed, also if a process changes a folder
// meanwhile: all is opened in a root (os.Root).
func (x *run) collect() (files []kept, err error) {
	scope, err := os.OpenRoot(x.scope.dir)
	if err != nil {
		return nil, err
	}

	defer scope.Close()
	for _, from := range []struct {
		folder string
		is     func(path string) bool
	}{
		{x.scope.outputs, func(string) bool { return true }},
		{x.scope.work, workflow.Selector(x.job.Task.Outputs)},
	} {
		root, err := scope.OpenRoot(path.Base(from.folder))
		if err != nil {
			return files, err
		}

		files, err = x.walk(root, files, from.is)
		if err != nil {
			return files, err
		}
	}
	return files, x.check(files)
}

// walk adds the files of a folder to files. What is no regular file is left out, and the log says
// so. More than MaxOutputs are an error.
func (x *run) walk(root *os.Root, files []kept, is func(path string) bool) ([]kept, error) {
	err := fs.WalkDir(root.FS(), ".", func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() || !is(p):
			return nil
		case !d.Type().IsRegular():
			x.log.say("%q is not kept: it is a %s and no file", p, kindOf(d.Type()))
			return nil
		case len(files) == MaxOutputs:
			return fmt.Errorf("there are more than %d files", MaxOutputs)
		}

		info, err := d.Info()
		if err != nil {
			return err
		}

		files = append(files, kept{root: root, file: p, path: p, size: info.Size()})
		return nil
	})
	return files, err
}

// kindOf names what is no regular file, for people.
func kindOf(mode fs.FileMode) string {
	switch {
	case mode&fs.ModeSymlink != 0:
		return "link"
	case mode&fs.ModeNamedPipe != 0:
		return "pipe"
	case mode&fs.ModeSocket != 0:
		return "socket"
	}
	return "device"
}

// check refuses files that cannot be kept, before any is: names that no key or JSON can have, one
// path from both folders, and more than a Result can name.
func (x *run) check(files []kept) error {
	total, names, folders := int64(0), map[string]bool{}, map[string]string{}
	list := make([]Output, 0, len(files))
	for _, f := range files {
		total += f.size
		switch {
		case !utf8.ValidString(f.path):
			return fmt.Errorf("%q: the name is not in UTF-8", f.path)
		case strings.ContainsFunc(f.path, unicode.IsControl):
			return fmt.Errorf("%q: the name has a control character", f.path)
		case len(outputKey(x.job.Prefix, f.path)) > maxKey:
			return fmt.Errorf(
				"%q: the path is too long; a key in S3 has at most %d bytes", f.path, maxKey)
		case names[f.path]:
			return fmt.Errorf(
				"%q is both in the folder for outputs and among the files that match the patterns",
				f.path)
		case total > MaxOutputSize:
			return fmt.Errorf("%q: the outputs have more than %d bytes together", f.path,
				MaxOutputSize)
		}

		names[f.path] = true
		for folder := path.Dir(f.path); folder != "."; folder = path.Dir(folder) {
			folders[folder] = f.path
		}

		// Digests are not known yet, but have all the same length.
		list = append(list, Output{
			Path:   f.path,
			Size:   f.size,
			SHA256: strings.Repeat("0", 2*sha256.Size),
		})
	}

	for name := range names { // who gets both as files could not
		if inside := folders[name]; inside != "" {
			return fmt.Errorf("%q is a file in one of the two folders, and the folder of %q in the other", name, inside)
		}
	}

	data, err := json.Marshal(list)
	if err != nil || len(data) <= MaxPayload {
		return err
	}
	return fmt.Errorf("%d files: their paths are too long for a list of %d bytes", len(files),
		MaxPayload)
}

// outputKey is the key of an output.
func outputKey(prefix, path string) string { return prefix + OutputFolder + path }

// keep writes one file to the bucket, as a stream, with its digest. One that has another size than
// it had is an error: something still writes it, and what is kept would be neither.
func (x *run) keep(ctx context.Context, k kept) (out Output, err error) {
	f, err := k.root.Open(k.file)
	if err != nil {
		return out, fmt.Errorf("%q: %w", k.path, err)
	}

	defer f.Close()
	sum := sha256.New()
	err = x.Bucket.Create(ctx, outputKey(x.job.Prefix, k.path), bucket.Condition{}, func(w io.Writer) error {
		return copyExactly(io.MultiWriter(w, sum), f, k.size)
	})
	if err != nil {
		return out, fmt.Errorf("%q: %w", k.path, err)
	}
	return Output{Path: k.path, Size: k.size, SHA256: hex.EncodeToString(sum.Sum(nil))}, nil
}

// copyExactly copies a file that has a size. One that has become shorter or longer is an error; of
// a longer one, one byte more than its size is copied.
func copyExactly(to io.Writer, from io.Reader, size int64) error {
	n, err := io.Copy(to, io.LimitReader(from, size+1))
	if err != nil {
		return err
	}

	if n != size {
		return errors.New("it changes while it is kept")
	}
	return nil
}
