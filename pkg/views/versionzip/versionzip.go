// Package versionzip makes a zip file of all files of a stored version: a bag (BagIt 1.0) in a folder with the name of
// the object.
//
// It is made while somebody waits, so a version may not have more than Limits. It is stored in the bucket of what can
// be made again, and expires there:
//
//	zips/{2 digits}/{sha256 of the version}.zip
package versionzip

import (
	"archive/zip"
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"archivist/pkg/formats/bagit"
	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/objects/aip"
	"archivist/pkg/objects/inventory"
)

// Folder is where the zip files are. They are removed some days after they were made: Days.
const (
	Folder = "zips/"
	Days   = 7
)

// Limits bound a version of which a zip file is made: its files of the depositor, and their bytes.
type Limits struct {
	Files int
	Bytes int64
}

// DefaultLimits are what is read and written within 24 seconds with much to spare: a request to the storage for each
// file, one after the other, and 10 MB a second.
var DefaultLimits = Limits{Files: 300, Bytes: 128 << 20}

// Check is a Conflict if a version is too large. The numbers are those of its row.
func (l Limits) Check(v inventory.Version) error {
	if v.Files <= l.Files && v.Bytes <= l.Bytes {
		return nil
	}
	return fault.New(fault.Conflict, "version %d has %d files with %d bytes; a zip file is made here of at most %d "+
		"files with %d bytes. This command makes one of any size: archivist object export %s --number %d --as zip",
		v.Number, v.Files, v.Bytes, l.Files, l.Bytes, v.ARK, v.Number)
}

// Key is where the zip file of a version is. All that the file has follows from what is in the key: the inventory of
// the version, and what the object is called and where it belongs now.
func Key(o *inventory.Object, v inventory.Version) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/v%d/%s %q %q", v.ARK, v.Number, v.Digest, o.Collection, o.LocalIDs))
	name := hex.EncodeToString(sum[:])
	return Folder + name[:2] + "/" + name + ".zip"
}

// Name is what the zip file is called where it is downloaded.
func Name(v inventory.Version) string { return fmt.Sprintf("%s_v%d.zip", folderOf(v.ARK), v.Number) }

// folderOf is the folder of an object in its zip file: its ARK, with characters that every file system can hold. The
// command line names exported objects in the same way.
func folderOf(ark string) string {
	return strings.NewReplacer("/", "_", ":", "_").Replace(strings.Replace(ark, ":/", "_", 1))
}

// Make makes the zip file of a version, unless it is there. It is there whole, or not at all. Each file is compared
// with its digest: one that is damaged or missing is a Conflict that names it. The caller has checked the limits, and
// that the files may be given out. Of two that make it at once, the first that has done so is kept.
func Make(ctx context.Context, derived bucket.Bucket, of aip.Version, o *inventory.Object,
	row inventory.Version) error {
	key := Key(o, row)
	_, err := derived.Head(ctx, key)
	if !fault.Is(err, fault.NotFound) {
		return err
	}

	w := writer{ctx: ctx, of: of, folder: folderOf(o.ARK), made: time.UnixMilli(row.Created).UTC()}
	if err := w.list(); err != nil {
		return err
	}

	err = derived.Create(ctx, key, bucket.Condition{Absent: true}, func(to io.Writer) error {
		w.to = zip.NewWriter(to)
		if err := w.write(o, row); err != nil {
			return err
		}
		return w.to.Close()
	})
	if fault.Is(err, fault.Stale) { // another request was first
		return nil
	}
	return err
}

// writer writes the zip file of a version.
type writer struct {
	ctx      context.Context
	of       aip.Version
	folder   string
	made     time.Time // of all entries: when the version was stored
	to       *zip.Writer
	producer []aip.Entry
	all      []bagit.File
}

// list lists the files: those of the depositor, and the system files.
func (w *writer) list() error {
	err := w.of.Each(w.ctx, 0, func(e aip.Entry, _ int64) error {
		w.producer = append(w.producer, e)
		w.all = append(w.all, bagit.File{Path: e.Path, Size: e.Size, Digests: e.Digests})
		return nil
	})
	if err != nil {
		return err
	}

	for _, name := range w.of.Object.SystemFiles(w.of.Number) {
		size, err := w.of.Root.Size(w.ctx, w.of.Object, w.of.Number, name)
		if err != nil {
			return w.damaged(name, err)
		}
		w.all = append(w.all, bagit.File{Path: name, Size: size,
			Digests: w.of.Object.Digests(w.of.Number, name)})
	}
	return nil
}

// write writes all entries: the tag files first, so that a reader of the stream knows what follows.
func (w *writer) write(o *inventory.Object, row inventory.Version) error {
	info := []bagit.Field{{Name: "External-Identifier", Value: o.ARK}}
	for _, id := range o.LocalIDs {
		info = append(info, bagit.Field{Name: "Internal-Sender-Identifier", Value: id})
	}
	info = append(info, bagit.Field{Name: "Bag-Group-Identifier", Value: o.Collection},
		bagit.Field{Name: "Archivist-Version", Value: fmt.Sprint(row.Number)})

	tags, err := bagit.Tags(w.all, info, nil)
	if err != nil {
		return err
	}

	for _, name := range slices.Sorted(maps.Keys(tags)) {
		out, err := w.entry(name)
		if err != nil {
			return err
		}
		if _, err := out.Write(tags[name]); err != nil {
			return err
		}
	}

	for _, f := range w.all {
		if err := w.file(f); err != nil {
			return err
		}
	}
	return nil
}

// entry begins an entry. Nothing is compressed: most of what is archived is so already, and others wait.
func (w *writer) entry(name string) (io.Writer, error) {
	return w.to.CreateHeader(&zip.FileHeader{Name: path.Join(w.folder, name), Method: zip.Store,
		Modified: w.made})
}

// file writes a file of the version, and compares it with its size and its digest.
func (w *writer) file(f bagit.File) error {
	out, err := w.entry("data/" + f.Path)
	if err != nil {
		return err
	}

	key, err := w.of.Root.Content(w.ctx, w.of.Object, f.Digests["sha512"])
	if err != nil {
		return w.damaged(f.Path, err)
	}

	body, _, err := w.of.Root.Bucket.Open(w.ctx, key)
	if err != nil {
		return w.damaged(f.Path, err)
	}
	defer body.Close()

	sum := sha512.New()
	n, err := io.Copy(io.MultiWriter(out, sum), body)
	if err == nil && (n != f.Size || hex.EncodeToString(sum.Sum(nil)) != f.Digests["sha512"]) {
		err = w.damaged(f.Path, fault.New(fault.NotFound, "it has other content"))
	}
	return err
}

// damaged is the error of a file that is missing or another one: other errors stay as they are.
func (w *writer) damaged(name string, err error) error {
	if !fault.Is(err, fault.NotFound) {
		return err
	}
	return fault.New(fault.Conflict, "%q of %s v%d is damaged or missing in the storage, so no zip file is made; an "+
		"operator has to repair it: %w", name, w.of.Object.ID, w.of.Number, err)
}
