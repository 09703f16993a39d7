package main

import (
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/fault"
)

type objectGetCmd struct {
	version
	Paths []string `arg:"" optional:"" name:"path" help:"Files to get, e.g. producer/a.pdf; all if none is named."`
	Dir   string   `short:"o" default:"." help:"Folder to write to; - writes one file to the standard output."`
	Force bool     `help:"Overwrite files that are there and differ."`
}

func (objectGetCmd) prints() any { return fetched{} }

// fetched is how it went with one file.
type fetched struct {
	v1.File
	Local string `json:"local"` // where it was written
	Other bool   `json:"otherName"`
	Kept  bool   `json:"kept"` // it was there already
	Error string `json:"error"`
}

func (c *objectGetCmd) Run(a *app) error {
	if c.Dir == "-" && len(c.Paths) != 1 {
		return usage("-o - writes one file: name its path, e.g. producer/a.pdf (archivist object files lists them)")
	}
	o, all, err := c.files(a)
	if err != nil {
		return err
	}
	files, err := c.wanted(o, all)
	if err != nil {
		return err
	}
	if c.Dir == "-" {
		return c.copyTo(a, a.out, o, files[0])
	}
	got, failed := c.getAll(a, o, files)
	if a.ctx.Err() != nil {
		return a.ctx.Err()
	}
	if err := a.print(got, func(p page) { list(p, got) }); err != nil {
		return err
	}
	renamed := c.otherNames(got)
	if len(failed) > 0 && renamed != nil {
		fmt.Fprintln(a.errors, "archivist: "+renamed.Error())
	}
	if len(failed) > 0 {
		return summary(failed, len(files))
	}
	return renamed
}

// wanted picks the files that are named.
func (c *objectGetCmd) wanted(o v1.Object, all []v1.File) ([]v1.File, error) {
	if len(c.Paths) == 0 {
		return all, nil
	}
	byPath := map[string]v1.File{}
	for _, f := range all {
		byPath[f.Path] = f
	}
	var files []v1.File
	for _, p := range c.Paths {
		f, known := byPath[p]
		if !known {
			return nil, fault.New(fault.NotFound, "%s v%d has no file %q; archivist object files %s lists them", o.ARK, c.Number, p, o.ARK)
		}
		files = append(files, f)
	}
	return files, nil
}

// getAll writes the files, and goes on after one that failed.
func (c *objectGetCmd) getAll(a *app, o v1.Object, files []v1.File) (got []fetched, failed []error) {
	line := a.statusTo(nil)
	defer line.clear()
	for n, f := range files {
		result := fetched{File: f}
		var err error
		name := fmt.Sprintf("%d of %d  %s", n+1, len(files), f.Path)
		if result.Local, result.Kept, err = c.get(a, o, f, line, name); err != nil {
			result.Error = err.Error()
			failed = append(failed, err)
		}
		result.Other = err == nil && result.Local != filepath.Join(c.Dir, filepath.FromSlash(f.Path))
		if got = append(got, result); a.ctx.Err() != nil {
			break
		}
	}
	return got, failed
}

// summary says what failed, and has the kind of the first.
func summary(failed []error, of int) error {
	if of == 1 {
		return failed[0]
	}
	var lines strings.Builder
	for _, err := range failed {
		lines.WriteString("\n  " + printable(err.Error()))
	}
	return &failures{fmt.Sprintf("%d of %d files were not written:%s", len(failed), of, lines.String()), failed[0]}
}

// failures are what went wrong with some files.
type failures struct {
	message string
	first   error
}

// Error lists them.
func (f *failures) Error() string { return f.message }

// Unwrap returns the first.
func (f *failures) Unwrap() error { return f.first }

// list prints the files that came: for programs as sha512sum does, so that it can
// check them.
func list(p page, got []fetched) {
	if p.width == 0 {
		for _, f := range got {
			if f.Error == "" {
				fmt.Fprintln(p, sumLine(f.Digests["sha512"], f.Local))
			}
		}
		return
	}
	var came []fetched
	for _, f := range got {
		if f.Error == "" {
			came = append(came, f)
		}
	}
	table(p, came,
		column[fetched]{title: "file", text: func(f fetched) string { return f.Local }, cut: 1},
		column[fetched]{title: "size", text: func(f fetched) string { return size(f.Size) }},
		column[fetched]{title: "sha512", text: func(f fetched) string {
			if f.Kept {
				return "verified, was there"
			}
			return "verified"
		}})
}

// sumLine is a line of sha512sum (GNU coreutils, "md5sum invocation").
func sumLine(digest, name string) string {
	escaped := strings.NewReplacer(`\`, `\\`, "\n", `\n`, "\r", `\r`).Replace(name)
	if escaped != name {
		digest = `\` + digest
	}
	return digest + "  " + escaped
}

// get writes one file and checks it, under its own name if the file system can hold
// it. A file that is not what is stored is not left behind under its name.
func (c *objectGetCmd) get(a *app, o v1.Object, f v1.File, line *status, name string) (to string, kept bool, err error) {
	own := filepath.FromSlash(f.Path)
	if !filepath.IsLocal(own) {
		return "", false, fault.New(fault.Invalid, "the path %q leads out of the folder", f.Path)
	}
	to = filepath.Join(c.Dir, own)
	if kept, err := c.there(to, f); kept || err != nil {
		return to, kept, err
	}
	part, err := c.fetch(a, o, f, line, name)
	if err != nil {
		return "", false, err
	}
	defer os.Remove(part)
	err = place(part, to)
	if notHeld(err) {
		to = filepath.Join(c.Dir, filepath.FromSlash(otherName(f.Path)))
		err = place(part, to)
	}
	if err != nil {
		return "", false, fmt.Errorf("%s: %w", f.Path, err)
	}
	return to, false, nil
}

// there reports whether a file is there with the right content. Another one is a
// Conflict unless it shall be overwritten.
func (c *objectGetCmd) there(to string, f v1.File) (bool, error) {
	info, err := os.Lstat(to)
	if errors.Is(err, fs.ErrNotExist) || notHeld(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if info.Mode().IsRegular() && info.Size() == f.Size {
		sum, err := sumOf(to)
		if err != nil || sum == f.Digests["sha512"] {
			return err == nil, err
		}
	}
	if c.Force && info.Mode().IsRegular() {
		return false, nil
	}
	return false, fault.New(fault.Conflict, "%s is there with other content; --force overwrites it", to)
}

func sumOf(name string) (string, error) {
	in, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer in.Close()
	sum := sha512.New()
	if _, err := io.Copy(sum, in); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

func place(part, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.Rename(part, to)
}

// fetch writes a file's content to a temporary file in the folder, and checks it.
func (c *objectGetCmd) fetch(a *app, o v1.Object, f v1.File, line *status, name string) (string, error) {
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return "", err
	}
	part, err := os.CreateTemp(c.Dir, ".part-*")
	if err != nil {
		return "", err
	}
	come := &arrival{line: line, name: name, of: f.Size, speed: meter{now: a.now}}
	err = c.copyTo(a, io.MultiWriter(part, come), o, f)
	if e := part.Close(); err == nil {
		err = e
	}
	if err != nil {
		os.Remove(part.Name())
		return "", err
	}
	return part.Name(), nil
}

// copyTo copies a file's content and checks its digest.
func (c *objectGetCmd) copyTo(a *app, to io.Writer, o v1.Object, f v1.File) error {
	body, err := a.client.Content(a.ctx, o.ARK, c.Number, f.Path)
	if err != nil {
		return err
	}
	defer body.Close()
	sum := sha512.New()
	if _, err = io.Copy(io.MultiWriter(to, sum), body); err != nil {
		return fault.New(fault.Unavailable, "%s: %w", f.Path, err)
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != f.Digests["sha512"] {
		return fmt.Errorf("%s: the downloaded content has the sha512 %s, the stored content %s; tell the archive's operator",
			f.Path, got, f.Digests["sha512"])
	}
	return nil
}

// arrival shows how much of a file has come.
type arrival struct {
	line     *status
	name     string
	done, of int64
	speed    meter
}

// Write counts bytes.
func (c *arrival) Write(p []byte) (int, error) {
	c.done += int64(len(p))
	if n := len(c.speed.samples); n == 0 || c.speed.now().Sub(c.speed.samples[n-1].at) >= redraw {
		c.speed.add(c.done)
		speed := ""
		if rate := c.speed.rate(); rate > 0 {
			speed = ", " + size(int64(rate)) + "/s" + c.speed.left(c.of)
		}
		c.line.show(percent(c.done, c.of)+"  "+c.name+speed, false)
	}
	return len(p), nil
}
