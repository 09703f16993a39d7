package stage

import (
	"context"
	"io"
	"sync"
	"time"

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

// warning says that the content of a file is not what its name announces, "" if it is, or if that is not known. content
// opens it.
func (e *early) warning(ctx context.Context, name string, size int64,
	content func(context.Context) (io.ReaderAt, error)) (text string) {
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
	from, err := content(ctx)
	if err != nil {
		return ""
	}

	matches, err := e.identify(ctx, name, from, size)
	if err != nil {
		return ""
	}
	return formats.Mismatch(name, matches)
}

// contentAt opens a file of the work bucket, of which ranges are read. whole is its content if that is in memory.
func contentAt(work workspace.Store, key string, whole io.ReaderAt) func(context.Context) (io.ReaderAt, error) {
	return func(ctx context.Context) (io.ReaderAt, error) {
		if whole != nil {
			return whole, nil
		}
		info, err := work.Head(ctx, key)
		return bucket.At{Context: ctx, Bucket: work.Bucket, Key: key, ETag: info.ETag}, err
	}
}
