package bucket

import (
	"context"
	"fmt"
	"io"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// Same streams one object from a byte on, on the condition that the object still has an ETag.
// A Stale means that it has changed. At its end the stream is empty. The caller closes the
// stream. So a stream that broke can be continued without mixing two contents.
func (b Bucket) Same(ctx context.Context, key, etag string, from int64) (io.ReadCloser, error) {
	return b.openFrom(ctx, key, &s3.GetObjectInput{
		Bucket:  &b.Name,
		Key:     &key,
		IfMatch: &etag,
		Range:   aws.String(fmt.Sprintf("bytes=%d-", from)),
	})
}

// At reads ranges of one object, on the condition that it still has an ETag. It is an
// io.ReaderAt, as readers of ZIP and other formats with an index at the end want it.
type At struct {
	Context context.Context
	Bucket  Bucket
	Key     string
	ETag    string
}

// ReadAt reads a range with one request. A Stale means that the object has changed. At the
// object's end it returns what there is, with io.EOF.
func (a At) ReadAt(p []byte, off int64) (int, error) {
	body, _, err := a.Bucket.open(a.Context, a.Key, &s3.GetObjectInput{
		Bucket:  &a.Bucket.Name,
		Key:     &a.Key,
		IfMatch: &a.ETag,
		Range:   aws.String(fmt.Sprintf("bytes=%d-%d", off, off+int64(len(p))-1)),
	})
	if err != nil {
		return 0, err
	}

	defer body.Close()
	n, err := io.ReadFull(body, p)
	if err == io.ErrUnexpectedEOF {
		return n, io.EOF
	}
	return n, a.Bucket.wrap("get", a.Key, err)
}
