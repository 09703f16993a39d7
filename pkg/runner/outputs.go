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

	"archivist/pkg/bucket"
	"archivist/pkg/workflow"
)

// kept is a file that is to be kept.
type kept struct {
	root *os.Root // in which no path and no link leads out
	file string   // in root
	path string   // by which it is kept
	size int64
}

// keepOutputs keeps the files that the task made. If one cannot be kept, a run that has succeeded has failed.
func (x *run) keepOutputs(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, Saving)
	defer cancel()
	files, err := x.collect()
	for i := 0; err == nil && i < len(files); i++ {
		var out Output
		out, err = x.keep(ctx, files[i])
		if err == nil {
			x.result.Outputs = append(x.result.Outputs, out)
		}
	}
	if len(files) > 0 {
		_ = files[0].root.Close()
		_ = files[len(files)-1].root.Close()
	}
	if err == nil {
		return
	}
	if x.result.End == Succeeded {
		x.end(Failed, "an output could not be kept: %v", err)
	} else {
		x.result.Reason += fmt.Sprintf("; an output could not be kept: %v", err)
	}
}

// collect finds the files to keep: all in the folder for outputs, and those in the working folder that match
// the task's patterns. Links are not followed.
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
		if err == nil {
			files, err = x.walk(root, files, from.is)
		}
		if err != nil {
			return files, err
		}
	}
	return files, x.check(files)
}

// walk adds the files of a folder to files.
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
		if err == nil {
			files = append(files, kept{root: root, file: p, path: p, size: info.Size()})
		}
		return err
	})
	return files, err
}

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

// check refuses files that cannot be kept, before any is.
func (x *run) check(files []kept) error {
	total, names := int64(0), map[string]bool{}
	list := make([]Output, 0, len(files))
	for _, f := range files {
		total += f.size
		switch {
		case !utf8.ValidString(f.path):
			return fmt.Errorf("%q: the name is not in UTF-8", f.path)
		case strings.ContainsFunc(f.path, unicode.IsControl):
			return fmt.Errorf("%q: the name has a control character", f.path)
		case len(outputKey(x.job.Prefix, f.path)) > maxKey:
			return fmt.Errorf("%q: the path is too long; a key in S3 has at most %d bytes", f.path, maxKey)
		case names[f.path]:
			return fmt.Errorf("%q is both in the folder for outputs and among the files that match the patterns",
				f.path)
		case total > MaxOutputSize:
			return fmt.Errorf("%q: the outputs have more than %d bytes together", f.path, MaxOutputSize)
		}
		names[f.path] = true
		list = append(list, Output{Path: f.path, Size: f.size, SHA256: strings.Repeat("0", 2*sha256.Size)})
	}
	data, err := json.Marshal(list)
	if err == nil && len(data) > MaxPayload {
		err = fmt.Errorf("%d files: their paths are too long for a list of %d bytes", len(files), MaxPayload)
	}
	return err
}

// outputKey is the key of an output.
func outputKey(prefix, path string) string { return prefix + OutputFolder + path }

// keep writes one file to the bucket, as a stream.
func (x *run) keep(ctx context.Context, k kept) (out Output, err error) {
	f, err := k.root.Open(k.file)
	if err != nil {
		return out, fmt.Errorf("%q: %w", k.path, err)
	}
	defer f.Close()
	sum := sha256.New()
	w := x.Bucket.Writer(ctx, outputKey(x.job.Prefix, k.path), bucket.Condition{})
	n, err := io.Copy(io.MultiWriter(w, sum), io.LimitReader(f, k.size+1))
	if err == nil && n != k.size {
		err = errors.New("it changes while it is kept")
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		_ = w.Abort()
		return out, fmt.Errorf("%q: %w", k.path, err)
	}
	return Output{Path: k.path, Size: n, SHA256: hex.EncodeToString(sum.Sum(nil))}, nil
}
