package buckettest

import (
	"cmp"
	"context"
	"encoding/xml"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// secrets are the secret keys of the clients of twins, by their access keys.
var secrets = map[string]string{"a": "b", "process": "process", "test": "test"}

// signed refuses a request by a signed URL that S3 would refuse: it has expired, or its method, its path, its query or
// one of its signed headers is not what was signed. The signature is made again, and compared.
func signed(r *http.Request) error {
	q := r.URL.Query()
	if !q.Has("X-Amz-Signature") {
		return nil
	}
	key, scope, _ := strings.Cut(q.Get("X-Amz-Credential"), "/")
	at, err := time.Parse("20060102T150405Z", q.Get("X-Amz-Date"))
	parts := strings.Split(scope, "/")
	lasts, bad := time.ParseDuration(q.Get("X-Amz-Expires") + "s")
	if err != nil || bad != nil || len(parts) != 4 || secrets[key] == "" {
		return &fail{http.StatusForbidden, "AccessDenied"}
	}
	if time.Since(at) > lasts {
		return &fail{http.StatusForbidden, "AccessDenied"}
	}

	signature, err := again(r, aws.Credentials{AccessKeyID: key, SecretAccessKey: secrets[key]}, parts, at)
	if err == nil && signature != q.Get("X-Amz-Signature") {
		err = &fail{http.StatusForbidden, "SignatureDoesNotMatch"}
	}
	return err
}

// again is the signature that a request should have. scope is that of its credential: the day, the region, the service.
func again(r *http.Request, c aws.Credentials, scope []string, at time.Time) (string, error) {
	q := r.URL.Query()
	for _, name := range []string{"X-Amz-Signature", "X-Amz-Credential", "X-Amz-Date",
		"X-Amz-SignedHeaders",
		"X-Amz-Algorithm", "X-Amz-Security-Token"} {
		q.Del(name)
	}
	host := cmp.Or(r.Host, r.URL.Host) // a client that follows a redirect leaves the first one out
	in := &http.Request{Method: r.Method, Host: host, Header: http.Header{},
		URL: &url.URL{Scheme: "http", Host: host, Path: r.URL.Path, RawPath: r.URL.RawPath,
			RawQuery: q.Encode()}}
	for _, name := range strings.Split(r.URL.Query().Get("X-Amz-SignedHeaders"), ";") {
		if value := r.Header.Get(name); value != "" {
			in.Header.Set(name, value)
		}
		if name == "content-length" {
			in.ContentLength = r.ContentLength
		}
	}

	signer := v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true })
	to, _, err := signer.PresignHTTP(context.Background(), c, in, "UNSIGNED-PAYLOAD", scope[2], scope[1], at)
	if err != nil {
		return "", err
	}
	u, err := url.Parse(to)
	if err != nil {
		return "", err
	}
	return u.Query().Get("X-Amz-Signature"), nil
}

// listParts lists the parts of an upload, all in one page; on S3, a page has a thousand.
func (t *Twin) listParts(parts map[int]object, w http.ResponseWriter) error {
	type part struct {
		PartNumber int
		Size       int64
		ETag       string
	}
	var page struct {
		XMLName xml.Name `xml:"ListPartsResult"`
		Part    []part
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, n := range slices.Sorted(maps.Keys(parts)) {
		page.Part = append(page.Part, part{n, parts[n].Size, parts[n].ETag})
	}
	return xml.NewEncoder(w).Encode(page)
}

// listUploads lists the open uploads below a prefix, all in one page; on S3, a page has a thousand.
func (t *Twin) listUploads(in string, q url.Values, w http.ResponseWriter) error {
	type upload struct{ Key, UploadId string }
	var page struct {
		XMLName xml.Name `xml:"ListMultipartUploadsResult"`
		Upload  []upload
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(t.begun)) {
		if key, is := strings.CutPrefix(t.begun[id], in+"/"); is && strings.HasPrefix(key,
			q.Get("prefix")) {
			page.Upload = append(page.Upload, upload{key, id})
		}
	}
	return xml.NewEncoder(w).Encode(page)
}
