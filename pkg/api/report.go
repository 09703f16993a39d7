package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/fault"
	"archivist/pkg/ingest"
	"archivist/pkg/notify"
	"archivist/pkg/queue"
)

// reports registers the route of a batch's report.
func (a *API) reports(h huma.API) {
	huma.Register(h, huma.Operation{Method: http.MethodGet, Path: "/v1/batches/{id}/report",
		OperationID:   "getBatchReport",
		DefaultStatus: http.StatusFound, Summary: "Get a batch's report"},
		func(ctx context.Context, in *IDInput) (*found, error) {
			url, err := a.report(ctx, in.ID)
			if err != nil {
				return nil, a.problem(err)
			}
			return &found{http.StatusFound, url}, nil
		})
}

// report is a URL that reads a batch's report.
func (a *API) report(ctx context.Context, id string) (string, error) {
	b, err := a.Queue.Batch(ctx, id)
	if err != nil {
		return "", err
	}
	if b.Report == "" {
		return "", fault.New(fault.NotFound, "batch %s is %s and has no report. A report is made when all of its "+
			"jobs have ended", id, b.State)
	}
	return a.Work.Presign(ctx, b.Report, id+"-report.json", contentFor)
}

// reportPath is where the API has a batch's report, "" if there is none.
func reportPath(b *queue.Batch) string {
	if b.Report == "" {
		return ""
	}
	return notify.ReportPath(b.Batch.ID)
}

// mailProblems are the mails about a batch that did not get to a recipient.
func (a *API) mailProblems(ctx context.Context, b *queue.Batch) ([]v1.MailProblem, error) {
	problems, err := a.Queue.MailProblems(ctx, b)
	var out []v1.MailProblem
	for _, p := range problems {
		wire := v1.MailProblem{Mail: string(p.Kind), To: p.To, Problem: p.Problem, Tries: p.Tries, Text: p.String()}
		if p.NextTry > 0 {
			wire.NextTry = ingest.Timestamp(p.NextTry)
		}
		out = append(out, wire)
	}
	return out, err
}
