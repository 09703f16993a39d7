package bucket

import (
	"context"
	"fmt"
	"io"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// block is the number of bytes that a search reads at once. One request of S3 costs the same
// for any size, and this much takes hardly longer than its latency.
const block = 64 << 10

// finder finds the first whole record that begins in a piece of a text, and its key; start
// means that the piece begins with a record. at is where the record begins. ok is false if
// the piece has no whole record: then a longer one is read. The format of records is the
// finder's alone.
type finder func(text []byte, start bool) (at int, key string, ok bool)

// Search finds a record in a part of an object, from byte from to byte to, whose
// records are in order of their keys: a few small reads instead of reading
// everything. Search returns where the record with the wanted key begins. Records can be
// longer than a block.
//
// It halves the part until a block is left, which it reads from the beginning. If no record
// has the key, found is false, and the place means nothing. The object must not change
// meanwhile: no condition is set.
func (b Bucket) Search(ctx context.Context, key string, from, to int64, want string,
	first finder) (int64,
	bool, error) {
	low, high := from, to
	for high-low > block {
		mid := low + (high-low)/2
		at, k, ok, err := b.after(ctx, key, mid, to, first)
		if err != nil {
			return 0, false, err
		}

		// No record begins between mid and high, or the first that does is behind the wanted
		// one.
		if !ok || mid+int64(at) >= high || k > want {
			high = mid
			continue
		}

		low = mid + int64(at)
		if k == want {
			return low, true, nil
		}
	}

	// The record begins before high, and may end after it.
	for size := high - low + block; ; size *= 2 {
		text, err := b.piece(ctx, key, low, min(low+size, to))
		if err != nil {
			return 0, false, err
		}
		pos, found, over := scan(text, low == from, want, first)
		if found || over || low+size >= to {
			return low + int64(pos), found, nil
		}
	}
}

// after finds the first whole record that begins after mid. It reads twice as much each time
// until there is one, or the part ends.
func (b Bucket) after(ctx context.Context, key string, mid, to int64,
	first finder) (at int, k string, ok bool,
	err error) {
	for size := int64(block); ; size *= 2 {
		text, err := b.piece(ctx, key, mid, min(mid+size, to))
		if err != nil {
			return 0, "", false, err
		}
		at, k, ok = first(text, false)
		if ok || mid+size >= to {
			return at, k, ok, nil
		}
	}
}

// scan looks for a record in a text in which records follow each other; over means that a
// later one was found. pos is where the found one begins.
func scan(text []byte, start bool, want string, first finder) (pos int, found, over bool) {
	for ; ; start = false {
		at, k, ok := first(text[pos:], start)
		if !ok {
			return 0, false, false
		}
		pos += at
		if k >= want {
			return pos, k == want, k > want
		}
		pos++
	}
}

// piece reads the bytes from one place to another. The byte at to is not read.
func (b Bucket) piece(ctx context.Context, key string, from, to int64) ([]byte, error) {
	if from >= to {
		return nil, nil
	}

	body, _, err := b.open(ctx, key, &s3.GetObjectInput{
		Bucket: &b.Name,
		Key:    &key,
		Range:  aws.String(fmt.Sprintf("bytes=%d-%d", from, to-1)),
	})
	if err != nil {
		return nil, err
	}

	defer body.Close()
	text, err := io.ReadAll(body)
	return text, b.wrap("get", key, err)
}
