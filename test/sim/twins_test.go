package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"archivist/pkg/ingest"
	"archivist/pkg/queue"
)

// store is a twin of the storage root: per object a chain of versions, each
// written by a job. A version is committed by a conditional put on the head.
type store struct {
	w     *world
	mu    sync.Mutex
	heads map[string][]string // object → jobs of its versions
}

var errPrecondition = errors.New("sim: precondition failed")

// commit appends the job's version if the head is still what was seen.
func (s *store) commit(object, job string, seen int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.heads[object]) != seen {
		return errPrecondition
	}
	s.heads[object] = append(s.heads[object], job)
	return nil
}

func (s *store) head(object string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.heads[object])
}

// step is a twin of a stage's step: the same shape of calls and results, with
// nothing behind it but the store.
func (a *actor) step(stage ingest.Stage, m queue.Message) queue.Step {
	switch stage.Name {
	case "unpack":
		return a.unpack
	case "store":
		return a.storing
	}
	return func(ctx context.Context, h *queue.Held) (ingest.Result, error) {
		if err := a.do("work at "+stage.Name, func() error { return nil }); err != nil {
			return ingest.Result{}, err
		}
		if h.Job == nil {
			return ingest.Result{Outcome: ingest.StepNext}, nil
		}
		switch stage.Name {
		case "estimate":
			h.Job.SpaceNeeded, h.Job.SizeKnown = 40, true
		case "download":
			h.Job.SpaceNeeded = 30
			if h.Job.Checkpoint == "" && a.rng.IntN(3) == 0 {
				h.Job.Checkpoint = "half"
				return ingest.Result{Outcome: ingest.StepContinue}, nil
			}
		case "process":
			if h.Job.Primary == "" && len(h.Job.LocalIDs) == 0 {
				h.Job.Primary = "ark:/99999/" + h.Job.ID
				h.Job.Locks = h.Job.Wanted()
				if err := h.Checkpoint(ctx); err != nil {
					return ingest.Result{}, err
				}
			}
		}
		if n := a.rng.IntN(40); n < 2 && !a.w.calm {
			return ingest.Fail(n == 0, "the simulation says so"), nil
		}
		return ingest.Result{Outcome: ingest.StepNext}, nil
	}
}

func (a *actor) unpack(ctx context.Context, h *queue.Held) (ingest.Result, error) {
	total := 1 + len(h.Batch.ID+h.Batch.Note)%3
	for h.Batch.Unpacked < total {
		n := h.Batch.Unpacked
		j := ingest.Job{Collection: "c", Priority: 5, Mode: "add"}
		if n == 0 {
			j.LocalIDs = []string{"shared"} // of every batch: jobs that must form a chain
		}
		if err := h.Unpack(ctx, []ingest.Job{j}, total); err != nil {
			return ingest.Result{}, err
		}
	}
	return ingest.Result{Outcome: ingest.StepNext}, nil
}

// object is what a job's content belongs to.
func object(j *ingest.Job) string { return fmt.Sprint(j.Wanted()) }

func (a *actor) storing(ctx context.Context, h *queue.Held) (ingest.Result, error) {
	var head []string
	o := object(h.Job)
	if err := a.do("read head", func() error { head = a.w.store.head(o); return nil }); err != nil {
		return ingest.Result{}, err
	}
	if !slices.Contains(head, h.Job.ID) { // is it already done?
		seen := len(head)
		err := a.do("commit version", func() error { return a.w.store.commit(o, h.Job.ID, seen) })
		if err != nil {
			return ingest.Result{}, err
		}
	}
	return ingest.Result{Outcome: ingest.StepNext}, nil
}
