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
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/backoff"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/research/analysis"
)

// Work is a work item.
type Work struct {
	Lease    string          // its id
	Project  string          // its name
	Analysis string          // name@version, as reports name it
	Method   string          // the name of the analysis
	Settings json.RawMessage // of the analysis
	Episode  Subject
	Clips    []Subject // in the order of research
}

// Subject is an episode or clip.
type Subject struct {
	Key   string // as reports name it
	Title string // for people; may be empty
	Media
}

// Media says where a recording is.
type Media struct {
	URL    string
	Size   int64  // bytes; 0 = not known
	SHA256 string // 64 hexadecimal digits; "" = not known
}

// Report is what is said of a work item.
type Report = v1.ResearchReport

// Kinds of problems.
const (
	Rejected = "rejected" // the recording can never be researched
	Failed   = "failed"   // it could not be read now
)

// Receipt is the answer to a report.
type Receipt struct {
	Ended bool // the lease: nobody waits for the rest of the work item
}

// Server is where research is reported. Errors of the kind Unavailable may be gone another time;
// after one of Invalid, NotFound, Conflict or Denied the same request fails again. Its methods are
// called by several goroutines.
type Server interface {
	// Heartbeat says that the researcher is present for a while, and how many work items it takes at
	// once. It returns when it is to be said again.
	Heartbeat(ctx context.Context, capacity int) (renew time.Duration, err error)
	// Next returns a work item that is accepted, nil if there is none now. A request with the same
	// token is answered again.
	Next(ctx context.Context, token string) (*Work, error)
	// Accept accepts the work item of a message. It returns a Conflict or a NotFound if it is no
	// longer to be had, and a Held if it is for another researcher, or this one is paused.
	Accept(ctx context.Context, lease, token string) (*Work, error)
	// Report is taken once, however often it comes.
	Report(ctx context.Context, r Report) (Receipt, error)
	// Leave says that the researcher leaves: no work is made for it any more.
	Leave(ctx context.Context) error
}

// Source is where work items come from.
type Source interface {
	// Next returns a work item that is accepted, nil if there is none now. It asks for none after
	// stop is done. A request with the same token is answered again.
	Next(ctx, stop context.Context, token string) (*Work, error)
}

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

// Run does research until stop is done: then it finishes the clips at hand, gives the rest back,
// and says so. ctx ends it at once. It returns why it could not go on, or that there are reports
// that were not taken.
func (r *Researcher) Run(ctx, stop context.Context) error {
	stop, r.stop = context.WithCancelCause(stop)
	defer r.stop(nil)
	stopsToo := context.AfterFunc(ctx, func() { r.stop(nil) })
	defer stopsToo()
	r.ended, r.worked = map[string]bool{}, r.Now()

	// Without a first heartbeat there is no work: if the name or the key is refused, the program ends
	// at once.
	renew, err := r.heartbeat(ctx, stop)
	if err != nil || stop.Err() != nil {
		return err
	}

	// Reports are delivered until the workers have ended, which is after stop: those of the clips
	// at hand, too.
	var side, workers errgroup.Group
	working, done := context.WithCancel(ctx)
	side.Go(func() error { r.stay(ctx, stop, renew); return nil })
	side.Go(func() error { r.deliver(working); return nil })
	for slot := range r.Concurrency {
		workers.Go(func() error { return r.work(ctx, stop, slot) })
	}

	err = workers.Wait()
	if err == nil && fault.Of(context.Cause(stop)) != "" {
		err = context.Cause(stop) // the presence was refused
	}

	r.stop(nil)
	done()
	_ = side.Wait() // they return no errors
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return r.leave(ctx, err)
}

// leave delivers what was not yet taken, and leaves. It has its own time, so that a server
// that cannot be reached does not keep the process. err is why the work ended; it is returned
// first.
func (r *Researcher) leave(ctx context.Context, err error) error {
	ctx, cancel := context.WithTimeout(ctx, farewell)
	defer cancel()
	undelivered := r.deliverAll(ctx)
	unknown := r.Server.Leave(ctx)
	switch {
	case err != nil:
		return err
	case undelivered != nil:
		return undelivered
	case unknown != nil:
		r.Log.Warn("the server does not know that this researcher has left; it counts as present for 90 seconds",
			"error", unknown)
	}
	return nil
}

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

// heartbeat says that the researcher is present. It waits at least a second before the next time,
// whatever the server says.
func (r *Researcher) heartbeat(ctx, stop context.Context) (renew time.Duration, err error) {
	err = r.retry(stop, func() error {
		renew, err = r.Server.Heartbeat(ctx, r.Concurrency)
		return err
	})
	return max(renew, time.Second), err
}

// stay says that the researcher is present, again and again. If the server refuses it for good,
// the researcher is stopped with that error as the cause.
func (r *Researcher) stay(ctx, stop context.Context, renew time.Duration) {
	for r.Wait(stop, renew) == nil {
		var err error
		renew, err = r.heartbeat(ctx, stop)
		if err != nil {
			r.stop(err)
			return
		}
	}
}

// work takes one work item after the other. slot is its number among the workers, from 0. An error
// of one worker stops the others: it is one of this computer or of the project, which they would
// meet, too.
func (r *Researcher) work(ctx, stop context.Context, slot int) error {
	wait := pause
	for stop.Err() == nil {
		item, err := r.next(ctx, stop)
		if err != nil {
			r.stop(nil) // the others finish their clips
			return err
		}

		if item == nil {
			r.watch(Status{Slot: slot})
			_ = r.Wait(stop, wait)
			wait = min(2*wait, mostPause)
			r.isIdle()
			continue
		}

		wait = pause
		err = r.research(ctx, stop, slot, item)
		r.count(-1)
		if err != nil {
			r.stop(nil) // the others finish their clips
			return err
		}

		if r.Once {
			r.stop(nil)
		}
	}
	return nil
}

// next receives a work item, nil if there is none. All tries have one token, so that a work item
// whose answer was lost is given again.
func (r *Researcher) next(ctx, stop context.Context) (item *Work, err error) {
	token := r.NewID()
	err = r.retry(stop, func() error {
		item, err = r.Source.Next(ctx, stop, token)
		return err
	})
	if fault.Is(err, fault.Conflict) {
		err = nil // the lease has ended before its answer came
	}

	if item != nil {
		r.count(1)
	}
	return item, err
}

// count counts the work items at hand, and notes that there was work.
func (r *Researcher) count(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.busy += n
	r.worked = r.Now()
}

// isIdle ends the researcher if it is to end without work.
func (r *Researcher) isIdle() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.UntilIdle && r.busy == 0 && r.Now().Sub(r.worked) >= idle {
		r.stop(nil)
	}
}

// Next receives work items from the server.
type Next struct{ Server Server }

// Next asks the server. What it has accepted is not lost by a stop: the request ends by itself.
func (n Next) Next(ctx, _ context.Context, token string) (*Work, error) {
	return n.Server.Next(ctx, token)
}
