// Package aiptest stores objects in a storage root on a twin of S3, so that readers of
// stored versions can be tested without the stages that write them.
//
//	root := aiptest.New(t)
//	stored := root.Store(ark, map[string]string{"a.txt": "content"}, aiptest.System("maps", "a local id", "", ""))
package aiptest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"testing"
	"time"

	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/bucket/buckettest"
	"archivist/pkg/kernel/fetch"
	"archivist/pkg/objects/aip"
	"archivist/pkg/objects/ocfl"
)

// Root is a storage root. The nth version that is stored there is by "job{n}", n seconds
// after 1970.
type Root struct {
	ocfl.Root
	Derived bucket.Bucket // empty
	Twin    *buckettest.Twin
	Message string     // of the versions that are stored next
	User    *ocfl.User // likewise

	t      testing.TB
	stored int // versions
}

// New makes an empty storage root.
func New(t testing.TB) *Root {
	twin, buckets := buckettest.Open(t, "storage", "work", "derived")
	return &Root{
		Root:    ocfl.Root{Bucket: buckets[0], Work: buckets[1]},
		Derived: buckets[2],
		Twin:    twin,
		t:       t,
	}
}

// Store stores a version of an object: producer's files and system files by their names
// below "producer/" and "system/". The list of files is added.
func (r *Root) Store(id string, producer, system map[string]string) *ocfl.Stored {
	r.t.Helper()
	var files []ocfl.File
	var entries []aip.Entry
	for _, name := range slices.Sorted(maps.Keys(producer)) {
		f := File("producer/"+name, producer[name])
		files = append(files, f)
		f.Data, f.Source = nil, "in the work bucket"
		entries = append(entries, aip.Entry{File: f, URL: "https://example.org/" + name})
	}

	var list bytes.Buffer
	if err := aip.WriteList(&list, each(entries)); err != nil {
		r.t.Fatal(err)
	}

	files = append(files, File(aip.ListName, list.String()))
	for name, content := range system {
		files = append(files, File("system/"+name, content))
	}
	return r.Put(id, files...)
}

// Put stores a version of an object that has these files.
func (r *Root) Put(id string, files ...ocfl.File) *ocfl.Stored {
	r.t.Helper()
	r.stored++
	stored, err := r.put(r.t.Context(), id, fmt.Sprintf("job%d", r.stored), files)
	if err != nil {
		r.t.Fatal(err)
	}
	return stored
}

// put stores a version in the four steps of package ocfl, as the stage Store does.
func (r *Root) put(ctx context.Context, id, job string, files []ocfl.File) (*ocfl.Stored, error) {
	var inventory bytes.Buffer
	var contents []ocfl.Content
	version := ocfl.Version{
		Created: time.UnixMilli(int64(r.stored) * 1000).UTC(),
		Message: r.Message,
		User:    r.User,
	}

	p, err := r.Prepare(ctx, ocfl.Draft{
		ID:      id,
		Job:     job,
		Files:   each(files),
		Version: version,
	}, &inventory,
		func(c ocfl.Content) error { contents = append(contents, c); return nil })
	if err != nil {
		return nil, err
	}

	if err := r.Declare(ctx, id); err != nil {
		return nil, err
	}

	for _, c := range contents {
		if err := r.Copy(ctx, id, c, func() bool { return true }); err != nil {
			return nil, err
		}
	}

	text := func(context.Context) (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(inventory.Bytes())), nil
	}

	owner := ocfl.Owner{Job: job, Fence: func(context.Context) error { return nil }}
	published, err := r.Publish(ctx, p, text, owner)
	if err != nil {
		return nil, err
	}

	if _, err := r.Finish(ctx, id, owner, published); err != nil {
		return nil, err
	}
	return r.Head(ctx, id)
}

// File is a file with its content in memory.
func File(path, content string) ocfl.File {
	d := fetch.NewDigester()
	_, _ = io.WriteString(d, content) // a digester never fails
	return ocfl.File{
		Path:    path,
		Size:    d.Size,
		Digests: d.Sums(),
		CRC64:   d.CRC64NVME(),
		Data:    []byte(content),
	}
}

// System are system files by their names: of an object of a collection, with local ids
// separated by semicolons, and a description as ERC and as elements of Dublin Core.
func System(collection, localIDs, erc, dc string) map[string]string {
	return map[string]string{
		"mrt-owner.txt":      "owner: " + collection + "\n",
		"mrt-membership.txt": "collection: " + collection + "\n",
		"mrt-mom.txt":        "localIdentifier: " + localIDs + "\n",
		"mrt-erc.txt":        erc,
		"mrt-dc.xml":         `<dc xmlns:dc="http://purl.org/dc/elements/1.1/">` + dc + `</dc>`,
	}
}

func each[T any](values []T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, v := range values {
			if !yield(v, nil) {
				return
			}
		}
	}
}
