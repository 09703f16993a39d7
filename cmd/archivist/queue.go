package main

import (
	"fmt"
	"strconv"
	"strings"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/terminal"
)

// queueCmd shows the queue, unless another command is named.
type queueCmd struct {
	Show   queueShowCmd `cmd:"" default:"1" help:"Show what runs, what waits, and what is held."`
	Pause  pauseCmd     `cmd:"" help:"Start no jobs. Submissions are accepted, and running jobs finish."`
	Resume resumeCmd    `cmd:"" help:"End the pause of the queue."`
}

// prints is for the completion of a command line that names no other command.
func (queueCmd) prints() any { return v1.Queue{} }

// storageCmd is for maintenance of the storage.
type storageCmd struct {
	Pause  pauseCmd  `cmd:"" help:"Store no more versions. Jobs continue up to that point, and wait."`
	Resume resumeCmd `cmd:"" help:"End the pause of the storage."`
}

// queueShowCmd shows the whole queue: how many jobs run, and how many wait at each gate.
type queueShowCmd struct{}

func (queueShowCmd) prints() any { return v1.Queue{} }

// Run shows the queue.
func (queueShowCmd) Run(a *app) error {
	q, err := a.client.Queue(a.ctx)
	if err != nil {
		return err
	}
	return a.print(q, func(p terminal.Page) {
		pairs := []string{"running", fmt.Sprintf("%d of %d slots", q.Running, q.MaxInFlight)}
		for _, place := range []string{"pending", "provisioning", "parked"} {
			pairs = append(pairs, place, strconv.Itoa(q.Waiting[place]))
		}
		if n := q.Waiting["held"]; n > 0 {
			pairs = append(pairs, "on hold", strconv.Itoa(n))
		}
		p.Fields(append(pairs, "space free", terminal.Size(q.SpaceFree),
			"oldest", strings.TrimSpace(q.OldestWaiting+" "+q.OldestSince), "last sweep", q.LastSweep)...)
		showHolds(p, q.Holds)
	})
}
