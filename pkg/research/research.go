// Package research hands out research: every clip is looked for in every episode of a project, by
// researchers that come and go (source: the requirement "TBTL Archivist").
//
// Each pair of an episode and a clip is a unit of research. A pair is due unless its result is recorded
// or a live lease covers it. The pending-work archivist (Pass) makes work items of pairs that are due: a
// lease, and a message on the queue of pending work. A researcher accepts a work item, and reports the
// result of each clip at once. The completed-work archivist (Record) stores results, whatever became of
// their lease.
//
// All changes go through Store.change: rows, places in the line, counts and events are written in one
// transaction, on the condition that nothing of what was read has changed.
package research

import (
	"context"
	"fmt"
	"log/slog"
	"regexp"
	"sync"
	"time"

	"archivist/pkg/fault"
	"archivist/pkg/lease"
	"archivist/pkg/table"
)

// Limits, each with its reason.
const (
	MaxClips      = 100_000 // clips of a project: a process keeps the list of them in memory
	MaxMaxClips   = 100     // clips of a work item: a lease names them all, and one request reads them
	MaxPriority   = 999_999
	MaxHeld       = 100 // live leases on one episode: they are part of its row
	MaxHits       = 1000
	MaxName       = 300  // characters of a source, of a stable id and of a title
	MaxURL        = 2048 // bytes of the address of a recording
	MaxReason     = 500
	MaxAnalyses   = 100 // that a project has had
	MaxFeeds      = 50
	MaxWorkers    = 64  // work items at once of one researcher
	maxResearcher = 100 // bytes of a researcher's name
	maxTries      = 20  // of a change that meets others
	countShards   = 16
	failuresADay  = 3 // of the media of an episode or clip; then it is set aside
)

// Names are the names of projects. They are part of names of queues.
var Names = regexp.MustCompile(`^[a-z][a-z0-9-]{0,39}$`)

// Times are the durations of a deployment.
type Times struct {
	Lease     time.Duration // of a work item, from its assignment
	Queue     time.Duration // how long a work item stays in the queue of pending work
	Extension time.Duration // a live lease lasts at least so long after a result
	Most      time.Duration // of a lease, with all extensions
	Presence  time.Duration // a researcher that was not heard of for so long is absent
	Renewal   time.Duration // how often a researcher says that it is present
	Pass      time.Duration // the lease of one pass of the archivist; the time-out of its function is shorter
}

// Default are the times of a deployment that sets none. A lease is long enough for a recording of
// several hours with 100 clips, and a lost researcher costs one lease. The queue's time is short, so that
// a surplus of work items ends long before the leases.
var Default = Times{Lease: 2 * time.Hour, Queue: 30 * time.Minute, Extension: 30 * time.Minute, Most: 12 * time.Hour,
	Presence: 90 * time.Second, Renewal: 30 * time.Second, Pass: 90 * time.Second}

// Check returns an Invalid if the times do not go together. A work item must leave the queue before its
// lease ends: else a message could be accepted whose pairs are assigned to another researcher.
func (t Times) Check() error {
	switch {
	case t.Queue < time.Minute: // the least that SQS takes ("SetQueueAttributes", MessageRetentionPeriod)
		return fault.New(fault.Invalid, "the time to live of pending work is %s; it must be at least a minute", t.Queue)
	case t.Queue >= t.Lease:
		return fault.New(fault.Invalid, "the time to live of pending work (%s) must be shorter than the lease (%s)",
			t.Queue, t.Lease)
	case t.Extension <= 0 || t.Most < t.Lease:
		return fault.New(fault.Invalid, "the longest lease (%s) must not be shorter than the lease (%s), and the "+
			"extension (%s) must be positive", t.Most, t.Lease, t.Extension)
	case t.Renewal <= 0 || t.Presence < 2*t.Renewal:
		return fault.New(fault.Invalid, "the presence (%s) must last at least two renewals (%s)", t.Presence, t.Renewal)
	case t.Pass <= 0:
		return fault.New(fault.Invalid, "a pass of the archivist (%s) must take some time", t.Pass)
	}
	return nil
}

// By is who changes something, and why.
type By struct {
	Actor     string
	Reason    string
	Component string // the part of the system that makes the change
}

// Store keeps projects, their episodes and clips, leases and results.
type Store struct {
	Table  *table.Table
	Leases *lease.Store
	Now    func() time.Time
	NewID  func() string
	Times  Times

	// Projects are the names of the projects of this deployment: each has a queue of pending work.
	Projects []string

	// Analyses check the settings of an analysis, by its name.
	Analyses map[string]func(settings []byte) error

	// Send puts a message on the queue of pending work of its project.
	Send func(ctx context.Context, m Message) error

	// Wake starts a pass of the archivist soon. A wake-up that is lost costs time: the schedule starts
	// one each minute. nil: it always does.
	Wake func(ctx context.Context, project string) error

	// Metric, if it is set, counts work items that were sent again, leases that expired, and what was set
	// aside.
	Metric func(name string, value float64)

	// Log, if it is set, gets what could not be done and is tried again.
	Log *slog.Logger

	mu       sync.Mutex
	catalogs map[string]*catalog
}

// Position decides whether one more work item is added to the queue of pending work (source: the
// requirement, "Checking Capacity", steps 3 to 6). researchers are those who are present, items the work
// items in the queue that nobody has accepted. position is researchers less items.
func Position(researchers, items int) (position int, add bool) {
	position = researchers - items
	if researchers == 0 {
		return position, items == 0
	}
	return position, position >= 0
}

func millis(t time.Time) int64 { return t.UnixMilli() }

func (s *Store) now() int64 { return millis(s.Now()) }

func (s *Store) count(metric string, n float64) {
	if s.Metric != nil && n > 0 {
		s.Metric(metric, n)
	}
}

func (s *Store) warn(text string, args ...any) {
	if s.Log != nil {
		s.Log.Warn(text, args...)
	}
}

// wake asks for a pass. The schedule repairs what is lost.
func (s *Store) wake(ctx context.Context, project string) {
	if s.Wake == nil {
		return
	}
	err := s.Wake(ctx, project)
	if err != nil {
		s.warn("the archivist of pending work was not woken; the schedule starts it", "project", project, "error", err)
	}
}

// lineSK are the sort keys in the line of a project.
const (
	ready   = "ready"   // episodes that may have a pair that is due, in order
	closed  = "closed"  // those that have none
	away    = "away"    // withdrawn, set aside or deferred: no row in the line
	dueSK   = "due"     // ends of leases and of deferrals, by time
	pending = "pending" // work items in the queue, by the end of their time to live
)

func linePK(project string) string { return "RESEARCHLINE#" + project }

// lineRow is a row in the line of a project. Only its owner moves it.
type lineRow struct {
	table.Head
	Owner string `dynamo:"owned_by"`
}

func lineKey(project, sk string) table.Key { return table.Key{PK: linePK(project), SK: sk} }

func (c *change) addLine(sk, owner string) {
	k := lineKey(c.project.Name, sk)
	c.tx.Insert(&lineRow{Head: newHead(k), Owner: owner})
}

func (c *change) removeLine(sk, owner string) { c.tx.RemoveOwned(lineKey(c.project.Name, sk), owner) }

func dueKey(ms int64, kind, id string) string {
	return fmt.Sprintf("%s#%013d#%s#%s", dueSK, ms, kind, id)
}

func pendingKey(ms int64, id string) string { return fmt.Sprintf("%s#%013d#%s", pending, ms, id) }
