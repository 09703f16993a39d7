package formats

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/objects/aip"
	"archivist/pkg/objects/ocfl"
)

// Open loads signatures. It returns what identifies files by them, and their versions.
type Open func() (identify Identify, signatures string, err error)

// ErrStopped means that the time was over before all files were identified. Called again, the work
// continues.
var ErrStopped = errors.New("stopped")

// Maker identifies the files of stored versions.
type Maker struct {
	Store
	NewID      func() string
	Now        func() time.Time
	Root       ocfl.Root
	Identify   Identify
	Signatures string // a result of other signatures is made again

	most int // files on a page, pageFiles unless set
}

// pageFiles is the maximum number of files on a page; mostPages limits the row.
const (
	pageFiles = 1000
	mostPages = 20_000
)

// Version identifies the producer's files of version n of an object until a time. If the time is over
// first, it has saved how far it came and returns an Unavailable: called again, it continues. A result
// that there is already is returned again.
func (m *Maker) Version(ctx context.Context, ark string, n int, until time.Time) (Result, error) {
	r := &record{}
	r.PK, r.SK = key(ark, n).PK, key(ark, n).SK
	err := m.Table.Get(ctx, r.Key(), r)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return r.Result, err
	}

	// The new pages have other keys, so those that somebody still reads are not overwritten.
	if r.Signatures != m.Signatures {
		r.From, r.Pages, r.Done, r.Result = 0, nil, false,
			Result{Version: n, Signatures: m.Signatures, Typed: true, Sized: true}
	}

	if r.Done {
		return r.Result, nil
	}

	stored, err := m.Root.Head(ctx, ark)
	if err != nil {
		return r.Result, unavailable(err)
	}

	if n > stored.Head {
		return r.Result,
			fault.New(fault.NotFound,
				"%s has no version %d; its newest is version %d", ark, n, stored.Head)
	}

	v := aip.Of(m.Root, stored, n)
	for !r.Done {
		if err := m.page(ctx, v, r, until); err != nil {
			return r.Result, err
		}
	}
	return r.Result, nil
}

// page identifies the next files, and saves their page. If one file fails, none of the page is
// kept.
func (m *Maker) page(ctx context.Context, v aip.Version, r *record, until time.Time) error {
	most := cmp.Or(m.most, pageFiles)
	entries, next, err := v.Files(ctx, r.From, most)
	if err != nil {
		return unavailable(err)
	}

	after, over := r.Result, false
	after.Formats = slices.Clone(r.Formats)
	p := Page{Object: v.Object.ID, Version: v.Number, Signatures: m.Signatures}
	for _, f := range entries {
		// Before each file, since one can take long: the page then ends with the files that are
		// done.
		over = !m.Now().Before(until) || ctx.Err() != nil
		if over {
			break
		}
		result, err := m.file(ctx, v, f)
		if err != nil {
			return err
		}
		p.Files = append(p.Files, result)
		after.add(result)
	}

	// The page is shorter than was planned: the list tells at which byte it ends.
	if over && len(p.Files) > 0 {
		_, next, err = v.Files(ctx, r.From, len(p.Files))
		if err != nil {
			return unavailable(err)
		}
	}

	if len(p.Files) > 0 {
		// The page is written before the row that names it. A call that dies between the two makes
		// the page again.
		if err := m.put(ctx, v, r, p, next); err != nil {
			return err
		}
	}

	r.Result, r.Done = after, !over && len(entries) < most
	if err := m.save(ctx, r); err != nil {
		return err
	}

	if over {
		return fault.New(fault.Unavailable, "%s v%d: %d files are identified; the rest follows: %w",
			v.Object.ID,
			v.Number, r.Files, ErrStopped)
	}
	return nil
}

// put writes a page, and notes it in the row.
func (m *Maker) put(ctx context.Context, v aip.Version, r *record, p Page, next int64) error {
	if len(r.Pages) == mostPages {
		return fault.New(fault.Invalid, "%s v%d: the results have more than %d pages", v.Object.ID,
			v.Number, mostPages)
	}

	text, err := json.Marshal(p)
	if err != nil {
		return err
	}

	at := pageKey(v.Object.ID, v.Number, m.Signatures, r.From, next)
	if err := m.Derived.Put(ctx, at, text, bucket.Condition{}); err != nil {
		return unavailable(err)
	}

	r.Pages, r.From = append(r.Pages, r.From), next
	return nil
}

// file identifies one file. All its ranges are read on the condition of one ETag.
func (m *Maker) file(ctx context.Context, v aip.Version, f aip.Entry) (File, error) {
	out := File{Path: f.Path, Size: f.Size, SHA512: f.Digests["sha512"]}
	at, err := m.Root.Content(ctx, v.Object, out.SHA512)
	if err != nil {
		return out, unavailable(err)
	}

	info, err := m.Root.Bucket.Head(ctx, at)
	if err != nil {
		return out, unavailable(err)
	}

	content := bucket.At{Context: ctx, Bucket: m.Root.Bucket, Key: at, ETag: info.ETag}
	out.Matches, err = m.Identify(ctx, f.Path, content, info.Size)
	return out, unavailable(err)
}

// save writes the row. A Stale becomes an Unavailable: another call is working on this version.
func (m *Maker) save(ctx context.Context, r *record) error {
	tx := m.Table.Begin(m.NewID())
	tx.InsertOrSave(r)
	err := tx.Commit(ctx)
	if fault.Is(err, fault.Stale) {
		return fault.New(fault.Unavailable,
			"formats: another call works on the same version: %w", err)
	}
	return err
}

// unavailable is an error of S3 that is not about one file, or a file that was replaced while it was read:
// the work is tried again later.
func unavailable(err error) error {
	if err == nil || fault.Of(err) != "" && !fault.Is(err, fault.Stale) {
		return err
	}
	return fault.New(fault.Unavailable, "%w", err)
}
