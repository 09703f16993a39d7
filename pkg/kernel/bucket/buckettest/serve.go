package buckettest

import (
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"archivist/pkg/kernel/bucket"
)

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
		{http.MethodGet, "uploads", false, "ListUploads"},
		{http.MethodGet, "uploadId", false, "ListParts"},
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
	if err := signed(r); err != nil {
		return err
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
	case "ListUploads":
		return t.listUploads(strings.TrimSuffix(name, "/"), q, w)
	case "DeleteObjects":
		return t.deleteObjects(strings.TrimSuffix(name, "/"), w, r)
	}
	return t.multipart(op, name, q, w, r)
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
	w.Header().Set("Content-Type", "binary/octet-stream") // as on S3 if nobody has given one
	if how := r.URL.Query().Get("response-content-disposition"); how != "" {
		w.Header().Set("Content-Disposition", how)
	}
	if ranged == "" {
		w.Header().Set("X-Amz-Checksum-Crc64nvme", o.CRC)
		w.Header().Set("X-Amz-Checksum-Type", "FULL_OBJECT")
		if o.SHA != "" {
			w.Header().Set("X-Amz-Checksum-Sha256", o.SHA)
		}
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
	sha := r.Header.Get("X-Amz-Checksum-Sha256")
	if sum != "" && sum != o.CRC || sha != "" && sha != o.SHA {
		return &fail{400, "BadDigest"}
	}
	o.SHA = sha
	return t.set(name, o, r.Header)
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
