package upload

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/fetch"
)

// SumOf is the SHA-256 of a content as uploads name it.
func SumOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// Bring opens an upload for one content, and stores it: for a submission that brings its payload. The content is at
// most Part bytes, so that it is one object. With the key of an upload that is there, the same request finds that
// one, and what it has is not stored again.
func (s *Store) Bring(ctx context.Context, in Request, content []byte) (*Upload, error) {
	in.Files, in.Bytes = 1, int64(len(content))
	row, err := s.Open(ctx, in)
	if err != nil || row.State == Submitted {
		return row, err
	}

	sum := SumOf(content)
	send, err := s.List(ctx, row.ID, []Listed{{Sum: sum, Size: in.Bytes}})
	if err != nil || send[0].Stored {
		return row, err
	}

	came := fetch.NewDigester()
	_, _ = came.Write(content) // it cannot fail
	if _, err := s.Work.PutSum(ctx, row.objectKey(sum), content, came.CRC64NVME()); err != nil {
		return nil, err
	}
	found, err := s.Stored(ctx, row.ID, []string{sum})
	if err == nil && !found[0].Stored {
		err = fault.New(fault.Unavailable, "the file %s of the upload %s was sent, and is not "+
			"found: %s", sum, row.ID,
			found[0].Problem)
	}
	return row, err
}
