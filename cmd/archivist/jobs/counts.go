package jobs

import (
	"slices"
	"strconv"
	"strings"

	"archivist/cmd/archivist/command"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/terminal"
)

// jobCountsCmd counts jobs by collection and place, with the work space that they need.
type jobCountsCmd struct {
	Collection string `short:"c" help:"Only jobs of this collection." placeholder:"NAME"`
	Batches    bool   `help:"By batch: the 100 that have the most jobs."`
	Quick      bool   `help:"Without jobs that are deferred by their source; of those with work files 200."`
}

func (jobCountsCmd) Prints() any { return v1.JobCounts{} }

// Run shows a row for each collection, or batch, and place that has jobs.
func (c *jobCountsCmd) Run(a *command.App) error {
	show := showCounts
	if c.Batches {
		show = showBatchCounts
	}
	return command.Show(a, show)(a.Client.JobCounts(a.Ctx,
		v1.CountOf{Collection: c.Collection, Batches: c.Batches, Quick: c.Quick}))
}

// countRow is the jobs of a collection, or of a batch, at a place.
type countRow struct {
	collection, batch string
	v1.PlaceJobs
	more bool // there are more than were counted
}

func showCounts(p terminal.Page, n v1.JobCounts) {
	var rows []countRow
	for _, c := range n.Collections {
		rows = append(rows, countRows(n, c.Collection, "", c.Places)...)
	}
	terminal.Table(p, rows, countColumns...)
	notCounted(p, n)
}

// showBatchCounts shows the batches with the most jobs.
func showBatchCounts(p terminal.Page, n v1.JobCounts) {
	var rows []countRow
	for _, b := range n.Batches {
		rows = append(rows, countRows(n, b.Collection, b.Batch, b.Places)...)
	}
	terminal.Table(p, rows, slices.Insert(slices.Clone(countColumns), 0, terminal.Column[countRow]{Title: "batch",
		Text: func(r countRow) string { return r.batch }})...)
	if n.OtherBatches > 0 && p.ForPeople() {
		p.Fields("others", strconv.Itoa(n.OtherBatches)+" batches with fewer jobs")
	}
	notCounted(p, n)
}

// countRows are the rows of the places that have jobs.
func countRows(n v1.JobCounts, collection, batch string, places []v1.PlaceJobs) (rows []countRow) {
	for _, at := range places {
		if at.Jobs > 0 {
			rows = append(rows, countRow{collection, batch, at, slices.Contains(n.Cut, at.Place)})
		}
	}
	return rows
}

// notCounted says which rows are not counted: also where no job is counted, there can be some.
func notCounted(p terminal.Page, n v1.JobCounts) {
	if len(n.Cut) > 0 && p.ForPeople() {
		p.Fields("counted", "of the jobs of all collections that are "+strings.Join(n.Cut, " or ")+
			", not all")
	}
	if n.Unreadable > 0 && p.ForPeople() {
		p.Fields("unreadable", terminal.Count(n.Unreadable, "job")+", not counted: archivist doctor")
	}
}

var countColumns = []terminal.Column[countRow]{
	{Title: "collection", Text: func(r countRow) string { return r.collection }, Share: 1},
	{Title: "where", Text: func(r countRow) string { return r.Place }},
	{Title: "jobs", Text: jobsText, Raw: func(r countRow) string { return strconv.Itoa(r.Jobs) }},
	{Title: "space", Text: func(r countRow) string { return terminal.Size(r.Bytes) },
		Raw: func(r countRow) string { return strconv.FormatInt(r.Bytes, 10) }},
}

// jobsText is the number, and that it is not all.
func jobsText(r countRow) string {
	if r.more {
		return "at least " + strconv.Itoa(r.Jobs)
	}
	return strconv.Itoa(r.Jobs)
}

// batchCountsCmd counts batches by state.
type batchCountsCmd struct {
	Collection string `short:"c" help:"Only batches of this collection." placeholder:"NAME"`
}

func (batchCountsCmd) Prints() any { return v1.BatchCounts{} }

// Run shows a row for each state.
func (c *batchCountsCmd) Run(a *command.App) error {
	return command.Show(a, func(p terminal.Page, n v1.BatchCounts) {
		terminal.Table(p, n.States, stateColumns...)
	})(a.Client.BatchCounts(a.Ctx, c.Collection))
}

var stateColumns = []terminal.Column[v1.StateBatches]{
	{Title: "state", Text: func(s v1.StateBatches) string { return s.State }},
	{Title: "batches", Text: func(s v1.StateBatches) string {
		if s.More {
			return "more than " + strconv.Itoa(s.Batches)
		}
		return strconv.Itoa(s.Batches)
	}},
}
