package queue

import (
	"context"
	"fmt"
	"strings"

	"archivist/pkg/ingest"
	"archivist/pkg/kernel/explain"
)

// explainHeld explains why a job or a batch is held, and how it continues. h is the hold on its row; that of its
// collection or batch comes first. job is "" if the batch is held.
func (q *Queue) explainHeld(ctx context.Context, h *ingest.Hold, collection, batch, job string) (explain.Part, error) {
	what, id := ingest.TargetJob, job
	if job == "" {
		what, id = ingest.TargetBatch, batch
	}

	active, err := q.holdOn(ctx, collection, batch)
	if err != nil {
		return explain.Part{}, err
	}

	x := explainHeld(what, h, active)
	if active != nil {
		x.Do = append(x.Do, ends(active))
	}

	if active == nil || active.Scope != what && (h == nil || h.Until == 0) {
		x.Do = append(x.Do, release(what, id))
	}
	return x, nil
}

// explainHeld is the part of that which the two holds decide. active is the hold of the collection or the batch, nil if
// there is none.
func explainHeld(what ingest.TargetKind, h *ingest.Hold, active *Hold) (x explain.Part) {
	own := h != nil && h.Scope == what
	switch {
	case active != nil:
		x = says(explain.Hold, capital(untilReleased(string(what), active, h != nil && h.Until != 0)))
		x.Until = active.Until
	case h != nil && h.Until != 0:
		x = says(explain.Hold, fmt.Sprintf("On hold %s. It then continues by itself, unless an operator releases it "+
			"earlier.", h.Description()))
		x.Until = h.Until
	case own:
		x = says(explain.Hold, fmt.Sprintf("On hold %s An operator must release the %s.",
			sentence(h.Description()), what))
	case h != nil:
		x = says(explain.Person,
			fmt.Sprintf("The hold of its %s, %s, is lifted. An operator must also release the %s.",
				h.Scope, h.Description(), what))
	default:
		x = says(explain.Person, fmt.Sprintf("It is on hold. An operator must release the %s.", what))
	}
	return x
}

// ends is how a person ends a hold or a pause.
func ends(h *Hold) explain.Step {
	if h.ID == "" {
		end := "archivist queue resume --reason TEXT"
		if h.Scope == ingest.TargetStorage {
			end = "archivist queue resume-storage --reason TEXT"
		}
		return explain.Step{What: fmt.Sprintf("End the pause of the %s", h.Scope), Command: end}
	}
	return release(h.Scope, h.ID)
}

// release is how a person releases a job, a batch or a collection.
func release(what ingest.TargetKind, id string) explain.Step {
	return explain.Step{What: fmt.Sprintf("Release the %s", what),
		Command: fmt.Sprintf("archivist %s release %s --reason TEXT", what, id)}
}

// capital is a text with a capital at its beginning.
func capital(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

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
func explainPause(j *ingest.Job, active holds) (x explain.Part) {
	h := active.stops(j)
	switch {
	case h == nil:
		return x
	// A hold, not a pause: at the next tick the job becomes Held.
	case h.ID != "" && j.State == ingest.Pending:
		x = says(explain.Hold, untilReleased(string(ingest.TargetJob), h, true), ends(h))
		x.Until = h.Until
		return x
	}

	x = says(explain.Hold, sentence(h.Description()), ends(h))
	x.Until = h.Until
	if h.Until == 0 {
		x.Why += fmt.Sprintf(" An operator must %s the %s.", endOf(h), h.Scope)
	}
	return x
}
