package runner

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/fault"
)

// Logs reads what runs have stored, by the Prefix of their Jobs. It needs only the right to read.
type Logs struct{ Bucket bucket.Bucket }

// pageParts is how many objects of a log a page has: they are read at once, and have about a MiB
// together.
const pageParts = 16

// Read reads the next page of a log: what follows the object with the number after, 0 at the
// beginning. next is the last object of the page, after if there is nothing new. While a run goes
// on, more can follow at any time; once it has a Result, a page without parts is the end.
func (l *Logs) Read(ctx context.Context, prefix string,
	after int) (parts []Part, next int, err error) {
	listed, _, err := l.Bucket.ListAfter(ctx, prefix+LogFolder, logKey(prefix, after))
	if err != nil {
		return nil, after, err
	}

	listed = listed[:min(len(listed), pageParts)]
	read := make([][]Part, len(listed))
	side, inner := errgroup.WithContext(ctx)
	for i, o := range listed {
		side.Go(func() (err error) {
			read[i], err = l.part(inner, o.Key)
			return err
		})
	}

	err = side.Wait()
	if err != nil || len(listed) == 0 {
		return nil, after, err
	}

	last := strings.TrimPrefix(listed[len(listed)-1].Key, prefix+LogFolder)
	next, err = strconv.Atoi(last)
	if err != nil {
		return nil, after, fault.New(fault.Invalid, "the key %s%s%s is not that of a part", prefix,
			LogFolder, last)
	}
	return slices.Concat(read...), next, nil
}

// part reads one object of a log: a Part in each line. What is none is an Invalid.
func (l *Logs) part(ctx context.Context, key string) (parts []Part, err error) {
	data, _, err := l.Bucket.Read(ctx, key)
	if err != nil {
		return nil, err
	}

	for dec := json.NewDecoder(bytes.NewReader(data)); dec.More(); {
		var p Part
		err = dec.Decode(&p)
		if err != nil {
			return nil, fault.New(fault.Invalid, "%s is damaged: %w", key, err)
		}
		parts = append(parts, p)
	}
	return parts, nil
}

// Outputs are the files that a run has kept, in the order in which they were; a fault.NotFound if
// it has no Result.
func (l *Logs) Outputs(ctx context.Context, prefix string) ([]Output, error) {
	result, err := read[Result](ctx, l.Bucket, prefix+ResultKey)
	if err != nil {
		return nil, err
	}

	if result == nil {
		return nil, fault.New(fault.NotFound, "the run has no result yet")
	}
	return result.Outputs, nil
}

// Link is a URL by which an output can be read for some time, under the name of the file. A file
// that the run has not kept is a NotFound: nothing else in the bucket can be reached in this way.
func (l *Logs) Link(ctx context.Context, prefix, file string, ttl time.Duration) (string, error) {
	all, err := l.Outputs(ctx, prefix)
	if err != nil {
		return "", err
	}
	if !slices.ContainsFunc(all, func(o Output) bool { return o.Path == file }) {
		return "", fault.New(fault.NotFound, "the run has no output %q; it has %s", file, few(all))
	}

	to, err := l.Bucket.Presign(ctx, outputKey(prefix, file), path.Base(file), ttl)
	if fault.Is(err, fault.NotFound) {
		err = fault.New(fault.NotFound, "the output %q is missing", file)
	}
	return to, err
}

// few names some outputs.
func few(all []Output) string {
	const most = 5
	if len(all) == 0 {
		return "none"
	}

	var names []string
	for _, o := range all[:min(len(all), most)] {
		names = append(names, fmt.Sprintf("%q", o.Path))
	}

	if len(all) > most {
		names = append(names, fmt.Sprintf("%d more", len(all)-most))
	}
	return strings.Join(names, ", ")
}
