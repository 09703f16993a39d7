package main

import (
	"fmt"
	"strconv"
	"strings"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/ark"
	"archivist/pkg/fault"
)

type objectCmd struct {
	List    objectListCmd  `cmd:"" help:"List a collection's objects, last changed first."`
	Show    objectShowCmd  `cmd:"" help:"Show an object and its versions."`
	Files   objectFilesCmd `cmd:"" help:"List the files of a version."`
	Get     objectGetCmd   `cmd:"" help:"Download the files of a version and verify their digests."`
	Reindex reindexCmd     `cmd:"" help:"Restore missing rows of objects from the storage root."`
}

type objectListCmd struct {
	Collection string `required:"" short:"c" help:"Collection of the objects." placeholder:"NAME"`
	LocalID    string `help:"Only the object that has this local id." placeholder:"ID"`
	limit
}

func (objectListCmd) prints() any { return v1.Object{} }

func (c *objectListCmd) Run(a *app) error {
	list, err := a.client.Objects(a.ctx, v1.Filter{Collection: c.Collection, LocalID: c.LocalID, Limit: c.more()})
	if err != nil {
		return err
	}
	list = limited(a, c.limit, list)
	return a.print(list, func(p page) {
		table(p, list,
			column[v1.Object]{title: "ark", text: func(o v1.Object) string { return o.ARK }},
			column[v1.Object]{title: "version", text: func(o v1.Object) string { return versionText(o.Version) }},
			column[v1.Object]{title: "title", text: func(o v1.Object) string { return o.Title }, cut: 1},
			column[v1.Object]{title: "local ids", text: func(o v1.Object) string { return strings.Join(o.LocalIDs, ", ") }, cut: 1},
			column[v1.Object]{title: "modified", text: func(o v1.Object) string { return minute(o.Modified) },
				raw: func(o v1.Object) string { return o.Modified }})
	})
}

// version says which version of which object.
type version struct {
	ARK    string `arg:"" name:"ark" help:"ARK of an object, e.g. ark:/99999/fk4tq65d6k."`
	Number int    `short:"n" name:"number" help:"Number of the version; the newest if it is left out." placeholder:"N"`
}

// parseARK reads an ARK in any of its forms.
func parseARK(text string) (string, error) {
	id, err := ark.Parse(text)
	if err != nil {
		return "", fault.New(fault.Invalid, "%w", err)
	}
	return id.String(), nil
}

// find reads the object and settles the version.
func (v *version) find(a *app) (v1.Object, error) {
	id, err := parseARK(v.ARK)
	if err != nil {
		return v1.Object{}, err
	}
	o, err := a.client.Object(a.ctx, id)
	if v.Number == 0 {
		v.Number = o.Version
	}
	return o, err
}

// files reads the object and the version's files.
func (v *version) files(a *app) (v1.Object, []v1.File, error) {
	o, err := v.find(a)
	if err != nil {
		return o, nil, err
	}
	files, err := a.client.Files(a.ctx, o.ARK, v.Number)
	return o, files, err
}

type objectShowCmd struct {
	ARK string `arg:"" name:"ark" help:"ARK of an object, e.g. ark:/99999/fk4tq65d6k."`
}

// objectWithVersions is an object as it is printed.
type objectWithVersions struct {
	v1.Object
	Versions []v1.Version `json:"versions"`
}

func (objectShowCmd) prints() any { return objectWithVersions{} }

func (c *objectShowCmd) Run(a *app) error {
	id, err := parseARK(c.ARK)
	if err != nil {
		return err
	}
	o, err := a.client.Object(a.ctx, id)
	if err != nil {
		return err
	}
	versions, err := a.client.Versions(a.ctx, o.ARK)
	if err != nil {
		return err
	}
	return a.print(objectWithVersions{o, versions}, func(p page) {
		p.fields("ark", o.ARK, "title", o.Title, "collection", o.Collection, "local ids", strings.Join(o.LocalIDs, ", "),
			"created", o.Created, "modified", o.Modified, "stored at", o.Stored)
		fmt.Fprintln(p)
		table(p, versions,
			column[v1.Version]{title: "version", text: func(v v1.Version) string { return versionText(v.Version) }},
			column[v1.Version]{title: "created", text: func(v v1.Version) string { return v.Created }},
			column[v1.Version]{title: "files", text: func(v v1.Version) string { return strconv.Itoa(v.Files) }},
			column[v1.Version]{title: "size", text: func(v v1.Version) string { return size(v.Bytes) },
				raw: func(v v1.Version) string { return strconv.FormatInt(v.Bytes, 10) }},
			column[v1.Version]{title: "job", text: func(v v1.Version) string { return v.Job }},
			column[v1.Version]{text: func(v v1.Version) string { return v.InventoryDigest }})
	})
}

type objectFilesCmd struct{ version }

func (objectFilesCmd) prints() any { return v1.File{} }

func (c *objectFilesCmd) Run(a *app) error {
	_, files, err := c.files(a)
	if err != nil {
		return err
	}
	return a.print(files, func(p page) {
		table(p, files,
			column[v1.File]{title: "path", text: func(f v1.File) string { return f.Path }, cut: 1},
			column[v1.File]{title: "size", text: func(f v1.File) string { return size(f.Size) },
				raw: func(f v1.File) string { return strconv.FormatInt(f.Size, 10) }},
			column[v1.File]{title: "type", text: func(f v1.File) string { return f.MediaType }, cut: 1},
			column[v1.File]{title: "sha256", text: func(f v1.File) string { return f.Digests["sha256"] }, cut: 1},
			column[v1.File]{text: func(f v1.File) string { return f.Digests["sha512"] }})
	})
}
