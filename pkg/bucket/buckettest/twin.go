// Package buckettest is a twin of S3 in this process, for tests: real requests of
// the real client, content on disk. Unsupported requests fail with their name.
package buckettest

import (
	"bytes"
	"crypto/md5"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"hash/crc64"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"archivist/pkg/bucket"
)

var nvme = crc64.MakeTable(0x9a6c9329ac4bc9b5)

// object is one object: small ones are in memory, others in a file.
type object struct {
	data []byte
	file string
	size int64
	etag string
	crc  string
}

// Twin holds buckets. It is an http.Handler of path-style requests.
type Twin struct {
	Dir   string // for what is larger than Small
	Small int    // bytes of an object up to which it is in memory
	// Calls counts the requests by operation.
	Calls map[string]int
	// Before, if set, may refuse a request: it returns a status, or 0.
	Before func(op, key string) int

	mu      sync.Mutex
	objects map[string]object // by bucket/key
	sorted  []string          // their names, nil after a new one; gone may be among them
	gone    int
	uploads map[string]map[int]object
	n       int
}

// New makes a twin with its content below dir.
func New(dir string) *Twin {
	return &Twin{Dir: dir, Small: 4096, Calls: map[string]int{}, objects: map[string]object{},
		uploads: map[string]map[int]object{}}
}

// Open starts a twin for a test and returns buckets of it by name.
func Open(t testing.TB, names ...string) (*Twin, []bucket.Bucket) {
	t.Helper()
	twin := New(t.TempDir())
	server := httptest.NewServer(twin)
	t.Cleanup(server.Close)
	out := make([]bucket.Bucket, len(names))
	for i, name := range names {
		out[i] = bucket.Bucket{Client: Client(server.URL), Name: name, Limits: bucket.DefaultLimits}
	}
	return twin, out
}

// Client is an S3 client of a twin.
func Client(url string) *s3.Client {
	return s3.New(s3.Options{BaseEndpoint: &url, Region: "us-east-1", UsePathStyle: true,
		Credentials:      credentials.NewStaticCredentialsProvider("a", "b", ""),
		RetryMaxAttempts: 1, HTTPClient: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}})
}

type fail struct {
	status int
	code   string
}

func (f *fail) Error() string { return f.code }

// refusal is the code that S3 gives with a status.
func refusal(status int) string {
	switch status {
	case http.StatusForbidden:
		return "AccessDenied"
	case http.StatusServiceUnavailable:
		return "SlowDown"
	}
	return "Refused"
}

// ServeHTTP answers one request.
func (t *Twin) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, q := strings.TrimPrefix(r.URL.Path, "/"), r.URL.Query()
	op := t.Operation(r)
	t.mu.Lock()
	t.Calls[op]++
	t.mu.Unlock()
	err := error(nil)
	if t.Before != nil {
		if status := t.Before(op, name); status != 0 {
			err = &fail{status, refusal(status)}
		}
	}
	if err == nil {
		err = t.serve(op, name, q, w, r)
	}
	if f, ok := err.(*fail); ok {
		w.WriteHeader(f.status)
		if r.Method != http.MethodHead {
			fmt.Fprintf(w, "<Error><Code>%s</Code><Message>%s</Message></Error>", f.code, name)
		}
	} else if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

// Operation is the name of a request's operation, as in Calls and Before.
func (t *Twin) Operation(r *http.Request) string {
	q := r.URL.Query()
	copies := r.Header.Get("X-Amz-Copy-Source") != ""
	for _, op := range []struct {
		method, query string
		copies        bool
		name          string
	}{
		{http.MethodGet, "list-type", false, "List"},
		{http.MethodPut, "uploadId", true, "UploadPartCopy"},
		{http.MethodPut, "uploadId", false, "UploadPart"},
		{http.MethodPut, "", true, "Copy"},
		{http.MethodPost, "uploads", false, "Begin"},
		{http.MethodPost, "uploadId", false, "Complete"},
		{http.MethodPost, "delete", false, "DeleteObjects"},
		{http.MethodDelete, "uploadId", false, "Abort"},
	} {
		if r.Method == op.method && (op.query == "" || q.Has(op.query)) && copies == op.copies {
			return op.name
		}
	}
	return r.Method + " object"
}

func (t *Twin) serve(op, name string, q url.Values, w http.ResponseWriter, r *http.Request) error {
	switch op {
	case "GET object", "HEAD object":
		return t.get(name, w, r)
	case "PUT object":
		return t.put(name, w, r)
	case "DELETE object":
		if o, err := t.find(name); err == nil && r.Header.Get("If-Match") != "" && r.Header.Get("If-Match") != o.etag {
			return &fail{412, "PreconditionFailed"}
		}
		t.remove(name)
		w.WriteHeader(http.StatusNoContent)
		return nil
	case "Copy":
		return t.copy(name, w, r)
	case "List":
		return t.list(strings.TrimSuffix(name, "/"), q, w)
	case "DeleteObjects":
		return t.deleteObjects(strings.TrimSuffix(name, "/"), w, r)
	}
	return t.multipart(op, name, q, w, r)
}

// keep stores bytes, those of large objects in a file.
func (t *Twin) keep(in io.Reader) (object, error) {
	sum, crc := md5.New(), crc64.New(nvme)
	var o object
	small, err := io.ReadAll(io.LimitReader(in, int64(t.Small)))
	if err == nil && len(small) < t.Small {
		o.data, o.size = small, int64(len(small))
		sum.Write(o.data)
		crc.Write(o.data)
	} else if err != nil {
		return o, err
	} else {
		f, err := os.CreateTemp(t.Dir, "object")
		if err != nil {
			return o, err
		}
		defer f.Close()
		o.file = f.Name()
		if o.size, err = io.Copy(io.MultiWriter(f, sum, crc), io.MultiReader(bytes.NewReader(small), in)); err != nil {
			return o, err
		}
	}
	o.etag = `"` + hex.EncodeToString(sum.Sum(nil)) + `"`
	o.crc = base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint64(nil, crc.Sum64()))
	return o, nil
}

type readSeekCloser interface {
	io.ReadSeeker
	io.Closer
}

type inMemory struct{ *bytes.Reader }

func (inMemory) Close() error { return nil }

func (o object) open() (readSeekCloser, error) {
	if o.file == "" {
		return inMemory{bytes.NewReader(o.data)}, nil
	}
	return os.Open(filepath.Clean(o.file))
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

func (t *Twin) get(name string, w http.ResponseWriter, r *http.Request) error {
	o, err := t.find(name)
	if match := r.Header.Get("If-Match"); err == nil && match != "" && match != o.etag {
		err = &fail{412, "PreconditionFailed"}
	}
	if err != nil {
		return err
	}
	body, err := o.open()
	if err != nil {
		return err
	}
	defer body.Close()
	from, last := int64(0), o.size-1
	ranged := r.Header.Get("Range")
	if ranged != "" {
		if n, _ := fmt.Sscanf(ranged, "bytes=%d-%d", &from, &last); n == 0 || from >= o.size {
			return &fail{416, "InvalidRange"}
		}
		last = min(last, o.size-1)
		w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, last, o.size))
	}
	w.Header().Set("ETag", o.etag)
	w.Header().Set("Content-Length", strconv.FormatInt(last-from+1, 10))
	if ranged == "" {
		w.Header().Set("X-Amz-Checksum-Crc64nvme", o.crc)
		w.Header().Set("X-Amz-Checksum-Type", "FULL_OBJECT")
	} else {
		w.WriteHeader(http.StatusPartialContent)
	}
	if r.Method == http.MethodHead {
		return nil
	}
	if _, err := body.Seek(from, io.SeekStart); err != nil {
		return err
	}
	_, _ = io.CopyN(w, body, last-from+1) // the client may have disconnected
	return nil
}

// set makes o the object of that name, under the request's conditions.
func (t *Twin) set(name string, o object, h http.Header) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	old, had := t.objects[name]
	switch {
	case h.Get("If-None-Match") == "*" && had, h.Get("If-Match") != "" && had && h.Get("If-Match") != old.etag:
		return &fail{412, "PreconditionFailed"}
	case h.Get("If-Match") != "" && !had:
		return &fail{404, "NoSuchKey"}
	}
	t.objects[name] = o
	if !had {
		t.sorted = nil
	}
	return nil
}

func (t *Twin) put(name string, w http.ResponseWriter, r *http.Request) error {
	o, err := t.keep(r.Body)
	sum := r.Header.Get("X-Amz-Checksum-Crc64nvme")
	if err == nil && sum != "" && sum != o.crc {
		err = &fail{400, "BadDigest"}
	}
	if err == nil {
		err = t.set(name, o, r.Header)
	}
	w.Header().Set("ETag", o.etag)
	if sum != "" {
		w.Header().Set("X-Amz-Checksum-Crc64nvme", o.crc)
		w.Header().Set("X-Amz-Checksum-Type", "FULL_OBJECT")
	}
	return err
}

// Object is the current content of an object.
func (t *Twin) Object(name string) (data []byte, there bool) {
	o, err := t.find(name)
	if err != nil {
		return nil, false
	}
	body, err := o.open()
	if err != nil {
		return nil, false
	}
	defer body.Close()
	data, err = io.ReadAll(body)
	return data, err == nil
}

// Names are those of the objects below a prefix, in order.
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

func (t *Twin) remove(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.objects, name)
	t.gone++
}

// names returns the names in order. Removed names are dropped from time to time.
func (t *Twin) names() []string {
	if t.sorted == nil {
		t.sorted = slices.Sorted(maps.Keys(t.objects))
	} else if t.gone > 20_000 {
		t.sorted = slices.DeleteFunc(t.sorted, func(name string) bool { _, there := t.objects[name]; return !there })
	} else {
		return t.sorted
	}
	t.gone = 0
	return t.sorted
}

func (t *Twin) source(r *http.Request) (object, error) {
	name, err := url.PathUnescape(r.Header.Get("X-Amz-Copy-Source"))
	if err != nil {
		return object{}, err
	}
	return t.find(strings.TrimPrefix(name, "/"))
}

func (t *Twin) copy(name string, w http.ResponseWriter, r *http.Request) error {
	o, err := t.source(r)
	if etag := r.Header.Get("X-Amz-Copy-Source-If-Match"); err == nil && etag != "" && etag != o.etag {
		err = &fail{412, "PreconditionFailed"}
	}
	if err == nil {
		err = t.set(name, o, r.Header) // content is never changed in place: both can have it
	}
	if err == nil {
		fmt.Fprintf(w, "<CopyObjectResult><ETag>%s</ETag><ChecksumCRC64NVME>%s</ChecksumCRC64NVME>"+
			"<ChecksumType>FULL_OBJECT</ChecksumType></CopyObjectResult>", o.etag, o.crc)
	}
	return err
}

func (t *Twin) list(in string, q url.Values, w http.ResponseWriter) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	names := t.names()
	prefix := in + "/" + q.Get("prefix")
	after := max(prefix, in+"/"+q.Get("start-after")+"\x00", in+"/"+q.Get("continuation-token")+"\x00")
	if q.Get("start-after") == "" && q.Get("continuation-token") == "" {
		after = prefix
	}
	i, _ := slices.BinarySearch(names, after)
	var page struct {
		XMLName  xml.Name `xml:"ListBucketResult"`
		Contents []struct {
			Key  string
			Size int64
			ETag string
		}
		CommonPrefixes        []struct{ Prefix string }
		IsTruncated           bool
		NextContinuationToken string `xml:",omitempty"`
	}
	for ; i < len(names) && strings.HasPrefix(names[i], prefix); i++ {
		o, there := t.objects[names[i]]
		if !there {
			continue
		}
		if folder, _, in := strings.Cut(names[i][len(prefix):], "/"); in && q.Get("delimiter") == "/" {
			folder = q.Get("prefix") + folder + "/"
			if n := len(page.CommonPrefixes); n == 0 || page.CommonPrefixes[n-1].Prefix != folder {
				page.CommonPrefixes = append(page.CommonPrefixes, struct{ Prefix string }{folder})
			}
			continue
		}
		if len(page.Contents) == 1000 {
			page.IsTruncated, page.NextContinuationToken = true, page.Contents[999].Key
			break
		}
		page.Contents = append(page.Contents, struct {
			Key  string
			Size int64
			ETag string
		}{strings.TrimPrefix(names[i], in+"/"), o.size, o.etag})
	}
	return xml.NewEncoder(w).Encode(page)
}

func (t *Twin) deleteObjects(in string, w http.ResponseWriter, r *http.Request) error {
	var list struct {
		Object []struct{ Key string }
	}
	if err := xml.NewDecoder(r.Body).Decode(&list); err != nil {
		return err
	}
	for _, o := range list.Object {
		t.remove(in + "/" + o.Key)
	}
	_, err := io.WriteString(w, "<DeleteResult></DeleteResult>")
	return err
}
