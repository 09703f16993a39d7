// Package manifest keeps a packaging manifest of each object: a Checkm manifest of all files
// of its newest version, with their digests and the URLs from which they can be downloaded.
//
// A consumer of events makes it, once after all changes of an object that are close together. It
// follows from the storage root alone, and can be made again at any time. Its second line says of
// which version it is:
//
//	manifests/{place of the object in the storage root}/manifest.checkm
package manifest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"archivist/pkg/events/consumer"
	"archivist/pkg/formats/ark"
	"archivist/pkg/formats/checkm"
	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/objects/aip"
	"archivist/pkg/objects/ocfl"
)

// Name of the consumer and of its handler.
const Name = "aip-manifest"

// Definition is the consumer that makes the manifests: after a minute without another change of the
// object, and within a quarter of an hour.
var Definition = consumer.Definition{
	Name:        Name,
	Version:     1,
	Description: "Keeps a packaging manifest of each object.",
	Filter:      "Object+Create|Modify",
	Target:      consumer.Target{Handler: Name},
	MaxDepth:    consumer.AnyDepth,
	Order:       consumer.OrderSubject,
	Coalesce:    &consumer.Coalesce{Debounce: 60, MaxWait: 15 * 60},
	Start:       consumer.StartHorizon,
}

// Updater makes manifests: the consumer's handler. API is the address of the API in URLs of
// files; without one they are URLs of the resolver of ARKs.
type Updater struct {
	Root    ocfl.Root
	Derived bucket.Bucket
	API     string
}

// Handle makes the manifests of objects. An object that cannot be read is a failure of its own. A batch
// is repeated as a whole if S3 failed; manifests that are right by then are not written again.
func (u Updater) Handle(ctx context.Context, b consumer.Batch) ([]consumer.Failure, error) {
	return consumer.Each(ctx, b, nil, func(ctx context.Context, it consumer.Item) error {
		err := u.update(ctx, it.Subject.ID)
		if err != nil && fault.Of(err) == "" {
			// S3 is to blame, not the object.
			return fault.New(fault.Unavailable, "manifest: %s: %w", it.Subject.ID, err)
		}
		return err
	})
}

// tries of the conditional write: another call may make the same manifest at the same time.
const tries = 5

// update makes the manifest of an object, unless there is one of this version or of a later one. The
// write has the condition that the manifest is still the one that was read, so an older version never
// replaces a newer one. After tries lost races it returns an Unavailable. The manifest is written as a
// stream of parts, and is visible only when it is complete: a crash leaves the one before.
func (u Updater) update(ctx context.Context, id string) error {
	for range tries {
		stored, err := u.Root.Head(ctx, id)
		if err != nil {
			return err
		}

		now, condition, err := u.current(ctx, id)
		if err != nil {
			return err
		}

		if now.number > stored.Head || now.number == stored.Head && now.digest == stored.Digest {
			return nil
		}

		w := u.Derived.Writer(ctx, Key(id), condition)
		err = u.write(ctx, w, aip.Head(u.Root, stored))
		if err != nil {
			return errors.Join(err, w.Abort())
		}

		err = w.Close()
		if !fault.Is(err, fault.Stale) {
			return err
		}
	}
	return fault.New(fault.Unavailable, "the manifest was changed by others %d times", tries)
}

// Key is where the manifest of an object is.
func Key(id string) string { return "manifests/" + ocfl.Prefix(id) + "manifest.checkm" }

// version is the version of an object that a manifest lists. The zero value, of which the number is 0,
// is older than each version.
type version struct {
	number int
	digest string // sha512 of the object's inventory
}

// comment is the second line of a manifest. What current reads back has to be what write has written:
// change both, or all manifests are made anew.
const comment = "Files of %s, version %d; sha512 of its OCFL inventory: %s"

// comments reads the first two lines of a manifest. The ARK may have any characters but a line break.
var comments = regexp.MustCompile(`^#%checkm_0\.7\n# Files of [^\n]*, version (\d+); sha512 of its OCFL inventory: ` +
	`([0-9a-f]{128})\n`)

// current is the version of the manifest that there is, 0 if there is none, with the condition for
// replacing it. A manifest whose second line cannot be read counts as version 0, and is replaced: the
// condition is its ETag all the same. Only its first 4 KiB are read.
func (u Updater) current(ctx context.Context, id string) (version, bucket.Condition, error) {
	body, info, err := u.Derived.Open(ctx, Key(id))
	if fault.Is(err, fault.NotFound) {
		return version{}, bucket.Condition{Absent: true}, nil
	}

	if err != nil {
		return version{}, bucket.Condition{}, err
	}

	defer body.Close()
	head, err := io.ReadAll(io.LimitReader(body, 4096))
	if err != nil {
		return version{}, bucket.Condition{}, err
	}

	var of version
	if m := comments.FindSubmatch(head); m != nil {
		of.number, _ = strconv.Atoi(string(m[1])) // digits
		of.digest = string(m[2])
	}
	return of, bucket.Condition{ETag: info.ETag}, nil
}

// page is how many files are read at once.
const page = 1000

// write writes the manifest of a version as a stream. The depositor's files come first, in pages, then
// the system files; memory does not grow with the object. A row has the sha256 of its file; a system
// file may have only the sha512 of the inventory.
func (u Updater) write(ctx context.Context, w io.Writer, v aip.Version) error {
	m := checkm.NewStored(w, fmt.Sprintf(comment, v.Object.ID, v.Number, v.Object.Digest))
	for from := int64(0); ; {
		files, next, err := v.Files(ctx, from, page)
		if err != nil {
			return err
		}

		for _, f := range files {
			err := m.Row(checkm.Row{
				URL:       u.url(v, f.Path),
				Algorithm: "sha256",
				Digest:    f.Digests["sha256"],
				Size:      f.Size,
				Modified:  f.Modified,
				Name:      f.Path,
				MediaType: f.MediaType,
			})
			if err != nil {
				return err
			}
		}

		if len(files) < page {
			break
		}

		from = next
	}

	for _, path := range v.Object.SystemFiles(v.Number) {
		size, err := v.Root.Size(ctx, v.Object, v.Number, path)
		if err != nil {
			return err
		}

		row := checkm.Row{URL: u.url(v, path), Algorithm: "sha256", Size: size, Name: path}
		digests := v.Object.Digests(v.Number, path)
		row.Digest = digests["sha256"]
		if row.Digest == "" {
			row.Algorithm, row.Digest = "sha512", digests["sha512"]
		}

		if err := m.Row(row); err != nil {
			return err
		}
	}
	return m.Close()
}

// url is where a file of a version can be downloaded. Without an address of the API, or for an id that
// is no ARK, it is a URL of the resolver n2t.net: {ark}/v{n}/{path}. The path is escaped; slashes in
// the query are, too.
func (u Updater) url(v aip.Version, path string) string {
	id, err := ark.Parse(v.Object.ID)
	if u.API == "" || err != nil {
		at := &url.URL{
			Scheme: "https",
			Host:   "n2t.net",
			Path:   fmt.Sprintf("/%s/v%d/%s", v.Object.ID, v.Number, path),
		}
		return at.String()
	}
	return fmt.Sprintf("%s/v1/objects/%s/%s/versions/%d/content?path=%s",
		strings.TrimSuffix(u.API, "/"),
		url.PathEscape(id.NAAN), url.PathEscape(id.Name), v.Number, url.QueryEscape(path))
}
