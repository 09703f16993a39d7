package consumer

import (
	"context"
	"fmt"

	"archivist/pkg/events/envelope"
)

// filesRead is how many files of a version one step reads: a few hundred KB of their list. A step
// must be short beside the time of a run, however many files the filter leaves out.
const filesRead = 1000

// files handles the next files of the version after the cursor. A step is like a window of the log:
// the files that fail are parked, each on its own, and the cursor moves in the same transaction. So
// a version of very many files takes many steps, and any run continues. A list that cannot be read
// stops the cursor; nobody knows then which files are after it.
func (n *run) files(ctx context.Context) (next, error) {
	at := n.cur.Files
	events, err := n.r.Store.Log.Events(ctx, []envelope.Event{at.Event.facts(n.part.Name)})
	if err != nil {
		return again, err
	}

	w := &window{n: n, end: n.cur.position(), whole: true}
	if !n.filter.SelectsFiles(events[0]) { // the definition has changed meanwhile
		w.end = position{seq: at.Event.Seq}
		return n.finish(ctx, w)
	}

	if err := w.pickFiles(ctx, events[0], at); err != nil {
		w.picked, w.end = nil, n.cur.position()
		w.stop = n.stop(Unreadable, at.Event.Seq, fmt.Sprintf("the files of %s cannot be read: %s",
			at.Event.SubjectID, err))
		return n.finish(ctx, w)
	}

	if len(w.picked) == 0 && !n.cur.position().before(w.end) {
		return n.full(ctx, at.Event.Seq)
	}
	return n.finish(ctx, w)
}

// pickFiles selects the next files of a version, as many as can be parked in one transaction, and
// sets the end of the step: the file after which it goes on, or the event itself after the last
// one.
func (w *window) pickFiles(ctx context.Context, e envelope.Event, at *opened) error {
	done, room, ended := at.Done, w.room(), true
	err := w.n.r.Store.eachFile(ctx, e, at.Done, at.Next, func(file seen, next int64) error {
		is := w.n.filter.Match(file.Event)
		if is && len(w.picked) >= room || done-at.Done >= filesRead {
			ended = false
			return errEnough
		}

		if is {
			w.picked = append(w.picked, file)
		}

		done++
		w.end = position{seq: w.n.cur.Seq, files: &opened{Event: at.Event, Done: done, Next: next}}
		return nil
	})

	if ended {
		w.end = position{seq: at.Event.Seq}
	}
	return err
}
