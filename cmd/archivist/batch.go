package main

import (
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/schollz/progressbar/v3"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/fault"
)

type batchCmd struct {
	List   batchListCmd   `cmd:"" help:"List a collection's batches, newest first."`
	Show   batchShowCmd   `cmd:"" help:"Show a batch and its jobs."`
	Report batchReportCmd `cmd:"" help:"Show how each job of an ended batch ended; with --json everything that is known of it."`
	Watch  batchWatchCmd  `cmd:"" help:"Watch batches until they end."`
}

type batchListCmd struct {
	Collection string `required:"" short:"c"`
	State      string `help:"Only batches in this state."`
}

func (c *batchListCmd) Run(a *app) error {
	list, err := v1.All[v1.Batch](a.ctx, a.client, "/v1/batches?collection="+url.QueryEscape(c.Collection)+"&state="+url.QueryEscape(c.State))
	if err != nil {
		return err
	}
	return a.print(list, func(w io.Writer) {
		var body []table.Row
		for _, b := range list {
			body = append(body, table.Row{b.ID, b.State, b.Created, b.Counts.Expected, b.Counts.Completed, b.Counts.Failed})
		}
		rows(w, table.Row{"batch", "state", "created", "jobs", "completed", "failed"}, body)
	})
}

type batchShowCmd struct {
	ID string `arg:""`
}

func (c *batchShowCmd) Run(a *app) error {
	b, err := v1.Get[v1.Batch](a.ctx, a.client, "/v1/batches/"+url.PathEscape(c.ID))
	if err != nil {
		return err
	}
	jobs, err := v1.All[v1.Job](a.ctx, a.client, "/v1/batches/"+url.PathEscape(c.ID)+"/jobs")
	if err != nil {
		return err
	}
	return a.print(struct {
		v1.Batch
		Jobs []v1.Job `json:"jobs"`
	}{b, jobs}, func(w io.Writer) {
		fields(w, "batch", b.ID, "state", b.State, "collection", b.Collection, "submitter", b.Submitter, "created", b.Created, "message", b.Message,
			"jobs", fmt.Sprintf("%d expected, %d processing, %d held, %d completed, %d failed, %d deleted", b.Counts.Expected, b.Counts.Processing, b.Counts.Held, b.Counts.Completed, b.Counts.Failed, b.Counts.Deleted))
		if b.Report != "" {
			fields(w, "report", "archivist batch report "+b.ID)
		}
		for _, p := range b.MailProblems {
			fields(w, "mail", printable(p.Text))
		}
		jobTable(w, jobs)
	})
}

type batchWatchCmd struct {
	IDs []string `arg:"" name:"id"`
}

func (c *batchWatchCmd) Run(a *app) error { return a.watchBatches(c.IDs) }

// glance is one look at what is watched.
type glance struct {
	weight int // of all states passed by all jobs
	of     int
	ended  int
	failed int
	states map[string]int
}

// stateOrder weighs how far a job is.
var stateOrder = []string{"Pending", "Estimating", "Provisioning", "Downloading", "Processing", "Storing", "Recording", "Notify", "Completed"}

func (g *glance) job(state string) {
	last := len(stateOrder) - 1
	g.of += last
	g.states[state]++
	if state == "Failed" || state == "Deleted" {
		g.weight += last
	}
	for i, s := range stateOrder {
		if s == state {
			g.weight += i
		}
	}
}

func (g *glance) String() string {
	var parts []string
	for _, s := range append(stateOrder, "Held", "Failed", "Deleted") {
		if g.states[s] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", g.states[s], s))
		}
	}
	return strings.Join(parts, ", ")
}

func (a *app) look(ids []string) (*glance, error) {
	g := &glance{states: map[string]int{}}
	for _, id := range ids {
		b, err := v1.Get[v1.Batch](a.ctx, a.client, "/v1/batches/"+url.PathEscape(id))
		if err != nil {
			return nil, err
		}
		jobs, err := v1.All[v1.Job](a.ctx, a.client, "/v1/batches/"+url.PathEscape(id)+"/jobs")
		if err != nil {
			return nil, err
		}
		for _, j := range jobs {
			g.job(j.State)
		}
		if b.State == "Failed" {
			g.failed++
		}
		if b.State == "Failed" || b.State == "Completed" || b.State == "Deleted" || b.State == "Held" {
			g.ended++
		}
	}
	return g, nil
}

// watchBatches shows batches live until they have ended. It fails if one did.
func (a *app) watchBatches(ids []string) error {
	bar := progressbar.NewOptions(1, progressbar.OptionSetWriter(os.Stderr), progressbar.OptionSetWidth(30), progressbar.OptionSetPredictTime(true), progressbar.OptionClearOnFinish())
	seen := ""
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for {
		g, err := a.look(ids)
		if err != nil {
			return err
		}
		if text := g.String(); text != seen && text != "" {
			seen = text
			bar.Describe(text)
		}
		bar.ChangeMax(max(1, g.of+len(ids)))
		_ = bar.Set(g.weight + g.ended)
		if g.ended == len(ids) {
			_ = bar.Finish()
			fmt.Fprintf(os.Stderr, "\n%s\n", seen)
			if g.failed > 0 {
				return fault.New(fault.Conflict, "%d of %d batches failed; archivist batch show says why", g.failed, len(ids))
			}
			return nil
		}
		select {
		case <-a.ctx.Done():
			return a.ctx.Err()
		case <-tick.C:
		}
	}
}

type queueCmd struct{}

func (c *queueCmd) Run(a *app) error {
	q, err := v1.Get[v1.Queue](a.ctx, a.client, "/v1/queue")
	if err != nil {
		return err
	}
	return a.print(q, func(w io.Writer) {
		fields(w, "running", fmt.Sprintf("%d of %d slots", q.Running, q.MaxInFlight), "pending", q.Waiting["pending"], "provisioning", q.Waiting["provisioning"],
			"parked", q.Waiting["parked"], "space free", size(q.SpaceFree), "oldest", strings.TrimSpace(q.OldestWaiting+" "+q.OldestSince), "last sweep", q.LastSweep)
	})
}

type explainCmd struct {
	ID string `arg:"" help:"Id of a job or a batch."`
}

func (c *explainCmd) Run(a *app) error {
	kind := "jobs"
	if !strings.Contains(c.ID, "-") {
		kind = "batches"
	}
	x, err := v1.Get[v1.Explanation](a.ctx, a.client, "/v1/"+kind+"/"+url.PathEscape(c.ID)+"/explain")
	if err != nil {
		return err
	}
	return a.print(x, func(w io.Writer) {
		fields(w, "state", x.State, "waits for", x.WaitsFor, "on", x.On, "why", x.Why)
	})
}
