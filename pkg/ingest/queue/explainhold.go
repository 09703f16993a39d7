package queue

import (
	"context"
	"fmt"

	"archivist/pkg/ingest"
)

// explainHeld explains why a job or a batch is held, and how it continues. h is the hold on
// its row; active is the hold of its collection or batch, nil if there is none.
func explainHeld(what ingest.TargetKind, h *ingest.Hold, active *Hold) (WaitsOn, string) {
	own := h != nil && h.Scope == what
	switch {
	case active != nil:
		return OnHold, capital(untilReleased(string(what), active, h != nil && h.Until != 0))
	case h != nil && h.Until != 0:
		return OnHold, fmt.Sprintf("On hold %s. It then continues by itself, unless an operator releases it earlier.",
			h.Description())
	case own:
		return OnHold, fmt.Sprintf("On hold %s An operator must release the %s.",
			sentence(h.Description()), what)
	case h != nil:
		return OnPerson,
			fmt.Sprintf("The hold of its %s, %s, is lifted. An operator must also release the %s.",
				h.Scope, h.Description(), what)
	}
	return OnPerson, fmt.Sprintf("It is on hold. An operator must release the %s.", what)
}

// untilReleased explains which hold stops a job, a batch or jobs, and what must be done. What
// was stopped before its hold got an end does not continue by itself.
func untilReleased(what string, h *Hold, byItself bool) string {
	why := sentence(h.Description())
	switch {
	case h.Until != 0 && byItself:
		return why + " Work then continues by itself."
	case h.Until != 0:
		return fmt.Sprintf("%s An operator must then release the %s.", why, what)
	case string(h.Scope) == what:
		return fmt.Sprintf("%s An operator must release the %s.", why, what)
	}
	return fmt.Sprintf("%s An operator must release the %s, then the %s.", why, h.Scope, what)
}

// explainPause explains which hold or pause keeps a waiting job from being admitted; Why is
// "" if none does.
func (q *Queue) explainPause(ctx context.Context, j *ingest.Job) (x Explanation, err error) {
	active, err := q.active(ctx)
	h := active.stops(j)
	switch {
	case h == nil:
		return x, err
	// A hold, not a pause: at the next tick the job becomes Held.
	case h.ID != "" && j.State == ingest.Pending:
		return Explanation{Waits: OnHold, Why: untilReleased(string(ingest.TargetJob), h, true)}, err
	}

	x = Explanation{Waits: OnHold, Why: sentence(h.Description())}
	if h.Until == 0 {
		x.Why += fmt.Sprintf(" An operator must %s the %s.", endOf(h), h.Scope)
	}
	return x, err
}
