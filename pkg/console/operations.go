package console

import (
	"net/http"
	"net/url"
	"strings"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/access"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/terminal"
)

// operations is the page of bulk operations.
type operations struct {
	listed
	Items []v1.Operation
}

// showOperations lists bulk operations, newest first.
func (c *Console) showOperations(v *visit) (view, error) {
	page, err := v.api.OperationPage(v.Context(), v.field("cursor"))
	moving := false
	for _, o := range page.Items {
		moving = moving || o.State == v1.OperationRunning
	}
	return view{Title: "Operations", Moving: moving, Command: "archivist operation list",
		Body: operations{v.pager(v1.Filter{}, nil, page.Cursor), page.Items}}, err
}

// operation is the page of a bulk operation.
type operation struct {
	v1.Operation
	Act     act // of its jobs; the zero value of the doctor
	Percent int64
	Items   []v1.OperationItem
	Next    string
	Offers  []offer
	// Doable: it was a dry run that has ended, and the visitor may do what it has tried.
	Doable bool
}

// showOperation shows how far a bulk operation is, and each of its jobs. One that only tried can be done from here.
func (c *Console) showOperation(v *visit) (view, error) {
	id := v.PathValue("id")
	one, err := v.api.Operation(v.Context(), id)
	if err != nil {
		return view{}, err
	}
	o := operation{Operation: one, Offers: offers("operation", id, one.Actions)}
	n := one.Counts
	o.Percent = percent(int64(n.Done+n.Refused), int64(n.Planned))
	var known bool
	o.Act, known = actOf("job", one.Action)
	if known {
		items, err := v.api.ItemPage(v.Context(), id, v.field("cursor"))
		if err != nil {
			return view{}, err
		}
		o.Items = items.Items
		if items.Cursor != "" {
			o.Next = "?" + query("cursor", items.Cursor)
		}
		o.Doable = one.DryRun && one.State == v1.OperationDone && n.Done > 0 && v.may(o.Act.Many)
	}
	heading := title(one.Action) + " " + terminal.Count(n.Planned, "job")
	if one.DryRun {
		heading = "Preview: " + one.Action + " " + terminal.Count(n.Planned, "job")
	}
	if !known {
		heading = title(one.Action)
	}
	return view{Title: heading, Body: o, Moving: one.State == v1.OperationRunning,
		Command: "archivist operation show " + id + " --jobs",
		Said:    "The operation is " + one.State + ": " + number(n.Done) + " of " + number(n.Planned) + " done."}, nil
}

// bulk is the form of a new bulk operation, with what was written.
type bulk struct {
	Many   []act
	Is     url.Values
	States []string
	// Wrong is what is wrong with fields, by their names; Other what else is wrong.
	Wrong map[string]string
	Other string
}

// showBulk shows the form of a bulk operation. What it would do is shown before it does it.
func (c *Console) showBulk(v *visit) (view, error) {
	if !v.may(access.Operator) {
		return view{}, fault.New(fault.Denied, "actions on many jobs need the role operator")
	}
	return bulk{Many: v.many(), Is: v.URL.Query(), States: v1.JobStates}.view(), nil
}

// view is the page of the form.
func (b bulk) view() view {
	return view{Title: "Act on many jobs", Body: b, Still: true,
		Command: "archivist job requeue --help"}
}

// bulkFields are the fields of the form by those of the API.
var bulkFields = map[string]string{"filter": "filter", "filter.batch": "batch",
	"filter.collection": "collection", "filter.state": "state", "filter.message": "message",
	"filter.before": "filter", "filter.keepOwnHolds": "keepOwnHolds", "action": "action",
	"reason": "reason", "until": "until", "priority": "priority"}

// startBulk starts a bulk operation: a dry run, or for step "do" the action. Its page shows what it
// does. What is refused is said at its field, and what was written stays.
func (c *Console) startBulk(v *visit, key string) error {
	to, err := v.startBulk(key)
	if fault.Is(err, fault.Invalid) && !v.via.refused {
		b := bulk{Many: v.many(), Is: v.PostForm, States: v1.JobStates}
		b.Wrong, b.Other = faultsOf(err, bulkFields)
		c.show(v, fault.At(err).Status, "bulk", b.view())
		return nil
	}
	if err == nil {
		redirect(v, to)
	}
	return err
}

// startBulk starts a bulk operation, and returns its page, below /console/.
func (v *visit) startBulk(key string) (string, error) {
	p := v.PostForm
	of, _ := actOf("job", p.Get("action"))
	a, err := v.action(of)
	if err != nil {
		return "", err
	}
	in := v1.OperationRequest{
		Action:        a.Action,
		ActionOptions: v1.ActionOptions{Reason: a.Reason, Confirm: a.Confirm, DryRun: a.DryRun},
		Until:         a.Until,
		Priority:      a.Priority,
		Filter: &v1.JobFilter{
			Batch:        trimmed(p, "batch"),
			Collection:   trimmed(p, "collection"),
			State:        p.Get("state"),
			Message:      trimmed(p, "message"),
			Before:       trimmed(p, "before"),
			KeepOwnHolds: p.Get("keepOwnHolds") != "",
		},
	}
	out, err := v.api.Start(v.Context(), in, key)
	return "operations/" + url.PathEscape(out.ID), err
}

// trimmed is a field of a form without blanks around it.
func trimmed(p url.Values, name string) string { return strings.TrimSpace(p.Get(name)) }

// outcome is what an action does, or would do, with one of several jobs.
type outcome struct {
	Job     string
	Result  v1.JobActionResult
	Refused string // why not; "" = it is done, or would be
}

// selected is what an action does, or would do, with the jobs that were selected.
type selected struct {
	Asked    asked
	Outcomes []outcome
	Fits     int  // how many it is not refused on
	Confirm  bool // some need that their warnings are accepted
	Done     bool
	Back     string // the list in which they were selected, below /console/
}

// mostSelected is how many jobs can be selected: those of a page of a list.
const mostSelected = 100

// actOnSelected acts on the jobs that were selected in a list, one after the other: first it says what would be done.
// Each has a key of its own, so a form that is sent twice acts once on each.
func (c *Console) actOnSelected(v *visit, key string) error {
	a, known := actOf("job", v.PostForm.Get("action"))
	ids := v.PostForm["job"]
	switch {
	case !known || a.Many == "":
		return fault.New(fault.Invalid, "action: choose what to do")
	case len(ids) == 0:
		return fault.New(fault.Invalid, "no job is selected; select some in the list")
	case len(ids) > mostSelected:
		return fault.New(fault.Invalid, "%d jobs are selected, at most %d can be; act on all that "+
			"a filter selects", len(ids), mostSelected)
	}
	action, err := v.action(a)
	if err != nil {
		return err
	}

	s := selected{Asked: asked{Kind: "job", Act: a, Action: action, Key: key}, Done: !action.DryRun,
		Back: v.listOfJobs()}
	for _, id := range ids {
		if err := s.on(v, id); err != nil {
			return err
		}
	}
	if s.Done && s.Fits == len(ids) {
		redirect(v, telling(s.Back, a.Name))
		return nil
	}
	heading := a.Title + " " + terminal.Count(len(ids), "job") + "?"
	if s.Done {
		heading = number(s.Fits) + " of " + terminal.Count(len(ids), "job") + ": " + a.Name
	}
	c.show(v, http.StatusOK, "selected", view{Title: heading, Body: s, Still: true,
		Command: "archivist job " + a.Name + " JOB" + optionsOf(action)})
	return nil
}

// listOfJobs is the list from which the form that was sent comes, below /console/.
func (v *visit) listOfJobs() string {
	back := within(v.PostForm.Get("back"))
	if path, _, _ := strings.Cut(back, "?"); path != "jobs" {
		return "jobs"
	}
	return back
}

// on acts on one of the selected jobs. An error is one that all of them would have.
func (s *selected) on(v *visit, id string) error {
	key := ""
	if s.Done {
		key = s.Asked.Key + "-" + id
	}
	out, err := v.api.ActOnJob(v.Context(), id, s.Asked.Action, key)
	one := outcome{Job: id, Result: out}
	switch {
	case fault.Is(err, fault.Invalid) || fault.Is(err, fault.Denied) || v.via.refused:
		return err
	case err != nil:
		one.Refused = err.Error()
	default:
		s.Fits++
	}
	s.Confirm = s.Confirm || out.NeedsConfirm
	s.Outcomes = append(s.Outcomes, one)
	return nil
}
