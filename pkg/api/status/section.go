package status

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/components/component"
	"archivist/pkg/events/consumer"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/research"
	"archivist/pkg/revisions/revision"
)

// Alarm is an alarm of the deployment that is raised.
type Alarm struct {
	Name  string
	Text  string // what is wrong
	Since time.Time
}

// Service reads the status. What a deployment does not have is nil where its comment says so.
type Service struct {
	Queue      *queue.Queue
	Consumers  *consumer.Store
	Components *component.Store
	Revisions  *revision.Store // nil: there is no revision queue
	Research   *research.Store // nil: there are no research projects
	// Alarms returns the alarms that are raised, and whether there are more. nil: the deployment has none.
	Alarms func(ctx context.Context) (raised []Alarm, more bool, err error)
	Now    func() time.Time

	*seen
	attention bool // only what needs a person is asked for
}

// seen is what several sections need.
type seen struct {
	looked  shared[queue.Overview]
	now     shared[queue.InWork]
	counted shared[[]component.Counted]
}

// shared is read by the first that needs it.
type shared[T any] struct {
	once sync.Once
	of   T
	err  error
}

func (s *shared[T]) read(ctx context.Context,
	read func(ctx context.Context) (T, error)) (T, error) {
	s.once.Do(func() { s.of, s.err = read(ctx) })
	return s.of, s.err
}

func (s *Service) tally(ctx context.Context) ([]component.Counted, error) {
	return s.counted.read(ctx, s.Components.Tally)
}

func (s *Service) overview(ctx context.Context) (queue.Overview, error) {
	return s.looked.read(ctx, s.Queue.Overview)
}

// inWork is what runs and what is first at the gates.
func (s *Service) inWork(ctx context.Context) (queue.InWork, error) {
	return s.now.read(ctx, func(ctx context.Context) (queue.InWork, error) {
		o, err := s.overview(ctx)
		if err != nil {
			return queue.InWork{}, err
		}
		return s.Queue.InWork(ctx, o)
	})
}

// limits of a section: its time, and its lines.
const (
	sectionTime = 8 * time.Second
	mostLines   = 20
)

// recently is how far back the causes of failures are told, and how long something may wait until a person should look.
const recently = 24 * time.Hour

// section is a part of the status while it is read.
type section struct {
	v1.StatusSection
	now time.Time
}

// add adds a line.
func (s *section) add(l v1.StatusLine) { s.Lines = append(s.Lines, l) }

// cut notes what was not read.
func (s *section) cut(isCut bool, format string, args ...any) {
	if isCut {
		s.Cut = fmt.Sprintf(format, args...)
	}
}

// since is a time of a row as a line has it; "" for none.
func since(ms int64) string {
	if ms == 0 {
		return ""
	}
	return ingest.Timestamp(ms)
}

// old reports whether a time is so far back that a person should look.
func (s *section) old(ms int64) bool { return ms > 0 && s.now.Sub(time.UnixMilli(ms)) > recently }

// finished sorts the lines, those that need a person first, and limits them.
func (s *section) finished() v1.StatusSection {
	slices.SortStableFunc(s.Lines, func(a, b v1.StatusLine) int {
		switch {
		case a.Attention == b.Attention:
			return 0
		case a.Attention:
			return -1
		}
		return 1
	})
	if len(s.Lines) > 0 && s.Lines[0].Attention {
		s.State = v1.SectionAttention
	}

	if more := len(s.Lines) - mostLines; more > 0 {
		s.Lines = s.Lines[:mostLines]
		s.cut(s.Cut == "", "%s not shown", ingest.Counted(more, "more line"))
	}
	if s.Lines == nil {
		s.Lines = []v1.StatusLine{}
	}
	return s.StatusSection
}
