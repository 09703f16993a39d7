package runner

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"

	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/fault"
)

// ListDigest is the SHA-256 of a list of outputs as JSON, in hexadecimal. It is kept apart from the outputs: so
// who gets them knows that the list is the one that was recorded, and by the list that the files are.
func ListDigest(outputs []Output) string {
	data, err := json.Marshal(outputs)
	if err != nil {
		panic(err) // texts and numbers
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// given is an input with the files that it has.
type given struct {
	Input
	files []Output
}

// inputs brings the outputs of other runs, which nobody can change then. All lists are read, and the size of all
// files is known, before the first file is fetched. What is missing, or is not what was kept, is an Invalid; what
// cannot be fetched may pass.
func (x *run) inputs(ctx context.Context) error {
	var all []given
	size := int64(0)
	for _, in := range x.job.Inputs {
		files, err := x.listed(ctx, in)
		if err != nil {
			return err
		}

		all = append(all, given{in, files})
		for _, f := range files {
			size += f.Size
		}
	}

	if size > MaxInputSize {
		return fault.New(fault.Invalid,
			"the inputs have %d bytes; a task can be given at most %d", size,
			int64(MaxInputSize))
	}

	root, err := os.OpenRoot(x.scope.inputs)
	if err != nil {
		return err
	}

	defer root.Close()
	for _, in := range all {
		err := x.fetch(ctx, root, in)
		if err != nil {
			return err
		}
	}
	return readOnly(x.scope.inputs)
}

// listed is the list of the files of an input, as it was recorded.
func (x *run) listed(ctx context.Context, in Input) ([]Output, error) {
	if in.Prefix == "" {
		return nil, nil
	}

	res, err := read[Result](ctx, x.Bucket, in.Prefix+ResultKey)
	switch {
	case err != nil:
		return nil, err
	case res == nil:
		return nil, fault.New(fault.Invalid, "the list of the outputs of %s is missing", in.Of)
	case len(res.Outputs) != in.Files || ListDigest(res.Outputs) != in.List:
		return nil, fault.New(fault.Invalid,
			"the list of the outputs of %s is not the one that was recorded", in.Of)
	}
	return res.Outputs, nil
}

// fetch writes the files of an input into its folder below root, which no path leads out of.
func (x *run) fetch(ctx context.Context, root *os.Root, in given) error {
	err := root.MkdirAll(in.Folder, 0o700)
	for i := 0; i < len(in.files) && err == nil; i++ {
		err = x.fetchFile(ctx, root, in, in.files[i])
	}
	return err
}

// fetchFile writes one file, and compares it with what was kept.
func (x *run) fetchFile(ctx context.Context, root *os.Root, in given, file Output) error {
	body, _, err := x.Bucket.Open(ctx, outputKey(in.Prefix, file.Path))
	if fault.Is(err, fault.NotFound) {
		return fault.New(fault.Invalid, "the output %q of %s is missing", file.Path, in.Of)
	}

	if err != nil {
		return fmt.Errorf("the output %q of %s: %w", file.Path, in.Of, err)
	}

	defer body.Close()
	name := path.Join(in.Folder, file.Path)
	err = root.MkdirAll(path.Dir(name), 0o700)
	if err != nil {
		return err
	}

	out, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}

	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(out, sum), io.LimitReader(body, file.Size+1))
	err = errors.Join(err, out.Close())
	var remote *bucket.Error
	switch {
	case errors.As(err, &remote):
		return fault.New(fault.Unavailable, "the output %q of %s: %w", file.Path, in.Of, err)
	case err != nil:
		return err // e.g. the disk is full
	case n != file.Size || hex.EncodeToString(sum.Sum(nil)) != file.SHA256:
		return fault.New(fault.Invalid,
			"the output %q of %s is not what was kept: it is damaged", file.Path, in.Of)
	}
	return nil
}
