package api

import (
	"context"
	"fmt"

	"archivist/pkg/ingest/notify"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/ingest/workspace"
	"archivist/pkg/kernel/fault"
)

// ReportInput names a report of a batch. A cursor is of CSV only.
type ReportInput struct {
	IDCursor
	Number int `query:"number" minimum:"0"`
	Format
}

// savedReport is where a report is kept, and its name as a file.
type savedReport struct {
	batch, key, name string
	number           int
}

// missing is the error of reading a saved report.
func (r savedReport) missing(err error) error {
	if fault.Is(err, fault.NotFound) {
		return fault.New(fault.NotFound, "the saved report of batch %s is missing; its jobs are "+
			"still listed", r.batch)
	}
	return err
}

// savedReport finds a batch's report: the newest, or that of the number. A Number of 0
// is the newest. A batch that has no report yet, or fewer, is a NotFound that says which.
func (a *API) savedReport(ctx context.Context, in *ReportInput) (r savedReport, err error) {
	b, err := a.Queue.Batch(ctx, in.ID)
	if err != nil {
		return r, err
	}

	if b.Report == "" {
		return r, fault.New(fault.NotFound,
			"batch %s is %s and has no report; the report is created when all of its jobs have "+
				"ended",
			in.ID, b.State)
	}

	last := b.LastReport()
	if in.Number > last {
		return r, fault.New(fault.NotFound, "batch %s has no report %d; the newest is report %d",
			in.ID, in.Number, last)
	}

	r = savedReport{batch: in.ID, key: b.Report, name: in.ID + "-report", number: last}
	if in.Number > 0 {
		r.key, r.number = workspace.ReportKey(in.ID, in.Number), in.Number
		r.name = fmt.Sprintf("%s-report-%d", in.ID, in.Number)
	}
	return r, nil
}

// report returns a presigned URL of a batch's report. The report is
// in the work bucket, of any size, so it is redirected to and not sent.
func (a *API) report(ctx context.Context, in *ReportInput) (string, error) {
	if in.Cursor != "" {
		return "", fault.New(fault.Invalid, "cursor: the report has pages as CSV only; add "+
			"format=csv")
	}
	r, err := a.savedReport(ctx, in)
	if err != nil {
		return "", err
	}
	to, err := a.Work.Presign(ctx, r.key, r.name+".json", contentFor)
	return to, r.missing(err)
}

// reportPath is the API's path of a batch's report, "" if there is none.
func reportPath(b *queue.Batch) string {
	if b.Report == "" {
		return ""
	}
	return notify.ReportPath(b.Batch.ID)
}
