package console

import (
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/terminal"
)

// queue is the page of the queue.
type queue struct {
	v1.Queue
	Gates   []gate
	Pauses  []pause
	Offers  []offer
	Percent int64 // of slots in use
}

// gate is a place where jobs wait, with the first of them.
type gate struct {
	gateCount
	Head *v1.GateHead
}

// pause says whether the queue or the storage is paused.
type pause struct {
	Name string
	Hold *v1.Hold // nil: it runs
}

// showQueue shows what runs, what waits and why, and what is paused.
func (c *Console) showQueue(v *visit) (view, error) {
	all, err := v.api.Queue(v.Context())
	if err != nil {
		return view{}, err
	}
	q := queue{Queue: all, Percent: percent(int64(all.Running), int64(all.MaxInFlight))}
	for _, g := range waitingOf(all) {
		one := gate{gateCount: g}
		for i := range all.Heads {
			if all.Heads[i].Gate == g.Gate {
				one.Head = &all.Heads[i]
			}
		}
		q.Gates = append(q.Gates, one)
	}
	for _, name := range []string{"queue", "storage"} {
		p := pause{Name: name}
		for i := range all.Holds {
			if all.Holds[i].Target == name {
				p.Hold = &all.Holds[i]
			}
		}
		q.Pauses = append(q.Pauses, p)
		q.Offers = append(q.Offers, offers(name, "", all.Actions[name])...)
	}
	moving := all.Running+all.Waiting["pending"]+all.Waiting["provisioning"] > 0
	return view{Title: "Queue", Body: q, Moving: moving, Command: "archivist queue show",
		Said: terminal.Count(all.Running, "job") + " of at most " + number(all.MaxInFlight) + " run."}, nil
}
