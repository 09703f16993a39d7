package upload

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"archivist/pkg/events/check"
	"archivist/pkg/events/event"
	"archivist/pkg/ingest/workspace"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// Rules are the rules of the rows of uploads.
var Rules = check.Rules{Kinds: []check.Kind{
	check.Subjects(event.Upload, checkUpload),
	{PK: "UPLOAD", SK: filePrefix, Rule: checkFile},
	{PK: quotaPK, SK: "QUOTA", Rule: checkQuota},
	{PK: keyedPK, SK: "KEY", Rule: checkKey},
}}

// sweptWithin is after how long an upload that is due is a finding: a removal may take several sweeps.
const sweptWithin = 24 * time.Hour

// checkUpload checks an upload: its newest event, its places in the indexes, that the sweep looks at
// it, and that its collection has a count.
func checkUpload(ctx context.Context, x *check.Row) error {
	var row Upload
	if !x.Into(&row) {
		return nil
	}

	x.Subject = "upload:" + row.ID
	states := []State{Open, Submitted, Expired, Discarded}
	if !slices.Contains(states, row.State) || x.Key != uploadKey(row.ID) {
		x.Add("state", check.Restore, nil, "the row says that it is the upload %s, and %q", row.ID, row.State)
		return nil
	}
	if x.LateBy(row.Due, sweptWithin) {
		x.Add("overdue", "archivist explain "+row.ID+
			"; if nothing is swept, look at the scheduler's alarms (docs/operations.md)", nil,
			"it was due long ago, and nothing has happened")
	}

	should := row
	should.Place()
	x.Placed(row.Head, should.Head, func(tx *table.Tx) { tx.Save(&should) })
	found, err := x.Read(ctx, quotaKey(row.Collection), &quota{})
	if err != nil {
		return err
	}
	if !found {
		x.Add("upload-quota", check.Repair, recount(x, row.Collection),
			"the collection %s has it, and no count of its uploads", row.Collection)
	}
	return x.History(ctx, subject(row.ID), row.Version, "")
}

// checkFile checks that a file has an upload.
func checkFile(ctx context.Context, x *check.Row) error {
	x.Subject = "upload:" + x.ID()
	missing, err := x.Missing(ctx, uploadKey(x.ID()))
	if missing {
		x.Add("upload-file", check.Repair, x.Removing(uploadKey(x.ID())),
			"a file is listed, but there is no such upload")
	}
	return err
}

// checkKey checks that an Idempotency-Key has an upload.
func checkKey(ctx context.Context, x *check.Row) error {
	var row keyed
	if !x.Into(&row) {
		return nil
	}
	x.Subject = "upload:" + row.Upload
	missing, err := x.Missing(ctx, uploadKey(row.Upload))
	if missing {
		x.Add("upload-key", check.Repair, x.Removing(uploadKey(row.Upload)),
			"an Idempotency-Key names it, but there is no such upload")
	}
	return err
}

// checkQuota counts the uploads of a collection again.
func checkQuota(ctx context.Context, x *check.Row) error {
	var row quota
	if !x.Into(&row) {
		return nil
	}
	x.Subject = "collection:" + x.ID()
	counted, err := count(ctx, x.Table, x.ID())
	if err != nil || counted.Uploads == row.Uploads && counted.Bytes == row.Bytes {
		return err
	}
	x.Add("upload-quota", check.Repair, recount(x, x.ID()),
		"counted are %d uploads with %d bytes, there are %d with %d", row.Uploads, row.Bytes,
		counted.Uploads, counted.Bytes)
	return nil
}

// recount writes the count of a collection's uploads as it should be, on the condition that it has not
// changed: all who open or remove an upload write it.
func recount(x *check.Row, collection string) func(context.Context) error {
	return func(ctx context.Context) error {
		row, err := (&Store{Table: x.Table}).quotaOf(ctx, collection)
		if err != nil {
			return err
		}
		counted, err := count(ctx, x.Table, collection)
		if err != nil {
			return err
		}
		row.Uploads, row.Bytes = counted.Uploads, counted.Bytes
		return x.Commit(ctx, func(tx *table.Tx) error {
			tx.InsertOrSave(row)
			return nil
		})
	}
}

// count counts the uploads of a collection by their rows.
func count(ctx context.Context, t *table.Table, collection string) (q quota, err error) {
	s := Store{Table: t}
	for cursor := ""; ; {
		page, err := s.Of(ctx, collection, cursor)
		if err != nil {
			return q, err
		}
		for _, row := range page.Items {
			q.Uploads, q.Bytes = q.Uploads+1, q.Bytes+row.Bytes
		}
		if page.Cursor == "" {
			return q, nil
		}
		cursor = page.Cursor
	}
}

// Stray is what is known of an object of the work bucket whose upload is not there.
type Stray struct {
	Upload  string
	Removed bool // by its events, the upload was removed
	Old     bool // it was opened so long ago that no request for it is under way
}

// strayAfter is after how long the object of an upload without a row may be removed.
const strayAfter = 2 * 24 * time.Hour

// StrayOf says whether the upload of an object is not there; nil: it is.
func StrayOf(ctx context.Context, t *table.Table, key string, now time.Time) (*Stray, error) {
	parts := strings.Split(strings.TrimPrefix(key, workspace.Uploads), "/")
	if len(parts) != 3 {
		return &Stray{}, nil
	}

	id := parts[1]
	row, err := (&Store{Table: t}).Upload(ctx, id)
	if err == nil && row.Collection == parts[0] {
		return nil, nil
	}
	if err != nil && !fault.Is(err, fault.NotFound) {
		return nil, err
	}

	out := &Stray{Upload: id}
	if made, err := ulid.Parse(id); err == nil {
		out.Old = now.Sub(ulid.Time(made.Time())) > strayAfter
	}
	rows, _, err := event.Page(ctx, t, subject(id), "")
	if len(rows) > 0 {
		out.Removed = rows[len(rows)-1].Type == "upload.removed"
	}
	return out, err
}
