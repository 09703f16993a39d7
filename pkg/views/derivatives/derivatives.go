// Package derivatives makes thumbnails of the images in stored versions.
//
// A thumbnail is stored under the digest of its image: it is made once, whatever objects have
// the image, and can be made again at any time. For an image without a thumbnail the reason is stored
// in the same place. What was done for a version is a row, and an event of its object:
//
//	DERIVATIVES#{ark}  V#{n}                     the images of a version that were looked at
//	thumbnails/{2 digits}/{sha512}.jpg           a thumbnail
//	thumbnails/{2 digits}/{sha512}.json          the reason why there is none
package derivatives

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"archivist/pkg/events/consumer"
	"archivist/pkg/events/event"
	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
	"archivist/pkg/objects/aip"
	"archivist/pkg/objects/inventory"
	"archivist/pkg/objects/ocfl"
)

// Name of the consumer, of its handler, and of the component that its events have.
const Name = "derivatives"

// Definition is the consumer that makes thumbnails. One image at a time is in memory. Its own
// events are of objects, and it reacts to versions only, so it cannot trigger itself; that it
// ignores its own events is a second guard.
var Definition = consumer.Definition{
	Name:        Name,
	Version:     1,
	Description: "Makes thumbnails of images.",
	Filter:      "Version+Create",
	Target:      consumer.Target{Handler: Name},
	MaxDepth:    consumer.AnyDepth,
	Batch:       1,
	Concurrency: 1,
	OwnEvents:   consumer.OwnChain,
	Start:       consumer.StartHorizon,
}

// Maker makes derivatives: the consumer's handler. It must not be copied after its first use: it has a
// mutex.
type Maker struct {
	Table     *table.Table
	NewID     func() string
	Now       func() time.Time
	Inventory inventory.Store
	Root      ocfl.Root
	Derived   bucket.Bucket
	Limits    Limits
	Budget    time.Duration // of one call
	one       sync.Mutex    // one image at a time is in memory
}

// progress is what was done for the images of a version: the row DERIVATIVES#{ark} V#{n}. It is written
// only where a call ends, so a call that dies repeats its images; those have their thumbnails already.
type progress struct {
	table.Head
	// From is the byte in the list of the version's files up to which all are done. It is a place of
	// aip.Version.Files.
	From int64 `dynamo:"from_byte"`
	// Done is set in the same transaction as the event of the object.
	Done bool `dynamo:"complete"`
	Result
}

// Result is what was made of a version: the detail of the event derivative.create. The names of its
// JSON are stored in events, and stay.
type Result struct {
	Version int      `dynamo:"ocfl_version" json:"version"`
	Made    int      `dynamo:"made" json:"made"`     // images with a thumbnail
	Failed  int      `dynamo:"failed" json:"failed"` // images without one
	Reasons []Reason `dynamo:"reasons,omitempty" json:"reasons,omitempty"`
}

// Reason says why there is no thumbnail of a file.
type Reason struct {
	Path   string `dynamo:"file_path" json:"path"`
	Reason string `dynamo:"reason" json:"reason"`
}

// mostReasons is the maximum number of reasons in a result. The others are stored in the
// place of the thumbnails.
const mostReasons = 20

// Handle makes the thumbnails of versions. If the time is over, it remembers how far it came, and
// returns an Unavailable: called again, it continues. A replay looks at all images of a version again,
// also of one that is done; a thumbnail that is stored is not made again. An image that cannot be read
// is no failure: the reason is stored.
func (m *Maker) Handle(ctx context.Context, b consumer.Batch) ([]consumer.Failure, error) {
	until := m.Now().Add(m.Budget)
	return consumer.Each(ctx, b, nil, func(ctx context.Context, it consumer.Item) error {
		return m.version(ctx, it.Subject.ID, b.Replay, until)
	})
}

// version makes the thumbnails of a version, "{ark}/v{n}". again is set for replays. The errors are
// those of the storage (Unavailable), of the table, and an Invalid for an id that is not one of a
// version.
func (m *Maker) version(ctx context.Context, id string, again bool, until time.Time) error {
	ark, n, err := inventory.ParseVersionID(id)
	if err != nil {
		return err
	}

	p, err := m.progress(ctx, ark, n)
	if err != nil || p.Done && !again {
		return err
	}

	before := p.Result
	if p.Done {
		p.Done, p.From, p.Result = false, 0, Result{Version: n}
	}

	stored, err := m.Root.Head(ctx, ark)
	if err != nil {
		return unavailable(err)
	}

	if err := m.images(ctx, aip.Of(m.Root, stored, n), p, until); err != nil {
		return err
	}
	return m.finish(ctx, ark, p, before)
}

// progress reads the row of a version. One that is not there is begun, with Rev 0, and is not written
// yet.
func (m *Maker) progress(ctx context.Context, ark string, n int) (*progress, error) {
	key := table.Head{PK: "DERIVATIVES#" + ark, SK: fmt.Sprintf("V#%06d", n)}
	p := &progress{Head: key, Result: Result{Version: n}}
	err := m.Table.Get(ctx, p.Key(), p)
	if fault.Is(err, fault.NotFound) {
		err = nil
	}
	return p, err
}

// page is how many files are looked at between two checks of how far it is.
const page = 200

// images looks at all files of a version. The clock is looked at before each file, and the row moves on
// by whole pages: a page that was interrupted is looked at again, and its images found by their keys.
// So result is of its own until the page is complete. p is changed.
func (m *Maker) images(ctx context.Context, v aip.Version, p *progress, until time.Time) error {
	for {
		files, next, err := v.Files(ctx, p.From, page)
		if err != nil {
			return unavailable(err)
		}

		result := p.Result
		result.Reasons = slices.Clone(p.Reasons)
		for _, f := range files {
			if !m.Now().Before(until) || ctx.Err() != nil {
				// The context may be over, too: then the save fails, and what was not saved is looked at again.
				return m.interrupted(ctx, v, p)
			}

			if !isImage(f) {
				continue
			}

			reason, err := m.image(ctx, v, f)
			if err != nil {
				return err
			}

			result.add(f.Path, reason)
		}

		p.From, p.Result = next, result
		if len(files) < page {
			return nil
		}
	}
}

// interrupted saves how far it is. It always returns an error: an Unavailable, so that the consumer
// calls again, or that of the table.
func (m *Maker) interrupted(ctx context.Context, v aip.Version, p *progress) error {
	if err := m.save(ctx, v.Object.ID, p, nil); err != nil && !fault.Is(err, fault.Stale) {
		return err // a Stale: another call is further
	}
	return fault.New(fault.Unavailable,
		"%s v%d: the time was over after %d images; the rest follows", v.Object.ID,
		v.Number, p.Made+p.Failed)
}

// add counts an image: made if the reason is "".
func (r *Result) add(path, reason string) {
	if reason == "" {
		r.Made++
		return
	}
	r.Failed++
	if len(r.Reasons) < mostReasons {
		r.Reasons = append(r.Reasons, Reason{path, reason})
	}
}

// Media types and endings of the formats that can be read.
var (
	mediaTypes = []string{"image/jpeg", "image/jpg", "image/pjpeg", "image/png", "image/gif",
		"image/tiff",
		"image/webp"}
	endings = []string{".jpg", ".jpeg", ".png", ".gif", ".tif", ".tiff", ".webp"}
)

// isImage reports whether a file may be an image that can be read: by the media type that the depositor
// gave, or by the ending of its name. Both can be wrong; the decoder decides by the content.
func isImage(f aip.Entry) bool {
	kind, _, _ := strings.Cut(strings.ToLower(f.MediaType), ";")
	return slices.Contains(mediaTypes, strings.TrimSpace(kind)) ||
		slices.Contains(endings, strings.ToLower(path.Ext(f.Path)))
}

// image makes the thumbnail of a file, unless there is one. It returns the reason why there can be
// none, "" if there is one. The keys are digests of the content, so two calls at once write the same
// bytes, and the writes need no condition.
func (m *Maker) image(ctx context.Context, v aip.Version, f aip.Entry) (reason string, err error) {
	digest := f.Digests["sha512"]
	_, err = m.Derived.Head(ctx, Key(digest))
	if !fault.Is(err, fault.NotFound) {
		return "", unavailable(err)
	}

	thumb, err := m.make(ctx, v, f)
	if fault.Is(err, fault.Invalid) {
		reason = cut(err.Error())
		text, _ := json.Marshal(Reason{f.Path, reason}) // two texts can always be encoded
		return reason, unavailable(m.Derived.Put(ctx, reasonKey(digest), text, bucket.Condition{}))
	}

	if err != nil {
		return "", err
	}
	return "", unavailable(m.Derived.Put(ctx, Key(digest), thumb, bucket.Condition{}))
}

// make reads a file and makes its thumbnail, one at a time. An Invalid says why there can be none. The
// size is checked before anything is read; the lock is taken only for reading and decoding, which is
// what takes memory. An error of the storage is Unavailable.
func (m *Maker) make(ctx context.Context, v aip.Version, f aip.Entry) ([]byte, error) {
	if f.Size > m.Limits.Bytes {
		return nil, fault.New(fault.Invalid, "the file has %d bytes; at most %d are read", f.Size,
			m.Limits.Bytes)
	}

	key, err := m.Root.Content(ctx, v.Object, f.Digests["sha512"])
	if err != nil {
		return nil, unavailable(err)
	}

	m.one.Lock()
	defer m.one.Unlock()

	body, _, err := m.Root.Bucket.Open(ctx, key)
	if err != nil {
		return nil, unavailable(err)
	}

	defer body.Close()
	file := make([]byte, f.Size)
	if _, err := io.ReadFull(body, file); err != nil {
		return nil, unavailable(fmt.Errorf("derivatives: read %s: %w", key, err))
	}
	return m.Limits.thumbnail(file)
}

// tries of a transaction: the object's row has other writers.
const tries = 8

// finish writes the row, together with the event of the object. A version without images has neither;
// what was found before needs no other event. A Stale has two causes. If it was the object's row, which
// others write too, the transaction is tried again; if it was the row of the version, another call has
// finished it meanwhile, and the caller is told so by an Unavailable. before is the result that the row
// had, so that a replay that finds the same makes no second event.
func (m *Maker) finish(ctx context.Context, ark string, p *progress, before Result) (err error) {
	if p.Made+p.Failed == 0 && p.Rev == 0 {
		return nil
	}

	p.Done = true
	var e *event.New
	if p.Made+p.Failed > 0 && !reflect.DeepEqual(p.Result, before) {
		e = &event.New{
			Type:      "derivative.create",
			Time:      m.Now().UnixMilli(),
			Component: Name,
			Detail:    p.Result,
		}
		if p.Made == 0 {
			e.Outcome = event.Failure
		}
	}

	for range tries {
		err = m.save(ctx, ark, p, e)
		var changed *table.ConditionError
		if !errors.As(err, &changed) || changed.Failed(p.Key()) {
			break
		}
	}

	if fault.Is(err, fault.Stale) {
		return fault.New(fault.Unavailable, "derivatives: %s was changed meanwhile: %w", ark, err)
	}
	return err
}

// save writes the row, with an event of the object unless it is nil. Its condition is the revision of
// the row that was read. A Stale is not retried here.
func (m *Maker) save(ctx context.Context, ark string, p *progress, e *event.New) error {
	tx := m.Table.Begin(m.NewID())
	tx.InsertOrSave(p)
	if e != nil {
		if err := m.Inventory.Happened(ctx, tx, ark, *e); err != nil {
			return err
		}
	}
	return tx.Commit(ctx)
}

// Key is where the thumbnail of an image with a sha512 is. The digest is in lower-case hexadecimal. The
// two digits spread the keys over 256 prefixes.
func Key(sha512 string) string { return "thumbnails/" + sha512[:2] + "/" + sha512 + ".jpg" }

// reasonKey is where the reason is why an image has no thumbnail: a Reason as JSON.
func reasonKey(sha512 string) string { return strings.TrimSuffix(Key(sha512), ".jpg") + ".json" }

// mostReason is the maximum length of a reason, in bytes.
const mostReason = 300

// cut shortens a reason, between characters.
func cut(text string) string {
	if len(text) <= mostReason {
		return text
	}
	return strings.ToValidUTF8(text[:mostReason], "") + "…"
}

// unavailable is an error of S3 that is not about one file: the work is tried again later. An error
// that has a kind keeps it: a NotFound of a file, for example, is about that file.
func unavailable(err error) error {
	if err == nil || fault.Of(err) != "" {
		return err
	}
	return fault.New(fault.Unavailable, "%w", err)
}
