package console

import (
	"slices"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/terminal"
)

// jobCounts is the page of jobs by collection and place.
type jobCounts struct {
	Of     string // only this collection; "" = all
	Places []countedPlace
	Rows   []countedJobs
	All    countedJobs
	Cut    bool
	// Unreadable are rows that are not counted.
	Unreadable int
}

// countedPlace is a column, and the jobs of all rows in it.
type countedPlace struct {
	Name, Says string
	Cut        bool // there are more than were counted
	jobCell
}

// countedJobs is a row: of a collection, or of all.
type countedJobs struct {
	Collection string
	Cells      []jobCell
}

// jobCell is what is at a place. To is the list of these jobs, below /console/; "" if no list has just these.
type jobCell struct {
	v1.PlaceJobs
	To string
}

// placesSay is what jobs do at the places where no gate is.
var placesSay = map[string]string{"running": "in a slot", "failed": "wait for a correction"}

// statesAt are the states of jobs at a place. Those that run or are parked are in several.
var statesAt = map[string]string{"pending": v1.Pending, "provisioning": v1.Provisioning, "held": v1.Held,
	"failed": v1.Failed}

// showJobCounts shows how many jobs are where, with the work space that they need.
func (c *Console) showJobCounts(v *visit) (view, error) {
	n, err := v.api.JobCounts(v.Context())
	p := jobCounts{Of: v.field("collection"), Cut: len(n.Cut) > 0, Unreadable: n.Unreadable}
	n = only(n, p.Of)
	p.All = countedOf(p.Of, n.All)
	jobs := 0
	for i, at := range n.All {
		one := countedPlace{Name: at.Place, Says: placesSay[at.Place],
			Cut: slices.Contains(n.Cut, at.Place), jobCell: p.All.Cells[i]}
		for _, g := range gates {
			if g.Gate == at.Place {
				one.Says = g.Says
			}
		}
		p.Places = append(p.Places, one)
		jobs += at.Jobs
	}
	for _, one := range n.Collections {
		p.Rows = append(p.Rows, countedOf(one.Collection, one.Places))
	}
	return view{Title: "Jobs by collection and state", Body: p, Command: "archivist job counts",
		Said: terminal.Count(jobs, "job") + "."}, err
}

// only are the counts of one collection, which has none if no job of it is counted; "" = all.
func only(n v1.JobCounts, collection string) v1.JobCounts {
	if collection == "" {
		return n
	}
	all := make([]v1.PlaceJobs, len(n.All))
	for i, at := range n.All {
		all[i].Place = at.Place
	}
	out := v1.JobCounts{All: all, Cut: n.Cut}
	for _, one := range n.Collections {
		if one.Collection == collection {
			out.Collections, out.All = append(out.Collections, one), one.Places
		}
	}
	return out
}

// countedOf is a row, with links to the lists.
func countedOf(collection string, places []v1.PlaceJobs) countedJobs {
	row := countedJobs{Collection: collection}
	for _, at := range places {
		cell := jobCell{PlaceJobs: at}
		if state := statesAt[at.Place]; state != "" {
			cell.To = "jobs?" + query("collection", collection, "state", state)
		}
		row.Cells = append(row.Cells, cell)
	}
	return row
}
