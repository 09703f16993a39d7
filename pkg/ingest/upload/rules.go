package upload

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"archivist/pkg/events/check"
	"archivist/pkg/events/event"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/ingest/workspace"
	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// Rules are the rules of the rows of uploads, whose files are in the work bucket.
func Rules(work bucket.Bucket) check.Rules {
	return check.Rules{Kinds: []check.Kind{
		check.Subjects(event.Upload, func(ctx context.Context, x *check.Row) error {
			return checkUpload(ctx, x, work)
		}),
		{PK: "UPLOAD", SK: filePrefix, Rule: checkFile},
		{PK: quotaPK, SK: "QUOTA", Rule: checkQuota},
		{PK: quotaPK, SK: memberPrefix, Rule: checkMember},
		{PK: keyedPK, SK: "KEY", Rule: checkKey},
	}}
}

// sweptWithin is after how long an upload that is due is a finding: a removal may take several sweeps.
const sweptWithin = 24 * time.Hour

// checkUpload checks an upload: its newest event, its places in the indexes, that the sweep looks at
// it, that its collection has a count, and that its files are there.
func checkUpload(ctx context.Context, x *check.Row, work bucket.Bucket) error {
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
	if err := checkCounted(ctx, x, &row); err != nil {
		return err
	}
	if err := checkStored(ctx, x, &row, work); err != nil {
		return err
	}
	return x.History(ctx, subject(row.ID), row.Version, "")
}

// checkCounted checks that an upload is listed in its collection, which has a count.
func checkCounted(ctx context.Context, x *check.Row, row *Upload) error {
	listed, err := x.Read(ctx, memberKey(row.Collection, row.ID), &member{})
	if err != nil {
		return err
	}
	counted, err := x.Read(ctx, quotaKey(row.Collection), &quota{})
	switch {
	case err != nil:
		return err
	case !listed:
		x.Add("upload-listed", check.Repair, recount(x, row.Collection, row),
			"the collection %s has it, and does not list it", row.Collection)
	case !counted:
		x.Add("upload-quota", check.Repair, recount(x, row.Collection, nil),
			"the collection %s has it, and no count of its uploads", row.Collection)
	}
	return nil
}

// checkStored checks that the files of an upload are there that are said to be stored, as long as somebody needs
// them. A table that was restored to an earlier time has the rows of uploads whose files were removed since.
func checkStored(ctx context.Context, x *check.Row, row *Upload, work bucket.Bucket) error {
	if row.StoredFiles == 0 {
		return nil
	}
	there := 0
	err := work.List(ctx, Prefix(row.Collection, row.ID), func(bucket.Listed) error {
		there++
		return nil
	})
	if err != nil || there >= row.StoredFiles {
		return err
	}

	// Only now: what was removed meanwhile is nothing that is missing.
	var now Upload
	found, err := x.Read(ctx, row.Key(), &now)
	if err != nil || !found || now.Rev != row.Rev {
		return err
	}
	advice := "archivist batch discard " + row.ID + " --reason …; its depositor submits again"
	switch {
	case row.State == Submitted:
		b, err := (&queue.Queue{Table: x.Table}).Batch(ctx, row.Batch)
		if fault.Is(err, fault.NotFound) || err == nil && (b.State == ingest.BatchCompleted ||
			b.State == ingest.BatchDeleted) {
			return nil // it is about to be removed
		}
		if err != nil {
			return err
		}
		advice = "its depositor submits the files again, with --again; then archivist batch delete " + row.Batch +
			" --reason …"
	case row.State != Open || row.closed(x.Now()) != "":
		return nil
	}
	x.Add("upload-stored", advice, nil, "%s are said to be stored, and %s there: the table may have been restored to "+
		"an earlier time", ingest.Counted(int64(row.StoredFiles), "file"), counted(there))
	return nil
}

// counted is how many are there: "1 is", "2 are".
func counted(n int) string {
	if n == 1 {
		return "1 is"
	}
	return ingest.Number(int64(n)) + " are"
}

// checkMember checks that an upload that is listed exists.
func checkMember(ctx context.Context, x *check.Row) error {
	var row member
	if !x.Into(&row) {
		return nil
	}
	x.Subject = "upload:" + row.id()
	missing, err := x.Missing(ctx, uploadKey(row.id()))
	if missing {
		x.Add("upload-listed", check.Repair, x.Removing(uploadKey(row.id())),
			"the collection %s lists it, but there is no such upload", x.ID())
	}
	return err
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
	x.Add("upload-quota", check.Repair, recount(x, x.ID(), nil),
		"counted are %d uploads with %d bytes, there are %d with %d", row.Uploads, row.Bytes,
		counted.Uploads, counted.Bytes)
	return nil
}

// recount writes the count of a collection's uploads as it should be, on the condition that it has not changed: all who
// open or remove an upload write it, and none of the reads lags. unlisted, if not nil, is an upload that the collection
// does not list: it is listed, and counted.
func recount(x *check.Row, collection string, unlisted *Upload) func(context.Context) error {
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
			if u := unlisted; u != nil {
				row.Uploads, row.Bytes = row.Uploads+1, row.Bytes+u.Bytes
				tx.Insert(&member{Head: head(memberKey(collection, u.ID)), Bytes: u.Bytes})
				tx.Require(u.Key(), "rev = ?", u.Rev)
			}
			tx.InsertOrSave(row)
			return nil
		})
	}
}

// count counts the uploads that a collection lists.
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
