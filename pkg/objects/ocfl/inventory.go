// Package ocfl keeps objects in an OCFL 1.1 storage root on S3.
//
// A new version is written in four steps, each of which can be repeated after a crash:
//
//	prepared, err := root.Prepare(ctx, draft, inventory, copy) // nothing in the root changes
//	err = root.Copy(ctx, id, content, more)                    // for each file whose bytes are new
//	published, err := root.Publish(ctx, prepared, text, owner) // the commit
//	digest, err := root.Finish(ctx, id, owner, published)      // removes what crashes left behind
//
// An object has these keys below its prefix (see [Prefix]):
//
//	0=ocfl_object_1.1                                      its declaration
//	inventory.json, inventory.json.sha512                  of its newest version: the commit
//	v{n}/inventory.json, v{n}/inventory.json.sha512        of version n, before that the claim of it
//	v{n}/content/{job}.{attempt}/{path}                    content that version n has added
//	v{n}/content/{job}.{attempt}/by-digest/{sha512}        the same, if its path is too long
//
// New content is copied to keys that only one attempt of one job has. The commit is one
// conditional put of the object's root inventory, so of two jobs that prepared the same
// version only one succeeds. Before a claim or content of another job is removed, the lock
// of the object is checked, since S3 cannot refuse the writes of a late worker.
//
// Inventories of objects of very many files have hundreds of megabytes. They are read and
// written as streams, and sorted on disk.
//
// [Root.Head] reads an object, [Root.Open] a file of one of its versions, [Root.Objects]
// lists a root.
package ocfl

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"archivist/pkg/formats/ocflspec"
)

// Names that the specification fixes (OCFL 1.1, sections 3.2 and 4).
const (
	objectDeclaration = ocflspec.ObjectDeclaration
	inventoryName     = ocflspec.InventoryName
	sidecarName       = ocflspec.SidecarName
	specification     = "https://ocfl.io/1.1/spec/#inventory"
)

// User is the submitter of a version. Address is a URI, such as a mailto: (OCFL 1.1, section
// 3.5.3.1).
type User struct {
	Name    string `json:"name"`
	Address string `json:"address,omitempty"`
}

// Version describes a version in an inventory (OCFL 1.1, section 3.5.3).
type Version struct {
	Created time.Time `json:"created"`
	Message string    `json:"message,omitempty"`
	User    *User     `json:"user,omitempty"`
}

// File is one file of a new version.
type File struct {
	Path    string            `json:"path"`             // logical: "producer/a.pdf"
	Size    int64             `json:"size"`             // bytes
	Digests map[string]string `json:"digests"`          // hexadecimal by name; sha512 always
	CRC64   string            `json:"crc64nvme"`        // base64, as S3 writes it
	Source  string            `json:"source,omitempty"` // key in the work bucket; "": the content is Data
	Data    []byte            `json:"data,omitempty"`   // the content of a small file
}

// plain are the characters of an id that are not encoded.
const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"

// Prefix is where an object's keys begin, with a slash at the end (extension
// 0003: sha256, three tuples of three characters, the encoded id).
func Prefix(id string) string {
	sum := sha256.Sum256([]byte(id))
	h := hex.EncodeToString(sum[:])
	var name strings.Builder
	// Byte by byte: the extension encodes the bytes of UTF-8, in lower case hexadecimal.
	for i := range len(id) {
		if strings.IndexByte(plain, id[i]) >= 0 {
			name.WriteByte(id[i])
		} else {
			fmt.Fprintf(&name, "%%%02x", id[i])
		}
	}

	encoded := name.String()
	// Names of folders have at most 255 bytes in usual file systems. The digest keeps names apart
	// that begin alike.
	if len(encoded) > 100 {
		encoded = encoded[:100] + "-" + h
	}
	return strings.Join([]string{h[:3], h[3:6], h[6:9], encoded, ""}, "/")
}

// folderOf is the name of the folder below v{n}/content/ to which an attempt of a job writes.
// Neither of them has a dot or a slash, so jobOf can take them apart.
func folderOf(job, attempt string) string {
	if attempt == "" {
		return job
	}
	return job + "." + attempt
}

// jobOf is the job that writes to a folder below v{n}/content/.
func jobOf(folder string) string {
	job, _, _ := strings.Cut(folder, ".")
	return job
}

// writer returns, by the path of some content, the version that added it and the folder
// of its writer; 0 if another software wrote it.
func writer(path string) (version int, folder string) {
	name, rest, _ := strings.Cut(path, "/content/")
	folder, _, _ = strings.Cut(rest, "/")
	version, err := number(name)
	if err != nil || folder == "" {
		return 0, ""
	}
	return version, folder
}
