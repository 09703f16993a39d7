// Package buckettest is a twin of S3 in this process, for tests: real requests of
// the real client, content on disk. Unsupported requests fail with their name.
//
// It keeps what callers rely on: conditions (If-Match, If-None-Match), ETags that change with
// the content, checksums over whole objects, listings in the order of the keys with pages of
// a thousand, multipart uploads, ranges. It has no versions, no signatures and no
// permissions. A test makes it refuse requests by Before, and counts them by Calls.
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

	"archivist/pkg/kernel/bucket"
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
	// uploads are the parts of open uploads by id and number; n is the number in the last id.
	uploads map[string]map[int]object
	n       int
	journal *journal.Journal
}

// New makes a twin with its content below dir.
func New(dir string) *Twin {
	return &Twin{
		Dir:     dir,
		Small:   4096,
		Calls:   map[string]int{},
		objects: map[string]object{},
		uploads: map[string]map[int]object{},
	}
}

// Open makes a twin for a test and returns buckets of it by name. Their clients call it
// without a connection; at their endpoint it also answers others, such as presigned URLs. The
// buckets need not be made. All of it ends with the test.
func Open(t testing.TB, names ...string) (*Twin, []bucket.Bucket) {
	t.Helper()
	twin := New(t.TempDir())
	server := httptest.NewServer(twin)
	t.Cleanup(server.Close)
	out := make([]bucket.Bucket, len(names))
	for i, name := range names {
		out[i] = bucket.Bucket{
			Client: client(server.URL, twin),
			Name:   name,
			Limits: bucket.DefaultLimits,
		}
	}
	return twin, out
}

// Client is an S3 client of a twin in another process.
func Client(url string) *s3.Client { return client(url, &http.Transport{MaxIdleConnsPerHost: 64}) }

// client makes one try of each request, so that a test counts what the code asks, not what
// the SDK repeats.
func client(url string, transport http.RoundTripper) *s3.Client {
	return s3.New(s3.Options{
		BaseEndpoint:     &url,
		Region:           "us-east-1",
		UsePathStyle:     true,
		Credentials:      credentials.NewStaticCredentialsProvider("a", "b", ""),
		RetryMaxAttempts: 1,
		HTTPClient:       &http.Client{Transport: transport},
	})
}

// RoundTrip answers a request of a client in the same process. As over a connection, a
// request whose context has ended has no response, even if it had its effect.
func (t *Twin) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}

	in := r.Clone(r.Context())
	if in.Body == nil {
		in.Body = http.NoBody
	}

	defer in.Body.Close()
	out := httptest.NewRecorder()
	t.ServeHTTP(out, in)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}

	answer := out.Result()
	answer.Request = r
	return answer, nil
}

// fail is an answer of S3 that is an error, with its HTTP status.
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
	err := t.answer(op, name, q, w, r)
	if f, ok := err.(*fail); ok {
		_, _ = io.Copy(io.Discard, r.Body) // else the connection is reset, and the client does not see the answer
		w.WriteHeader(f.status)
		if r.Method != http.MethodHead {
			fmt.Fprintf(w, "<Error><Code>%s</Code><Message>%s</Message></Error>", f.code, name)
		}
	} else if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

// Operation is the name of a request's operation, as in Calls and Before. The first row that
// fits counts. Requests for an object have the method in the name, "GET object".
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

// answer asks Before first, and serves the request if it is not refused.
func (t *Twin) answer(op, name string, q url.Values, w http.ResponseWriter,
	r *http.Request) error {
	if t.Before != nil {
		if status := t.Before(op, name); status != 0 {
			return &fail{status, refusal(status)}
		}
	}
	return t.serve(op, name, q, w, r)
}

func (t *Twin) serve(op, name string, q url.Values, w http.ResponseWriter, r *http.Request) error {
	switch op {
	case "GET object", "HEAD object":
		return t.get(name, w, r)
	case "PUT object":
		return t.put(name, w, r)
	case "DELETE object":
		if o, err := t.find(name); err == nil && r.Header.Get("If-Match") != "" &&
			r.Header.Get("If-Match") != o.ETag {
			return &fail{412, "PreconditionFailed"}
		}
		if err := t.remove(name); err != nil {
			return err
		}
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

// keep stores bytes, those of large objects in a file. It does not make it an object: a file
// that no name gets is left over, until the next start.
func (t *Twin) keep(in io.Reader) (object, error) {
	sum, crc := md5.New(), crc64.New(nvme)
	var o object
	small, err := io.ReadAll(io.LimitReader(in, int64(t.Small)))
	if err != nil {
		return o, err
	}

	if len(small) < t.Small {
		o.Data, o.Size = small, int64(len(small))
		sum.Write(o.Data)
		crc.Write(o.Data)
	} else {
		f, err := os.CreateTemp(t.Dir, filePrefix)
		if err != nil {
			return o, err
		}
		defer f.Close()
		o.File = filepath.Base(f.Name())
		if o.Size, err = io.Copy(io.MultiWriter(f, sum, crc),
			io.MultiReader(bytes.NewReader(small), in)); err != nil {
			return o, err
		}
	}

	o.ETag = `"` + hex.EncodeToString(sum.Sum(nil)) + `"`
	o.CRC = base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint64(nil, crc.Sum64()))
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

// get answers GET and HEAD, of the whole or of one range. Only a whole object has a checksum.
func (t *Twin) get(name string, w http.ResponseWriter, r *http.Request) error {
	o, err := t.find(name)
	if err != nil {
		return err
	}
	if match := r.Header.Get("If-Match"); match != "" && match != o.ETag {
		return &fail{412, "PreconditionFailed"}
	}

	body, err := t.open(o)
	if err != nil {
		return err
	}

	defer body.Close()
	from, last := int64(0), o.Size-1
	ranged := r.Header.Get("Range")
	if ranged != "" {
		if n, _ := fmt.Sscanf(ranged, "bytes=%d-%d", &from, &last); n == 0 || from >= o.Size {
			return &fail{416, "InvalidRange"}
		}
		last = min(last, o.Size-1)
		w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, last, o.Size))
	}

	w.Header().Set("ETag", o.ETag)
	w.Header().Set("Content-Length", strconv.FormatInt(last-from+1, 10))
	if ranged == "" {
		w.Header().Set("X-Amz-Checksum-Crc64nvme", o.CRC)
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

// set makes o the object of that name, under the request's conditions. If-Match on a missing
// object is a 404, as on S3.
func (t *Twin) set(name string, o object, h http.Header) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	old, had := t.objects[name]
	switch {
	case h.Get("If-None-Match") == "*" && had, h.Get("If-Match") != "" && had &&
		h.Get("If-Match") != old.ETag:
		return &fail{412, "PreconditionFailed"}
	case h.Get("If-Match") != "" && !had:
		return &fail{404, "NoSuchKey"}
	}
	return t.write(change{Set: name, Object: &o})
}

// put stores the body of a request as an object. A checksum in the request must be that of
// the content.
func (t *Twin) put(name string, w http.ResponseWriter, r *http.Request) error {
	o, err := t.keep(r.Body)
	sum := r.Header.Get("X-Amz-Checksum-Crc64nvme")
	w.Header().Set("ETag", o.ETag)
	if sum != "" {
		w.Header().Set("X-Amz-Checksum-Crc64nvme", o.CRC)
		w.Header().Set("X-Amz-Checksum-Type", "FULL_OBJECT")
	}

	if err != nil {
		return err
	}
	if sum != "" && sum != o.CRC {
		return &fail{400, "BadDigest"}
	}
	return t.set(name, o, r.Header)
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

func (t *Twin) remove(name string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.write(change{Remove: name})
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

func (t *Twin) copy(name string, w http.ResponseWriter, r *http.Request) error {
	o, err := t.source(r)
	if err != nil {
		return err
	}

	err = t.set(name, o, r.Header) // content is never changed in place: both can have it
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "<CopyObjectResult><ETag>%s</ETag><ChecksumCRC64NVME>%s</ChecksumCRC64NVME>"+
		"<ChecksumType>FULL_OBJECT</ChecksumType></CopyObjectResult>", o.ETag, o.CRC)
	return nil
}

// list answers ListObjectsV2, also with a delimiter. The continuation token is the last key
// of the page. Folders (CommonPrefixes) do not count towards the thousand of a page; on S3 they do.
func (t *Twin) list(in string, q url.Values, w http.ResponseWriter) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	names := t.names()
	prefix := in + "/" + q.Get("prefix")
	after := max(prefix, in+"/"+q.Get("start-after")+"\x00", in+"/"+q.Get("continuation-token")+
		"\x00")
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

		if folder, _, in := strings.Cut(names[i][len(prefix):], "/"); in &&
			q.Get("delimiter") == "/" {
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
		}{strings.TrimPrefix(names[i], in+"/"), o.Size, o.ETag})
	}
	return xml.NewEncoder(w).Encode(page)
}

// deleteObjects removes the listed objects one by one. It never reports one as not removed.
func (t *Twin) deleteObjects(in string, w http.ResponseWriter, r *http.Request) error {
	var list struct {
		Object []struct{ Key string }
	}

	if err := xml.NewDecoder(r.Body).Decode(&list); err != nil {
		return err
	}

	for _, o := range list.Object {
		if err := t.remove(in + "/" + o.Key); err != nil {
			return err
		}
	}

	_, err := io.WriteString(w, "<DeleteResult></DeleteResult>")
	return err
}
