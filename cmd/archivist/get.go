package main

import (
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/schollz/progressbar/v3"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/fault"
)

type objectGetCmd struct {
	version
	Paths []string `arg:"" optional:"" name:"path" help:"Files, e.g. producer/a.pdf; all when not given."`
	Dir   string   `short:"o" default:"." help:"Folder to write to."`
}

// fetched is how it went with one file.
type fetched struct {
	v1.File
	Local string `json:"local,omitempty"` // where it was written
	Other bool   `json:"otherName,omitempty"`
	Error string `json:"error,omitempty"`
}

// renamedError says that all files came, some of them under other names.
type renamedError struct{ message string }

// Error says how many.
func (e *renamedError) Error() string { return e.message }

// exitRenamed is the exit code of a renamedError.
const exitRenamed = 8

// namesFile lists the files that were written under other names, as JSON lines.
const namesFile = "archivist-other-names.jsonl"

func (c *objectGetCmd) Run(a *app) error {
	o, files, err := c.files(a)
	if err != nil {
		return err
	}
	wanted := map[string]bool{}
	for _, p := range c.Paths {
		wanted[p] = true
	}
	got := []fetched{}
	var failed error
	for _, f := range files {
		if len(c.Paths) > 0 && !wanted[f.Path] {
			continue
		}
		delete(wanted, f.Path)
		result := fetched{File: f}
		if result.Local, err = c.get(a, o, f); err != nil {
			result.Error = err.Error()
			failed = errors.Join(failed, err)
		}
		result.Other = err == nil && result.Local != filepath.Join(c.Dir, filepath.FromSlash(f.Path))
		if got = append(got, result); a.ctx.Err() != nil {
			break
		}
	}
	for p := range wanted {
		failed = errors.Join(failed, fault.New(fault.NotFound, "%s v%d has no file %q", o.ARK, c.Version, p))
	}
	if err := a.print(got, func(w io.Writer) { list(w, got) }); err != nil {
		return err
	}
	renamed := c.names(got)
	if failed != nil {
		return errors.Join(failed, renamed)
	}
	return renamed
}

// list prints the files that came.
func list(w io.Writer, got []fetched) {
	for _, f := range got {
		if f.Error == "" {
			fmt.Fprintf(w, "%s %s\n", f.Digests["sha512"][:16], printable(f.Local))
		}
	}
}

// names writes down which files were written under other names, and returns a
// *renamedError if any were.
func (c *objectGetCmd) names(got []fetched) error {
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
		line, err := json.Marshal(map[string]string{"path": f.Path, "local": filepath.ToSlash(local)})
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
	return &renamedError{fmt.Sprintf("%d files have names that this file system cannot hold; "+
		"they were written under other names, which are listed in %s:%s", n, to, says.String())}
}

// get writes one file and checks it, under its own name if the file system can hold
// it. A file that is not what is stored is not left behind under its name.
func (c *objectGetCmd) get(a *app, o v1.Object, f v1.File) (string, error) {
	own := filepath.FromSlash(f.Path)
	if !filepath.IsLocal(own) {
		return "", fault.New(fault.Invalid, "the path %q leads out of the folder", f.Path)
	}
	part, err := c.fetch(a, o, f)
	if err != nil {
		return "", err
	}
	defer os.Remove(part)
	to := filepath.Join(c.Dir, own)
	err = place(part, to)
	if errors.Is(err, syscall.ENAMETOOLONG) || errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.EILSEQ) {
		to = filepath.Join(c.Dir, filepath.FromSlash(otherName(f.Path)))
		err = place(part, to)
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", f.Path, err)
	}
	return to, nil
}

func place(part, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.Rename(part, to)
}

// otherName is a name that file systems hold for a path that they do not: the
// beginning of its folder and name, with a digest of the path that keeps it unique.
func otherName(name string) string {
	sum := sha256.Sum256([]byte(name))
	ext := path.Ext(name)
	if len(ext) > 20 || !plain(ext) {
		ext = ""
	}
	base := strings.Map(func(r rune) rune {
		if plain(string(r)) {
			return r
		}
		return '_'
	}, strings.TrimSuffix(path.Base(name), ext))
	if len(base) > 100 {
		base = base[:100]
	}
	return "other-names/" + base + "~" + hex.EncodeToString(sum[:16]) + ext
}

// shown is a progress bar; that more comes than was said is found by the digest.
type shown struct{ bar *progressbar.ProgressBar }

func (s shown) Write(p []byte) (int, error) {
	_, _ = s.bar.Write(p)
	return len(p), nil
}

// plain reports whether a text is of characters that every file system holds.
func plain(s string) bool {
	return utf8.ValidString(s) && strings.IndexFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-", r))
	}) < 0
}

// fetch writes a file's content to a temporary file in the folder, and checks it.
func (c *objectGetCmd) fetch(a *app, o v1.Object, f v1.File) (name string, err error) {
	body, err := a.client.Content(a.ctx, o.ARK, c.Version, f.Path)
	if err != nil {
		return "", err
	}
	defer body.Close()
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return "", err
	}
	part, err := os.CreateTemp(c.Dir, ".part-*")
	if err != nil {
		return "", err
	}
	defer func() {
		if err != nil {
			os.Remove(part.Name())
		}
	}()
	bars := a.bars
	if bars == nil {
		bars = io.Discard
	}
	bar := progressbar.NewOptions64(f.Size, progressbar.OptionSetWriter(bars),
		progressbar.OptionSetDescription(printable(f.Path)), progressbar.OptionShowBytes(true), progressbar.OptionClearOnFinish())
	sum := sha512.New()
	_, err = io.Copy(io.MultiWriter(part, sum, shown{bar}), body)
	if e := part.Close(); err == nil {
		err = e
	}
	if err != nil {
		return "", fault.New(fault.Unavailable, "%s: %w", f.Path, err)
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != f.Digests["sha512"] {
		return "", fmt.Errorf("%s: the downloaded content has the sha512 %s, the stored content %s; tell the archive's operator",
			f.Path, got, f.Digests["sha512"])
	}
	return part.Name(), nil
}
