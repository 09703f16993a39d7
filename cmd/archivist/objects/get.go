package objects

import (
	"crypto/sha512"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"archivist/cmd/archivist/command"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/terminal"
)

// objectGetCmd downloads files and verifies each: a file gets its name only if its content is the stored
// content, by its sha512 in the inventory of the version. A failed file does not prevent the download of the
// others.
type objectGetCmd struct {
	version
	Paths []string `arg:"" optional:"" name:"path" help:"Files to get, e.g. producer/a.pdf; all if none is named."`
	Dir   string   `short:"o" default:"." help:"Folder to write to; - writes one file to the standard output."`
	Force bool     `help:"Overwrite existing files that differ."`
}

func (objectGetCmd) Prints() any { return fetched{} }

// fetched is the result for one file.
type fetched struct {
	v1.File
	Local string `json:"local"` // local path
	Other bool   `json:"otherName"`
	Kept  bool   `json:"kept"` // it existed already
	Error string `json:"error"`
}

// Run lists the files that were written, and reports the failures at the end, with the kind of the first. If all
// came, but some under other names, it ends with ExitOtherNames. Repeating it downloads only what is missing.
func (c *objectGetCmd) Run(a *command.App) error {
	if c.Dir == "-" && len(c.Paths) != 1 {
		return command.Usage("-o - writes one file: name its path, e.g. producer/a.pdf " +
			"(archivist object files lists them)")
	}

	object, all, err := c.files(a)
	if err != nil {
		return err
	}

	files, err := c.wanted(object, all)
	if err != nil {
		return err
	}

	g := getting{objectGetCmd: c, app: a, object: object, line: a.StatusTo(nil)}
	if c.Dir == "-" {
		return g.copyTo(a.Out, files[0])
	}

	got, failed := g.all(files)
	if a.Ctx.Err() != nil {
		return a.Ctx.Err()
	}

	if err := a.Print(got, func(p terminal.Page) { listFetched(p, got) }); err != nil {
		return err
	}

	// The list of other names is written even if files have failed: they are told first, and decide the exit
	// code.
	others := c.otherNames(got)
	if len(failed) == 0 {
		return others
	}

	if others != nil {
		fmt.Fprintln(a.Errors, "archivist: "+others.Error())
	}
	return summary(failed, len(files), notWritten)
}

// wanted selects the named files, in the order in which they are named; all without names. A path that the
// version does not have is NotFound before anything is downloaded.
func (c *objectGetCmd) wanted(o v1.Object, all []v1.File) (files []v1.File, err error) {
	if len(c.Paths) == 0 {
		return all, nil
	}

	for _, path := range c.Paths {
		at := slices.IndexFunc(all, func(f v1.File) bool { return f.Path == path })
		if at < 0 {
			return nil, fault.New(fault.NotFound,
				"%s v%d has no file %q; archivist object files %s lists them",
				o.ARK, c.Number, path, o.ARK)
		}
		files = append(files, all[at])
	}
	return files, nil
}

// namesFile lists the files that were written under other names, as JSON lines with path and local, in the
// folder to which they were written.
const namesFile = "archivist-other-names.jsonl"

// otherNames records the files that were written under other names, and returns an error with the exit code for
// that, which lists them; nil if there are none. The list replaces that of an earlier download to the folder.
func (c *objectGetCmd) otherNames(got []fetched) error {
	var lines, says strings.Builder
	n := 0
	for _, f := range got {
		if !f.Other {
			continue
		}

		n++
		local, err := filepath.Rel(c.Dir, f.Local)
		if err != nil {
			return err
		}

		line, err := json.Marshal(map[string]string{"path": f.Path,
			"local": filepath.ToSlash(local)})
		if err != nil {
			return err
		}

		lines.Write(append(line, '\n'))
		fmt.Fprintf(&says, "\n  %s\n    is %q", local, f.Path)
	}

	if n == 0 {
		return nil
	}

	to := filepath.Join(c.Dir, namesFile)
	if err := os.WriteFile(to, []byte(lines.String()), 0o644); err != nil {
		return err
	}
	return command.UnderOtherNames("%s with names that this file system cannot hold: "+
		"written under other names, which are listed in %s:%s", terminal.Count(n, "file"), to,
		says.String())
}

// listFetched prints the files that were written: for programs in the format of sha512sum, which can then check
// them without this program.
func listFetched(p terminal.Page, got []fetched) {
	got = slices.DeleteFunc(slices.Clone(got), func(f fetched) bool { return f.Error != "" })
	if p.ForPeople() {
		terminal.Table(p, got, fetchedColumns...)
		return
	}
	for _, f := range got {
		fmt.Fprintln(p, sumLine(f.Digests["sha512"], f.Local))
	}
}

// fetchedColumns show for each file that it was verified, also if it was there already.
var fetchedColumns = []terminal.Column[fetched]{
	{Title: "file", Text: func(f fetched) string { return f.Local }, Share: 1},
	{Title: "size", Text: func(f fetched) string { return terminal.Size(f.Size) }},
	{Title: "sha512", Text: func(f fetched) string {
		if f.Kept {
			return "verified, existed"
		}
		return "verified"
	}},
}

// sumLine is a line of sha512sum. A name with a backslash or a line break is escaped, and the line begins with a
// backslash then (GNU coreutils, "cksum output modes").
func sumLine(digest, name string) string {
	escaped := strings.NewReplacer(`\`, `\\`, "\n", `\n`, "\r", `\r`).Replace(name)
	if escaped != name {
		digest = `\` + digest
	}
	return digest + "  " + escaped
}

// notWritten is what happens to files.
const notWritten = "files were not written"

// summary is an error that lists the failures, with the kind of the first and so its exit code. of is the number
// of what was wanted, and what says what has failed: "files were not written".
func summary(failed []error, of int, what string) error {
	if of == 1 {
		return failed[0]
	}

	lines := ""
	for _, err := range failed {
		lines += "\n  " + terminal.Printable(err.Error())
	}
	return &fault.Error{
		Kind: fault.Of(failed[0]),
		Err:  failed[0],
		Msg:  fmt.Sprintf("%d of %d %s:%s", len(failed), of, what, lines),
	}
}

// getting is one run of the command: the object with the version whose files are wanted, and the line of the
// progress.
type getting struct {
	*objectGetCmd
	app    *command.App
	object v1.Object
	line   *terminal.Status

	stored bool // the paths are those of stored files, whose sizes are not known
}

// all writes files, and continues after a failure, but not after an interrupt. Each file that was tried has an
// entry in got, in their order.
func (g getting) all(files []v1.File) (got []fetched, failed []error) {
	defer g.line.End()
	for n, f := range files {
		result, err := g.one(f, fmt.Sprintf("%d of %d  %s", n+1, len(files), f.Path))
		if err != nil && !strings.Contains(err.Error(), f.Path) {
			err = fmt.Errorf("%s: %w", f.Path, err)
		}

		if err != nil {
			result.Error = err.Error()
			failed = append(failed, err)
		}
		got = append(got, result)
		if g.app.Ctx.Err() != nil {
			break
		}
	}
	return got, failed
}

// one writes one file, under its own name if the file system can hold it. A file with wrong content is not left
// behind under its name, and a download that breaks off leaves nothing.
func (g getting) one(f v1.File, title string) (fetched, error) {
	out := fetched{File: f}
	own := filepath.FromSlash(f.Path)
	// The path comes from the archive, and so from a depositor. It must not lead out of the folder, e.g. by
	// "..".
	if !filepath.IsLocal(own) {
		return out, fault.New(fault.Invalid, "the path %q leads out of the folder", f.Path)
	}

	var err error
	out.Local = filepath.Join(g.Dir, own)
	out.Kept, err = g.isThere(out.Local, f)
	if out.Kept || err != nil {
		return out, err
	}

	part, err := g.download(f, title)
	if err != nil {
		return out, err
	}

	defer os.Remove(part)

	err = place(part, out.Local)
	if isNoName(err) {
		out.Local = filepath.Join(g.Dir, filepath.FromSlash(otherName(f.Path)))
		out.Other = true
		err = place(part, out.Local)
	}

	if err != nil {
		return out, fmt.Errorf("%s: %w", f.Path, err)
	}
	return out, nil
}

// isThere reports whether a file exists with the right content. A file with other content is a Conflict unless
// it is to be overwritten; anything but a regular file is always one, since a link could lead elsewhere.
func (g getting) isThere(to string, f v1.File) (bool, error) {
	info, err := os.Lstat(to)
	if errors.Is(err, fs.ErrNotExist) || isNoName(err) {
		return false, nil
	}

	if err != nil {
		return false, err
	}

	isFile := info.Mode().IsRegular()
	if isFile && (g.stored || info.Size() == f.Size) {
		sum, err := sumOf(to)
		if err != nil {
			return false, err
		}
		if sum == f.Digests["sha512"] {
			return true, nil
		}
	}

	if isFile && g.Force {
		return false, nil
	}
	return false, fault.New(fault.Conflict, "%s exists with other content; --force overwrites it", to)
}

// sumOf is the sha512 of an existing file, in hexadecimal.
func sumOf(name string) (string, error) {
	in, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer in.Close()

	sum := sha512.New()
	_, err = io.Copy(sum, in)
	return hex.EncodeToString(sum.Sum(nil)), err
}

// partly begins the names of files that are not complete.
const partly = ".part-"

// download writes a file's content to a temporary file in the folder, and checks it. The folder is that of the
// result, so that a rename within the file system makes it visible at once, and whole. The caller removes the
// temporary file; after an error there is none.
func (g getting) download(f v1.File, title string) (name string, err error) {
	if err := os.MkdirAll(g.Dir, 0o755); err != nil {
		return "", err
	}

	part, err := os.CreateTemp(g.Dir, partly+"*")
	if err != nil {
		return "", err
	}

	come := terminal.NewTransfer(g.line, title, f.Size)
	err = errors.Join(g.copyTo(io.MultiWriter(part, come), f), part.Close())
	if err != nil {
		os.Remove(part.Name())
	}
	return part.Name(), err
}

// copyTo copies a file's content and checks its digest. After an error, what was written is not the stored
// content: on the standard output it cannot be taken back, so the exit code says it.
func (g getting) copyTo(to io.Writer, f v1.File) error {
	body, err := g.open(f)
	if err != nil {
		return err
	}

	defer body.Close()

	sum := sha512.New()
	_, err = io.Copy(io.MultiWriter(to, sum), body)
	if err != nil {
		return fault.New(fault.Unavailable, "%s: %w", f.Path, err)
	}

	got := hex.EncodeToString(sum.Sum(nil))
	if got != f.Digests["sha512"] {
		return fmt.Errorf("%s: the downloaded content has the sha512 %s, the stored content %s; "+
			"report it to the archive's operator", f.Path, got, f.Digests["sha512"])
	}
	return nil
}

func (g getting) open(f v1.File) (io.ReadCloser, error) {
	if g.stored {
		return g.app.Client.Stored(g.app.Ctx, g.object.ARK, f.Path)
	}
	return g.app.Client.Content(g.app.Ctx, g.object.ARK, g.Number, f.Path)
}

// place moves a file to its final path, and makes its folders. An existing file is replaced.
func place(part, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.Rename(part, to)
}
