package console

import (
	"slices"
	"time"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/access"
	"archivist/pkg/kernel/terminal"
)

// rebuilds is the page of what makes rows again: reindexes, and where the other ways are.
type rebuilds struct {
	Runs     []reindexed
	Restores *v1.Restores // nil: the visitor may not see them
	Unknown  string       // why they are not known
}

// reindexed is a reindex of all objects.
type reindexed struct {
	v1.ReindexRun
	Percent int64
	Left    string // how long it still runs; "" if that is not known
	More    int    // failures that are not named
}

// showRebuilds shows how far reindexes are, as their drivers have reported, and how to go on after an interruption.
func (c *Console) showRebuilds(v *visit) (view, error) {
	runs, err := v.api.ReindexRuns(v.Context())
	p := rebuilds{}
	if v.may(access.Operator) {
		restores, failed := v.api.Restores(v.Context(), "")
		p.Restores, p.Unknown = &restores, restores.Problem
		if failed != nil { // reindexes are shown nevertheless
			p.Unknown = failed.Error()
		}
	}
	for _, r := range runs {
		one := reindexed{ReindexRun: r, Percent: percent(int64(r.Done), int64(r.Total)),
			More: r.Failed - len(r.Failures)}
		if r.SecondsLeft > 0 {
			one.Left = (time.Duration(r.SecondsLeft) * time.Second).String()
		}
		p.Runs = append(p.Runs, one)
	}
	moving := slices.ContainsFunc(runs, func(r v1.ReindexRun) bool {
		return r.State == v1.ReindexRunning
	})
	return view{Title: "Reindexes and restores", Body: p, Moving: moving,
		Command: "archivist object reindex --all",
		Said:    terminal.Count(len(runs), "run") + " of reindexes."}, err
}
