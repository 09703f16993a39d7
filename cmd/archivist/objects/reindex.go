package objects

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"archivist/cmd/archivist/command"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/terminal"
)

// reindexCmd drives a reindex from this computer: no state of it is kept in AWS. A request takes seconds, so a
// full run makes many of them, several at a time. It can be interrupted and repeated at any time, because rows
// that exist do not change.
type reindexCmd struct {
	ARK      string `arg:"" optional:"" name:"ark" help:"ARK of one object."`
	All      bool   `help:"All objects of the storage root. An interrupted run is resumed."`
	Again    bool   `help:"With --all: start from the beginning, even after an interrupted run."`
	Parallel int    `help:"With --all: how many requests run at once." default:"4" placeholder:"N"`
}

func (reindexCmd) Prints() any { return v1.Reindexed{} }

// Run exits with the code of a conflict if an object could not be restored completely. The others are restored
// nevertheless.
func (c *reindexCmd) Run(a *command.App) error {
	if (c.ARK == "") != c.All || c.Parallel < 1 {
		return command.Usage("give either an ARK or --all")
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

	err = a.Print(sum, func(p terminal.Page) { showReindexed(p, sum) })
	if err != nil || len(sum.Failed) == 0 {
		return err
	}
	return fault.New(fault.Conflict,
		"%d of %d objects could not be restored completely; the list shows the reasons",
		len(sum.Failed), sum.Objects)
}

// showReindexed prints the totals, and the objects that an operator must check, with the reason of each.
func showReindexed(p terminal.Page, sum v1.Reindexed) {
	p.Fields("objects", strconv.Itoa(sum.Objects), "restored", strconv.Itoa(sum.Changed),
		"failed", strconv.Itoa(len(sum.Failed)))
	terminal.Table(p, sum.Failed, failedColumns...)
}

// failedColumns identify an object by its storage key if it cannot be read, since its ARK is not known then.
var failedColumns = []terminal.Column[v1.NotReindexed]{
	{Title: "object", Text: func(f v1.NotReindexed) string { return cmp.Or(f.ARK, f.Stored) }},
	{Title: "problem", Text: func(f v1.NotReindexed) string { return f.Why }, Share: 1},
}

// one reindexes one object, which may take several requests. The result is that of the last one.
func (c *reindexCmd) one(a *command.App) (sum v1.Reindexed, err error) {
	id, err := command.ParseARK(c.ARK)
	if err != nil {
		return sum, err
	}
	for again := true; again; again = sum.Cursor != "" {
		if sum, err = reindex(a.Ctx, a, v1.ReindexRequest{ARK: id}); err != nil {
			return sum, err
		}
	}
	return sum, nil
}

// all reindexes the storage root, several parts at a time, and shows the progress. After an error it returns
// what is done so far, and the same command resumes with the rest.
func (c *reindexCmd) all(a *command.App) (v1.Reindexed, error) {
	p, err := openProgress(a.Client.URL, c.Again, a.StatusTo(a.Errors))
	if err != nil {
		return v1.Reindexed{}, err
	}

	if done := p.Sum.Objects; done > 0 {
		fmt.Fprintf(a.Errors, "archivist: resuming an earlier run, which has read %d objects; "+
			"--again starts from the beginning\n", done)
	}

	err = p.all(a, c.Parallel)
	p.end()
	if err != nil {
		return p.Sum, fmt.Errorf("%w; %d objects are done, and the same command resumes with the others",
			err, p.Sum.Objects)
	}
	p.tell(a.Ctx, a, true)
	return p.Sum, p.forget()
}

// all reindexes the parts, several at a time. It stops at the first error; the progress of the other parts is
// kept. Each part is worked on by one goroutine, so only add needs the lock.
func (p *progress) all(a *command.App, parallel int) error {
	side, ctx := errgroup.WithContext(a.Ctx)
	side.SetLimit(parallel)
	for i := range p.Parts {
		side.Go(func() error { return p.work(ctx, a, &p.Parts[i]) })
	}
	return side.Wait()
}

// work reindexes one part of the root, starting at its cursor.
func (p *progress) work(ctx context.Context, a *command.App, at *part) error {
	for at.Cursor != "" {
		page, err := reindex(ctx, a, v1.ReindexRequest{Cursor: at.Cursor, To: at.To})
		if err != nil {
			return err
		}
		if err := p.add(at, page); err != nil {
			return err
		}
		p.tell(ctx, a, false)
	}
	return nil
}

// patience is how often a request is made at most: the gateway may time out, or the function may be at its
// limit. With retryAfter that is half a minute of waiting.
const patience = 6

// reindex makes one request, and repeats it if it fails in a way that may pass. It can be repeated at any time:
// existing rows do not change.
func reindex(ctx context.Context, a *command.App, in v1.ReindexRequest) (page v1.Reindexed, err error) {
	for try := range patience {
		page, err = a.Client.Reindex(ctx, in)
		if !fault.Is(err, fault.Unavailable) || try == patience-1 {
			break
		}
		if err := a.Wait(ctx, retryAfter<<try); err != nil {
			return page, err
		}
	}
	return page, err
}

// retryAfter is the wait before the first retry. It doubles each time: 1, 2, 4, 8 and 16 s.
const retryAfter = time.Second
