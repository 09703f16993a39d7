package bucket

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"archivist/pkg/kernel/fault"
)

// SignedPut is a PUT request that S3 accepts for some time from whoever has its URL. Headers are those that the request
// must have, beside Host and Content-Length, which HTTP needs anyway.
type SignedPut struct {
	URL     string
	Headers map[string]string
}

// SignPut signs a request that writes an object with exactly this content: of size bytes, with this SHA-256. S3
// refuses any other size and checksum header (403), and content without this checksum (400, BadDigest). The checksum
// is a signed header: S3 verifies the header, not a parameter of the URL. The URL has the rights of the client's
// credentials, and ends with them if that is earlier than ttl.
func (b Bucket) SignPut(ctx context.Context, key string, size int64, sha256 []byte,
	ttl time.Duration) (SignedPut,
	error) {
	out, err := s3.NewPresignClient(b.Client).PresignPutObject(ctx, &s3.PutObjectInput{
		Bucket:         &b.Name,
		Key:            &key,
		ContentLength:  &size,
		ChecksumSHA256: aws.String(base64.StdEncoding.EncodeToString(sha256)),
	}, s3.WithPresignExpires(ttl))
	if err != nil {
		return SignedPut{}, b.wrap("presign", key, err)
	}
	return SignedPut{out.URL, headersOf(out.SignedHeader)}, nil
}

// headersOf are the headers that a client has to add to a signed request.
func headersOf(signed http.Header) map[string]string {
	headers := map[string]string{}
	for name, values := range signed {
		low := strings.ToLower(name)
		if low != "host" && low != "content-length" {
			headers[low] = strings.Join(values, ",")
		}
	}
	return headers
}

// SignPart signs a request that writes part number n, from 1, of an upload that BeginSent has begun, of exactly size
// bytes. See SignPut.
func (b Bucket) SignPart(ctx context.Context, key, id string, n int, size int64,
	ttl time.Duration) (string, error) {
	out, err := s3.NewPresignClient(b.Client).PresignUploadPart(ctx, &s3.UploadPartInput{
		Bucket:        &b.Name,
		Key:           &key,
		UploadId:      &id,
		PartNumber:    aws.Int32(int32(n)),
		ContentLength: &size,
	}, s3.WithPresignExpires(ttl))
	if err != nil {
		return "", b.wrap("presign", key, err)
	}
	return out.URL, nil
}

// BeginSent begins a multipart upload whose parts are sent by others. It names no checksum: S3 would then refuse parts
// without one, and a signed request for a part has none.
func (b Bucket) BeginSent(ctx context.Context, key string) (id string, err error) {
	out, err := b.Client.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{Bucket: &b.Name,
		Key: &key},
		func(o *s3.Options) { o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired })
	if err != nil {
		return "", b.wrap("begin upload of", key, err)
	}
	return aws.ToString(out.UploadId), nil
}

// SentPart is a part that S3 has.
type SentPart struct {
	Number int
	Size   int64
	ETag   string
}

// SentParts lists the parts of an upload that S3 has, in order. It makes a request for each thousand. An upload that S3
// does not know, or not any more, is a NotFound.
func (b Bucket) SentParts(ctx context.Context, key, id string) (parts []SentPart, err error) {
	pages := s3.NewListPartsPaginator(b.Client, &s3.ListPartsInput{Bucket: &b.Name, Key: &key,
		UploadId: &id})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, b.wrap("list parts of", key, err)
		}
		for _, p := range page.Parts {
			parts = append(parts, SentPart{int(aws.ToInt32(p.PartNumber)), aws.ToInt64(p.Size),
				aws.ToString(p.ETag)})
		}
	}
	return parts, nil
}

// CompleteSent makes an object of parts, which are all that it consists of, in order. See Complete.
func (b Bucket) CompleteSent(ctx context.Context, key, id string, parts []SentPart) error {
	u := &Upload{Key: key, ID: id}
	for i, p := range parts {
		if p.Number != i+1 {
			return fmt.Errorf("s3: complete upload of %s: part %d is missing", key, i+1)
		}
		u.Parts = append(u.Parts, Part{ETag: p.ETag})
	}
	return b.Complete(ctx, u)
}

// AbortAll removes the unfinished multipart uploads of keys below prefix, as long as more returns true, and reports
// whether none is left.
func (b Bucket) AbortAll(ctx context.Context, prefix string, more func() bool) (all bool,
	err error) {
	in := &s3.ListMultipartUploadsInput{Bucket: &b.Name, Prefix: &prefix}
	for {
		page, err := b.Client.ListMultipartUploads(ctx, in)
		if err != nil {
			return false, b.wrap("list uploads below", prefix, err)
		}

		for _, u := range page.Uploads {
			if !more() {
				return false, nil
			}
			if err := b.Abort(ctx, &Upload{Key: aws.ToString(u.Key),
				ID: aws.ToString(u.UploadId)}); err != nil {
				return false, err
			}
		}

		if !aws.ToBool(page.IsTruncated) {
			return true, nil
		}
		in.KeyMarker, in.UploadIdMarker = page.NextKeyMarker, page.NextUploadIdMarker
	}
}

// Sums requests an object's size, and its SHA-256 if the store has it over the whole content; nil if it has not. A
// missing object is a NotFound.
func (b Bucket) Sums(ctx context.Context, key string) (size int64, sha256 []byte, err error) {
	out, err := b.Client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &b.Name, Key: &key,
		ChecksumMode: types.ChecksumModeEnabled})
	if err != nil {
		return 0, nil, b.wrap("head", key, err)
	}
	if sum := fullCRC(out.ChecksumSHA256, out.ChecksumType); sum != "" {
		sha256, err = base64.StdEncoding.DecodeString(sum)
	}
	if err != nil {
		return 0, nil, fault.New(fault.Unavailable, "s3: head %s: the checksum cannot be read: %w",
			key, err)
	}
	return aws.ToInt64(out.ContentLength), sha256, nil
}
