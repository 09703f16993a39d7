package api

import (
	"context"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/ark"
	"archivist/pkg/checkm"
	"archivist/pkg/event"
	"archivist/pkg/fault"
	"archivist/pkg/fetch"
	"archivist/pkg/ingest"
	"archivist/pkg/notify"
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
			if err == nil {
				err = a.admissible(ctx, &b)
			}
			if err != nil {
				return nil, a.problem(err)
			}
			row, err := a.Queue.Submit(ctx, b, in.Key, in.RawBody, b.Submitter)
			if err != nil {
				return nil, a.problem(err)
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
		return v1.Queue{Waiting: o.Waiting, Running: o.Running, MaxInFlight: o.MaxInFlight, SpaceFree: o.SpaceFree, OldestWaiting: o.OldestWaiting, OldestSince: o.OldestSince, LastSweep: o.LastSweep}, err
	})
}

func (a *API) batch(ctx context.Context, b *queue.Batch) (v1.Batch, error) {
	c, err := a.Queue.Counts(ctx, b.Batch.ID)
	return v1.Batch{ID: b.Batch.ID, State: string(b.State), Collection: b.Collection, Submitter: b.Submitter, Note: b.Note, Created: ingest.Timestamp(b.Created), Message: b.Message, Report: reportPath(b),
		Counts: v1.Counts{Expected: b.Expected, Processing: c.Processing, Held: c.Held, Failed: c.Failed, Completed: c.Completed, Deleted: c.Deleted}}, err
}

// batchOf checks a request beyond what its schema says. An Invalid names the field.
func batchOf(in v1.BatchRequest) (ingest.Batch, error) {
	b := ingest.Batch{Collection: in.Collection, Mode: "add", IfVersion: in.IfVersion,
		Submitter: strings.TrimSpace(in.Submitter), Note: strings.TrimSpace(in.Note)}
	if err := ingest.CheckText("submitter", b.Submitter, ingest.MaxSubmitter); err != nil {
		return b, err
	}
	if err := ingest.CheckText("note", b.Note, ingest.MaxNote); err != nil {
		return b, err
	}
	for _, address := range in.Notification {
		if err := notify.CheckAddress(address); err != nil {
			return b, fault.New(fault.Invalid, "notification: %w", err)
		}
		if !slices.Contains(b.Mail, address) {
			b.Mail = append(b.Mail, address)
		}
	}
	if len(b.Mail) > ingest.MaxMails {
		return b, fault.New(fault.Invalid, "notification: %d addresses; at most %d are taken", len(b.Mail), ingest.MaxMails)
	}
	var err error
	if b.Payload, err = payloadOf(in.Payload); err != nil {
		return b, err
	}
	if ids := in.Identifiers; ids != nil {
		if err := identify(&b, *ids); err != nil {
			return b, err
		}
	}
	if m := in.Metadata; m != nil {
		b.Metadata, err = ingest.Metadata{Who: m.Who, What: m.What, When: m.When, Where: m.Where}.Clean(
			[4]string{"metadata.who", "metadata.what", "metadata.when", "metadata.where"})
	}
	many := in.Payload.Type == ingest.TypeBatchManifest || in.Payload.Type == ingest.TypeSingleFileBatch
	if why := b.ForOneObject(); err == nil && why != "" && many {
		err = fault.New(fault.Invalid, "%s", why)
	}
	return b, err
}

func identify(b *ingest.Batch, ids v1.Identifiers) (err error) {
	if b.LocalIDs, err = ingest.CleanLocalIDs(ids.Local); err != nil {
		return fault.New(fault.Invalid, "identifiers.local: %w", err)
	}
	if ids.Primary == "" {
		return nil
	}
	given, err := ark.Parse(ids.Primary)
	if err != nil {
		return fault.New(fault.Invalid, "identifiers.primary: %w", err)
	}
	b.Primary = given.String()
	return nil
}

func payloadOf(in v1.Payload) (p ingest.Payload, err error) {
	u, err := url.Parse(in.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || len(in.URL) > ingest.MaxURL {
		return p, fault.New(fault.Invalid, "payload.url: found %q; expected an http or https URL of at most %d bytes",
			ingest.Cut(fetch.Redact(in.URL), 200), ingest.MaxURL)
	}
	p = ingest.Payload{URL: in.URL, Type: in.Type, Filename: in.Filename}
	if in.Size != nil {
		p.Size, p.Empty = *in.Size, *in.Size == 0
	}
	if p.Filename == "" {
		p.Filename = path.Base(u.Path)
	}
	if why := checkm.BadName(p.Filename); why != "" {
		return p, fault.New(fault.Invalid, "payload.filename: %q %s; give the name under which the file shall be kept",
			ingest.Cut(p.Filename, 200), why)
	}
	if d := in.Digest; d != nil {
		p.Algorithm, p.Digest = checkm.Canonical(d.Algorithm), strings.ToLower(d.Value)
		n, known := checkm.Lengths[p.Algorithm]
		if !known || len(p.Digest) != n || strings.Trim(p.Digest, "0123456789abcdef") != "" {
			return p, fault.New(fault.Invalid, "payload.digest: %q is no digest of the algorithm %q; "+
				"expected hexadecimal of adler32, crc32, md5, sha1, sha256, sha384 or sha512",
				ingest.Cut(d.Value, 200), ingest.Cut(d.Algorithm, 50))
		}
	}
	return p, nil
}

// admissible checks a submission against its collection's profile and what is stored.
func (a *API) admissible(ctx context.Context, b *ingest.Batch) error {
	profile, _, err := a.Collections.Profile(ctx, b.Collection)
	if err != nil {
		return err
	}
	if profile.RequireDigest && b.Payload.Type == ingest.TypeFile && b.Payload.Digest == "" {
		return fault.New(fault.Invalid,
			"payload.digest: the collection %s takes no file without a digest; give its algorithm and value", b.Collection)
	}
	if b.Primary == "" || a.Stages == nil {
		return nil
	}
	why, err := a.Stages.Mistyped(ctx, b.Collection, b.Primary)
	if err == nil && why != "" {
		err = fault.New(fault.Invalid, "identifiers.primary: %s", why)
	}
	return err
}
