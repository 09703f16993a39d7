package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/revisions/archive"
	"archivist/pkg/revisions/workflow"
)

// prepare makes all that a task finds when it runs. An error that is final says why it cannot be
// run; any other may pass. It may be called again in another folder.
func (x *run) prepare(ctx context.Context) error {
	err := x.command()
	if err != nil {
		return err
	}

	err = x.environment(ctx)
	if err == nil && x.job.Checkout != "" {
		err = x.checkout(ctx)
	}

	if err != nil {
		return err
	}
	return x.inputs(ctx)
}

// command decides what is run: a command by sh, a script by its shell, or what an image is made
// for. A task without any succeeds: sh is given nothing to do. The script is a file outside of the
// working folder, which only its owner can read. A shell that is not there is an Invalid, with
// those that are.
func (x *run) command() error {
	task := &x.job.Task
	switch {
	case task.Command == "" && task.Script == "" && task.Image != "":
		x.argv = x.Made
		return nil
	case task.Script == "":
		x.argv = []string{"/bin/sh", "-c", task.Command}
		return nil
	}

	search := x.search()
	program := lookUp(search, task.Shell)
	if program == "" {
		return fault.New(fault.Invalid, "the shell %q is not there; there are %s", task.Shell,
			strings.Join(there(search), ", "))
	}

	file := filepath.Join(x.scope.dir, "script")
	x.argv = []string{program, file}
	return os.WriteFile(file, []byte(task.Script), 0o500)
}

// search is where programs are looked for: the PATH of the image, if there is one.
func (x *run) search() string {
	search := searchPath
	for _, v := range x.Env {
		if value, is := strings.CutPrefix(v, "PATH="); is {
			search = value
		}
	}
	return search
}

// environment is all that the processes get. Nothing of the function's own is in it: that has
// credentials. Of a name that is there more than once, the last value counts: the image's variables
// come before those of the definition, and what the system sets is last, so that no definition
// replaces it.
func (x *run) environment(ctx context.Context) error {
	job, task := &x.job, &x.job.Task
	x.env = append([]string{"PATH=" + searchPath, "LANG=C.UTF-8"}, x.Env...)
	x.env = append(x.env, "HOME="+x.scope.work, "TMPDIR="+x.scope.tmp)
	for _, name := range slices.Sorted(maps.Keys(task.Env)) {
		x.env = append(x.env, name+"="+task.Env[name])
	}

	values, err := task.Values(job.Parameters)
	if err != nil {
		return err
	}

	for _, name := range slices.Sorted(maps.Keys(values)) {
		x.env = append(x.env, name+"="+values[name])
	}

	for _, name := range slices.Sorted(maps.Keys(task.Secrets)) {
		if of := workflow.SecretsOf(job.Archive); !strings.HasPrefix(task.Secrets[name], of) {
			return fault.New(fault.Denied,
				"the secret %s for %s is not one of this archive: expected %s…",
				task.Secrets[name], name, of)
		}

		value, err := x.Secrets(ctx, task.Secrets[name])
		if err != nil {
			return fmt.Errorf("the secret %s for %s: %w", task.Secrets[name], name, err)
		}
		x.env = append(x.env, name+"="+value)
		x.masked = append(x.masked, hidden(value)...)
	}

	x.masked = append(x.masked, hidden(job.Token)...)
	x.env = append(x.env, // last: the last value of a name counts
		"ARCHIVIST_ARCHIVE="+job.Archive,
		"ARCHIVIST_REVISION="+strconv.FormatInt(job.Revision, 10),
		"ARCHIVIST_BASE_REVISION="+strconv.FormatInt(job.Base, 10),
		"ARCHIVIST_TASK="+task.Name,
		"ARCHIVIST_ATTEMPT="+strconv.Itoa(job.Attempt),
		"ARCHIVIST_RUN="+job.ID,
		"ARCHIVIST_RUN_TOKEN="+job.Token,
		"ARCHIVIST_OUTPUTS="+x.scope.outputs,
		"ARCHIVIST_INPUTS="+x.scope.inputs,
		x.scope.mark())

	// A process would not start with it, and a secret can have it: the message must not repeat the
	// value.
	for _, v := range x.env {
		if strings.ContainsRune(v, 0) {
			name, _, _ := strings.Cut(v, "=")
			return fault.New(fault.Invalid,
				"the value of the variable %s has a NUL character, which no variable can", name)
		}
	}
	return nil
}

// checkout fetches the files of the revision, which nobody can change then. What cannot be fetched
// may pass; what is damaged, or too large, is an Invalid.
func (x *run) checkout(ctx context.Context) error {
	body, _, err := x.Bucket.Open(ctx, x.job.Checkout)
	if err != nil {
		return fmt.Errorf("the files of the revision: %w", err)
	}

	defer body.Close()
	err = x.unpack(body)
	if err == nil {
		return nil
	}

	var remote *bucket.Error
	if errors.As(err, &remote) {
		return fault.New(fault.Unavailable, "the files of the revision: %w", err)
	}
	// They are damaged, or the disk is full: that is so for another call, too.
	return fault.New(fault.Invalid, "the files of the revision cannot be unpacked: %w", err)
}

// unpack writes the files of a pack into the folder of the checkout, and takes the right to change
// them.
func (x *run) unpack(pack io.Reader) error {
	err := archive.Unpack(pack, x.scope.checkout, MaxCheckout)
	if err != nil {
		return err
	}
	return readOnly(x.scope.checkout)
}
