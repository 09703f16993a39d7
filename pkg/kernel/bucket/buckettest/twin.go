// Package buckettest is a twin of S3 in this process, for tests: real requests of
// the real client, content on disk. Unsupported requests fail with their name.
//
// It keeps what callers rely on: conditions (If-Match, If-None-Match), ETags that change with
// the content, checksums over whole objects, listings in the order of the keys with pages of
// a thousand, multipart uploads, ranges, signed URLs. It has no versions and no permissions; only
// the signatures of URLs are verified. A test makes it refuse requests by Before, and counts them by Calls.
package buckettest

import (
	"bytes"
	"crypto/md5"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"hash/crc64"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"archivist/pkg/kernel/journal"
)

var nvme = crc64.MakeTable(0x9a6c9329ac4bc9b5)

// object is one object: small ones are in memory, others in a file. Its content is never
// changed: a new content is a new object, and a copy may share it.
type object struct {
	Data []byte `json:",omitempty"`
	File string `json:",omitempty"` // its name in Dir
	Size int64
	ETag string
	CRC  string
	SHA  string `json:",omitempty"` // SHA-256 in base64, if the request that wrote it had it
}

// Twin holds buckets. It is an http.Handler of path-style requests.
type Twin struct {
	Dir   string // for what is larger than Small
	Small int    // bytes of an object up to which it is in memory
	// Calls counts the requests by operation.
	Calls map[string]int
	// Before, if set, may refuse a request: it returns a status, or 0. Calls is read and
	// Before is set while no request is under way.
	Before func(op, key string) int

	mu      sync.Mutex
	objects map[string]object // by bucket/key
	sorted  []string          // their names, nil after a new one; gone may be among them
	gone    int
	// uploads are the parts of open uploads by id and number; n is the number in the last id. begun are their names.
	uploads map[string]map[int]object
	begun   map[string]string
	n       int
	journal *journal.Journal
}

const (
	uploadID   = "upload%d"
	filePrefix = "object" // of the names of files in Dir
)

// New makes a twin with its content below dir.
func New(dir string) *Twin {
	return &Twin{
		Dir:     dir,
		Small:   4096,
		Calls:   map[string]int{},
		objects: map[string]object{},
		uploads: map[string]map[int]object{},
		begun:   map[string]string{},
	}
}

// fail is an answer of S3 that is an error, with its HTTP status.
type fail struct {
	status int
	code   string
}

func (f *fail) Error() string { return f.code }

// keep stores bytes, those of large objects in a file. It does not make it an object: a file
// that no name gets is left over, until the next start.
func (t *Twin) keep(in io.Reader) (object, error) {
	sum, crc, sha := md5.New(), crc64.New(nvme), sha256.New()
	var o object
	small, err := io.ReadAll(io.LimitReader(in, int64(t.Small)))
	if err != nil {
		return o, err
	}

	if len(small) < t.Small {
		o.Data, o.Size = small, int64(len(small))
		sum.Write(o.Data)
		crc.Write(o.Data)
		sha.Write(o.Data)
	} else {
		f, err := os.CreateTemp(t.Dir, filePrefix)
		if err != nil {
			return o, err
		}
		defer f.Close()
		o.File = filepath.Base(f.Name())
		if o.Size, err = io.Copy(io.MultiWriter(f, sum, crc, sha),
			io.MultiReader(bytes.NewReader(small), in)); err != nil {
			return o, err
		}
	}

	o.ETag = `"` + hex.EncodeToString(sum.Sum(nil)) + `"`
	o.CRC = base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint64(nil, crc.Sum64()))
	o.SHA = base64.StdEncoding.EncodeToString(sha.Sum(nil))
	return o, nil
}

type readSeekCloser interface {
	io.ReadSeeker
	io.Closer
}

type inMemory struct{ *bytes.Reader }

func (inMemory) Close() error { return nil }

// open is the content of an object, which stays readable while it is replaced or removed.
func (t *Twin) open(o object) (readSeekCloser, error) {
	if o.File == "" {
		return inMemory{bytes.NewReader(o.Data)}, nil
	}
	return os.Open(filepath.Join(t.Dir, o.File))
}

func (t *Twin) find(name string) (object, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	o, ok := t.objects[name]
	if !ok {
		return o, &fail{404, "NoSuchKey"}
	}
	return o, nil
}

// Object is the current content of an object. name begins with that of the bucket.
func (t *Twin) Object(name string) (data []byte, there bool) {
	o, err := t.find(name)
	if err != nil {
		return nil, false
	}

	body, err := t.open(o)
	if err != nil {
		return nil, false
	}

	defer body.Close()
	data, err = io.ReadAll(body)
	return data, err == nil
}

// Names are those of the objects below a prefix, in order. The prefix and the names begin
// with that of the bucket.
func (t *Twin) Names(prefix string) (names []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, name := range t.names() {
		if _, there := t.objects[name]; there && strings.HasPrefix(name, prefix) {
			names = append(names, name)
		}
	}
	return names
}

// names returns the names in order. Removed names are dropped from time to time. The caller
// holds the lock, and looks whether an object of the name is still there: to sort or filter a
// large bucket at each removal would take longer than all else.
func (t *Twin) names() []string {
	if t.sorted == nil {
		t.sorted = slices.Sorted(maps.Keys(t.objects))
	} else if t.gone > 20_000 {
		t.sorted = slices.DeleteFunc(t.sorted,
			func(name string) bool { _, there := t.objects[name]; return !there })
	} else {
		return t.sorted
	}
	t.gone = 0
	return t.sorted
}

// source is the object that a copy, or a part of one, is made of.
func (t *Twin) source(r *http.Request) (object, error) {
	name, err := url.PathUnescape(r.Header.Get("X-Amz-Copy-Source"))
	if err != nil {
		return object{}, err
	}

	o, err := t.find(strings.TrimPrefix(name, "/"))
	if err != nil {
		return o, err
	}

	if etag := r.Header.Get("X-Amz-Copy-Source-If-Match"); etag != "" && etag != o.ETag {
		return o, &fail{412, "PreconditionFailed"}
	}
	return o, nil
}
