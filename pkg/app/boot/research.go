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

	"archivist/pkg/app/lambda"
	"archivist/pkg/aws/sqs"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/research"
	analyses "archivist/pkg/research/analysis/shipped"
	"archivist/pkg/research/feed"
)

// The environment of the functions of research. A deployment without projects sets none of it.
const (
	// EnvResearchProjects is a list of NAME=URL, comma-separated: each project with its queue
	// of pending work.
	EnvResearchProjects = "ARCHIVIST_RESEARCH_PROJECTS"
	EnvResearchTimes    = "ARCHIVIST_RESEARCH_TIMES" // as ParseResearchTimes reads them
	// EnvResearchDead is the URL of the queue of messages that can never be handled.
	EnvResearchDead  = "ARCHIVIST_RESEARCH_DEAD_LETTERS"
	EnvPendingWork   = "ARCHIVIST_PENDING_WORK"   // name of the function pending-work
	EnvCompletedWork = "ARCHIVIST_COMPLETED_WORK" // URL of the queue of reports
)

// ParseResearchTimes reads the times of research, e.g. "lease=2h,queue=30m". What is not
// named is as in research.Default. Times that do not go together are an Invalid. infra checks
// the same text with it before a deployment. "" are the defaults.
func ParseResearchTimes(text string) (research.Times, error) {
	t := research.Default
	named := map[string]*time.Duration{"lease": &t.Lease, "queue": &t.Queue,
		"extension": &t.Extension,
		"longest":   &t.Most, "presence": &t.Presence, "renewal": &t.Renewal}

	for _, pair := range list(text) {
		name, value, _ := strings.Cut(pair, "=")
		d, err := time.ParseDuration(value)
		to := named[name]
		if err != nil || to == nil || d != d.Truncate(time.Second) {
			return t, fault.New(fault.Invalid,
				"found %q; expected NAME=DURATION in whole seconds, e.g. lease=2h; the "+
					"names are %s", pair, strings.Join(slices.Sorted(maps.Keys(named)), ", "))
		}
		*to = d
	}
	return t, t.Check()
}

// readResearch reads what the environment says of research. A project whose name research
// does not accept would never be found, so the function does not start.
func (s *System) readResearch() (err error) {
	s.researching.times, err = ParseResearchTimes(s.env(EnvResearchTimes))
	if err != nil {
		return fmt.Errorf("boot: %s: %w", EnvResearchTimes, err)
	}

	s.researching.queues = pendingWork{}
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
// Only functions that may invoke pending-work have its name; in others nothing is woken, and
// the minute's pass finds what is due.
func (s *System) research() *research.Store {
	store := &research.Store{
		Table:    s.queue.Table,
		Leases:   s.scheduler.Leases,
		Now:      s.queue.Now,
		NewID:    newID,
		Times:    s.researching.times,
		Projects: s.researching.names,
		Send:     s.researching.queues.send,
		Metric:   s.metrics.Add,
		Log:      s.log,
		Analyses: map[string]func([]byte) error{},
	}

	for name, a := range analyses.Analyses {
		store.Analyses[name] = a.Check
	}

	if s.env(EnvPendingWork) != "" {
		store.Wake = s.wakeAssigner
	}
	return store
}

// pendingWork are the queues of pending work, by project.
type pendingWork map[string]sqs.Queue

// of is the queue of a project. One that is not of this deployment is an Invalid.
func (p pendingWork) of(project string) (sqs.Queue, error) {
	q, ok := p[project]
	if !ok {
		return q, fault.New(fault.Invalid, "this deployment has no queue for the project %q", project)
	}
	return q, nil
}

// send puts a work item on the queue of its project. A message that is lost is sent again by
// a later pass: the work item is a row.
func (p pendingWork) send(ctx context.Context, m research.Message) error {
	q, err := p.of(m.Project)
	if err != nil {
		return err
	}
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return q.Put(ctx, string(text), nil)
}

// longPoll is how long a researcher's request waits for a work item: as short as a request can that asks all
// servers of the queue, since the function of the API is paid for meanwhile, and others need it. (Source: "Amazon
// SQS short and long polling".)
const longPoll = time.Second

// Receive receives a work item of a project. The body is "" if there was none. The receipt is
// needed to delete it.
func (p pendingWork) Receive(ctx context.Context,
	project string) (body, receipt string, err error) {
	q, err := p.of(project)
	if err != nil {
		return "", "", err
	}
	return q.Receive(ctx, longPoll)
}

// Delete deletes a work item that was received.
func (p pendingWork) Delete(ctx context.Context, project, receipt string) error {
	q, err := p.of(project)
	if err != nil {
		return err
	}
	return q.Delete(ctx, receipt)
}

// returned is after how long a work item that was given back is received again: a researcher that cannot take
// it asks again at once.
const returned = 10 * time.Second

// Return gives back a work item that was received.
func (p pendingWork) Return(ctx context.Context, project, receipt string) error {
	q, err := p.of(project)
	if err != nil {
		return err
	}
	return q.Hide(ctx, receipt, returned)
}

// sendReports puts reports of researchers on the queue of completed work. Some may have been
// taken when there is an error. To send them again is harmless: a report is stored once.
func (s *System) sendReports(ctx context.Context, reports []research.Report) error {
	var bodies []string
	for _, r := range reports {
		text, err := json.Marshal(r)
		if err != nil {
			return err
		}
		bodies = append(bodies, string(text))
	}

	failed, err := s.queueAt(EnvCompletedWork).Send(ctx, bodies)
	if err != nil {
		return err
	}
	if len(failed) > 0 {
		return fault.New(fault.Unavailable, "%d of %d reports were not taken, send all again: %v",
			len(failed), len(bodies), failed)
	}
	return nil
}

// wakeAssigner starts a pass of the assigner. That function knows its own name
// from Lambda.
func (s *System) wakeAssigner(ctx context.Context, project string) error {
	name := cmp.Or(s.env(EnvPendingWork), s.env("AWS_LAMBDA_FUNCTION_NAME"))
	return s.functions.Send(ctx, name, lambda.PendingWorkRequest{Project: project})
}

// PendingWork is the function of the assigner. Its time is that of all
// functions of research.
func (s *System) PendingWork() *lambda.PendingWork {
	return &lambda.PendingWork{
		Pass:     s.research().Pass,
		Projects: s.researching.names,
		Wake:     s.wakeAssigner,
		Now:      s.queue.Now,
		Budget:   s.queue.Rules.Timing.Research().Budget,
		Patience: time.Second / 2,
		Metrics:  s.metrics,
		Log:      s.log,
	}
}

// CompletedWork is the function that stores what researchers report. Reports that can never
// be stored go to the queue EnvResearchDead.
func (s *System) CompletedWork() *lambda.CompletedWork {
	return &lambda.CompletedWork{
		Record:     s.research().Record,
		DeadLetter: s.queueAt(EnvResearchDead).Put,
		Budget:     s.queue.Rules.Timing.Research().Budget,
		Metrics:    s.metrics,
		Log:        s.log,
	}
}

// feeds looks at the feeds of projects. They are fetched as content is, with the same guard.
func (s *System) feeds() *feed.Looker {
	return &feed.Looker{
		Reader:   feed.Reader{Client: s.stages.Fetch, Now: s.queue.Now},
		Research: s.research(),
		Table:    s.queue.Table,
		Now:      s.queue.Now,
		NewID:    newID,
		Log:      s.log,
		Metric:   s.metrics.Add,
	}
}

// Curation is the function of curated episodes and clips, and of feeds.
func (s *System) Curation() *lambda.Curation {
	looker := s.feeds()
	return &lambda.Curation{
		Curate:     looker.Research.Curate,
		Feeds:      looker.Tick,
		DeadLetter: s.queueAt(EnvResearchDead).Put,
		Now:        s.queue.Now,
		Budget:     feed.Budget,
		Metrics:    s.metrics,
		Log:        s.log,
	}
}
