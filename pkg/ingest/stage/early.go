package stage

import (
	"context"
	"io"
	"sync"
	"time"

	"archivist/pkg/ingest/transfer"
	"archivist/pkg/ingest/workspace"
	"archivist/pkg/kernel/bucket"
	"archivist/pkg/objects/formats"
)

// early identifies the formats of files when they are received, so that the depositor is told what the component that
// identifies them again would find out after the receipt. It is one at a time: a container's entries are in memory.
// What fails here, or takes too long, is no warning: the component has the last word.
type early struct {
	identify formats.Identify // nil: nothing is identified
	mu       sync.Mutex
}

// earlyTime is for one file.
const earlyTime = 10 * time.Second

// warning says that the content of a file is not what its name announces, "" if it is, or if that is not known.
func (e *early) warning(ctx context.Context, name string, came *transfer.File, work workspace.Store) (text string) {
	if e == nil || e.identify == nil {
		return ""
	}

	e.mu.Lock()
	defer e.mu.Unlock()
	// The content is a stranger's, and the library is not ours.
	defer func() {
		if recover() != nil {
			text = ""
		}
	}()

	ctx, cancel := context.WithTimeout(ctx, earlyTime)
	defer cancel()
	content, err := contentOf(ctx, came, work)
	if err != nil {
		return ""
	}

	matches, err := e.identify(ctx, name, content, came.Sums.Size)
	if err != nil {
		return ""
	}
	return formats.Mismatch(name, matches)
}

// contentOf is the content of a received file: in memory, or in the work bucket, of which ranges are read.
func contentOf(ctx context.Context, came *transfer.File, work workspace.Store) (io.ReaderAt, error) {
	if whole := came.Whole(); whole != nil {
		return whole, nil
	}

	info, err := work.Head(ctx, came.Key)
	if err != nil {
		return nil, err
	}
	return bucket.At{Context: ctx, Bucket: work.Bucket, Key: came.Key, ETag: info.ETag}, nil
}
