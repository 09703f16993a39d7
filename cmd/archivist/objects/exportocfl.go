package objects

import (
	"bytes"
	"crypto/sha512"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"archivist/cmd/archivist/command"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/formats/ocflspec"
	"archivist/pkg/kernel/fault"
)

// inventory is what an export needs of one (OCFL 1.1, section 3.5).
type inventory struct {
	ID       string              `json:"id"`
	Head     string              `json:"head"`
	Manifest map[string][]string `json:"manifest"` // content paths by sha512
}

// ocfl writes one object with all its versions into a storage root of OCFL. The archive's record of versions vouches
// for the inventories, and the newest inventory for the content.
func (c *objectExportCmd) ocfl(a *command.App, ark string) (exported, error) {
	v := version{named: named{Name: ark}}
	object, err := v.find(a)
	out := exported{ARK: ark, Version: v.Number}
	if err != nil {
		return out, err
	}
	versions, err := a.Client.Versions(a.Ctx, object.ARK)
	if err != nil {
		return out, err
	}
	for n := range v.Number {
		if n >= len(versions) || versions[n].Version != n+1 {
			return out, fault.New(fault.Conflict, "version %d of %s is not recorded; archivist object reindex %s "+
				"records it", n+1, object.ARK, object.ARK)
		}
	}

	if err := c.ocflRoot(); err != nil {
		return out, err
	}

	out.ARK, out.Folder = object.ARK, filepath.Join(c.Dir, filepath.FromSlash(object.Stored))
	get := &objectGetCmd{version: v, Dir: out.Folder}
	if err := removeParts(out.Folder); err != nil {
		return out, err
	}
	g := getting{objectGetCmd: get, app: a, object: object, line: a.StatusTo(nil), stored: true}
	if err := g.written(structure(versions[:v.Number])); err != nil {
		return out, err
	}

	newest := fmt.Sprintf("v%d/%s", v.Number, ocflspec.InventoryName)
	text, err := os.ReadFile(filepath.Join(out.Folder, filepath.FromSlash(newest)))
	if err != nil {
		return out, err
	}

	content, err := contentOf(text, object.ARK, v.Number)
	if err == nil {
		err = g.written(content)
	}
	if err != nil {
		return out, err
	}

	out.Files = len(content)
	out.Bytes, err = sizeOf(out.Folder, append(structure(versions[:v.Number]), content...))
	if err != nil {
		return out, err
	}
	// Last, so that a part of an object is none.
	return out, c.finish(out.Folder, text)
}

// written downloads files, and returns the failures.
func (g getting) written(files []v1.File) error {
	got, failed := g.all(files)
	if len(failed) > 0 {
		return summary(failed, len(files), notWritten)
	}
	if i := slices.IndexFunc(got, func(f fetched) bool { return f.Other }); i >= 0 {
		return fault.New(fault.Conflict, "the file %q has a name that this file system cannot hold; export to "+
			"another one", got[i].Path)
	}
	return nil
}

// structure are the inventories of versions with their sidecars.
func structure(versions []v1.Version) (files []v1.File) {
	for _, v := range versions {
		folder := fmt.Sprintf("v%d/", v.Version)
		sidecar := sha512.Sum512(ocflspec.Sidecar(v.InventoryDigest))
		files = append(files,
			v1.File{Path: folder + ocflspec.InventoryName, Digests: map[string]string{"sha512": v.InventoryDigest}},
			v1.File{Path: folder + ocflspec.SidecarName, Digests: map[string]string{
				"sha512": hex.EncodeToString(sidecar[:])}})
	}
	return files
}

// contentOf are the content files that an inventory names, by path.
func contentOf(text []byte, ark string, version int) (files []v1.File, err error) {
	var in inventory
	if err := json.Unmarshal(text, &in); err != nil {
		return nil, fault.New(fault.Conflict, "the inventory of %s v%d cannot be read: %v", ark, version, err)
	}
	if in.ID != ark || in.Head != fmt.Sprintf("v%d", version) {
		return nil, fault.New(fault.Conflict, "the inventory of %s v%d is that of %s %s", ark, version, in.ID, in.Head)
	}

	for _, digest := range slices.Sorted(maps.Keys(in.Manifest)) {
		for _, path := range in.Manifest[digest] {
			files = append(files, v1.File{Path: path, Digests: map[string]string{"sha512": digest}})
		}
	}
	return files, nil
}

// ocflRoot makes the folder a storage root. It must be one already, or empty, or not there.
func (c *objectExportCmd) ocflRoot() error {
	there, err := os.ReadDir(c.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}

	declared := slices.ContainsFunc(there, func(e fs.DirEntry) bool { return e.Name() == ocflspec.RootDeclaration })
	if len(there) > 0 && !declared {
		return command.Usage("%s is neither empty nor a storage root of OCFL; name another folder by -o", c.Dir)
	}

	for name, text := range ocflspec.RootFiles() {
		if err := keep(filepath.Join(c.Dir, filepath.FromSlash(name)), text); err != nil {
			return err
		}
	}
	return nil
}

// finish writes what makes a folder an object of its newest version.
func (c *objectExportCmd) finish(folder string, newest []byte) error {
	sum := sha512.Sum512(newest)
	for _, f := range []struct {
		name string
		text []byte
	}{{ocflspec.InventoryName, newest}, {ocflspec.SidecarName, ocflspec.Sidecar(hex.EncodeToString(sum[:]))},
		{ocflspec.ObjectDeclaration, []byte(ocflspec.DeclarationText)}} {
		if err := keep(filepath.Join(folder, f.name), f.text); err != nil {
			return err
		}
	}
	return nil
}

// keep writes a small file, unless it is there as it should be.
func keep(name string, text []byte) error {
	if was, err := os.ReadFile(name); err == nil && bytes.Equal(was, text) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	part := filepath.Join(filepath.Dir(name), partly+filepath.Base(name))
	if err := os.WriteFile(part, text, 0o644); err != nil {
		return err
	}
	return os.Rename(part, name)
}

// removeParts removes what a killed export left of a file in the folder of an object.
func removeParts(folder string) error {
	there, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range there {
		if strings.HasPrefix(e.Name(), partly) {
			err = errors.Join(err, os.Remove(filepath.Join(folder, e.Name())))
		}
	}
	return err
}

// sizeOf is how many bytes the files below a folder have. One that is not of the object is a Conflict: with it the
// object would not be valid.
func sizeOf(folder string, files []v1.File) (size int64, err error) {
	own := map[string]bool{ocflspec.InventoryName: true, ocflspec.SidecarName: true, ocflspec.ObjectDeclaration: true}
	for _, f := range files {
		own[f.Path] = true
	}
	err = filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		if !own[filepath.ToSlash(name)] {
			return fault.New(fault.Conflict, "%s is not a file of the object. Remove it, and export again", path)
		}
		info, err := d.Info()
		if err == nil {
			size += info.Size()
		}
		return err
	})
	return size, err
}
