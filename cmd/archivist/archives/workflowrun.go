package archives

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"archivist/cmd/archivist/command"
	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/nearest"
	"archivist/pkg/kernel/terminal"
	"archivist/pkg/revisions/archive"
	"archivist/pkg/revisions/runner"
	"archivist/pkg/revisions/workflow"
)

// workflowRunCmd plays a task on this computer, with the files of a working copy as they are.
type workflowRunCmd struct {
	Task string `arg:"" help:"Name of a task."`
	workflowFolder
	values
	Revision int64  `default:"1" help:"Number of the revision that the task is given."`
	Inputs   string `help:"Folder with what others have left: the --outputs of them." placeholder:"DIR"`
	Outputs  string `help:"Folder for what the task leaves, below its name." placeholder:"DIR"`
}

func (workflowRunCmd) Offline() {}

// Help says what is different in a deployment.
func (workflowRunCmd) Help() string {
	return `It is run by the runner of a deployment, with the PATH of this computer: in a deployment there are the
programs of the image or of the function. Secrets are read from the environment, by the names of their variables. Tasks
that it depends on are not run; what they leave is found by --inputs:

  archivist archive workflow run index --outputs out
  archivist archive workflow run site --outputs out --inputs out

The exit code is 4 if the task does not succeed.`
}

// Run plays the task. What can be refused is refused before it begins.
func (c *workflowRunCmd) Run(a *command.App) error {
	task, err := c.task()
	if err != nil {
		return err
	}

	folder, err := os.MkdirTemp("", "archivist-workflow-*")
	if err != nil {
		return err
	}

	defer os.RemoveAll(folder)
	p := &playing{Folder: runner.Folder(folder), cmd: c, app: a, task: task}
	err = p.prepare()
	if err != nil {
		return err
	}

	r := &runner.Runner{
		Bucket:  p,
		Secrets: p.secret,
		Dir:     folder,
		Now:     time.Now,
		NewID:   func() string { return "local" },
		Log:     slog.New(slog.NewTextHandler(a.Err, nil)),
	}
	if path := a.Getenv("PATH"); path != "" {
		r.Env = []string{"PATH=" + path}
	}

	res, err := r.Run(a.Ctx, p.job)
	err = cmp.Or(err, a.Ctx.Err())
	if err != nil {
		return err
	}
	return p.finish(res)
}

// task is the task, if it can be played with the values that are set.
func (c *workflowRunCmd) task() (*workflow.Task, error) {
	if c.Revision < 1 {
		return nil, command.Usage("--revision: expected at least 1")
	}

	d, err := c.read()
	if err != nil {
		return nil, err
	}

	t := d.Task(c.Task)
	if t == nil {
		var names []string
		for _, t := range d.Tasks {
			names = append(names, t.Name)
		}
		return nil, fault.New(fault.NotFound, "there is no task %q; %s", c.Task,
			didYouMean(nearest.To(c.Task, names), names))
	}

	if t.Command == "" && t.Script == "" {
		return nil, fault.New(fault.Conflict,
			"the task %s has no command and no script, so there is nothing to run here", t.Name)
	}

	_, err = t.Values(c.Set)
	return t, err
}

// didYouMean says which name was meant, or which there are.
func didYouMean(near string, names []string) string {
	if near != "" {
		return "did you mean " + near + "?"
	}
	return "there are " + strings.Join(names, ", ")
}

// playing is a task that is played. It is the bucket of its runner: what the task writes is shown when it comes.
type playing struct {
	runner.Folder
	cmd  *workflowRunCmd
	app  *command.App
	task *workflow.Task
	job  runner.Job
}

// Parts of keys.
const (
	playedPrefix = runner.Prefix + "local/"
	playedFiles  = runner.Prefix + "checkout.tar.gz"
)

// prepare makes the job, with all that it finds. The folder for outputs must be free: what is there would be taken for
// what the task leaves.
func (p *playing) prepare() error {
	if p.cmd.Outputs != "" {
		there, err := os.ReadDir(p.kept())
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if len(there) > 0 {
			return fault.New(fault.Conflict, "--outputs: %s is not empty; remove it first", p.kept())
		}
	}

	if p.task.Image != "" {
		p.app.Warn("in a deployment the task runs in the image %s; here with the programs of this computer",
			p.task.Image)
	}

	p.job = runner.Job{
		ID:         fmt.Sprintf("%s/%d/%s/1", p.archive(), p.cmd.Revision, p.task.Name),
		Archive:    p.archive(),
		Revision:   p.cmd.Revision,
		Base:       p.cmd.Revision - 1,
		Attempt:    1,
		Task:       *p.task,
		Prefix:     playedPrefix,
		Checkout:   playedFiles,
		Token:      "no-token-on-this-computer",
		Parameters: p.cmd.Set,
	}
	for _, name := range p.task.Inputs {
		in, err := p.input(strings.ReplaceAll(name, ":", "/"))
		if err != nil {
			return err
		}
		p.job.Inputs = append(p.job.Inputs, in)
	}

	return p.Create(p.app.Ctx, playedFiles, bucket.Condition{}, func(w io.Writer) error {
		return archive.Pack(p.app.Ctx, workingCopy{folder: p.cmd.Folder}, p.cmd.Revision, runner.MaxCheckout, w)
	})
}

// archive is the archive whose secrets the task names.
func (p *playing) archive() string {
	for _, name := range p.task.Secrets {
		return strings.Split(name, "/")[2] // by their form: archivist/tasks/ARCHIVE/…
	}
	return "local"
}

// kept is the folder of what the task leaves.
func (p *playing) kept() string { return filepath.Join(p.cmd.Outputs, p.task.Name) }

// input makes a folder with what another task has left, as its runner would have stored it.
func (p *playing) input(name string) (runner.Input, error) {
	in := runner.Input{Folder: name, Of: name}
	if p.cmd.Inputs == "" {
		p.app.Warn("the input %s is an empty folder; --inputs DIR names the folder with what tasks have left", name)
		return in, nil
	}

	from := filepath.Join(p.cmd.Inputs, filepath.FromSlash(name))
	prefix := playedPrefix + "inputs/" + name + "/"
	var files []runner.Output
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}

		file, err := p.give(from, path, prefix)
		files = append(files, file)
		return err
	})
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return in, fault.New(fault.NotFound, "--inputs: there is no folder %s", from)
	case err != nil || len(files) == 0:
		return in, err
	}

	data, err := json.Marshal(runner.Result{End: runner.Succeeded, Outputs: files})
	if err != nil {
		return in, err
	}
	in.Prefix, in.Files, in.List = prefix, len(files), runner.ListDigest(files)
	return in, p.Put(p.app.Ctx, prefix+runner.ResultKey, data, bucket.Condition{})
}

// give stores one file of an input.
func (p *playing) give(from, path, prefix string) (out runner.Output, err error) {
	name, err := filepath.Rel(from, path)
	if err != nil {
		return out, err
	}

	f, err := os.Open(path)
	if err != nil {
		return out, err
	}

	defer f.Close()
	out.Path = filepath.ToSlash(name)
	sum := sha256.New()
	err = p.Create(p.app.Ctx, prefix+runner.OutputFolder+out.Path, bucket.Condition{}, func(w io.Writer) error {
		out.Size, err = io.Copy(io.MultiWriter(w, sum), f)
		return err
	})
	out.SHA256 = hex.EncodeToString(sum.Sum(nil))
	return out, err
}

// secret reads a secret of the task from the environment.
func (p *playing) secret(_ context.Context, name string) (string, error) {
	for variable, of := range p.task.Secrets {
		if value := p.app.Getenv(variable); of == name && value != "" {
			return value, nil
		}
	}
	return "", fault.New(fault.NotFound, "it is read from the environment here, where it is not set")
}

// finish brings what the task has left to its folder, and says how it has ended.
func (p *playing) finish(res runner.Result) error {
	if len(res.Outputs) > 0 && p.cmd.Outputs != "" {
		from := filepath.Join(string(p.Folder), filepath.FromSlash(playedPrefix+runner.OutputFolder))
		err := os.CopyFS(p.kept(), os.DirFS(from))
		if err != nil {
			return err
		}
	}

	for _, o := range res.Outputs {
		fmt.Fprintf(p.app.Errors, "kept: %s, %d bytes\n", terminal.Printable(o.Path), o.Size)
	}

	if res.End != runner.Succeeded {
		return fault.New(fault.Conflict, "%s is %s: %s", p.task.Name, res.End, terminal.Printable(res.Reason))
	}
	return nil
}

// Put stores an object, and shows it if it is a part of what the task writes.
func (p *playing) Put(ctx context.Context, key string, data []byte, c bucket.Condition) error {
	err := p.Folder.Put(ctx, key, data, c)
	if err != nil || !strings.HasPrefix(key, playedPrefix+runner.LogFolder) {
		return err
	}

	for d := json.NewDecoder(bytes.NewReader(data)); d.More(); {
		var part runner.Part
		err = d.Decode(&part)
		if err == nil {
			err = p.show(part)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// show writes what the task has written to the same stream of this program.
func (p *playing) show(part runner.Part) (err error) {
	switch part.Stream {
	case "stdout":
		_, err = io.WriteString(p.app.Out, part.Text)
	case "stderr":
		_, err = io.WriteString(p.app.Err, part.Text)
	default:
		p.app.Warn("%s", strings.TrimSpace(part.Text))
	}
	return err
}

// workingCopy is the only revision of an archive that is a folder, for a pack of its files.
type workingCopy struct {
	archive.Source
	folder string
}

// Revision is that of archive.Source.
func (w workingCopy) Revision(context.Context, int64) (archive.Revision, error) {
	return archive.Revision{Time: time.Unix(0, 0)}, nil
}

// Checkout copies the files, without what Git and Subversion keep beside them.
func (w workingCopy) Checkout(_ context.Context, _ int64, to string) error {
	return filepath.WalkDir(w.folder, func(path string, d fs.DirEntry, err error) error {
		name, relErr := filepath.Rel(w.folder, path)
		err = cmp.Or(err, relErr)
		target := filepath.Join(to, name)
		switch {
		case err != nil || name == ".":
			return err
		case slices.Contains([]string{".git", ".svn"}, d.Name()):
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case d.IsDir():
			return os.Mkdir(target, 0o755)
		case d.Type()&fs.ModeSymlink != 0:
			link, err := os.Readlink(path)
			if err != nil {
				return err
			}
			return os.Symlink(link, target)
		case !d.Type().IsRegular():
			return nil // no archive keeps it
		}
		return copyFile(path, target)
	})
}

// copyFile copies a file with its mode.
func copyFile(from, to string) error {
	f, err := os.Open(from)
	if err != nil {
		return err
	}

	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}

	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, info.Mode().Perm()|0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, f)
	return errors.Join(err, out.Close())
}
