package console

import (
	"slices"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/terminal"
)

// jobCounts is the page of jobs by collection and place.
type jobCounts struct {
	Places []countedPlace
	Rows   []countedJobs
	All    countedJobs
	Cut    bool
}

// countedPlace is a column.
type countedPlace struct {
	Name, Says string
	Cut        bool // there are more than were counted
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
	p := jobCounts{All: countedOf("", n.All), Cut: len(n.Cut) > 0}
	jobs := 0
	for _, at := range n.All {
		one := countedPlace{Name: at.Place, Says: placesSay[at.Place],
			Cut: slices.Contains(n.Cut, at.Place)}
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
