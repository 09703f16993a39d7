// Package bucket reads and writes one S3 bucket: conditional puts, streamed uploads,
// verified copies.
//
// It has S3's own operations with the additions that every caller needs. An error has a kind
// (package fault): a missing object is a NotFound, a failed condition is a
// Stale, and any other error an *Error that names the bucket. A large object is written as
// a stream, or in parts that another process can continue:
//
//	work := bucket.Bucket{Client: client, Name: "work", Limits: bucket.DefaultLimits}
//	err := work.Put(ctx, "plan.json", data, bucket.Condition{Absent: true})
//	if fault.Is(err, fault.Stale) { … } // another process was first
//
//	w := work.Writer(ctx, "list.jsonl", bucket.Condition{})
//	_, err = io.Copy(w, list)
//	err = errors.Join(err, w.Close()) // the object does not exist before
//
// In tests, package buckettest is S3 in a process.
//
// Every call is one request of S3, unless its comment says otherwise; the client's own
// retries are the only ones. S3 reads and lists what was written before (strong consistency),
// so nothing here waits for a write to become visible.
package bucket

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"archivist/pkg/kernel/fault"
)

// Bucket is one bucket. It is a value that can be copied and used concurrently.
type Bucket struct {
	Client *s3.Client
	Name   string
	Limits Limits
}

// Limits are sizes in bytes. A test can make them small. Part is also how much a Writer keeps
// in memory.
type Limits struct {
	Part     int64 // least part of an upload: four in memory at once fit a small function
	Copy     int64 // above it S3 copies in parts only
	CopyPart int64 // least part of such a copy
}

// Info is S3's information about an object. CRC64NVME is base64, and empty where the store
// computes none over the whole object. ETag is with its quotes, as conditions need it.
type Info struct {
	Size      int64
	ETag      string
	CRC64NVME string
}

// wrap turns an error of S3 into an error with a kind. A missing bucket is not a missing
// object: it is a fault of the deployment, and stays an *Error. A ConditionalRequestConflict
// (409) means that another conditional write of the key was under way; the caller does the
// same as after a failed condition, it reads again. The messages of these two have nothing of
// S3's answer: they can get to people, whom its request ids and XML do not help.
func (b Bucket) wrap(op, key string, err error) error {
	if err == nil {
		return nil
	}

	var resp *smithyhttp.ResponseError
	var api smithy.APIError
	switch {
	case errors.As(err, &api) && api.ErrorCode() == "NoSuchBucket":
	case errors.As(err, &resp) && resp.HTTPStatusCode() == http.StatusNotFound:
		return &fault.Error{Kind: fault.NotFound, Msg: fmt.Sprintf("s3: %s %s: there is no such object", op, key),
			Err: err}
	case errors.As(err, &resp) && resp.HTTPStatusCode() == http.StatusPreconditionFailed,
		errors.As(err, &api) && api.ErrorCode() == "ConditionalRequestConflict":
		return &fault.Error{Kind: fault.Stale, Msg: fmt.Sprintf("s3: %s %s: the object has changed", op, key), Err: err}
	}
	return &Error{b.Name, op, key, err}
}

// Error is a failure of S3 that has no fault kind. The caller may try again; what failed is
// in Err, usually a smithy.APIError.
type Error struct {
	Bucket, Op, Key string
	Err             error
}

// Error names the operation and the key, and what S3 answered: its code and its message, without what the SDK adds
// (the type of the error, ids of the request), since reasons that people read are made of it.
func (e *Error) Error() string {
	var api smithy.APIError
	if !errors.As(e.Err, &api) || api.ErrorCode() == "" {
		return fmt.Sprintf("s3: %s %s: %v", e.Op, e.Key, e.Err)
	}
	text := fmt.Sprintf("s3: %s %s: %s", e.Op, e.Key, api.ErrorCode())
	if m := api.ErrorMessage(); m != "" && m != api.ErrorCode() {
		text += ": " + m
	}
	return text
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Resource names the bucket in messages. It is for messages to operators about refused calls.
func (e *Error) Resource() string { return "the bucket " + e.Bucket }

// Open streams an object. A missing one is a NotFound. The caller closes the stream. The Info
// has no CRC64NVME.
func (b Bucket) Open(ctx context.Context, key string) (io.ReadCloser, Info, error) {
	return b.open(ctx, key, &s3.GetObjectInput{Bucket: &b.Name, Key: &key})
}

// OpenFrom streams an object, starting at a byte; beyond its end the stream is empty. The
// caller closes the stream.
func (b Bucket) OpenFrom(ctx context.Context, key string, from int64) (io.ReadCloser, error) {
	return b.openFrom(ctx, key, &s3.GetObjectInput{
		Bucket: &b.Name,
		Key:    &key,
		Range:  aws.String(fmt.Sprintf("bytes=%d-", from)),
	})
}

// openFrom is open, with an empty stream for a range that begins at or behind the end, which
// S3 refuses with 416 (RFC 9110, section 15.5.17).
func (b Bucket) openFrom(ctx context.Context, key string,
	in *s3.GetObjectInput) (io.ReadCloser, error) {
	body, _, err := b.open(ctx, key, in)
	var resp *smithyhttp.ResponseError
	if errors.As(err, &resp) && resp.HTTPStatusCode() == http.StatusRequestedRangeNotSatisfiable {
		return http.NoBody, nil
	}
	return body, err
}

func (b Bucket) open(ctx context.Context, key string,
	in *s3.GetObjectInput) (io.ReadCloser, Info, error) {
	out, err := b.Client.GetObject(ctx, in)
	if err != nil {
		return nil, Info{}, b.wrap("get", key, err)
	}
	return body{out.Body, b, key},
		Info{Size: aws.ToInt64(out.ContentLength), ETag: aws.ToString(out.ETag)}, nil
}

// body is the stream of an object: what stops it is an error of S3, whoever reads it. Without
// it, a connection that breaks in the middle would have no kind, and look like damage.
type body struct {
	io.ReadCloser
	bucket Bucket
	key    string
}

// Read reads the next bytes.
func (b body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != io.EOF {
		err = b.bucket.wrap("get", b.key, err)
	}
	return n, err
}

// Read reads a whole, small object. It is as large in memory as in the bucket: the caller
// knows that it is bounded.
func (b Bucket) Read(ctx context.Context, key string) ([]byte, Info, error) {
	body, info, err := b.Open(ctx, key)
	if err != nil {
		return nil, info, err
	}
	defer body.Close()
	data, err := io.ReadAll(body)
	return data, info, err
}

// Head requests an object's size and checksum. A missing one is a NotFound.
func (b Bucket) Head(ctx context.Context, key string) (Info, error) {
	out, err := b.Client.HeadObject(ctx, &s3.HeadObjectInput{
		Bucket:       &b.Name,
		Key:          &key,
		ChecksumMode: types.ChecksumModeEnabled,
	})
	if err != nil {
		return Info{}, b.wrap("head", key, err)
	}
	return Info{
		Size:      aws.ToInt64(out.ContentLength),
		ETag:      aws.ToString(out.ETag),
		CRC64NVME: fullCRC(out.ChecksumCRC64NVME, out.ChecksumType),
	}, nil
}

// fullCRC is a checksum over a whole object, or "". A checksum of checksums ends in the
// number of parts; MiniStack returns one under the name of a full one. Only a checksum over
// the whole content can be compared with that of another upload of it.
func fullCRC(sum *string, kind types.ChecksumType) string {
	if kind != types.ChecksumTypeFullObject || strings.Contains(aws.ToString(sum), "-") {
		return ""
	}
	return aws.ToString(sum)
}

// Condition of a Put; the zero value is none. At most one of the fields is set.
type Condition struct {
	Absent bool   // only if there is no such object
	ETag   string // only if the object is still this one
}

func (c Condition) headers() (ifNoneMatch, ifMatch *string) {
	if c.Absent {
		ifNoneMatch = aws.String("*")
	}
	if c.ETag != "" {
		ifMatch = aws.String(c.ETag)
	}
	return ifNoneMatch, ifMatch
}

// Put writes a small object under a condition. A Stale means that the condition did not hold.
// After a lost response, a retry may find its own object. The caller that gets a Stale reads
// the object to find out whether it is its own. Without a condition, the last write wins.
func (b Bucket) Put(ctx context.Context, key string, body []byte, c Condition) error {
	in := &s3.PutObjectInput{Bucket: &b.Name, Key: &key, Body: bytes.NewReader(body)}
	in.IfNoneMatch, in.IfMatch = c.headers()
	_, err := b.Client.PutObject(ctx, in)
	return b.wrap("put", key, err)
}

// PutSum writes a small object whose checksum (base64) S3 verifies before it stores it. It
// returns the information about the object that the response has. That is its CRC64NVME in
// base64, or "". A content that does not match is S3's error BadDigest, as an *Error.
func (b Bucket) PutSum(ctx context.Context, key string, body []byte, crc64 string) (string, error) {
	out, err := b.Client.PutObject(ctx, &s3.PutObjectInput{
		Bucket:            &b.Name,
		Key:               &key,
		Body:              bytes.NewReader(body),
		ChecksumCRC64NVME: &crc64,
	})
	if err != nil {
		return "", b.wrap("put", key, err)
	}
	return fullCRC(out.ChecksumCRC64NVME, out.ChecksumType), nil
}

// CopySource escapes a bucket and key for the header, in the one form that all platforms read
// in the same way. A space is %20, since + is a plus sign to some of them; slashes stay.
func CopySource(bucket, key string) string {
	segs := strings.Split(key, "/")
	for i, s := range segs {
		segs[i] = strings.ReplaceAll(url.QueryEscape(s), "+", "%20")
	}
	return bucket + "/" + strings.Join(segs, "/")
}

// Listed is an object in a listing. A listing has no checksums.
type Listed struct {
	Key, ETag string
	Size      int64
}

func listed(page []types.Object) []Listed {
	out := make([]Listed, len(page))
	for i, o := range page {
		out[i] = Listed{aws.ToString(o.Key), aws.ToString(o.ETag), aws.ToInt64(o.Size)}
	}
	return out
}

// List calls each with every object below prefix, in order of the keys. It makes a request
// for each thousand objects. The first error of each ends it, and is returned as it is.
// Objects that are added or removed meanwhile may or may not be listed.
func (b Bucket) List(ctx context.Context, prefix string, each func(Listed) error) error {
	pages := s3.NewListObjectsV2Paginator(b.Client,
		&s3.ListObjectsV2Input{Bucket: &b.Name, Prefix: &prefix})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return b.wrap("list", prefix, err)
		}
		for _, o := range listed(page.Contents) {
			if err := each(o); err != nil {
				return err
			}
		}
	}
	return nil
}

// Few lists the objects below prefix if they fit into one page; else many is true. A page has
// at most a thousand; if many is true, all are only the first.
func (b Bucket) Few(ctx context.Context, prefix string) (all []Listed, many bool, err error) {
	page, err := b.Client.ListObjectsV2(ctx,
		&s3.ListObjectsV2Input{Bucket: &b.Name, Prefix: &prefix})
	if err != nil {
		return nil, false, b.wrap("list", prefix, err)
	}
	return listed(page.Contents), aws.ToBool(page.IsTruncated), nil
}

// Page lists the next keys from a cursor ("" at the beginning), and the cursor of the rest
// ("" at the end). The cursor is the last key of the page, so it stays valid whatever is
// added or removed.
func (b Bucket) Page(ctx context.Context, cursor string) (keys []string, next string, err error) {
	all, next, err := b.ListAfter(ctx, "", cursor)
	for _, o := range all {
		keys = append(keys, o.Key)
	}
	return keys, next, err
}

// ListAfter lists the next objects below a prefix after a key ("" at the beginning), at most
// a thousand. It returns the last key of the page, "" if it was the last page. StartAfter,
// unlike a continuation token, takes any key, and one that a caller made up too.
func (b Bucket) ListAfter(ctx context.Context, prefix,
	after string) (page []Listed, next string, err error) {
	in := &s3.ListObjectsV2Input{Bucket: &b.Name}
	if prefix != "" {
		in.Prefix = &prefix
	}

	if after != "" {
		in.StartAfter = &after
	}

	out, err := b.Client.ListObjectsV2(ctx, in)
	if err != nil {
		return nil, "", b.wrap("list", prefix, err)
	}

	page = listed(out.Contents)
	if aws.ToBool(out.IsTruncated) && len(page) > 0 {
		next = page[len(page)-1].Key
	}
	return page, next, nil
}

// Folders lists the names between a prefix, which ends in a slash, and the next slash. They
// are in order, and read whole: the caller knows that they are few.
func (b Bucket) Folders(ctx context.Context, prefix string) (names []string, err error) {
	pages := s3.NewListObjectsV2Paginator(b.Client, &s3.ListObjectsV2Input{
		Bucket:    &b.Name,
		Prefix:    &prefix,
		Delimiter: aws.String("/"),
	})

	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, b.wrap("list", prefix, err)
		}
		for _, p := range page.CommonPrefixes {
			names = append(names,
				strings.TrimSuffix(strings.TrimPrefix(aws.ToString(p.Prefix), prefix), "/"))
		}
	}
	return names, nil
}

// DeleteSame removes one object if it still has that ETag. It is not an error if the
// object has changed or is gone: nothing is removed then.
func (b Bucket) DeleteSame(ctx context.Context, key, etag string) error {
	_, err := b.Client.DeleteObject(ctx, &s3.DeleteObjectInput{
		Bucket:  &b.Name,
		Key:     &key,
		IfMatch: &etag,
	})
	if err = b.wrap("delete", key, err); fault.Is(err, fault.Stale) ||
		fault.Is(err, fault.NotFound) {
		return nil
	}
	return err
}

// Delete removes one object; in a bucket with versions it adds a delete marker. It is not an
// error if there is no such object.
func (b Bucket) Delete(ctx context.Context, key string) error {
	_, err := b.Client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &b.Name, Key: &key})
	return b.wrap("delete", key, err)
}

// fewDeletes is the maximum number of objects that are deleted one by one: DELETE requests are
// free, DeleteObjects is a POST ("Amazon S3 pricing").
const fewDeletes = 10

// DeleteAll removes the objects below prefix, a thousand at a time, as long as more returns
// true. It reports whether none is left. If all is false, another call continues: the listing
// always begins anew, with what is left.
func (b Bucket) DeleteAll(ctx context.Context, prefix string,
	more func() bool) (all bool, err error) {
	for more() {
		page, err := b.Client.ListObjectsV2(ctx,
			&s3.ListObjectsV2Input{Bucket: &b.Name, Prefix: &prefix})
		if err != nil {
			return false, b.wrap("list", prefix, err)
		}

		if len(page.Contents) == 0 {
			return true, nil
		}

		if err := b.deletePage(ctx, prefix, page.Contents); err != nil {
			return false, err
		}

		if !aws.ToBool(page.IsTruncated) {
			return true, nil
		}
	}
	return false, nil
}

// DeleteObjects answers 200 even if some objects were not removed; the first of those is the
// error.
func (b Bucket) deletePage(ctx context.Context, prefix string, page []types.Object) error {
	if len(page) <= fewDeletes {
		for _, o := range page {
			if err := b.Delete(ctx, aws.ToString(o.Key)); err != nil {
				return err
			}
		}
		return nil
	}

	keys := make([]types.ObjectIdentifier, len(page))
	for i, o := range page {
		keys[i].Key = o.Key
	}

	out, err := b.Client.DeleteObjects(ctx,
		&s3.DeleteObjectsInput{Bucket: &b.Name, Delete: &types.Delete{Objects: keys,
			Quiet: aws.Bool(true)}})
	if err != nil {
		return b.wrap("delete below", prefix, err)
	}

	if len(out.Errors) > 0 {
		return fmt.Errorf("s3: delete %s: %s", aws.ToString(out.Errors[0].Key),
			aws.ToString(out.Errors[0].Message))
	}
	return nil
}

// Presign returns a URL that reads one object for ttl, under a file name. A missing object is a
// NotFound: it is asked for first, since whoever follows a URL of what is not there gets S3's XML.
// The URL has the rights of the client's credentials, and ends with them if that is earlier. The
// name is encoded as RFC 5987 says, so that any character may be in it.
func (b Bucket) Presign(ctx context.Context, key, filename string,
	ttl time.Duration) (string, error) {
	if _, err := b.Head(ctx, key); err != nil {
		return "", err
	}

	in := &s3.GetObjectInput{Bucket: &b.Name, Key: &key}
	if filename != "" {
		in.ResponseContentDisposition = aws.String("attachment; filename*=UTF-8''" +
			url.PathEscape(filename))
	}
	out, err := s3.NewPresignClient(b.Client).PresignGetObject(ctx, in, s3.WithPresignExpires(ttl))
	if err != nil {
		return "", b.wrap("presign", key, err)
	}
	return out.URL, nil
}
