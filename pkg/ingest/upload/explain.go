package upload

import (
	"context"
	"fmt"

	"archivist/pkg/ingest"
	"archivist/pkg/kernel/explain"
)

// Explain says what an upload waits for: its files and its submission, its batch, or its removal. A
// missing one is a NotFound.
func (s *Store) Explain(ctx context.Context, id string) (x explain.Part, err error) {
	row, err := s.Upload(ctx, id)
	if err != nil {
		return x, err
	}

	x.Link = explain.Link{Kind: explain.Upload, ID: id, State: string(row.State)}
	x.Since = row.Created
	switch left := row.Files - row.StoredFiles; {
	case row.State == Submitted:
		x.Waits, x.On = explain.Parts, row.Batch
		x.Why = fmt.Sprintf("Batch %s has it. Its files are removed when the batch has ended; while the "+
			"batch is Failed they are kept, since its jobs can be requeued.", row.Batch)
	case row.State != Open:
		x.Waits, x.Until = explain.Time, row.removable()
		x.Why = fmt.Sprintf("It is %s; its files are removed when no request for them can be under way "+
			"any more.", row.State)
	case left > 0:
		x.Waits, x.Until = explain.Person, row.Expires
		x.Why = fmt.Sprintf("Its depositor has to send %s of %s, and to submit it; it expires on %s.",
			ingest.Number(left), ingest.Counted(int64(row.Files), "file"), ingest.Timestamp(row.Expires))
	default:
		x.Waits, x.Until = explain.Person, row.Expires
		x.Why = fmt.Sprintf("All files are stored; its depositor has to submit it. It expires on %s.",
			ingest.Timestamp(row.Expires))
	}

	x.Add("collection", row.Collection)
	x.Add("opened by", row.By)
	x.Add("note", row.Note)
	return x, nil
}
