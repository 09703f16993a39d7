// Package doctor checks the rules that the stored state of the system must keep: between
// the rows of the table, and between the rows, the storage root and the work bucket.
//
// It works in pages, each from a cursor, while jobs run. It reads every row, so nothing
// that waits for an answer may use it; a bulk operation runs it (package queue).
//
//	d := doctor.Doctor{Queue: q, Reindexer: reindexer, Work: work}
//	page, err := d.Check(ctx, "", false, until)      // the first page
//	page, err = d.Check(ctx, page.Cursor, false, until)
//
// A rule between several rows is checked with several reads, and a job may change between
// them. So a row that seems wrong is read again: only if it was not written in the
// meantime, what was read between the two reads is a finding. A row that keeps changing is
// left out: the writer keeps the rules, or the next run finds it at rest.
//
// With repair, it corrects what follows from other rows or from the storage root. Each
// repair is one transaction on the condition that nothing has changed since the check, or
// writes to S3 what no job can write differently. It never removes content that may be the only
// copy, and never makes rows agree with content that is lost: those findings name what a
// person has to do.
//
// phases.go goes through the phases of a run. The rules of rows are in the packages that write them (package check):
// rules.go lists these, and rows.go reads the pages and asks them. index.go, storage.go (with stored.go) and work.go
// are the other phases. A finding has a short name (the invariant),
// which docs/operations.md explains; a test compares the names there with those in the code.
//
// What holds at any time: a check writes nothing; a repair that has failed or was interrupted
// leaves what a later run finds and repairs again; nothing that belongs to a job which can
// still continue is removed.
package doctor

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"time"

	"github.com/aws/smithy-go"

	"archivist/pkg/events/check"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/ezid"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/ingest/reindex"
	"archivist/pkg/ingest/workspace"
	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
	"archivist/pkg/objects/ocfl"
	"archivist/pkg/views/search"
)

// Doctor checks the stored state of a deployment. Its methods only read the fields, so they
// may be called concurrently.
type Doctor struct {
	// Queue also gives the table, the clock, the ids and the log.
	Queue     *queue.Queue
	Reindexer reindex.Reindexer // with the storage root and the inventory
	Work      workspace.Store
	Search    search.Consumer // without an index, what can be found is not checked
	Registry  ezid.Checked    // of ARKs; nil: the deployment has none
}

var _ queue.Checker = Doctor{}

// phase is a part of a run. A run goes through them one after the other: the table first,
// because what it repairs there is what the later phases compare with.
type phase string

// The phases. Their names are stored in cursors.
const (
	phaseRows    phase = "rows"
	phaseIndex   phase = "index"
	phaseStorage phase = "storage"
	phaseWork    phase = "work"
)

// cursor is where a run continues. It is kept as text in the row of the operation, and comes
// back unchanged with the next page.
type cursor struct {
	Phase phase `json:"phase"`
	// At is how far the phase is: a cursor of a scan for rows and the index; for the storage
	// root and the work bucket the key behind which it goes on. Empty means the beginning.
	At string `json:"at,omitempty"`
	// Rest is what a rule still has to do with the row behind At.
	Rest json.RawMessage `json:"rest,omitempty"`
	// States are what rules keep between the pages of a run, by their names.
	States map[string]json.RawMessage `json:"states,omitempty"`
}

func (c cursor) String() string {
	data, _ := json.Marshal(c)
	return base64.RawURLEncoding.EncodeToString(data)
}

// page is one page of a check. One goroutine moves the cursor and reports; the rows and
// objects of a part are examined by several goroutines, which share only the rules.
type page struct {
	Doctor
	check.Page
	repair bool
	cursor cursor
	out    queue.CheckedPage
}

// enough reports whether the page has to end: its time is up, or it can take no more
// findings of another row.
func (p *page) enough() bool {
	return len(p.out.Findings) > queue.MaxFindings-mostOfOne || !p.Now().Before(p.Until)
}

// mostOfOne is the number of findings about one row or object that a page reports. A row
// whose everything is wrong would otherwise fill a page with one cause. What is left out is
// found by the next run, after the first were repaired.
const mostOfOne = 10

// report adds the problems of one row or object to the page, and repairs them if asked. A
// repair that fails for any reason but an outage stays a finding with the reason in its
// evidence: usually the row has changed, and the next run judges it anew. The error is that
// of an outage; then the page is not stored, and none of its findings counts.
func (p *page) report(ctx context.Context, problems []check.Problem) error {
	for _, is := range problems[:min(len(problems), mostOfOne)] {
		one := queue.Finding{Invariant: is.Invariant, Subject: is.Subject, Evidence: is.Evidence, Command: is.Command}
		// A finding with a command of its own names a narrower one, e.g. to reindex one
		// object.
		if is.Repair != nil && one.Command == "" {
			one.Command = check.Repair
		}

		if p.repair && is.Repair != nil {
			err := is.Repair(ctx)
			if err != nil && outage(ctx, err) {
				return err // the page is run again
			}
			one.Repaired = err == nil
			if err != nil {
				one.Evidence += "; not repaired: " + err.Error()
			}
			p.Queue.Log.Info("a repair", "invariant", one.Invariant, "subject", one.Subject,
				"evidence", one.Evidence,
				"repaired", one.Repaired)
		}

		one.Evidence = ingest.Cut(one.Evidence, maxEvidence)
		p.out.Findings = append(p.out.Findings, one)
	}
	return nil
}

// maxEvidence limits the evidence of a finding, in bytes. With MaxFindings of them, a page
// stays far below DynamoDB's 4 MB of one transaction.
const maxEvidence = 2000

// outage reports whether an error is one of the table or of S3, not of what they contain.
//
// An outage ends the page with its error, and the operation tries it again. All else would
// fail again for ever, and one row would end each run: it is reported, and the run goes on.
// Access that is denied stays so, however often it is tried; a row of a newer release, too,
// although its error is an Unavailable.
func outage(ctx context.Context, err error) bool {
	var s3 *bucket.Error
	var api smithy.APIError
	denied := errors.As(err, &api) && api.ErrorCode() == "AccessDenied"
	return ctx.Err() != nil || errors.As(err, &s3) && !denied ||
		fault.Is(err, fault.Unavailable) && !errors.Is(err, table.ErrNewer)
}

// root is the storage root.
func (d Doctor) root() ocfl.Root { return d.Reindexer.Root }

// grace is how long something that is due may stay undone: the sweep runs each minute. The grace of the long stages is
// the longest time for which the sweep rightly leaves a job alone.
func (d Doctor) grace() time.Duration {
	return max(10*time.Minute, d.Queue.Rules.Timing.Times(ingest.Stage{Long: true}).Grace)
}
