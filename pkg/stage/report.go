package stage

import (
	"context"

	"archivist/pkg/ingest"
	"archivist/pkg/queue"
)

// Report is what a depositor hears of a batch, saved on it.
type Report struct {
	Batch     string         `json:"batch"`
	At        string         `json:"at"`
	Completed []ReportedJob  `json:"completed"`
	Failed    []ReportedJob  `json:"failed"`
	Open      []ReportedJob  `json:"open,omitempty"` // requeued while the report was made
	Counts    map[string]int `json:"counts"`
}

// ReportedJob is one job's line of a report.
type ReportedJob struct {
	Job      string   `json:"job"`
	ARK      string   `json:"ark,omitempty"`
	Version  int      `json:"version,omitempty"`
	NoChange bool     `json:"noChange,omitempty"`
	LocalIDs []string `json:"localIds,omitempty"`
	Files    int      `json:"files,omitempty"`
	Bytes    int64    `json:"bytes,omitempty"`
	Message  string   `json:"message,omitempty"`
}

// ReportKey is where a batch's report is in the work bucket.
func ReportKey(batch string) string { return "reports/" + batch + ".json" }

// report gathers how every job of the batch ended and saves it.
func (s *Stages) report(ctx context.Context, h *queue.Held) (ingest.Result, error) {
	r := Report{Batch: h.Batch.ID, At: stamp(s.Now().UnixMilli()), Completed: []ReportedJob{}, Failed: []ReportedJob{}}
	for after := 0; ; {
		jobs, err := s.Queue.Jobs(ctx, h.Batch.ID, after)
		if err != nil {
			return ingest.Result{}, err
		}
		if len(jobs) == 0 {
			break
		}
		after += len(jobs)
		for _, j := range jobs {
			line := ReportedJob{Job: j.Job.ID, ARK: j.Primary, Version: j.ObjectVersion, NoChange: j.NoChange, LocalIDs: j.LocalIDs, Files: j.Files, Bytes: j.Bytes, Message: j.Message}
			switch j.State {
			case ingest.Completed:
				r.Completed = append(r.Completed, line)
			case ingest.Failed:
				r.Failed = append(r.Failed, line)
			default:
				r.Open = append(r.Open, line)
			}
		}
	}
	r.Counts = map[string]int{"completed": len(r.Completed), "failed": len(r.Failed), "open": len(r.Open)}
	h.Batch.Report = ReportKey(h.Batch.ID)
	return next, s.putJSON(ctx, h.Batch.Report, r)
}
