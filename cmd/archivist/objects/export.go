package objects

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"archivist/cmd/archivist/command"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/formats/bagit"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/terminal"
)

// objectExportCmd writes objects as bags, which other people's tools read: an archive can be left with one command.
type objectExportCmd struct {
	Name       string `arg:"" optional:"" name:"object" help:"ARK of an object, or with -c one of its local ids."`
	Collection string `short:"c" help:"All objects of this collection, or that with the local id." placeholder:"NAME"`
	Number     int    `name:"number" help:"Version; the newest if it is left out." placeholder:"N"`
	As         string `enum:"bag,zip,ocfl" default:"bag" help:"bag (BagIt 1.0), zip (a bag), or ocfl (all versions)."`
	Dir        string `short:"o" default:"." help:"Folder in which each object gets a folder of its own."`
}

func (objectExportCmd) Prints() any { return exported{} }

// Help says what a bag has.
func (objectExportCmd) Help() string {
	return `Each object becomes a bag (BagIt 1.0, RFC 8493), in a folder with the name of its ARK: data/ has the files of the
version, with each digest that the archive has of all of them; bag-info.txt the identifiers and the title;
metadata/premis.xml the permanent record of the object. Each bag is checked when it is complete. With --as zip it is then
put into a zip file, which is read again, and the folder is removed.

With --as ocfl the folder of -o becomes a storage root of OCFL 1.1: each object with all its versions, byte by byte as it
is stored. Each file is compared with its digest in the inventory, and the inventories with the archive's record of them.

The same command again goes on: a file that is there with its digest is not downloaded again. If an object cannot be
exported, the others are, and the command ends with the error.`
}

// exported is the result for one object.
type exported struct {
	ARK     string `json:"ark"`
	Version int    `json:"version"`
	Folder  string `json:"folder"`
	Files   int    `json:"files"`
	Bytes   int64  `json:"bytes"`
	Error   string `json:"error,omitempty"`
}

// arks are those of the objects to export.
func (c *objectExportCmd) arks(a *command.App) (arks []string, err error) {
	switch {
	case c.Name == "" && c.Collection == "":
		return nil, command.Usage("name an object by its ARK, or a collection by -c")
	case c.Name == "" && c.Number != 0:
		return nil, command.Usage("--number is for one object")
	case c.As == "ocfl" && c.Number != 0:
		return nil, command.Usage("--number is not for --as ocfl, which has all versions")
	case c.Name != "":
		one, err := named{c.Name, c.Collection}.ark(a)
		return []string{one}, err
	}

	list, err := a.Client.Objects(a.Ctx, v1.Filter{Collection: c.Collection})
	for _, o := range list {
		arks = append(arks, o.ARK)
	}
	return arks, err
}

// Run exports one object, or all of a collection, one after the other.
func (c *objectExportCmd) Run(a *command.App) error {
	arks, err := c.arks(a)
	if err != nil {
		return err
	}

	var done []exported
	var failed []error
	for _, ark := range arks {
		one, err := c.one(a, ark)
		if a.Ctx.Err() != nil {
			return a.Ctx.Err()
		}
		if err != nil {
			one.Error = err.Error()
			failed = append(failed, fmt.Errorf("%s: %w", ark, err))
		}
		done = append(done, one)
	}

	return c.report(a, done, failed)
}

// report prints what was exported, and returns what was not.
func (c *objectExportCmd) report(a *command.App, done []exported, failed []error) error {
	if err := a.Print(done, func(p terminal.Page) { terminal.Table(p, done, exportedColumns...) }); err != nil {
		return err
	}
	if len(failed) == 0 {
		return nil
	}
	return summary(failed, len(done), "objects were not exported")
}

// exportedColumns show where each object is.
var exportedColumns = []terminal.Column[exported]{
	{Title: "ark", Text: func(e exported) string { return e.ARK }},
	{Title: "version", Text: func(e exported) string { return command.VersionText(e.Version) }},
	{Title: "files", Text: func(e exported) string { return fmt.Sprint(e.Files) }},
	{Title: "size", Text: func(e exported) string { return terminal.Size(e.Bytes) }},
	{Title: "folder or file", Text: func(e exported) string {
		if e.Error != "" {
			return "not exported"
		}
		return e.Folder
	}, Share: 1},
}

// folderOf is the name of the folder of an object: that of its ARK, with characters that every file system can hold.
func folderOf(ark string) string {
	return strings.NewReplacer("/", "_", ":", "_").Replace(strings.Replace(ark, ":/", "_", 1))
}

// one exports one object.
func (c *objectExportCmd) one(a *command.App, ark string) (exported, error) {
	switch c.As {
	case "ocfl":
		return c.ocfl(a, ark)
	case "zip":
		return c.zip(a, ark)
	}
	return c.export(a, ark)
}

// export writes the bag of one object, and checks it.
func (c *objectExportCmd) export(a *command.App, ark string) (exported, error) {
	v := version{named: named{Name: ark}, Number: c.Number}
	object, files, err := v.files(a)
	out := exported{ARK: ark, Version: v.Number, Files: len(files)}
	if err != nil {
		return out, err
	}

	out.ARK, out.Folder = object.ARK, filepath.Join(c.Dir, folderOf(object.ARK))
	get := &objectGetCmd{version: v, Dir: filepath.Join(out.Folder, "data")}
	if err := removeParts(get.Dir); err != nil {
		return out, err
	}
	g := getting{objectGetCmd: get, app: a, object: object, line: a.StatusTo(nil)}
	got, failed := g.all(files)
	if len(failed) > 0 {
		return out, summary(failed, len(files), notWritten)
	}

	if i := slices.IndexFunc(got, func(f fetched) bool { return f.Other }); i >= 0 {
		return out, fault.New(fault.Conflict, "the file %q has a name that this file system cannot hold: a bag has "+
			"each file under its own name; export to another file system", got[i].Path)
	}

	payload := make([]bagit.File, len(files))
	for i, f := range files {
		payload[i] = bagit.File{Path: f.Path, Size: f.Size, Digests: f.Digests}
		out.Bytes += f.Size
	}

	if err := c.describe(a, out, object, payload); err != nil {
		return out, err
	}
	return out, c.check(a, out)
}

// versionField is the field of bag-info.txt that has the number of the version.
const versionField = "Archivist-Version"

// describe writes the tag files of a bag.
func (c *objectExportCmd) describe(a *command.App, out exported, o v1.Object, payload []bagit.File) error {
	var premis bytes.Buffer
	if err := a.Client.HistoryPREMIS(a.Ctx, o.ARK, &premis); err != nil {
		return err
	}

	info := []bagit.Field{{Name: "External-Identifier", Value: o.ARK}}
	for _, id := range o.LocalIDs {
		info = append(info, bagit.Field{Name: "Internal-Sender-Identifier", Value: id})
	}
	info = append(info,
		bagit.Field{Name: "External-Description", Value: o.Title},
		bagit.Field{Name: "Bag-Group-Identifier", Value: o.Collection},
		bagit.Field{Name: versionField, Value: fmt.Sprint(out.Version)},
		bagit.Field{Name: "Bagging-Date", Value: a.Now().UTC().Format("2006-01-02")})

	info = slices.DeleteFunc(info, func(f bagit.Field) bool { return f.Value == "" })
	tags, err := bagit.Tags(payload, info, map[string][]byte{"metadata/premis.xml": premis.Bytes()})
	if err != nil {
		return err
	}

	for name, data := range tags {
		to := filepath.Join(out.Folder, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(to, data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// check reads a bag as others do.
func (c *objectExportCmd) check(a *command.App, out exported) error {
	_, err := checkBag(a, out.Folder, os.DirFS(out.Folder))
	return err
}

// checkBag reads a bag in a file system, whose name is for messages.
func checkBag(a *command.App, name string, bag fs.FS) (*bagit.Report, error) {
	line := a.StatusTo(io.Discard)
	report, err := bagit.Check(a.Ctx, bag, func(files, of int, size int64) {
		line.Show(fmt.Sprintf("checked %d of %s, %s", files, terminal.Count(of, "file"), terminal.Size(size)), false)
	})
	line.End()
	if err != nil {
		return nil, err
	}
	if len(report.Problems) > 0 {
		return nil, fault.New(fault.Conflict, "%s is no valid bag: %s. Remove what does not belong there, and export "+
			"again", name, report.Problems[0])
	}
	return report, nil
}
