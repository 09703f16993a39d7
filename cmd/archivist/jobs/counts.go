package jobs

import (
	"slices"
	"strconv"

	"archivist/cmd/archivist/command"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/terminal"
)

// jobCountsCmd counts jobs by collection and place, with the work space that they need.
type jobCountsCmd struct{}

func (jobCountsCmd) Prints() any { return v1.JobCounts{} }

// Run shows a row for each collection and place that has jobs.
func (jobCountsCmd) Run(a *command.App) error {
	return command.Show(a, showCounts)(a.Client.JobCounts(a.Ctx))
}

// countRow is the jobs of a collection at a place.
type countRow struct {
	collection string
	v1.PlaceJobs
	more bool // there are more than were counted
}

func showCounts(p terminal.Page, n v1.JobCounts) {
	var rows []countRow
	for _, c := range n.Collections {
		for _, at := range c.Places {
			if at.Jobs > 0 {
				rows = append(rows, countRow{c.Collection, at, slices.Contains(n.Cut, at.Place)})
			}
		}
	}
	terminal.Table(p, rows, countColumns...)
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
