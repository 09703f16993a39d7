package main

import (
	"crypto/sha512"
	"encoding/hex"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/schollz/progressbar/v3"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/ark"
	"archivist/pkg/fault"
)

type objectCmd struct {
	List    objectListCmd  `cmd:"" help:"List a collection's objects, last changed first."`
	Show    objectShowCmd  `cmd:"" help:"Show an object and its versions."`
	Files   objectFilesCmd `cmd:"" help:"List a version's files."`
	Get     objectGetCmd   `cmd:"" help:"Get a version's files and check their digests."`
	Reindex reindexCmd     `cmd:"" help:"Rebuild missing rows from the storage root. Exit code 4 if some could not be."`
}

type objectListCmd struct {
	Collection string `required:"" short:"c"`
	LocalID    string `help:"Only the object with this local id."`
}

func (c *objectListCmd) Run(a *app) error {
	list, err := v1.All[v1.Object](a.ctx, a.client, "/v1/objects?collection="+url.QueryEscape(c.Collection)+"&localId="+url.QueryEscape(c.LocalID))
	if err != nil {
		return err
	}
	return a.print(list, func(w io.Writer) {
		var body []table.Row
		for _, o := range list {
			body = append(body, table.Row{o.ARK, fmt.Sprintf("v%d", o.Version), o.Title, o.LocalIDs, o.Modified})
		}
		rows(w, table.Row{"ark", "version", "title", "local ids", "modified"}, body)
	})
}

// version says which version of which object.
type version struct {
	ARK     string `arg:"" help:"ARK of the object."`
	Version int    `short:"n" help:"Version; the newest when not given."`
}

// find reads the object and settles the version.
func (v *version) find(a *app) (v1.Object, error) {
	id, err := ark.Parse(v.ARK)
	if err != nil {
		return v1.Object{}, fault.New(fault.Invalid, "%w", err)
	}
	o, err := v1.Get[v1.Object](a.ctx, a.client, v1.ObjectPath(id.String()))
	if v.Version == 0 {
		v.Version = o.Version
	}
	return o, err
}

// files reads the object and the version's files.
func (v *version) files(a *app) (v1.Object, []v1.File, error) {
	o, err := v.find(a)
	if err != nil {
		return o, nil, err
	}
	files, err := v1.All[v1.File](a.ctx, a.client, fmt.Sprintf("%s/versions/%d/files", v1.ObjectPath(o.ARK), v.Version))
	return o, files, err
}

type objectShowCmd struct{ version }

func (c *objectShowCmd) Run(a *app) error {
	o, err := c.find(a)
	if err != nil {
		return err
	}
	versions, err := v1.All[v1.Version](a.ctx, a.client, v1.ObjectPath(o.ARK)+"/versions")
	if err != nil {
		return err
	}
	return a.print(struct {
		v1.Object
		Versions []v1.Version `json:"versions"`
	}{o, versions}, func(w io.Writer) {
		fields(w, "ark", o.ARK, "title", o.Title, "collection", o.Collection, "local ids", o.LocalIDs, "created", o.Created, "modified", o.Modified, "stored", o.Stored)
		var body []table.Row
		for _, v := range versions {
			body = append(body, table.Row{fmt.Sprintf("v%d", v.Version), v.Created, v.Files, size(v.Bytes), v.Job, v.InventoryDigest[:16] + "…"})
		}
		rows(w, table.Row{"version", "created", "files", "size", "job", "inventory sha512"}, body)
	})
}

type objectFilesCmd struct{ version }

func (c *objectFilesCmd) Run(a *app) error {
	_, files, err := c.files(a)
	if err != nil {
		return err
	}
	return a.print(files, func(w io.Writer) {
		var body []table.Row
		for _, f := range files {
			body = append(body, table.Row{f.Path, size(f.Size), f.Digests["sha256"]})
		}
		rows(w, table.Row{"path", "size", "sha256"}, body)
	})
}

type objectGetCmd struct {
	version
	Paths []string `arg:"" optional:"" name:"path" help:"Files, e.g. producer/a.pdf; all when not given."`
	Dir   string   `short:"o" default:"." help:"Folder to write to."`
}

func (c *objectGetCmd) Run(a *app) error {
	o, files, err := c.files(a)
	if err != nil {
		return err
	}
	wanted := map[string]bool{}
	for _, p := range c.Paths {
		wanted[p] = true
	}
	got := []v1.File{}
	for _, f := range files {
		if len(wanted) > 0 && !wanted[f.Path] {
			continue
		}
		delete(wanted, f.Path)
		if err := c.get(a, o, f); err != nil {
			return err
		}
		got = append(got, f)
		if len(c.Paths) > 0 && len(wanted) == 0 {
			break
		}
	}
	for p := range wanted {
		return fault.New(fault.NotFound, "%s v%d has no file %q", o.ARK, c.Version, p)
	}
	return a.print(got, func(w io.Writer) {
		for _, f := range got {
			fmt.Fprintf(w, "%s %s\n", f.Digests["sha512"][:16], filepath.Join(c.Dir, filepath.FromSlash(f.Path)))
		}
	})
}

// get writes one file and checks it. A file that is not what is stored is not
// left behind under its name.
func (c *objectGetCmd) get(a *app, o v1.Object, f v1.File) error {
	to := filepath.Join(c.Dir, filepath.FromSlash(f.Path))
	if !filepath.IsLocal(filepath.FromSlash(f.Path)) {
		return fault.New(fault.Invalid, "the path %q leads out of the folder", f.Path)
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	body, err := a.client.Content(a.ctx, o.ARK, c.Version, f.Path)
	if err != nil {
		return err
	}
	defer body.Close()
	part, err := os.CreateTemp(filepath.Dir(to), ".part-*")
	if err != nil {
		return err
	}
	defer os.Remove(part.Name())
	bar := progressbar.NewOptions64(f.Size, progressbar.OptionSetWriter(os.Stderr), progressbar.OptionSetDescription(f.Path), progressbar.OptionShowBytes(true), progressbar.OptionClearOnFinish())
	sum := sha512.New()
	_, err = io.Copy(io.MultiWriter(part, sum, bar), body)
	if e := part.Close(); err == nil {
		err = e
	}
	if err != nil {
		return fault.New(fault.Unavailable, "%s: %w", f.Path, err)
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != f.Digests["sha512"] {
		return fmt.Errorf("%s: what came has sha512 %s, stored is %s; tell the archive's operator", f.Path, got, f.Digests["sha512"])
	}
	return os.Rename(part.Name(), to)
}
