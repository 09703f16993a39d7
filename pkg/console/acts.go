package console

import (
	"slices"

	"archivist/pkg/kernel/access"
)

// act is something that a person can do to a thing of a kind, and what it means. The API says when it is possible.
type act struct {
	Name  string // as the API has it
	Title string // of the button
	// Means is what happens, and what is lost.
	Means string
	// Until, Priority: what it asks for beside a reason.
	Until    bool
	Priority bool
	// Loses: it cannot be undone.
	Loses bool
	// Many: it is also done to many jobs at once, by visitors with a role.
	Many access.Role
}

// acts are the actions on each kind of thing, the most likely first.
var acts = map[string][]act{
	"job": {
		{Name: "requeue", Title: "Requeue", Many: access.Operator,
			Means: "It continues after its last successful state. Correct the cause of its failure first."},
		{Name: "release", Title: "Release", Many: access.Operator,
			Means: "Its hold ends, and it continues."},
		{Name: "hold", Title: "Hold", Until: true, Many: access.Operator,
			Means: "It waits until it is released, or until the time that you give."},
		{Name: "prioritize", Title: "Set the priority", Priority: true, Many: access.Operator,
			Means: "Jobs with a lower number start first."},
		{Name: "clean-up", Title: "Remove its work files", Loses: true, Many: access.Operator,
			Means: "What it has downloaded is removed now. If it is requeued, it downloads all again."},
		{Name: "fail", Title: "Let it fail", Many: access.Operator,
			Means: "It stops and is Failed. It can be requeued."},
		{Name: "delete", Title: "Delete", Loses: true, Many: access.Administrator,
			Means: "It ends for good: it cannot be requeued. What is preserved stays."},
	},
	"batch": {
		{Name: "release", Title: "Release",
			Means: "Its hold ends. Jobs that it stopped stay Held. If there are any, you can release them next."},
		{Name: "update-report", Title: "Report what changed",
			Means: "A report of what changed since the last one is made and mailed."},
		{Name: "hold", Title: "Hold", Until: true,
			Means: "Its waiting jobs are Held instead of starting. What runs, finishes."},
		{Name: "cancel", Title: "Cancel", Loses: true,
			Means: "Its jobs that have not started are deleted, other unfinished ones fail, then it reports."},
		{Name: "clean-up", Title: "Clean up", Loses: true,
			Means: "The rows of a Completed batch are removed now. Of a Failed one, the work files of its jobs."},
		{Name: "delete", Title: "Delete", Loses: true,
			Means: "It is deleted with all its jobs. What is preserved stays."},
	},
	"queue": {
		{Name: "pause", Title: "Pause", Until: true,
			Means: "No job is admitted. Submissions are accepted, and what runs, finishes."},
		{Name: "resume", Title: "Resume",
			Means: "The pause ends: jobs are admitted again."},
	},
	"storage": {
		{Name: "pause", Title: "Pause", Until: true,
			Means: "No job begins to store a version. Jobs continue up to that point and wait there."},
		{Name: "resume", Title: "Resume",
			Means: "The pause ends: versions are stored again."},
	},
	"collection": {
		{Name: "hold", Title: "Hold", Until: true,
			Means: "Its waiting jobs are Held instead of starting. What runs, finishes."},
		{Name: "release", Title: "Release",
			Means: "Its hold ends. Jobs that it stopped stay Held. If there are any, you can release them next."},
	},
	"operation": {
		{Name: "interrupt", Title: "Interrupt",
			Means: "It stops. What it has done stays done."},
		{Name: "continue", Title: "Continue",
			Means: "It does the rest."},
	},
}

// did is what a page says after an action, by the name in its address.
var did = map[string]string{
	"requeue": "It was requeued.", "release": "It was released.", "hold": "It is on hold.",
	"prioritize": "Its priority was set.", "clean-up": "It is being cleaned up.", "fail": "It was stopped.",
	"delete": "It was deleted.", "update-report": "A report of what changed is being made.",
	"cancel": "It was cancelled.", "pause": "It is paused.", "resume": "The pause has ended.",
	"corrected": "A version of the object is being made. This is its batch.",
	"submitted": "It was submitted. This is its batch.", "saved": "The profile was saved.",
	"interrupt": "It was interrupted.", "continue": "It goes on.", "nothing": "Nothing had to be changed.",
}

// offers are the actions on a thing that the API says are possible, in the order in which a page has them.
func offers(kind, id string, possible []string) (all []offer) {
	target := kind
	if id != "" {
		target += ":" + id
	}
	for _, a := range acts[kind] {
		if slices.Contains(possible, a.Name) {
			all = append(all, offer{Act: a, Target: target})
		}
	}
	return all
}

// offer is an action that a page offers.
type offer struct {
	Act    act
	Target string
}

// many are the actions on many jobs at once that a visitor may do.
func (v *visit) many() (all []act) {
	for _, a := range acts["job"] {
		if a.Many != "" && v.may(a.Many) {
			all = append(all, a)
		}
	}
	return all
}

// actOf is an action by its kind and name.
func actOf(kind, name string) (act, bool) {
	i := slices.IndexFunc(acts[kind], func(a act) bool { return a.Name == name })
	if i < 0 {
		return act{}, false
	}
	return acts[kind][i], true
}
