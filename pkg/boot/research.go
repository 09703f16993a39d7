package boot

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	analyses "archivist/pkg/analysis/shipped"
	"archivist/pkg/fault"
	"archivist/pkg/feed"
	"archivist/pkg/lambda"
	"archivist/pkg/research"
	"archivist/pkg/sqs"
)

// The environment of the functions of research. A deployment without projects sets none of it.
const (
	EnvResearchProjects = "ARCHIVIST_RESEARCH_PROJECTS"     // NAME=URL of its queue of pending work, comma-separated
	EnvResearchTimes    = "ARCHIVIST_RESEARCH_TIMES"        // as ParseResearchTimes reads them
	EnvResearchDead     = "ARCHIVIST_RESEARCH_DEAD_LETTERS" // URL of the queue of messages that can never be handled
	EnvPendingWork      = "ARCHIVIST_PENDING_WORK"          // name of the function pending-work
	EnvCompletedWork    = "ARCHIVIST_COMPLETED_WORK"        // URL of the queue of reports
)

// ParseResearchTimes reads the times of research, e.g. "lease=2h,queue=30m". What is not named is as in
// research.Default. Times that do not go together are an Invalid.
func ParseResearchTimes(text string) (research.Times, error) {
	t := research.Default
	named := map[string]*time.Duration{"lease": &t.Lease, "queue": &t.Queue, "extension": &t.Extension,
		"longest": &t.Most, "presence": &t.Presence, "renewal": &t.Renewal}
	for _, pair := range list(text) {
		name, value, _ := strings.Cut(pair, "=")
		d, err := time.ParseDuration(value)
		to := named[name]
		if err != nil || to == nil || d != d.Truncate(time.Second) {
			return t, fault.New(fault.Invalid, "found %q; expected NAME=DURATION in whole seconds, e.g. lease=2h; the "+
				"names are %s", pair, strings.Join(slices.Sorted(maps.Keys(named)), ", "))
		}
		*to = d
	}
	return t, t.Check()
}

// researchSettings are what the environment says of research.
type researchSettings struct {
	times  research.Times
	names  []string             // of projects
	queues map[string]sqs.Queue // of pending work, by project
}

// readResearch reads what the environment says of research.
func (s *System) readResearch() (err error) {
	s.researching.times, err = ParseResearchTimes(s.env(EnvResearchTimes))
	if err != nil {
		return fmt.Errorf("boot: %s: %w", EnvResearchTimes, err)
	}
	s.researching.queues = map[string]sqs.Queue{}
	for _, pair := range list(s.env(EnvResearchProjects)) {
		name, url, ok := strings.Cut(pair, "=")
		if !ok || !research.Names.MatchString(name) {
			return fmt.Errorf("boot: %s: found %q; expected NAME=URL", EnvResearchProjects, pair)
		}
		s.researching.names = append(s.researching.names, name)
		s.researching.queues[name] = sqs.Queue{Client: s.sqs, URL: url}
	}
	return nil
}

// research keeps the projects of research with their episodes, clips, leases and results.
func (s *System) research() *research.Store {
	store := &research.Store{Table: s.queue.Table, Leases: s.scheduler.Leases, Now: s.queue.Now, NewID: newID,
		Times: s.researching.times, Projects: s.researching.names, Send: s.sendWork, Metric: s.metrics.Add, Log: s.log,
		Analyses: map[string]func([]byte) error{}}
	for name, a := range analyses.Analyses {
		store.Analyses[name] = a.Check
	}
	if s.env(EnvPendingWork) != "" {
		store.Wake = s.wakeArchivist
	}
	return store
}

// sendWork puts a work item on the queue of its project.
func (s *System) sendWork(ctx context.Context, m research.Message) error {
	q, ok := s.researching.queues[m.Project]
	if !ok {
		return fault.New(fault.Invalid, "this deployment has no queue for the project %q", m.Project)
	}
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return q.Put(ctx, string(text), nil)
}

// wakeArchivist starts a pass of the archivist of pending work. That function knows its own name from
// Lambda.
func (s *System) wakeArchivist(ctx context.Context, project string) error {
	name := cmp.Or(s.env(EnvPendingWork), s.env("AWS_LAMBDA_FUNCTION_NAME"))
	return s.functions.Send(ctx, name, lambda.PendingWorkRequest{Project: project})
}

// PendingWork is the function of the archivist of pending work.
func (s *System) PendingWork() *lambda.PendingWork {
	return &lambda.PendingWork{Pass: s.research().Pass, Projects: s.researching.names, Wake: s.wakeArchivist,
		Now: s.queue.Now, Budget: s.queue.Rules.Timing.Research().Budget, Patience: time.Second / 2, Metrics: s.metrics,
		Log: s.log}
}

// CompletedWork is the function that stores what researchers report.
func (s *System) CompletedWork() *lambda.CompletedWork {
	return &lambda.CompletedWork{Record: s.research().Record, Bury: s.queueAt(EnvResearchDead).Put,
		Budget: s.queue.Rules.Timing.Research().Budget, Metrics: s.metrics, Log: s.log}
}

// Curation is the function of curated episodes and clips, and of feeds.
func (s *System) Curation() *lambda.Curation {
	store := s.research()
	looker := &feed.Looker{Reader: feed.Reader{Client: s.stages.Fetch, Now: s.queue.Now}, Research: store,
		Table: s.queue.Table, Now: s.queue.Now, NewID: newID, Log: s.log}
	return &lambda.Curation{Curate: store.Curate, Feeds: looker.Tick, Bury: s.queueAt(EnvResearchDead).Put,
		Now: s.queue.Now, Budget: feed.Budget, Metrics: s.metrics, Log: s.log}
}
