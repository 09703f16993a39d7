package deposit

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"archivist/pkg/api/v1/plan"
	"archivist/pkg/kernel/terminal"
)

// Digest reads all files, some at a time, and computes their digests. What cannot be read, or changes meanwhile, is a
// problem of the deposit. The error is that of the context.
func (d *Deposit) Digest(ctx context.Context, parallel int, progress *terminal.Transfer) error {
	of, _ := d.Size()
	var done atomic.Int64
	var mu sync.Mutex
	inParallel(parallel, func(do func(func())) {
		for _, o := range d.Objects {
			for _, f := range o.Files {
				do(func() {
					if ctx.Err() != nil {
						return
					}
					if err := digest(ctx, f, progress); err != nil && ctx.Err() == nil {
						mu.Lock()
						defer mu.Unlock()
						d.wrong("%v", err)
					}
					progress.Title(fmt.Sprintf("digests of %d of %s", done.Add(1),
						terminal.Count(of, "file")))
				})
			}
		}
	})
	return ctx.Err()
}

// digest computes the digest of a file.
func digest(ctx context.Context, f *plan.File, progress *terminal.Transfer) error {
	in, err := open(f)
	if err != nil {
		return err
	}
	defer in.Close()

	sum := sha256.New()
	// One byte more than it had is enough to see that it grows.
	n, err := io.Copy(io.MultiWriter(sum, progress), io.LimitReader(stopping{ctx, in}, f.Size+1))
	switch {
	case err != nil:
		return unreadable(f.Path, err)
	case n != f.Size:
		return changed(f)
	}
	f.SHA256 = hex.EncodeToString(sum.Sum(nil))
	return unchanged(f, in)
}

// stopping is a reader that ends with its context.
type stopping struct {
	ctx context.Context
	in  io.Reader
}

// Read reads.
func (s stopping) Read(p []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	return s.in.Read(p)
}
