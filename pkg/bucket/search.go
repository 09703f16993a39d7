package bucket

import (
	"context"
	"fmt"
	"io"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// block is how much a search reads at once.
const block = 64 << 10

// Search finds a record in a part of an object, from byte from to byte to, whose
// records are in order of their keys: some small reads in place of one that reads
// all. first finds the first whole record that begins in a piece of the text, and
// its key. Search returns where the record with the wanted key begins.
func (b Bucket) Search(ctx context.Context, key string, from, to int64, want string, first func(text []byte, start bool) (at int, key string, ok bool)) (int64, bool, error) {
	low, high := from, to
	for high-low > block {
		mid := low + (high-low)/2
		text, err := b.piece(ctx, key, mid, min(mid+block, high))
		if err != nil {
			return 0, false, err
		}
		at, k, ok := first(text, false)
		if ok && k <= want {
			low = mid + int64(at)
			if k == want {
				return low, true, nil
			}
			continue
		}
		high = mid
	}
	// The record begins before high, and may end after it.
	text, err := b.piece(ctx, key, low, min(high+block, to))
	if err != nil {
		return 0, false, err
	}
	for pos, start := 0, low == from; ; start = false {
		at, k, ok := first(text[pos:], start)
		if !ok || k > want {
			return 0, false, nil
		}
		if pos += at; k == want {
			return low + int64(pos), true, nil
		}
		pos++
	}
}

// piece reads the bytes from one place to another.
func (b Bucket) piece(ctx context.Context, key string, from, to int64) ([]byte, error) {
	if from >= to {
		return nil, nil
	}
	body, _, err := b.open(ctx, key, &s3.GetObjectInput{Bucket: &b.Name, Key: &key, Range: aws.String(fmt.Sprintf("bytes=%d-%d", from, to-1))})
	if err != nil {
		return nil, err
	}
	defer body.Close()
	text, err := io.ReadAll(body)
	return text, b.told("get", key, err)
}
