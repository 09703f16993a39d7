package ocfl

import (
	"context"
	"crypto/sha512"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	"archivist/pkg/bucket"
	"archivist/pkg/fault"
	"archivist/pkg/fetch"
)

// Root is a storage root.
type Root struct {
	Bucket bucket.Bucket
	Work   bucket.Bucket // where new content comes from
}

// Init writes what is missing of an empty storage root. Nothing that stands is
// touched.
func (r Root) Init(ctx context.Context) error {
	files := rootFiles()
	for _, key := range slices.Sorted(maps.Keys(files)) {
		if _, err := r.Bucket.Head(ctx, key); err == nil {
			continue
		}
		err := r.Bucket.Put(ctx, key, files[key], bucket.Condition{Absent: true})
		if err != nil && !fault.Is(err, fault.Lost) {
			return err
		}
	}
	return nil
}

// Stored is an object as its root inventory says.
type Stored struct {
	Inventory
	Digest string // sha512 of the root inventory
	etag   string
}

// Head reads an object's root inventory, which is the truth about it: a sidecar
// that differs is stale by a crash between the two, and mended by the next
// Commit. A missing object is a NotFound.
func (r Root) Head(ctx context.Context, id string) (*Stored, error) {
	data, info, err := r.Bucket.Read(ctx, Prefix(id)+inventoryName)
	if err != nil {
		return nil, err
	}
	sum := sha512.Sum512(data)
	s := &Stored{Digest: hex.EncodeToString(sum[:]), etag: info.ETag}
	if err := json.Unmarshal(data, &s.Inventory); err != nil {
		return nil, fmt.Errorf("ocfl: root inventory of %s: %w", id, err)
	}
	if s.ID != id {
		return nil, fmt.Errorf("ocfl: the inventory at %s is of %q", Prefix(id), s.ID)
	}
	return s, nil
}

// Open streams a file of a version by its logical path.
func (r Root) Open(ctx context.Context, s *Stored, n int, path string) (io.ReadCloser, error) {
	key, err := s.Key(n, path)
	if err != nil {
		return nil, err
	}
	body, _, err := r.Bucket.Open(ctx, key)
	return body, err
}

// Key is where a file of a version is in the bucket. A path that the version
// does not have is a NotFound.
func (s *Stored) Key(n int, path string) (string, error) {
	digest, ok := s.State(n)[path]
	if !ok || len(s.Manifest[digest]) == 0 {
		return "", fault.New(fault.NotFound, "%s v%d has no file %q", s.ID, n, path)
	}
	return Prefix(s.ID) + s.Manifest[digest][0], nil
}

// Commit is a version to be written.
type Commit struct {
	ID      string // of the object
	Job     string // whose keys these are
	Files   []File // the complete new state
	Version Version
	// Fence returns an error once the caller no longer owns the lock. It is asked
	// before something is overwritten that another job left behind.
	Fence func(ctx context.Context) error
}

// Done is what Store wrote, or found written.
type Done struct {
	Number   int
	Digest   string // sha512 of the root inventory
	NoChange bool   // the producer's files were the same: no version was made
}

// Commit writes a version from whatever point an earlier try of the same job
// got to. Each step looks for its effect first; until the root inventory is
// put, nothing of it is part of the object. The caller owns the object's lock;
// a Lost says that somebody without it committed meanwhile.
func (r Root) Commit(ctx context.Context, c Commit) (Done, error) {
	head, err := r.Head(ctx, c.ID)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return Done{}, err
	}
	if head != nil {
		if n := head.WrittenBy(c.Version.Message); n > 0 {
			return Done{Number: n, Digest: head.Digest}, r.finish(ctx, head)
		}
		if unchanged(&head.Inventory, c.Files) {
			return Done{Number: head.HeadNumber(), Digest: head.Digest, NoChange: true}, r.finish(ctx, head)
		}
	}
	var was *Inventory
	if head != nil {
		was = &head.Inventory
	} else if err := r.declare(ctx, c.ID); err != nil {
		return Done{}, err
	}
	inv, content := next(was, c.ID, c.Job, c.Files, c.Version)
	for _, path := range slices.Sorted(maps.Keys(content)) {
		if err := r.content(ctx, Prefix(c.ID)+path, content[path]); err != nil {
			return Done{}, err
		}
	}
	return r.commit(ctx, head, &inv, c.Fence)
}

func (r Root) declare(ctx context.Context, id string) error {
	err := r.Bucket.Put(ctx, Prefix(id)+objectDeclaration, []byte("ocfl_object_1.1\n"), bucket.Condition{})
	return err
}

// content copies one file to its key, unless it is there, and verifies the copy.
func (r Root) content(ctx context.Context, key string, f File) error {
	if info, err := r.Bucket.Head(ctx, key); err == nil && info.Size == f.Size {
		if r.verify(ctx, key, f, info) == nil {
			return nil
		}
	}
	if err := r.Bucket.CopyFrom(ctx, r.Work, f.Source, key, f.Size); err != nil {
		return err
	}
	info, err := r.Bucket.Head(ctx, key)
	if err != nil {
		return err
	}
	return r.verify(ctx, key, f, info)
}

// verify compares a stored file with what was downloaded: by the store's own
// checksum over the whole object, else by reading it again.
func (r Root) verify(ctx context.Context, key string, f File, info bucket.Info) error {
	if info.CRC64NVME != "" {
		if info.CRC64NVME != f.CRC64 || info.Size != f.Size {
			return fmt.Errorf("ocfl: %s: the store says CRC64NVME %s and %d bytes, the download had %s and %d", key, info.CRC64NVME, info.Size, f.CRC64, f.Size)
		}
		return nil
	}
	body, _, err := r.Bucket.Open(ctx, key)
	if err != nil {
		return err
	}
	defer body.Close()
	d := fetch.NewDigester()
	if _, err := io.Copy(d, body); err != nil {
		return fmt.Errorf("ocfl: read %s again: %w", key, err)
	}
	if got := d.Sums()["sha512"]; got != f.Digests["sha512"] {
		return fmt.Errorf("ocfl: %s: the stored copy has sha512 %s, the download had %s", key, got, f.Digests["sha512"])
	}
	return nil
}

// commit puts the version's inventory, then the root's, which is the commit.
func (r Root) commit(ctx context.Context, head *Stored, inv *Inventory, fence func(context.Context) error) (Done, error) {
	data, digest, err := inv.Encode()
	if err != nil {
		return Done{}, err
	}
	prefix := Prefix(inv.ID)
	if err := r.claim(ctx, prefix+inv.Head+"/"+inventoryName, data, fence); err != nil {
		return Done{}, err
	}
	if err := r.Bucket.Put(ctx, prefix+inv.Head+"/"+sidecarName, sidecar(digest), bucket.Condition{}); err != nil {
		return Done{}, err
	}
	condition := bucket.Condition{Absent: head == nil}
	if head != nil {
		condition.ETag = head.etag
	}
	if err := r.Bucket.Put(ctx, prefix+inventoryName, data, condition); err != nil && !fault.Is(err, fault.Lost) {
		return Done{}, err
	} else if err != nil {
		// Ours, when the answer of our own put was lost; else somebody else's.
		now, readErr := r.Head(ctx, inv.ID)
		if readErr != nil || now.Digest != digest {
			return Done{}, err
		}
	}
	return Done{Number: inv.HeadNumber(), Digest: digest}, r.finish(ctx, &Stored{Inventory: *inv, Digest: digest})
}

// claim puts the version's inventory. One that stands there uncommitted is of a
// job that is over, since we own the lock; its own commit will fail on the
// root's condition.
func (r Root) claim(ctx context.Context, key string, data []byte, fence func(context.Context) error) error {
	err := r.Bucket.Put(ctx, key, data, bucket.Condition{Absent: true})
	if !fault.Is(err, fault.Lost) {
		return err
	}
	now, info, err := r.Bucket.Read(ctx, key)
	if err != nil || string(now) == string(data) {
		return err
	}
	if err := fence(ctx); err != nil {
		return err
	}
	return r.Bucket.Put(ctx, key, data, bucket.Condition{ETag: info.ETag})
}

func sidecar(digest string) []byte { return []byte(digest + " " + inventoryName + "\n") }

// finish mends what a crash after the commit can leave: a stale sidecar, a
// version inventory that is not the root's, and keys in the version's folder
// that no inventory names.
func (r Root) finish(ctx context.Context, s *Stored) error {
	prefix := Prefix(s.ID)
	if now, _, err := r.Bucket.Read(ctx, prefix+sidecarName); err != nil || string(now) != string(sidecar(s.Digest)) {
		if err != nil && !fault.Is(err, fault.NotFound) {
			return err
		}
		if err := r.Bucket.Put(ctx, prefix+sidecarName, sidecar(s.Digest), bucket.Condition{}); err != nil {
			return err
		}
	}
	data, _, err := s.Encode()
	if err != nil {
		return err
	}
	for name, want := range map[string][]byte{inventoryName: data, sidecarName: sidecar(s.Digest)} {
		key := prefix + s.Head + "/" + name
		if now, _, err := r.Bucket.Read(ctx, key); err == nil && string(now) == string(want) {
			continue
		}
		if err := r.Bucket.Put(ctx, key, want, bucket.Condition{}); err != nil {
			return err
		}
	}
	return r.sweep(ctx, s)
}

// sweep removes keys of the newest version's folder that its inventory does not
// name: they are of a job that died before it could commit.
func (r Root) sweep(ctx context.Context, s *Stored) error {
	named := map[string]bool{s.Head + "/" + inventoryName: true, s.Head + "/" + sidecarName: true}
	for _, paths := range s.Manifest {
		for _, p := range paths {
			named[p] = true
		}
	}
	prefix := Prefix(s.ID)
	return r.Bucket.List(ctx, prefix+s.Head+"/", func(key string, _ int64) error {
		if named[strings.TrimPrefix(key, prefix)] {
			return nil
		}
		return r.Bucket.Delete(ctx, key)
	})
}

// FileInfo is one file of a stored version.
type FileInfo struct {
	Path    string
	Size    int64
	Digests map[string]string
}

// Files lists a version's files by path, with the sizes that S3 has and the
// digests that the inventory has.
func (r Root) Files(ctx context.Context, s *Stored, n int) ([]FileInfo, error) {
	sizes := map[string]int64{}
	prefix := Prefix(s.ID)
	err := r.Bucket.List(ctx, prefix, func(key string, size int64) error {
		sizes[strings.TrimPrefix(key, prefix)] = size
		return nil
	})
	if err != nil {
		return nil, err
	}
	fixity := map[string]map[string]string{}
	for name, block := range s.Fixity {
		for digest, paths := range block {
			for _, p := range paths {
				if fixity[p] == nil {
					fixity[p] = map[string]string{}
				}
				fixity[p][name] = digest
			}
		}
	}
	state := s.State(n)
	var out []FileInfo
	for _, path := range slices.Sorted(maps.Keys(state)) {
		content := s.Manifest[state[path]][0]
		f := FileInfo{Path: path, Size: sizes[content], Digests: map[string]string{"sha512": state[path]}}
		maps.Copy(f.Digests, fixity[content])
		out = append(out, f)
	}
	return out, nil
}

// VersionDigest is the sha512 of a version's inventory, as its sidecar says; of
// the newest, that of the root inventory.
func (r Root) VersionDigest(ctx context.Context, s *Stored, n int) (string, error) {
	if n == s.HeadNumber() {
		return s.Digest, nil
	}
	data, _, err := r.Bucket.Read(ctx, fmt.Sprintf("%sv%d/%s", Prefix(s.ID), n, sidecarName))
	if err != nil {
		return "", err
	}
	digest, _, _ := strings.Cut(string(data), " ")
	return digest, nil
}

// objectKeys matches the declaration of an object below the root.
var objectKeys = regexp.MustCompile(`^[0-9a-f]{3}/[0-9a-f]{3}/[0-9a-f]{3}/[^/]+/0=ocfl_object_1\.1$`)

// Objects lists the ids of the objects among the next keys of the storage root,
// from a cursor ("" at the beginning), and the cursor of the rest ("" at the end).
func (r Root) Objects(ctx context.Context, cursor string) (ids []string, next string, err error) {
	keys, next, err := r.Bucket.Page(ctx, cursor)
	for _, key := range keys {
		if !objectKeys.MatchString(key) {
			continue
		}
		data, _, err := r.Bucket.Read(ctx, strings.TrimSuffix(key, objectDeclaration)+inventoryName)
		if fault.Is(err, fault.NotFound) {
			continue // its first version was never committed
		}
		var inv Inventory
		if err == nil {
			err = json.Unmarshal(data, &inv)
		}
		if err != nil {
			return ids, "", fmt.Errorf("ocfl: inventory beside %s: %w", key, err)
		}
		ids = append(ids, inv.ID)
	}
	return ids, next, err
}
