package stage

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"archivist/pkg/ingest/collection"
	"archivist/pkg/ingest/workspace"
	"archivist/pkg/kernel/bucket"
	"archivist/pkg/objects/formats"
)

// early identifies the formats of files when they are received, so that the depositor is told what the component that
// identifies them again would find out after the receipt. It is one at a time: a container's entries are in memory.
// What fails here, or takes too long, is no warning: the component has the last word. The policy of the collection
// decides here: a file that it refuses is not stored.
type early struct {
	identify formats.Identify // nil: nothing is identified
	policy   *collection.Formats
	mu       sync.Mutex
}

// earlyTime is for one file.
const earlyTime = 10 * time.Second

// judge says that the content of a file is not what its name announces, or that the collection does not recommend its
// format; "" if there is nothing to say. refused is why the collection does not take the file, or "". content opens it.
// A file that the library cannot read has no known format. An error means that it could not be identified now, and that
// the collection would refuse it without a format: that may be our storage's failure, so the step is tried again.
func (e *early) judge(ctx context.Context, name string, size int64,
	content func(context.Context) (io.ReaderAt, error)) (warning, refused string, err error) {
	if e == nil || e.identify == nil {
		return "", "", nil
	}

	matches, failed := e.identified(ctx, name, size, content)
	if failed == nil {
		warning = formats.Mismatch(name, matches)
	}
	switch verdict, why := e.policy.Judge(matches); {
	case verdict == collection.Refused && failed != nil: // its kind is not that of the source
		return "", "", fmt.Errorf("the format of %s, by which the collection decides, could not be identified: %v",
			name, failed)
	case verdict == collection.Refused:
		return "", why, nil
	case verdict == collection.Warned:
		warning = joined([]string{warning, why})
	}
	return warning, "", nil
}

// identified are the formats of a file.
func (e *early) identified(ctx context.Context, name string, size int64,
	content func(context.Context) (io.ReaderAt, error)) (matches []formats.Match, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	// The content is a stranger's, and the library is not ours.
	defer func() {
		if recover() != nil {
			matches, err = nil, nil
		}
	}()

	ctx, cancel := context.WithTimeout(ctx, earlyTime)
	defer cancel()
	from, err := content(ctx)
	if err != nil {
		return nil, err
	}
	return e.identify(ctx, name, from, size)
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
