package queue

import (
	"context"
	"fmt"

	"archivist/pkg/ingest"
)

// explainHeld explains why a job or a batch is held, and how it continues. h is the hold on
// its row; standing is the hold of its collection or batch, nil if none stands.
func explainHeld(what ingest.TargetKind, h *ingest.Hold, standing *Hold) (WaitsOn, string) {
	own := h != nil && h.Scope == what
	switch {
	case standing != nil:
		return OnHold, capital(untilReleased(string(what), standing, h != nil && h.Until != 0))
	case h != nil && h.Until != 0:
		return OnHold, fmt.Sprintf("On hold %s. It then continues by itself, if no operator releases it before.",
			h.Says())
	case own:
		return OnHold, fmt.Sprintf("On hold %s An operator must release the %s.", sentence(h.Says()), what)
	case h != nil:
		return OnPerson, fmt.Sprintf("The hold of its %s, %s, is lifted. An operator must release the %s, too.",
			h.Scope, h.Says(), what)
	}
	return OnPerson, fmt.Sprintf("It is on hold. An operator must release the %s.", what)
}

// untilReleased explains which hold stops a job, a batch or jobs, and what must be done. What
// was stopped before its hold got an end does not continue by itself.
func untilReleased(what string, h *Hold, byItself bool) string {
	why := sentence(h.Says())
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
	standing, err := q.standing(ctx)
	pause := standing.paused(theQueue)
	if pause == nil && j.NeedsStorage() {
		pause = standing.paused(theStorage)
	}
	switch held := standing.on(j.Collection, j.Batch); {
	case pause != nil:
		x = Explanation{Waits: OnHold, Why: sentence(pause.Says())}
		if pause.Until == 0 {
			x.Why += fmt.Sprintf(" An operator must resume the %s.", pause.Scope)
		}
	case held != nil && j.State == ingest.Pending:
		x = Explanation{Waits: OnHold, Why: untilReleased(string(ingest.TargetJob), held, true)}
	}
	return x, err
}
