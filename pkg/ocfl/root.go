package ocfl

import (
	"bytes"
	"context"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"archivist/pkg/bucket"
	"archivist/pkg/fault"
)

// Root is a storage root.
type Root struct {
	Bucket bucket.Bucket
	Work   bucket.Bucket // where new content comes from
}

// Init writes what is missing of an empty storage root. Nothing that stands is
// touched. The last file stands only if all do.
func (r Root) Init(ctx context.Context) error {
	files := rootFiles()
	keys := slices.Sorted(maps.Keys(files))
	if _, err := r.Bucket.Head(ctx, keys[len(keys)-1]); err == nil {
		return nil
	}
	for _, key := range keys {
		err := r.Bucket.Put(ctx, key, files[key], bucket.Condition{Absent: true})
		if err != nil && !fault.Is(err, fault.Stale) {
			return err
		}
	}
	return nil
}

// Stored is an object as its root inventory says, without its files.
type Stored struct {
	ID       string
	Head     int    // number of the newest version
	Digest   string // sha512 of the root inventory
	Versions map[int]Version
	system   map[int]map[string]string // digests by path, below system/
	content  map[string]string         // content paths by digest
	sha256   map[string]string         // by content path
	known    map[string][]byte         // content by sha512 that need not be read
	etag     string
	from, to int64 // where the manifest is in the root inventory
}

// scanned is what is known of an inventory after it was read.
type scanned struct {
	bucket.Info
	id     string
	head   int
	digest string // sha512
}

// scan reads an inventory of the root.
func (r Root) scan(ctx context.Context, key string, v visitor) (scanned, error) {
	body, info, err := r.Bucket.Open(ctx, key)
	if err != nil {
		return scanned{}, err
	}
	defer body.Close()
	s, err := scanText(body, v)
	s.Info = info
	if err != nil {
		err = fmt.Errorf("%s: %w", key, err)
	}
	return s, err
}

// scanText reads an inventory.
func scanText(text io.Reader, v visitor) (s scanned, err error) {
	sum := sha512.New()
	in := io.TeeReader(text, sum)
	s.id, s.head, err = scan(in, v)
	if err != nil {
		return s, err
	}
	_, err = io.Copy(io.Discard, in)
	s.digest = hex.EncodeToString(sum.Sum(nil))
	return s, err
}

// errSeen ends a scan that has seen enough.
var errSeen = errors.New("seen")

// errHead refuses an inventory that another software wrote in another order.
var errHead = errors.New("it does not say its head before its manifest")

// Head reads an object's root inventory, which is the truth about it: a sidecar
// that differs is stale by a crash between the two, and mended by Finish. A
// missing object is a NotFound.
func (r Root) Head(ctx context.Context, id string) (*Stored, error) {
	s := &Stored{
		Versions: map[int]Version{}, system: map[int]map[string]string{},
		content: map[string]string{}, sha256: map[string]string{},
	}
	is, err := r.scan(ctx, Prefix(id)+inventoryName, s.visitor())
	if err != nil {
		return nil, err
	}
	if is.id != id {
		return nil, fmt.Errorf("ocfl: the inventory at %s is of %q", Prefix(id), is.id)
	}
	s.ID, s.Head, s.Digest, s.etag = is.id, is.head, is.digest, is.ETag
	return s, nil
}

// visitor takes what is remembered of an inventory: the versions, and the system files.
func (s *Stored) visitor() visitor {
	return visitor{
		region: func(from, to int64) { s.from, s.to = from, to },
		manifest: func(digest string, paths []string) error {
			if strings.Contains(paths[0], "/system/") {
				s.content[digest] = paths[0]
			}
			return nil
		},
		begin: func(n int) error { s.system[n] = map[string]string{}; return nil },
		state: func(n int, digest string, paths []string) error {
			for _, p := range paths {
				if strings.HasPrefix(p, "system/") {
					s.system[n][p] = digest
				}
			}
			return nil
		},
		end: func(n int, v Version) error { s.Versions[n] = v; return nil },
		fixity: func(algorithm, digest string, paths []string) error {
			for _, p := range paths {
				if algorithm == "sha256" && strings.Contains(p, "/system/") {
					s.sha256[p] = digest
				}
			}
			return nil
		},
	}
}

// SystemFiles are the paths of a version's system files, in order.
func (s *Stored) SystemFiles(n int) []string { return slices.Sorted(maps.Keys(s.system[n])) }

// Digests are those of a system file of a version, by name.
func (s *Stored) Digests(n int, path string) map[string]string {
	out := map[string]string{}
	sha512 := s.system[n][path]
	if sha512 == "" {
		return out
	}
	out["sha512"] = sha512
	sha256 := s.sha256[s.content[sha512]]
	if sha256 != "" {
		out["sha256"] = sha256
	}
	return out
}

// Know takes content that is at hand: where the object names its sha512 it is not read.
func (s *Stored) Know(data []byte) {
	if s.known == nil {
		s.known = map[string][]byte{}
	}
	sum := sha512.Sum512(data)
	s.known[hex.EncodeToString(sum[:])] = data
}

// Open streams a file of a version by its logical path, from a byte on.
func (r Root) Open(ctx context.Context, s *Stored, n int, path string, from int64) (io.ReadCloser, error) {
	if data, known := s.known[s.system[n][path]]; known && from == 0 {
		return io.NopCloser(bytes.NewReader(data)), nil
	}
	key, err := r.Key(ctx, s, n, path)
	if err != nil {
		return nil, err
	}
	if from > 0 {
		return r.Bucket.OpenFrom(ctx, key, from)
	}
	body, _, err := r.Bucket.Open(ctx, key)
	return body, err
}

// Key is where a system file of a version is in the bucket. A path that the
// version does not have is a NotFound.
func (r Root) Key(ctx context.Context, s *Stored, n int, path string) (string, error) {
	digest := s.system[n][path]
	if digest == "" {
		return "", fault.New(fault.NotFound, "%s v%d has no file %q", s.ID, n, path)
	}
	return r.Content(ctx, s, digest)
}

// Content is where the content with a sha512 is in the bucket. It is searched in
// the inventory, which is not read as a whole.
func (r Root) Content(ctx context.Context, s *Stored, digest string) (string, error) {
	if s.content[digest] != "" {
		return Prefix(s.ID) + s.content[digest], nil
	}
	key := Prefix(s.ID) + inventoryName
	at, found, err := r.Bucket.Search(ctx, key, s.from, s.to, digest, firstEntry)
	if err != nil {
		return "", err
	}
	if !found {
		return "", fault.New(fault.NotFound, "%s has no content with the sha512 %s", s.ID, digest)
	}
	body, err := r.Bucket.OpenFrom(ctx, key, at+int64(len(digest))+3) // after "digest":
	if err != nil {
		return "", err
	}
	defer body.Close()
	var paths []string
	if err := json.UnmarshalDecode(jsontext.NewDecoder(body), &paths); err != nil || len(paths) == 0 {
		return "", fmt.Errorf("ocfl: %s at byte %d: %w", key, at, err)
	}
	return Prefix(s.ID) + paths[0], nil
}

var entryPattern = regexp.MustCompile(`"([0-9a-f]{128})":\[`)

// firstEntry finds the first entry of a manifest in a text.
func firstEntry(text []byte, _ bool) (at int, digest string, ok bool) {
	m := entryPattern.FindSubmatchIndex(text)
	if m == nil {
		return 0, "", false
	}
	return m[0], string(text[m[2]:m[3]]), true
}

// ETag is that of the root inventory as it was read; every version changes it.
func (s *Stored) ETag() string { return s.etag }

// Job is the job that wrote a version: new content has the job in its key. It is ""
// where no system file of the version is new, or the version is not ours.
func (s *Stored) Job(n int) string {
	for _, digest := range s.system[n] {
		if by, folder := writer(s.content[digest]); by == n {
			return jobOf(folder)
		}
	}
	return ""
}

// VersionBy is the number of the version that a job wrote, 0 if it wrote none.
func (s *Stored) VersionBy(job string) int {
	for n := range s.Versions {
		if s.Job(n) == job {
			return n
		}
	}
	return 0
}

// ETag is that of an object's root inventory now, "" if there is no such object.
func (r Root) ETag(ctx context.Context, id string) (string, error) {
	now, err := r.Bucket.Head(ctx, Prefix(id)+inventoryName)
	if fault.Is(err, fault.NotFound) {
		return "", nil
	}
	return now.ETag, err
}

// Same reports whether an object is still as it was read.
func (r Root) Same(ctx context.Context, s *Stored) (bool, error) {
	now, err := r.Bucket.Head(ctx, Prefix(s.ID)+inventoryName)
	return now.ETag == s.etag, err
}

// Size is how many bytes a file of a version has.
func (r Root) Size(ctx context.Context, s *Stored, n int, path string) (int64, error) {
	key, err := r.Key(ctx, s, n, path)
	if err != nil {
		return 0, err
	}
	info, err := r.Bucket.Head(ctx, key)
	return info.Size, err
}

// VersionDigest is the sha512 of a version's inventory, as its sidecar says; of
// the newest, that of the root inventory.
func (r Root) VersionDigest(ctx context.Context, s *Stored, n int) (string, error) {
	if n == s.Head {
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

// objectFolder matches the folder of an object in a key below the root.
var objectFolder = regexp.MustCompile(`^[0-9a-f]{3}/[0-9a-f]{3}/[0-9a-f]{3}/[^/]+/`)

// afterObject sorts behind every key that an object can have in its folder, of which
// those of its versions, "v1/…", are the last (OCFL 1.1, section 3.1).
const afterObject = "w"

// Objects lists where objects are declared among the next keys of the storage root,
// from a cursor ("" at the beginning) up to a bound ("" for none), and the cursor of
// the rest ("" at the end). A key of the list is a cursor, too, and so is "a0": of the
// places that begin with a0. An object's declaration is the first of its keys: what
// follows of an object of many files is passed over, not listed.
func (r Root) Objects(ctx context.Context, cursor, to string) (keys []string, next string, err error) {
	all, next, err := r.Bucket.Page(ctx, cursor)
	for _, key := range all {
		if to != "" && key >= to {
			return keys, "", err
		}
		if objectKeys.MatchString(key) {
			keys = append(keys, key)
		}
	}
	if folder := objectFolder.FindString(next); folder != "" {
		next = folder + afterObject
	}
	return keys, next, err
}

// At returns the id of the object that is declared at a key. It is a NotFound if its
// first version is not written yet, and an error if what is there is not at its place.
func (r Root) At(ctx context.Context, key string) (string, error) {
	prefix := strings.TrimSuffix(key, objectDeclaration)
	s, err := r.scan(ctx, prefix+inventoryName, visitor{manifest: func(string, []string) error { return errSeen }})
	if fault.Is(err, fault.NotFound) {
		if _, missing := r.Bucket.Head(ctx, prefix+"v1/"+inventoryName); missing == nil {
			return "", fmt.Errorf("ocfl: %s has versions, but no root inventory: "+
				"it is lost, or the first version is not committed yet", prefix)
		}
	}
	if err != nil && !errors.Is(err, errSeen) {
		return s.id, err
	}
	if Prefix(s.id) != prefix {
		return s.id, fmt.Errorf("ocfl: the inventory at %s is of %q, whose place is %s", prefix, s.id, Prefix(s.id))
	}
	return s.id, nil
}
