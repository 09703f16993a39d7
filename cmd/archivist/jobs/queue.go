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

// queueShowCmd shows the whole queue: how many jobs run, and how many wait at each gate (for a slot, for space,
// for a lock), and since when the oldest does.
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

// showNow shows the first job at each gate, and what runs. Programs get that as JSON.
func showNow(p terminal.Page, q v1.Queue) {
	for _, h := range q.Heads {
		p.Fields("first", fmt.Sprintf("%s: %s of %s: %s", h.Gate, h.Job, h.Collection, h.Why))
	}
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
