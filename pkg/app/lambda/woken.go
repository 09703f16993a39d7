package lambda

import (
	"context"
	"log/slog"
	"time"

	"archivist/pkg/kernel/passes"
)

// passed is what a pass did.
type passed interface {
	comparable
	State() passes.Left
}

// woken makes passes for a function that is woken for one owner, an archive or a project. Only one pass at a time works
// on an owner.
type woken[P passed] struct {
	make func(ctx context.Context, owner string, until time.Time) (P, error)
	wake func(ctx context.Context, owner string) error // this function, asynchronously
	now  func() time.Time
	wait time.Duration // between two tries while another pass is at work
	log  *slog.Logger
	of   string // what an owner is, in the log
}

// patientTries is how often a wake-up tries to begin its pass. A pass that is at work may not see what the wake-up is
// about.
const patientTries = 5

// pass makes one pass until the time is over; if there is more to do then, the function is woken again. A pass that has
// done nothing writes no line: there is one each minute for each owner.
func (w woken[P]) pass(ctx context.Context, owner string, until time.Time, tries int) error {
	began := w.now()
	done, err := w.patient(ctx, owner, until, tries)
	log := w.log.With(w.of, owner, "did", done, "ms", w.now().Sub(began).Milliseconds())
	var nothing P
	switch {
	case err != nil:
		log.Error("the pass failed; the next minute repeats it", "error", err)
	case done != nothing:
		log.Info("passed")
	}
	return err
}

// patient makes the pass itself, and tries again while another one is at work. What it has done is returned beside an
// error, too.
func (w woken[P]) patient(ctx context.Context, owner string, until time.Time, tries int) (done P, err error) {
	done, err = w.make(ctx, owner, until)
	for ; err == nil && done.State().Busy && tries > 1 && w.now().Before(until); tries-- {
		w.pause(ctx)
		done, err = w.make(ctx, owner, until)
	}
	if err == nil && done.State().More {
		err = w.wake(ctx, owner)
	}
	return done, err
}

// pause is one wait long, or until ctx ends.
func (w woken[P]) pause(ctx context.Context) {
	timer := time.NewTimer(w.wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
