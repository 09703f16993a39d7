package console

import (
	"slices"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/terminal"
)

// jobCounts is the page of jobs by collection, or by batch, and place.
type jobCounts struct {
	By     bool   // by batch
	Others int    // batches that are left out
	Of     string // only this collection; "" = all
	Quick  bool   // without what takes more calls than a list may
	Whole  string // the address of the same page with that, below /console/
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

// countedJobs is a row: of a collection, of a batch, or of all.
type countedJobs struct {
	Collection string
	Batch      string // "" = all of the collection
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
	p := jobCounts{Of: v.field("collection"), By: v.field("by") == "batch",
		Quick: v.field("count") != "all",
		Whole: "job-counts?" + query("collection", v.field("collection"), "by", v.field("by"), "count", "all")}
	n, err := v.api.JobCounts(v.Context(), v1.CountOf{Collection: p.Of, Batches: p.By, Quick: p.Quick})
	p.Cut, p.Unreadable, p.Others = len(n.Cut) > 0, n.Unreadable, n.OtherBatches
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
		if !p.By {
			p.Rows = append(p.Rows, countedOf(one.Collection, one.Places))
		}
	}
	for _, one := range n.Batches {
		p.Rows = append(p.Rows, countedIn(one))
	}
	title, options := "Jobs by collection and state", option("-c", p.Of)
	if p.By {
		title, options = "Jobs by batch and state", options+" --batches"
	}
	if p.Quick {
		options += " --quick"
	}
	return view{Title: title, Body: p, Command: joined("archivist job counts", options),
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

// countedIn is a row of a batch. The list of its jobs has a state, if it is one in which jobs rest.
func countedIn(b v1.BatchJobs) countedJobs {
	row := countedJobs{Collection: b.Collection, Batch: b.Batch}
	for _, at := range b.Places {
		cell := jobCell{PlaceJobs: at}
		if state := statesAt[at.Place]; state != "" {
			cell.To = "jobs?" + query("batch", b.Batch, "state", state)
		}
		row.Cells = append(row.Cells, cell)
	}
	return row
}

// batchCounts is the page of batches by state.
type batchCounts struct {
	Of string // only this collection; "" = all
	v1.BatchCounts
}

// showBatchCounts shows how many batches are in which state.
func (c *Console) showBatchCounts(v *visit) (view, error) {
	of := v.collection()
	n, err := v.api.BatchCounts(v.Context(), of)
	return view{Title: "Batches by state", Body: batchCounts{of, n},
		Command: joined("archivist batch counts", option("-c", of))}, err
}
