// Package ocfl keeps objects in an OCFL 1.1 storage root on S3: versions are
// written under keys that only one job has, and committed by one conditional
// put of the root inventory.
package ocfl

import (
	"bytes"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Names that the specification fixes (OCFL 1.1, sections 3.2 and 4).
const (
	rootDeclaration   = "0=ocfl_1.1"
	objectDeclaration = "0=ocfl_object_1.1"
	inventoryName     = "inventory.json"
	sidecarName       = "inventory.json.sha512"
	specification     = "https://ocfl.io/1.1/spec/#inventory"
	layoutExtension   = "0003-hash-and-id-n-tuple-storage-layout"
)

// User wrote a version.
type User struct {
	Name    string `json:"name"`
	Address string `json:"address,omitempty"`
}

// Version is one state of an object: logical paths by digest.
type Version struct {
	Created time.Time           `json:"created"`
	State   map[string][]string `json:"state"`
	Message string              `json:"message,omitempty"`
	User    *User               `json:"user,omitempty"`
}

// Inventory of an object (OCFL 1.1, section 3.5). Digests are sha512 in lower
// case hexadecimal.
type Inventory struct {
	ID              string                         `json:"id"`
	Type            string                         `json:"type"`
	DigestAlgorithm string                         `json:"digestAlgorithm"`
	Head            string                         `json:"head"`
	Manifest        map[string][]string            `json:"manifest"`
	Versions        map[string]Version             `json:"versions"`
	Fixity          map[string]map[string][]string `json:"fixity,omitempty"`
}

// HeadNumber is the number of the newest version, 0 for an empty inventory.
func (inv *Inventory) HeadNumber() int {
	n, _ := strconv.Atoi(strings.TrimPrefix(inv.Head, "v"))
	return n
}

// CreatedAt is when a version was made.
func (inv *Inventory) CreatedAt(n int) time.Time { return inv.Versions[fmt.Sprintf("v%d", n)].Created }

// State returns a version's files: digest by logical path.
func (inv *Inventory) State(n int) map[string]string {
	out := map[string]string{}
	for digest, paths := range inv.Versions[fmt.Sprintf("v%d", n)].State {
		for _, p := range paths {
			out[p] = digest
		}
	}
	return out
}

// WrittenBy returns the number of the version with this message, 0 if none.
func (inv *Inventory) WrittenBy(message string) int {
	for v, version := range inv.Versions {
		if version.Message == message {
			n, _ := strconv.Atoi(v[1:])
			return n
		}
	}
	return 0
}

// Encode returns the inventory's bytes and their sha512. The same inventory
// always gives the same bytes.
func (inv *Inventory) Encode() (data []byte, digest string, err error) {
	for _, paths := range inv.Manifest {
		slices.Sort(paths)
	}
	data, err = json.Marshal(inv)
	if err != nil {
		return nil, "", fmt.Errorf("ocfl: inventory of %s: %w", inv.ID, err)
	}
	sum := sha512.Sum512(data)
	return data, hex.EncodeToString(sum[:]), nil
}

// File is one file of a new version.
type File struct {
	Path    string            // logical: "producer/a.pdf"
	Size    int64             // bytes
	Digests map[string]string // hexadecimal by name; sha512 always
	CRC64   string            // CRC64NVME in base64, as S3 writes it
	Source  string            // key in the work bucket
}

// fixityNames are the algorithms that OCFL has names for beside sha512 (OCFL
// 1.1, section 2, "Digest Algorithms"); others stay in the storage manifest.
var fixityNames = []string{"md5", "sha1", "sha256"}

// next returns the inventory with one more version whose complete state is
// files, and the files whose content is not stored yet, by content path.
func next(head *Inventory, id, job string, files []File, v Version) (Inventory, map[string]File) {
	inv := Inventory{ID: id, Type: specification, DigestAlgorithm: "sha512", Manifest: map[string][]string{}, Versions: map[string]Version{}}
	n := 1
	if head != nil {
		n = head.HeadNumber() + 1
		maps.Copy(inv.Manifest, head.Manifest)
		maps.Copy(inv.Versions, head.Versions)
		inv.Fixity = head.Fixity
	}
	inv.Head = fmt.Sprintf("v%d", n)
	fixity := map[string]map[string][]string{}
	for name, block := range inv.Fixity {
		fixity[name] = maps.Clone(block)
	}
	content := map[string]File{}
	v.State = map[string][]string{}
	for _, f := range files {
		digest := f.Digests["sha512"]
		v.State[digest] = append(v.State[digest], f.Path)
		if len(inv.Manifest[digest]) > 0 {
			continue
		}
		path := fmt.Sprintf("v%d/content/%s/%s", n, job, f.Path)
		inv.Manifest[digest] = []string{path}
		content[path] = f
		for _, name := range fixityNames {
			if d := f.Digests[name]; d != "" {
				if fixity[name] == nil {
					fixity[name] = map[string][]string{}
				}
				fixity[name][d] = append(fixity[name][d], path)
			}
		}
	}
	for _, paths := range v.State {
		slices.Sort(paths)
	}
	if len(fixity) > 0 {
		inv.Fixity = fixity
	}
	inv.Versions[inv.Head] = v
	return inv, content
}

// unchanged reports whether the producer's files are the same in the head.
func unchanged(head *Inventory, files []File) bool {
	old := head.State(head.HeadNumber())
	maps.DeleteFunc(old, func(path, _ string) bool { return !strings.HasPrefix(path, "producer/") })
	for _, f := range files {
		if !strings.HasPrefix(f.Path, "producer/") {
			continue
		}
		if old[f.Path] != f.Digests["sha512"] {
			return false
		}
		delete(old, f.Path)
	}
	return len(old) == 0
}

// Prefix is where an object's keys begin, with a slash at the end (extension
// 0003: sha256, three tuples of three characters, the encoded id).
func Prefix(id string) string {
	sum := sha256.Sum256([]byte(id))
	h := hex.EncodeToString(sum[:])
	var name strings.Builder
	for i := range len(id) {
		c := id[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' {
			name.WriteByte(c)
		} else {
			fmt.Fprintf(&name, "%%%02x", c)
		}
	}
	encoded := name.String()
	if len(encoded) > 100 {
		encoded = encoded[:100] + "-" + h
	}
	return strings.Join([]string{h[:3], h[3:6], h[6:9], encoded, ""}, "/")
}

// rootFiles are the files of an empty storage root.
func rootFiles() map[string][]byte {
	layout, _ := json.MarshalIndent(map[string]string{"extension": layoutExtension,
		"description": "sha256 of the object's id in three tuples of three characters, then the encoded id"}, "", "  ")
	config, _ := json.MarshalIndent(map[string]any{"extensionName": layoutExtension, "digestAlgorithm": "sha256", "tupleSize": 3, "numberOfTuples": 3}, "", "  ")
	return map[string][]byte{
		rootDeclaration:    []byte("ocfl_1.1\n"),
		"ocfl_layout.json": append(bytes.TrimSpace(layout), '\n'),
		"extensions/" + layoutExtension + "/config.json": append(bytes.TrimSpace(config), '\n'),
	}
}
