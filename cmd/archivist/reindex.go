package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/ark"
	"archivist/pkg/fault"
)

type reindexCmd struct {
	ARK      string `arg:"" optional:"" help:"ARK of one object."`
	All      bool   `help:"All objects of the storage root. A run that was interrupted goes on where it was."`
	Again    bool   `help:"With --all: begin anew, also after an interrupted run."`
	Parallel int    `help:"With --all: how many requests are under way at once." default:"4"`
}

func (c *reindexCmd) Run(a *app) error {
	if (c.ARK == "") != c.All || c.Parallel < 1 {
		return fault.New(fault.Invalid, "give an ARK, or --all")
	}
	var sum v1.Reindexed
	var err error
	if c.All {
		sum, err = c.all(a)
	} else {
		sum, err = c.one(a)
	}
	if err != nil {
		return err
	}
	if err := a.print(sum, func(w io.Writer) {
		fmt.Fprintf(w, "%d objects looked at, %d had rows missing\n", sum.Objects, sum.Changed)
		for _, f := range sum.Failed {
			fmt.Fprintf(w, "not brought back: %s: %s\n", printable(cmp.Or(f.ARK, f.Stored)), printable(f.Why))
		}
	}); err != nil || len(sum.Failed) == 0 {
		return err
	}
	return fault.New(fault.Conflict, "%d of %d objects were not brought back as a whole; the list says why",
		len(sum.Failed), sum.Objects)
}

// one reindexes one object, which may take several requests.
func (c *reindexCmd) one(a *app) (sum v1.Reindexed, err error) {
	id, err := ark.Parse(c.ARK)
	if err != nil {
		return sum, fault.New(fault.Invalid, "%w", err)
	}
	for again := true; again; again = sum.Cursor != "" {
		if sum, err = reindex(a.ctx, a.client, v1.ReindexRequest{ARK: id.String()}); err != nil {
			return sum, err
		}
	}
	return sum, nil
}

// all reindexes the storage root, some parts at once, and shows how far it is.
func (c *reindexCmd) all(a *app) (v1.Reindexed, error) {
	to := a.err
	if a.bars != nil {
		to = a.bars
	}
	p, err := openProgress(a.client.URL, c.Again, to, a.bars != nil)
	if err != nil {
		return v1.Reindexed{}, err
	}
	if done := p.Sum.Objects; done > 0 {
		fmt.Fprintf(a.err, "going on with an earlier run, which has looked at %d objects; --again begins anew\n", done)
	}
	ctx, stop := context.WithCancelCause(a.ctx)
	defer stop(nil)
	parts := make(chan *part, len(p.Parts))
	for i := range p.Parts {
		parts <- &p.Parts[i]
	}
	close(parts)
	var wg sync.WaitGroup
	for range c.Parallel {
		wg.Go(func() {
			for part := range parts {
				if err := p.work(ctx, a.client, part); err != nil {
					stop(err)
				}
			}
		})
	}
	wg.Wait()
	p.end()
	if err := context.Cause(ctx); err != nil {
		if errors.Is(err, context.Canceled) {
			err = fault.New(fault.Unavailable, "interrupted")
		}
		return p.Sum, fmt.Errorf("%w: %d objects are done; the same command goes on with the others", err, p.Sum.Objects)
	}
	return p.Sum, p.forget()
}

// work reindexes one part of the root from where it is.
func (p *progress) work(ctx context.Context, client *v1.Client, at *part) error {
	for at.Cursor != "" {
		page, err := reindex(ctx, client, v1.ReindexRequest{Cursor: at.Cursor, To: at.To})
		if err != nil {
			return err
		}
		if err := p.add(at, page); err != nil {
			return err
		}
	}
	return nil
}

// patience is how often a request is sent again that was not answered: a gateway's
// time-out, or a function that is at its limit.
const patience = 6

func reindex(ctx context.Context, client *v1.Client, in v1.ReindexRequest) (page v1.Reindexed, err error) {
	for try := range patience {
		page, err = client.Reindex(ctx, in)
		if !fault.Is(err, fault.Unavailable) || try == patience-1 {
			break
		}
		select {
		case <-ctx.Done():
			return page, ctx.Err()
		case <-time.After(retryAfter << try):
		}
	}
	return page, err
}

// retryAfter is how long the first request waits that is sent again.
var retryAfter = time.Second
