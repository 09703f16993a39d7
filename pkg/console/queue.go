package console

import (
	"time"

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
	Others  int   // that run, beside those that are shown
	// Silent: the scheduler has not swept for long, or never. Else when it swept is not shown: it
	// does so each minute, and the page would change though nothing happens.
	Silent bool
}

// gate is a place where jobs wait, with the first of them.
type gate struct {
	gateCount
	Head *v1.GateHead
	Next []v1.GateHead // those behind it
}

// SpaceUsed is how many bytes of the work space are granted.
func (q queue) SpaceUsed() int64 { return max(0, q.Limits.Space-q.SpaceFree) }

// pause says whether the queue or the storage is paused.
type pause struct {
	Name string
	Hold *v1.Hold // nil: it runs
}

// mostShown is how many of the jobs that run the API names.
const mostShown = 100

// silent is from when on a scheduler that has not swept is silent, as in the status.
const silent = 5 * time.Minute

// showQueue shows what runs, what waits and why, and what is paused.
func (c *Console) showQueue(v *visit) (view, error) {
	all, err := v.api.Queue(v.Context())
	if err != nil {
		return view{}, err
	}
	q := queue{Queue: all, Percent: percent(int64(all.Running), int64(all.MaxInFlight))}
	q.Others = max(0, all.Running-len(all.Now))
	if len(all.Now) < mostShown { // what is read at several moments can differ by some
		q.Others = 0
	}
	q.Silent = all.LastSweep == "" || v.now.Sub(parse(all.LastSweep)) > silent
	if !q.Silent {
		q.LastSweep = ""
	}
	for _, g := range waitingOf(all) {
		one := gate{gateCount: g}
		for i := range all.Heads {
			switch {
			case all.Heads[i].Gate != g.Gate:
			case one.Head == nil:
				one.Head = &all.Heads[i]
			default:
				one.Next = append(one.Next, all.Heads[i])
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
