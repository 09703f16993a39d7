package main

import (
	"fmt"
	"io"

	"github.com/jedib0t/go-pretty/v6/table"

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
	list, err := a.client.Objects(a.ctx, v1.Filter{Collection: c.Collection, LocalID: c.LocalID})
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
	o, err := a.client.Object(a.ctx, id.String())
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
	files, err := a.client.Files(a.ctx, o.ARK, v.Version)
	return o, files, err
}

type objectShowCmd struct{ version }

func (c *objectShowCmd) Run(a *app) error {
	o, err := c.find(a)
	if err != nil {
		return err
	}
	versions, err := a.client.Versions(a.ctx, o.ARK)
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
