// Package researcher is the library of the program that does research: it receives work items,
// downloads recordings, looks for each clip in its episode, and reports each result at once.
//
//	r := &researcher.Researcher{Name: "lab-1", Concurrency: 2, Server: server,
//		Source: researcher.Next{Server: server}, Cache: cache, Reports: reports, Analyses: shipped.Analyses, …}
//	err := r.Run(ctx, stop) // until stop is done: then the clip at hand is finished, and the rest given back
//
// What is found is kept on the disk until it was taken, so neither a crash nor a lost network loses
// it. A work item that is lost in a crash is assigned again when its lease ends.
//
// One goroutine says that the researcher is present, one delivers reports, and each of Concurrency
// works on one work item after the other. Two contexts end them: when stop is done, clips at hand
// are finished and reports delivered; when ctx is done, all ends at once, and what was reported is
// still on the disk.
package researcher

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"archivist/pkg/kernel/backoff"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/research/analysis"
)

// Times between requests.
const (
	pause     = 3 * time.Second  // before the next request for work if there was none; it doubles
	mostPause = 30 * time.Second // each time, up to this
	idle      = 90 * time.Second // without work: longer than from pass to pass of the assigner
	farewell  = 30 * time.Second // for the reports that were not yet taken, when all else is done
	clipLimit = 2 * time.Hour    // for one clip: as long as a lease
)

// Researcher does research until it is stopped.
type Researcher struct {
	Name        string // unique in the project; in reports, and of the folder of reports
	Concurrency int    // work items at once
	Once        bool   // ends after one work item
	UntilIdle   bool   // ends when there was no work for 90 seconds

	Server   Server
	Source   Source
	Cache    *Cache
	Reports  *Reports
	Analyses map[string]analysis.Analysis // by name

	Now    func() time.Time
	NewID  func() string
	Jitter func() float64 // uniform in [0,1)
	Wait   func(context.Context, time.Duration) error
	Log    *slog.Logger

	// Watch, if it is set, is told what is being done. It is called by several goroutines.
	Watch func(Status)

	mu      sync.Mutex      // guards what follows, up to refused
	busy    int             // work items at hand
	worked  time.Time       // when there was work last
	ended   map[string]bool // ids of leases that have ended before their work items were done
	refused []error         // of reports, since the researcher began

	stop context.CancelCauseFunc // ends the work as the context stop of Run does
}

// waits between tries of a request. There is no last one: a network may be away for hours.
var waits = backoff.Policy{First: time.Second, Most: 30 * time.Second}

// final reports whether another try would fail in the same way.
func final(err error) bool {
	switch fault.Of(err) {
	case fault.Invalid, fault.NotFound, fault.Conflict, fault.Denied:
		return true
	}
	return false
}

// retry calls f until it succeeds, cannot succeed, or stop is done; in the last case it returns
// nil, although f has not succeeded.
func (r *Researcher) retry(stop context.Context, f func() error) error {
	for try := 1; stop.Err() == nil; try++ {
		err := f()
		if err == nil || final(err) {
			return err
		}
		if stop.Err() == nil {
			r.Log.Warn("trying again", "error", err)
		}
		_ = r.Wait(stop, waits.Delay(try, r.Jitter)) // the loop asks whether stop is done
	}
	return nil
}

// What is being done.
const (
	Waiting     = "waiting"
	Downloading = "downloading"
	Reading     = "reading"
	Searching   = "searching"
)

// Status is what is being done.
type Status struct {
	Slot        int     // 0 to Concurrency-1
	Doing       string  // Waiting …
	Episode     string  // title, or key
	Clip, Clips int     // the clip at hand, counted from 1, of so many
	Part        float64 // of what is being done, 0 to 1
	Speed       float64 // of the search, in multiples of real time; 0: not known
	Hits        int     // found in this work item
}

// watch tells what is being done, if somebody wants to know.
func (r *Researcher) watch(s Status) {
	if r.Watch != nil {
		s.Doing = cmp.Or(s.Doing, Waiting)
		r.Watch(s)
	}
}
