package research

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"archivist/pkg/kernel/lease"
	"archivist/pkg/kernel/table"
)

// Store keeps projects, their episodes and clips, leases and results. The functions of a
// deployment, its API and its doctor each have one; all state is in the table. It can be used by
// several goroutines, once its fields are set.
type Store struct {
	Table  *table.Table
	Leases *lease.Store // of passes of the assigner: one for each project
	Now    func() time.Time
	NewID  func() string // unique; ids are ordered by the time at which they are made
	Times  Times         // checked (Times.Check)

	// Projects are the names of the projects of this deployment: each has a queue of pending work.
	Projects []string

	// Analyses check the settings of an analysis, by its name. They return an Invalid.
	Analyses map[string]func(settings []byte) error

	// Send puts a message on the queue of pending work of its project. It may be called more than
	// once for a work item: after an error, or a crash, nobody knows whether the message was sent.
	Send func(ctx context.Context, m Message) error

	// Wake starts a pass of the assigner soon. A wake-up that is lost costs time: the schedule
	// starts one each minute. nil: it always does.
	Wake func(ctx context.Context, project string) error

	// Metric, if it is set, counts work items that were sent again, leases that expired, and what
	// was quarantined.
	Metric func(name string, value float64)

	// Log, if it is set, gets what could not be done and is tried again.
	Log *slog.Logger

	mu       sync.Mutex          // guards catalogs, and the copying of one
	catalogs map[string]*catalog // the newest that this process has read, by project
}

// Metrics of research, in numbers.
const (
	MetricExpired     = "ResearchLeasesExpired" // leases whose researcher was not heard of in time
	MetricResent      = "ResearchResent"        // messages that perhaps were not sent before
	MetricQuarantined = "ResearchSetAside"      // episodes and clips that now wait for a person
	MetricPaused      = "ResearchersPaused"     // researchers whose problems others do not have
)

// assigner is the part of the system that assigns work. Events name it as actor and component.
const assigner = "pending-work"

// millis is a time as rows and messages have it: milliseconds since 1970, UTC.
func millis(t time.Time) int64 { return t.UnixMilli() }

func (s *Store) now() int64 { return millis(s.Now()) }

// count adds to a metric, if somebody wants it.
func (s *Store) count(metric string, n float64) {
	if s.Metric != nil && n > 0 {
		s.Metric(metric, n)
	}
}

// warn logs what is not an error of the caller: it is tried again, or repaired by the schedule or
// the doctor.
func (s *Store) warn(text string, args ...any) {
	if s.Log != nil {
		s.Log.Warn(text, args...)
	}
}

// wake asks for a pass, after a change by which work may be assigned. It returns no error, because
// the change is committed: the caller must not repeat it. The schedule repairs what is lost.
func (s *Store) wake(ctx context.Context, project string) {
	if s.Wake == nil {
		return
	}
	err := s.Wake(ctx, project)
	if err != nil {
		s.warn("the assigner was not woken; the schedule starts it", "project",
			project, "error", err)
	}
}
