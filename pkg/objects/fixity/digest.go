package fixity

import (
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"encoding"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"

	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/fault"
)

// Part is a file that was read in part: the digest so far. It can be saved, and continued by another
// process. If the file has another ETag then, it is read from its beginning.
type Part struct {
	// Sum is the state of the hash, as encoding.BinaryMarshaler writes it: some hundred bytes.
	Key  string `dynamo:"file_key" json:"key"`
	ETag string `dynamo:"etag" json:"etag"`
	At   int64  `dynamo:"at_byte" json:"at"`
	Sum  []byte `dynamo:"digest_state" json:"state,omitempty"`
}

// ErrStopped means that work has stopped before its end, because its time or its bytes are used up.
// Called again, it continues.
var ErrStopped = errors.New("stopped")

// newHash is the algorithm of a digest: OCFL has these two for content (OCFL 1.1, section 3.4). A
// text that is no digest, such as "", gets sha512.
func newHash(digest string) hash.Hash {
	if len(digest) == hex.EncodedLen(sha256.Size) {
		return sha256.New()
	}
	return sha512.New()
}

// isDigest reports whether a text is a digest of one of the two.
func isDigest(text string) bool {
	sum, err := hex.DecodeString(text)
	return err == nil && (len(sum) == sha256.Size || len(sum) == sha512.Size)
}

// block is how many bytes are read at once, at most.
const block = 1 << 20

// Digest reads the rest of a file, and returns its digest by the algorithm that another digest has.
// more gets how many bytes were read since its last call, and returns how many may follow, 0 to stop. A
// missing file is a NotFound. Other errors leave p where it was: the next call continues there.
func (p *Part) Digest(ctx context.Context, b bucket.Bucket, like string,
	more func(read int64) int64) (string, error) {
	sum := newHash(like)
	body, err := p.open(ctx, b, sum)
	if err != nil {
		return "", err
	}

	defer body.Close()
	buffer, n := make([]byte, block), 0
	for {
		// Before each read, so that a call can stop, and be saved, within a large file.
		most := more(int64(n))
		if most <= 0 {
			return "", errors.Join(p.keep(sum), ErrStopped)
		}

		n, err = body.Read(buffer[:min(block, most)])
		_, _ = sum.Write(buffer[:n]) // a hash never fails
		p.At += int64(n)
		if err == io.EOF {
			more(int64(n))
			return hex.EncodeToString(sum.Sum(nil)), nil
		}

		if err != nil {
			more(int64(n))
			return "", errors.Join(p.keep(sum),
				fmt.Errorf("fixity: read %s at byte %d: %w", p.Key, p.At, err))
		}
	}
}

// keep notes the digest of the bytes that were read.
func (p *Part) keep(sum hash.Hash) (err error) {
	p.Sum, err = sum.(encoding.BinaryMarshaler).MarshalBinary()
	return err
}

// open opens the file where it was left, or at its beginning if it is another file now. sum gets the
// digest of the bytes before.
func (p *Part) open(ctx context.Context, b bucket.Bucket, sum hash.Hash) (io.ReadCloser, error) {
	if len(p.Sum) > 0 {
		body, err := b.Same(ctx, p.Key, p.ETag, p.At)
		if err == nil {
			return body, sum.(encoding.BinaryUnmarshaler).UnmarshalBinary(p.Sum)
		}
		if !fault.Is(err, fault.Stale) {
			return nil, err
		}
	}

	body, info, err := b.Open(ctx, p.Key)
	p.ETag, p.At, p.Sum = info.ETag, 0, nil
	return body, err
}
