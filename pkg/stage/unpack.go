package stage

import (
	"context"
	"io"

	"archivist/pkg/checkm"
	"archivist/pkg/fetch"
	"archivist/pkg/ingest"
	"archivist/pkg/queue"
)

// unpack makes the batch's jobs: for a file or an object manifest, one.
func (s *Stages) unpack(ctx context.Context, h *queue.Held) (ingest.Result, error) {
	b := h.Batch
	kind := b.Payload.Type
	if kind == "" {
		kind = s.sniff(ctx, b.URL)
	}
	j := ingest.Job{Collection: b.Collection, Submitter: b.Submitter, Mode: b.Mode, Payload: b.Payload, Metadata: b.Metadata,
		Primary: b.Primary, LocalIDs: b.LocalIDs, Priority: ingest.DefaultPriority}
	j.Payload.Type = kind
	return next, h.Unpack(ctx, []ingest.Job{j}, 1)
}

// sniff tells a manifest from a file by its first bytes. What cannot be read
// now is taken for a file; its job says what is wrong.
func (s *Stages) sniff(ctx context.Context, url string) string {
	kind := ingest.TypeFile
	err := s.Fetch.Get(ctx, url, nil, func(body fetch.Stream) error {
		start := make([]byte, 512)
		n, err := io.ReadFull(body, start)
		if checkm.IsManifest(start[:n]) {
			kind = ingest.TypeObjectManifest
		}
		if err == io.ErrUnexpectedEOF || err == io.EOF {
			err = nil
		}
		return err
	})
	if err != nil {
		s.Queue.Log.Info("the payload's type could not be sniffed", "url", fetch.Redact(url), "error", err)
	}
	return kind
}
