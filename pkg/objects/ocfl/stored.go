package ocfl

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"archivist/pkg/kernel/fault"
)

// Stored is an object as its root inventory describes it. The producer's files are left
// out: there may be very many. It is a state of the object at one moment: after another version,
// Same reports false.
type Stored struct {
	ID       string
	Head     int    // number of the newest version
	Digest   string // sha512 of the root inventory
	Versions map[int]Version

	system  map[int]map[string]string // digests by path, below system/
	content map[string]string         // content paths by digest, of system files
	sha256  map[string]string         // by content path, of system files
	known   map[string][]byte         // content by sha512 that need not be read

	etag     string
	size     int64 // of the root inventory, in bytes
	from, to int64 // where the manifest is in the root inventory
}

func newStored() *Stored {
	return &Stored{
		Versions: map[int]Version{},
		system:   map[int]map[string]string{},
		content:  map[string]string{},
		sha256:   map[string]string{},
	}
}

// visitor remembers the versions and the system files of an inventory.
//
// The manifest comes before the states, so content of system files is recognised by its path. A
// producer's file in a folder of that name is remembered, too, which costs memory only.
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

// Know adds content that the caller has. If the object has a system file with its sha512,
// that file is not read. It saves requests of callers that have the files anyway.
func (s *Stored) Know(data []byte) {
	if s.known == nil {
		s.known = map[string][]byte{}
	}
	s.known[SHA512(data)] = data
}

// Open streams a file of a version by its logical path, from a byte on. The caller closes it. A
// path that is not a system file of the version is a NotFound.
func (r Root) Open(ctx context.Context, s *Stored, n int, path string,
	from int64) (io.ReadCloser, error) {
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

// Content is where the content with a sha512 is in the bucket. It is searched for in the
// inventory with a few small reads. Content that the object does not have is a NotFound. The
// inventory must still be the one that was read (see Same), since the search is by bytes.
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
	if err := json.UnmarshalDecode(jsontext.NewDecoder(body), &paths); err != nil {
		return "", fmt.Errorf("ocfl: %s at byte %d: %w", key, at, err)
	}

	if len(paths) == 0 {
		return "", fmt.Errorf("ocfl: %s at byte %d: the content has no path", key, at)
	}
	return Prefix(s.ID) + paths[0], nil
}

// entryPattern matches the beginning of an entry of a manifest, as encoder writes it.
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

// Job is the job that wrote a version: new content has the job in its key. It is "" if no
// system file of the version is new, or another software wrote it. Every version that a job stores
// has at least one new system file.
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

// Size is how many bytes a file of a version has.
func (r Root) Size(ctx context.Context, s *Stored, n int, path string) (int64, error) {
	key, err := r.Key(ctx, s, n, path)
	if err != nil {
		return 0, err
	}
	info, err := r.Bucket.Head(ctx, key)
	return info.Size, err
}

// VersionDigest is the sha512 of a version's own inventory, from its sidecar. The
// newest version's is that of the root inventory.
func (r Root) VersionDigest(ctx context.Context, s *Stored, n int) (string, error) {
	if n == s.Head {
		return s.Digest, nil
	}
	return r.SidecarDigest(ctx, Inventory(s.ID, n).Sidecar)
}
