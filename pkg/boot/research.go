package boot

import (
	"context"

	"archivist/pkg/feed"
	"archivist/pkg/lambda"
	"archivist/pkg/lease"
	"archivist/pkg/research"
)

// The environment of the functions of research.
const (
	EnvResearchProjects    = "ARCHIVIST_RESEARCH_PROJECTS"     // names, comma-separated
	EnvPendingWork         = "ARCHIVIST_PENDING_WORK"          // name of the function pending-work
	EnvCurationDeadLetters = "ARCHIVIST_CURATION_DEAD_LETTERS" // URL of the queue of messages that cannot be kept
)

// research keeps projects, episodes, clips, leases and results.
func (s *System) research() *research.Store {
	t := s.queue.Table
	return &research.Store{Table: t, Leases: &lease.Store{Table: t, Now: s.queue.Now, NewID: newID}, Now: s.queue.Now,
		NewID: newID, Times: research.Default, Projects: list(s.env(EnvResearchProjects)), Wake: s.wakePendingWork,
		Log: s.log}
}

// wakePendingWork invokes the function pending-work.
func (s *System) wakePendingWork(ctx context.Context, project string) error {
	return s.functions.Send(ctx, s.env(EnvPendingWork), lambda.PendingWork{Project: project})
}

// feeds looks at the feeds of projects.
func (s *System) feeds() *feed.Looker {
	return &feed.Looker{Reader: feed.Reader{Client: s.stages.Fetch, Now: s.queue.Now}, Research: s.research(),
		Table: s.queue.Table, Now: s.queue.Now, NewID: newID, Log: s.log}
}

// Curation is the function of curated episodes and clips, and of feeds.
func (s *System) Curation() *lambda.Curation {
	looker := s.feeds()
	return &lambda.Curation{Curate: looker.Research.Curate, Feeds: looker.Tick,
		Bury: s.queueAt(EnvCurationDeadLetters).Put, Now: s.queue.Now, Budget: feed.Budget, Metrics: s.metrics,
		Log: s.log}
}
