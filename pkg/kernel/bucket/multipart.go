package bucket

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"golang.org/x/sync/errgroup"

	"archivist/pkg/kernel/fault"
)

// DefaultLimits: S3 copies at most 5 GB at once; a part takes at most 5 GiB and there are at
// most 10,000 of them. (Source: "Amazon S3 multipart upload limits" and CopyObject in its
// documentation.)
var DefaultLimits = Limits{Part: 16 << 20, Copy: 5_000_000_000, CopyPart: 512 << 20}

const maxParts = 9000 // of S3's 10,000, as a margin for a wrong declared size

// PartSize is the size of the parts of an upload of size bytes (-1: unknown). It is a whole
// number of MiB, and grows with the size so that no upload has more than maxParts. Of an
// unknown size, maxParts of the least part are the most that can be uploaded.
func (l Limits) PartSize(size int64) int64 {
	const step = 1 << 20
	return max(l.Part, (size/maxParts/step+1)*step)
}

// Upload is a multipart upload in progress. It can be saved as JSON and continued by another
// process. Parts are those that S3 has confirmed, in order: the next has the number
// len(Parts)+1. A part that was uploaded, and not saved here, is uploaded again under the
// same number, which replaces it. An upload that is never completed or aborted costs storage,
// until a lifecycle rule of the bucket ends it.
type Upload struct {
	Key   string `json:"key"`
	ID    string `json:"id"`
	Parts []Part `json:"parts"`
}

// Part is one uploaded part.
type Part struct {
	ETag string `json:"etag"`
	CRC  string `json:"crc,omitempty"` // CRC64NVME, base64
}

// Begin begins a multipart upload. S3 is to compute the checksum over the whole object,
// whatever its parts.
func (b Bucket) Begin(ctx context.Context, key string) (*Upload, error) {
	out, err := b.Client.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{
		Bucket:            &b.Name,
		Key:               &key,
		ChecksumAlgorithm: types.ChecksumAlgorithmCrc64nvme,
		ChecksumType:      types.ChecksumTypeFullObject,
	})
	if err != nil {
		return nil, b.wrap("begin upload of", key, err)
	}
	return &Upload{Key: key, ID: aws.ToString(out.UploadId)}, nil
}

// Add uploads the next part. All but the last have at least 5 MiB. u has the part only if
// there is no error; the same call can then be made again.
func (b Bucket) Add(ctx context.Context, u *Upload, data []byte) error {
	out, err := b.Client.UploadPart(ctx, &s3.UploadPartInput{
		Bucket:            &b.Name,
		Key:               &u.Key,
		UploadId:          &u.ID,
		PartNumber:        aws.Int32(int32(len(u.Parts) + 1)),
		Body:              bytes.NewReader(data),
		ChecksumAlgorithm: types.ChecksumAlgorithmCrc64nvme,
	})
	if err != nil {
		return b.wrap("upload a part of", u.Key, err)
	}

	u.Parts = append(u.Parts, Part{aws.ToString(out.ETag), aws.ToString(out.ChecksumCRC64NVME)})
	return nil
}

// Complete makes the uploaded parts an object. It is not an error if an earlier call, whose
// response was lost, completed the upload. That is told by the upload, which is gone, and the
// key, which is there: so the key must be one that nobody else writes.
func (b Bucket) Complete(ctx context.Context, u *Upload) error {
	err := b.complete(ctx, u, Condition{})
	if fault.Is(err, fault.NotFound) {
		if _, headErr := b.Head(ctx, u.Key); headErr == nil {
			return nil
		}
	}
	return err
}

// complete is one request, with a condition for the key. A NotFound means that S3 does not
// know the upload any more.
func (b Bucket) complete(ctx context.Context, u *Upload, c Condition) error {
	parts := make([]types.CompletedPart, len(u.Parts))
	for i, p := range u.Parts {
		parts[i] = types.CompletedPart{PartNumber: aws.Int32(int32(i + 1)), ETag: &p.ETag}
		if p.CRC != "" {
			parts[i].ChecksumCRC64NVME = &p.CRC
		}
	}

	in := &s3.CompleteMultipartUploadInput{
		Bucket:          &b.Name,
		Key:             &u.Key,
		UploadId:        &u.ID,
		MultipartUpload: &types.CompletedMultipartUpload{Parts: parts},
	}

	in.IfNoneMatch, in.IfMatch = c.headers()
	_, err := b.Client.CompleteMultipartUpload(ctx, in)
	return b.wrap("complete upload of", u.Key, err)
}

// gone reports whether S3 no longer knows an upload.
func gone(err error) bool {
	var resp *smithyhttp.ResponseError
	return errors.As(err, &resp) && resp.HTTPStatusCode() == http.StatusNotFound
}

// Abort removes an upload and its parts. It is not an error if the upload is gone.
func (b Bucket) Abort(ctx context.Context, u *Upload) error {
	_, err := b.Client.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{
		Bucket:   &b.Name,
		Key:      &u.Key,
		UploadId: &u.ID,
	})
	if gone(err) {
		return nil
	}
	return b.wrap("abort upload of", u.Key, err)
}

// CopyFrom copies an object of at most Limits.Copy bytes from another bucket, by S3 itself.
// It returns the information about the copy that the response has. With an ETag, the error is
// a Stale if the source object has changed. The content does not go through this process. The
// checksum is CRC64NVME in base64, or "".
func (b Bucket) CopyFrom(ctx context.Context, from Bucket, fromKey, key,
	etag string) (crc64 string, err error) {
	in := &s3.CopyObjectInput{
		Bucket:            &b.Name,
		Key:               &key,
		CopySource:        aws.String(CopySource(from.Name, fromKey)),
		ChecksumAlgorithm: types.ChecksumAlgorithmCrc64nvme,
	}

	if etag != "" {
		in.CopySourceIfMatch = &etag
	}

	out, err := b.Client.CopyObject(ctx, in)
	if err != nil {
		return "", b.wrap("copy to", key, err)
	}
	return fullCRC(out.CopyObjectResult.ChecksumCRC64NVME, out.CopyObjectResult.ChecksumType), nil
}

// copiesAtOnce is how many parts of one object S3 copies in parallel. They are requests that
// mostly wait, so even a small function has room for them.
const copiesAtOnce = 16

// copyPartSize is the size of the parts of a copy of size bytes. It depends on the size
// alone, so that a copy which another process continues has the same parts.
func (l Limits) copyPartSize(size int64) int64 {
	const step = 1 << 20
	if size <= maxParts*l.CopyPart {
		return l.CopyPart
	}
	return (size/maxParts/step + 1) * step
}

// CopyParts copies the next parts of an object of size bytes from another bucket into an
// upload, several in parallel, and reports whether all are copied. An upload that was saved
// can be continued. size is that of the whole object. With an ETag, the error is a Stale if the
// source object has changed. After an error u is as it was, and the parts of this call are copied
// again.
func (b Bucket) CopyParts(ctx context.Context, from Bucket, fromKey, etag string, u *Upload,
	size int64) (all bool, err error) {
	part := b.Limits.copyPartSize(size)
	parts := int((size + part - 1) / part)
	next := make([]Part, min(copiesAtOnce, parts-len(u.Parts)))
	var unchanged *string
	if etag != "" {
		unchanged = &etag
	}

	var side errgroup.Group
	for i := range next {
		n := len(u.Parts) + i
		last := min(int64(n+1)*part, size) - 1
		side.Go(func() error {
			out, err := b.Client.UploadPartCopy(ctx, &s3.UploadPartCopyInput{
				Bucket:            &b.Name,
				Key:               &u.Key,
				UploadId:          &u.ID,
				PartNumber:        aws.Int32(int32(n + 1)),
				CopySource:        aws.String(CopySource(from.Name, fromKey)),
				CopySourceIfMatch: unchanged,
				CopySourceRange:   aws.String(fmt.Sprintf("bytes=%d-%d", int64(n)*part, last)),
			})
			if err != nil {
				return b.wrap("copy a part to", u.Key, err)
			}

			next[i] = Part{aws.ToString(out.CopyPartResult.ETag),
				aws.ToString(out.CopyPartResult.ChecksumCRC64NVME)}
			return nil
		})
	}

	if err := side.Wait(); err != nil {
		return false, err
	}

	u.Parts = append(u.Parts, next...)
	return len(u.Parts) == parts, nil
}

// Writer writes an object as a stream in constant memory: at once if it fits into one part,
// else in parts. The object does not exist before Close. It belongs to one goroutine. After
// an error it can only be aborted: bytes of the failed part are dropped.
type Writer struct {
	b         Bucket
	ctx       context.Context
	key       string
	condition Condition
	buf       []byte
	upload    *Upload
}

// Writer begins an object that is written under a condition. ctx is that of all its requests.
// Close or Abort ends it.
func (b Bucket) Writer(ctx context.Context, key string, c Condition) *Writer {
	return &Writer{b: b, ctx: ctx, key: key, condition: c}
}

// Create writes an object as a stream: what write writes. The object is there when all is written, or not at all.
func (b Bucket) Create(ctx context.Context, key string, c Condition, write func(io.Writer) error) error {
	w := b.Writer(ctx, key, c)
	err := write(w)
	if err == nil {
		err = w.Close()
	}

	if err != nil {
		_ = w.Abort() // the bucket's lifecycle rule removes what is left
	}
	return err
}

// small is how many bytes a Writer keeps without room for a whole part.
const small = 1 << 20

// Write adds the next bytes. It makes a request whenever a part is full.
func (w *Writer) Write(p []byte) (int, error) {
	for taken := 0; taken < len(p); {
		n := min(len(p)-taken, int(w.b.Limits.Part)-len(w.buf))
		// Else it would grow step by step, and each step be garbage.
		if need := len(w.buf) + n; need > small && need > cap(w.buf) {
			w.buf = append(make([]byte, 0, w.b.Limits.Part), w.buf...)
		}
		w.buf = append(w.buf, p[taken:taken+n]...)
		taken += n
		if len(w.buf) == int(w.b.Limits.Part) {
			if err := w.part(); err != nil {
				return 0, err
			}
		}
	}
	return len(p), nil
}

// part uploads what is in the buffer; the first one begins the upload.
func (w *Writer) part() (err error) {
	if w.upload == nil {
		if w.upload, err = w.b.Begin(w.ctx, w.key); err != nil {
			return err
		}
	}
	err = w.b.Add(w.ctx, w.upload, w.buf)
	w.buf = w.buf[:0]
	return err
}

// Close creates the object. A Stale means that the condition did not hold; after a lost
// response, our own object can be the cause. An empty object is written too. A failed
// condition leaves the upload for Abort or the bucket's lifecycle rule.
func (w *Writer) Close() error {
	if w.upload == nil {
		return w.b.Put(w.ctx, w.key, w.buf, w.condition)
	}

	if len(w.buf) > 0 {
		if err := w.part(); err != nil {
			return err
		}
	}

	err := w.b.complete(w.ctx, w.upload, w.condition)
	if fault.Is(err, fault.NotFound) { // completed before, or cleaned away
		return fault.New(fault.Stale, "%w", err)
	}
	return err
}

// Abort discards the written bytes. It does nothing if no part was uploaded, so it may be
// called after a Close that failed.
func (w *Writer) Abort() error {
	if w.upload == nil {
		return nil
	}
	return w.b.Abort(w.ctx, w.upload)
}
