package jobs

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"archivist/cmd/archivist/command"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/terminal"
)

// QueueCmd shows the queue, unless another command is named.
type QueueCmd struct {
	Show   queueShowCmd `cmd:"" default:"1" help:"Show what runs, what waits, and what is held."`
	Holds  holdListCmd  `cmd:"" help:"List the pauses and the holds of collections and batches."`
	Pause  pauseCmd     `cmd:"" help:"Start no jobs. Submissions are accepted, and running jobs finish."`
	Resume resumeCmd    `cmd:"" help:"End the pause of the queue."`

	// They are for maintenance of the storage: unlike in a pause of the queue, jobs go on up to the point at which
	// they would store.
	PauseStorage  pauseCmd  `cmd:"" help:"Store no more versions. Jobs continue up to that point, and wait."`
	ResumeStorage resumeCmd `cmd:"" help:"End the pause of the storage."`
}

// Prints is for the completion of a command line that names no other command.
func (QueueCmd) Prints() any { return v1.Queue{} }

// queueShowCmd shows the whole queue: how many jobs run, how many wait at each gate (for a slot,
// for space, for a lock), since when the oldest does, the first at each gate, the lines before
// locks, and the limits.
type queueShowCmd struct{}

func (queueShowCmd) Prints() any { return v1.Queue{} }

// Run shows the queue in one request. The time of the last sweep shows whether the scheduler runs.
func (queueShowCmd) Run(a *command.App) error {
	q, err := a.Client.Queue(a.Ctx)
	if err != nil {
		return err
	}
	return a.Print(q, func(p terminal.Page) {
		pairs := []string{"running", fmt.Sprintf("%d of %d slots", q.Running, q.MaxInFlight)}
		for _, place := range []string{"pending", "provisioning", "parked"} {
			pairs = append(pairs, place, waitingAt(q, place))
		}

		if q.Waiting["held"] > 0 {
			pairs = append(pairs, "on hold", waitingAt(q, "held"))
		}

		p.Fields(append(pairs, "space free", terminal.Size(q.SpaceFree),
			"oldest", strings.TrimSpace(q.OldestWaiting+" "+q.OldestSince), "last sweep",
			q.LastSweep)...)

		showHolds(p, q.Holds)
		if p.ForPeople() {
			showNow(p, q)
		}
	})
}

// waitingAt is how many wait at a place.
func waitingAt(q v1.Queue, place string) string {
	n := strconv.Itoa(q.Waiting[place])
	if slices.Contains(q.MoreThan, place) {
		return "more than " + n
	}
	return n
}

// showNow shows the first jobs at each gate, the lines before locks, the limits, and what runs.
// Programs get that as JSON.
func showNow(p terminal.Page, q v1.Queue) {
	for _, h := range q.Heads {
		place := ""
		if h.Place > 1 {
			place = " " + strconv.Itoa(h.Place)
		}
		p.Fields("first", fmt.Sprintf("%s%s: %s of %s: %s", h.Gate, place, h.Job, h.Collection,
			h.Why))
	}
	showLocks(p, q.Locks)
	showLimits(p, q)
	for _, j := range q.Now {
		says := fmt.Sprintf("%s: %s of %s since %s", j.State, j.Job, j.Collection, command.Minute(j.Since))
		if j.Progress.Done != "" {
			says += ", " + j.Progress.Done
		}
		if j.Worker != "" {
			says += ", by worker " + j.Worker
		}
		p.Fields("runs", says)
	}
}

// showLocks shows the lines before locks.
func showLocks(p terminal.Page, l *v1.LockLines) {
	if l == nil || len(l.Lines) == 0 {
		return
	}
	for _, one := range l.Lines {
		first := one.First + " comes first"
		if one.Has {
			first = one.First + " has it"
		}
		if one.State != "" {
			first += fmt.Sprintf(", %s since %s", one.State, command.Minute(one.Since))
		}
		says := strings.Join(one.Jobs, ", ")
		if more := one.Waiting - len(one.Jobs); more > 0 {
			says += fmt.Sprintf(", %d more", more)
		}
		p.Fields("line", fmt.Sprintf("%s: %s; behind it: %s", one.Of, first, says))
	}
	if l.More {
		p.Fields("line", fmt.Sprintf("… of the first %d jobs at the gates provisioning and parked; "+
			"more wait there", l.Looked))
	}
}

// showLimits shows the limits in force, and how much of them is in use.
func showLimits(p terminal.Page, q v1.Queue) {
	l := q.Limits
	if l == nil {
		return
	}
	of := "as many as of all"
	if l.OfCollection > 0 {
		of = strconv.Itoa(l.OfCollection)
	}
	space := terminal.Size(l.Space)
	if l.Reserve > 0 {
		space += ", of which " + terminal.Size(l.Reserve) +
			" must be free for a job of unknown size"
	}
	kept := ""
	if l.PatienceMinutes > 0 {
		kept = fmt.Sprintf("for a job that lacks it for %d minutes", l.PatienceMinutes)
	}
	most := ""
	if l.LargestHolder != "" {
		most = l.LargestHolder + ", " + terminal.Size(l.LargestHeld)
	}
	p.Fields("at once",
		fmt.Sprintf("%d jobs; of a collection %s; in a stage as many as of all", q.MaxInFlight, of),
		"by collection", uses(l.Collections), "by stage", uses(l.Stages),
		"space", space, "space is kept", kept, "most of it has", most)
}

// uses are numbers of jobs by name.
func uses(all []v1.QueueUse) string {
	var out []string
	for _, u := range all {
		out = append(out, fmt.Sprintf("%s %d", u.Name, u.Running))
	}
	return strings.Join(out, ", ")
}
