package console

import (
	"slices"
	"strings"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/access"
	"archivist/pkg/kernel/fault"
)

// jobs is the page of jobs.
type jobs struct {
	listed
	Items []v1.Job
	// Many are the actions on those that are selected.
	Many []act
	// All is the address of the form that acts on all that the filter selects; "" = it can not.
	All string
	// Counts is the page that counts the jobs by state, of which the browser shows a part: it
	// reads more than a list may.
	Counts string
}

// showJobs lists jobs: of a batch in its order, others newest first, unless they are sorted by
// something else.
func (c *Console) showJobs(v *visit) (view, error) {
	f := v.filter()
	if f.Batch != "" { // which is of one collection; the API refuses filters that the list does not have
		f.Collection = ""
	}
	page, unsorted, err := readSorted(v, &f, v1.JobSorts, v.api.JobPage)
	moving := slices.ContainsFunc(page.Items, func(j v1.Job) bool { return working(j.State) })
	p := jobs{listed: v.pager(f, v1.JobStates, page.Cursor), Items: page.Items, Many: v.many(),
		Counts: strings.TrimSuffix("job-counts?"+query("collection", f.Collection), "?")}
	p.sortable = v.sortable(f, v1.JobSorts, unsorted)
	err = p.refuse(v, err)
	if v.may(access.Operator) && f.Submitter+f.After+f.Before+f.LocalID+f.ARK+f.Callback == "" &&
		actable(f) {
		p.All = "operations/new?" + query("collection", f.Collection, "batch", f.Batch,
			"state", f.State, "message", f.Message)
	}
	return view{Title: "Jobs", Body: p, Moving: moving, Still: f.Sort != "", Status: p.status(),
		Command: joined("archivist job list", optionsFor(f))}, err
}

// actable reports whether the API acts on all jobs that a filter selects: it has to find them by a
// batch, a collection, or a state in which few jobs are.
func actable(f v1.Filter) bool {
	return f.Batch+f.Collection != "" || slices.Contains(actableStates, f.State)
}

// actableStates are states whose jobs can be acted on in all collections at once.
var actableStates = []string{v1.Held, v1.Failed, v1.Pending, v1.Provisioning}

// step is a state on the way of a job.
type step struct {
	v1.JobStage
	Class string // done, now, failed or ahead
}

// job is the page of a job.
type job struct {
	v1.Job
	Way     []step
	Why     *v1.Explanation
	Stands  *standing // who stands before it; nil: it is in no line
	WhyNot  string    // why there is no explanation
	Receipt *v1.Receipt
	Files   string // the address of more files
	Offers  []offer
	Events  []v1.Event
	Older   string
}

// showJob shows a job: its way, what it waits for, its files and events, and what can be done.
func (c *Console) showJob(v *visit) (view, error) {
	id := v.PathValue("id")
	one, err := v.api.Job(v.Context(), id)
	if err != nil {
		return view{}, err
	}
	j := job{Job: one, Way: wayOf(one), Offers: offers("job", id, one.Actions)}
	if one.State != v1.Completed && one.State != v1.Deleted {
		j.explain(v)
	}
	if one.Version > 0 {
		if err := j.files(v); err != nil {
			return view{}, err
		}
	}
	j.Events, j.Older, err = v.eventsOf(id)
	return view{Title: "Job " + id, Body: j, Moving: working(one.State),
		Command: "archivist job show " + id,
		Said:    "The job is " + one.State + ". " + one.Message}, err
}

// explain adds what the job waits for. If that is not known, the rest is shown all the same.
func (j *job) explain(v *visit) {
	why, err := v.api.Explain(v.Context(), j.ID)
	if err != nil {
		j.WhyNot = err.Error()
		return
	}
	j.Why, j.Stands = &why, standingOf(why, baseOf(v.Request))
}

// files adds a page of the files that are preserved. The receipt is written after the version: it can be missing.
func (j *job) files(v *visit) error {
	receipt, err := v.api.ReceiptPage(v.Context(), j.ID, v.field("files"))
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	j.Receipt = &receipt
	if receipt.Cursor != "" {
		j.Files = "?" + query("files", receipt.Cursor)
	}
	return err
}

// way are the states from the first to the last, without those beside it.
var way = slices.DeleteFunc(slices.Clone(v1.JobStates), func(s string) bool {
	return s == v1.Held || s == v1.Failed || s == v1.Deleted
})

// wayOf is the way of a job: the states that it was in, and those that are ahead.
func wayOf(j v1.Job) (all []step) {
	was := map[string]v1.JobStage{}
	for _, s := range j.Stages {
		was[s.State] = s
	}
	for _, name := range way {
		s, been := was[name]
		switch {
		case name == j.State && name != v1.Completed:
			all = append(all, step{s, "now"})
		case been:
			all = append(all, step{s, "done"})
		default:
			all = append(all, step{v1.JobStage{State: name}, "ahead"})
		}
	}
	if slices.Contains(way, j.State) {
		return all
	}
	// It stopped beside the way, after the last state that it was in.
	at := len(all)
	for at > 0 && all[at-1].Class == "ahead" {
		at--
	}
	aside := was[j.State]
	aside.State = j.State
	return slices.Insert(all, at, step{aside, "aside"})
}
