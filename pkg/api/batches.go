package api

import (
	"context"
	"net/http"
	"net/url"
	"path"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/checkm"
	"archivist/pkg/event"
	"archivist/pkg/fault"
	"archivist/pkg/ingest"
	"archivist/pkg/queue"
)

type submission struct {
	Key     string `header:"Idempotency-Key" maxLength:"200" doc:"the same key with the same request gives the same batch for 7 days"`
	RawBody []byte
	Body    v1.BatchRequest
}

type accepted struct {
	Status   int
	Location string `header:"Location"`
	Body     v1.Accepted
}

func (a *API) batches(h huma.API) {
	huma.Register(h, huma.Operation{Method: http.MethodPost, Path: "/v1/batches", Summary: "Submit a batch", OperationID: "submit", DefaultStatus: http.StatusAccepted},
		func(ctx context.Context, in *submission) (*accepted, error) {
			b, err := batchOf(in.Body)
			if err != nil {
				return nil, a.told(err)
			}
			row, err := a.Queue.Submit(ctx, b, in.Key, in.RawBody, b.Submitter)
			if err != nil {
				return nil, a.told(err)
			}
			return &accepted{http.StatusAccepted, location(a.Base, row.Batch.ID), v1.Accepted{ID: row.Batch.ID, State: string(row.State)}}, nil
		})
	get(a, h, "/v1/batches", "List a collection's batches, newest first", func(ctx context.Context, in *struct {
		Collection string `query:"collection" required:"true"`
		State      string `query:"state"`
		Cursor     string `query:"cursor"`
	}) (v1.List[v1.Batch], error) {
		p, err := a.Queue.BatchesOf(ctx, in.Collection, in.Cursor)
		if err != nil {
			return v1.List[v1.Batch]{}, err
		}
		out := v1.List[v1.Batch]{Items: []v1.Batch{}, Cursor: p.Cursor}
		for _, b := range p.Items {
			if in.State != "" && string(b.State) != in.State {
				continue
			}
			wire, err := a.batch(ctx, &b)
			if err != nil {
				return out, err
			}
			out.Items = append(out.Items, wire)
		}
		return out, nil
	})
	get(a, h, "/v1/batches/{id}", "A batch", func(ctx context.Context, in *IDInput) (v1.Batch, error) {
		b, err := a.Queue.Batch(ctx, in.ID)
		if err != nil {
			return v1.Batch{}, err
		}
		wire, err := a.batch(ctx, b)
		if err != nil {
			return wire, err
		}
		wire.MailProblems, err = a.mailProblems(ctx, b)
		return wire, err
	})
	get(a, h, "/v1/batches/{id}/events", "What happened to a batch, oldest first", a.events(event.Batch))
	get(a, h, "/v1/batches/{id}/explain", "The one thing that a batch waits for", func(ctx context.Context, in *IDInput) (v1.Explanation, error) {
		return wireExplanation(a.Queue.ExplainBatch(ctx, in.ID))
	})
	get(a, h, "/v1/queue", "The queue at a glance", func(ctx context.Context, _ *struct{}) (v1.Queue, error) {
		o, err := a.Queue.Overview(ctx)
		return v1.Queue{Waiting: o.Waiting, Running: o.Running, MaxInFlight: o.MaxInFlight, SpaceFree: o.SpaceFree, OldestWaiting: o.OldestWaiting, OldestSince: o.OldestSince}, err
	})
}

func (a *API) batch(ctx context.Context, b *queue.Batch) (v1.Batch, error) {
	c, err := a.Queue.Counts(ctx, b.Batch.ID)
	return v1.Batch{ID: b.Batch.ID, State: string(b.State), Collection: b.Collection, Submitter: b.Submitter, Note: b.Note, Created: instant(b.Created), Message: b.Message, Report: reportPath(b),
		Counts: v1.Counts{Expected: b.Expected, Processing: c.Processing, Held: c.Held, Failed: c.Failed, Completed: c.Completed, Deleted: c.Deleted}}, err
}

// batchOf checks a request beyond what its schema says.
func batchOf(in v1.BatchRequest) (ingest.Batch, error) {
	b := ingest.Batch{Collection: in.Collection, Submitter: in.Submitter, Mode: "add", Note: in.Note, IfVersion: in.IfVersion, Mail: in.Notification}
	u, err := url.Parse(in.Payload.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return b, fault.New(fault.Invalid, "payload.url: found %q; expected an http or https URL", in.Payload.URL)
	}
	b.Payload = ingest.Payload{URL: in.Payload.URL, Type: in.Payload.Type, Filename: in.Payload.Filename, Size: in.Payload.Size}
	if b.Payload.Filename == "" {
		b.Payload.Filename = path.Base(u.Path)
	}
	if why := checkm.BadName(b.Payload.Filename); why != "" {
		return b, fault.New(fault.Invalid, "payload.filename: %q %s; give the name under which the file shall be kept", b.Payload.Filename, why)
	}
	if d := in.Payload.Digest; d != nil {
		b.Algorithm, b.Payload.Digest = checkm.Canonical(d.Algorithm), strings.ToLower(d.Value)
		n, known := checkm.Lengths[b.Algorithm]
		if !known || len(b.Payload.Digest) != n || strings.Trim(b.Payload.Digest, "0123456789abcdef") != "" {
			return b, fault.New(fault.Invalid, "payload.digest: %q is no digest of the algorithm %q; expected hexadecimal of adler32, crc32, md5, sha1, sha256, sha384 or sha512", d.Value, d.Algorithm)
		}
	}
	if ids := in.Identifiers; ids != nil {
		b.Primary = ids.Primary
		for _, id := range ids.Local {
			if strings.TrimSpace(id) == "" || len(id) > 500 || strings.ContainsAny(id, ";\n\r") {
				return b, fault.New(fault.Invalid, "identifiers.local: %q: expected 1 to 500 characters without semicolon and line break", id)
			}
		}
		b.LocalIDs = ids.Local
	}
	if m := in.Metadata; m != nil {
		b.Metadata = ingest.Metadata{Who: m.Who, What: m.What, When: m.When, Where: m.Where}
	}
	return b, nil
}
