package boot

import (
	"fmt"
	"strings"

	"archivist/pkg/api"
	"archivist/pkg/app/doctor"
	"archivist/pkg/app/lambda"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/objects/formats"
)

// Stage is the function of the stage that the environment names. One program is deployed for
// all stages. An error is a mistake of the deployment.
func (s *System) Stage(open formats.Open) (*lambda.Stage, error) {
	s.open = open
	name := s.env(EnvStage)
	st, known := ingest.StageNamed(name)
	step, implemented := s.stages.Steps()[name]
	if !known || !implemented {
		return nil, fmt.Errorf("boot: %s: there is no stage %q", EnvStage, name)
	}

	worker := &queue.Worker{
		Queue:   s.queue,
		Stage:   st,
		Step:    s.crashes.Step(name, step),
		Answers: s.executions,
	}
	return &lambda.Stage{
		Worker:  worker,
		Queue:   s.queueAt(EnvQueue),
		Metrics: s.metrics,
		Log:     s.log,
	}, nil
}

// Scheduler is the function of the scheduler. EnvQueue is the queue of its wake-ups, to which
// it returns those that came too early.
func (s *System) Scheduler() *lambda.Scheduler {
	return &lambda.Scheduler{
		Scheduler:  s.scheduler,
		Components: s.tickComponents,
		Queue:      s.queueAt(EnvQueue),
		Metrics:    s.metrics,
		Log:        s.log,
	}
}

// AdminAction is the function of the state machine admin-action. The doctor runs here and
// nowhere else.
func (s *System) AdminAction(open OpenIndex) *lambda.AdminAction {
	check := doctor.Doctor{Queue: s.queue, Reindexer: s.stages.Reindexer(), Work: s.stages.Work,
		Search: s.searching(open)}
	if s.registry != nil {
		check.Registry = s.registry
	}
	return &lambda.AdminAction{
		Admin:   queue.Admin{Queue: s.queue, Checker: check},
		Budget:  s.queue.Rules.Timing.Admin().Budget,
		Metrics: s.metrics,
		Log:     s.log,
	}
}

// API is the function of the API. Routes of the revision queue exist only if the deployment
// has one. The error is that of the keys.
func (s *System) API(open OpenIndex) (h *lambda.API, err error) {
	s.api.Keys, err = readKeys(s.env)
	if err != nil {
		return nil, err
	}

	s.api.Index, s.api.Consumers, s.api.Components = s.index(open), s.consumerStore(),
		s.components()
	s.api.Runs = s.runner
	s.api.Research, s.api.PendingWork, s.api.CompletedWork = s.research(), s.researching.queues,
		s.sendReports
	s.api.Feeds = s.feeds()
	if s.env(EnvRevisions) != "" {
		s.api.Revisions, s.api.Preview = s.revisionRows(), s.previewRevision
	}
	return &lambda.API{
		Routes:  s.api.Handler(),
		Now:     s.queue.Now,
		Metrics: s.metrics,
		Log:     s.log,
	}, nil
}

// EnvKeys has the ids and names of the keys of the API by what they allow, as api.ParseAccess reads it:
// ACCESS=ID/NAME+ID/NAME, comma-separated.
const EnvKeys = "ARCHIVIST_API_KEYS"

// readKeys reads EnvKeys. Only a local stack can be without keys: there, nil, calls need
// none. API Gateway has verified the key before; here its id is looked up. On AWS a
// deployment without keys would let everybody do everything, so the function does not start.
func readKeys(env Env) (map[string]api.Access, error) {
	keys := map[string]api.Access{}
	for _, pair := range list(env(EnvKeys)) {
		text, ids, _ := strings.Cut(pair, "=")
		access, err := api.ParseAccess(text)
		if err != nil {
			return nil, fmt.Errorf("boot: %s: %w", EnvKeys, err)
		}

		for one := range strings.SplitSeq(ids, "+") {
			id, name, _ := strings.Cut(one, "/")
			if id == "" { // a call without a key would have it
				return nil, fmt.Errorf("boot: %s: found %q; expected ACCESS=ID/NAME+ID/NAME", EnvKeys, pair)
			}
			access.Name = name
			keys[id] = access
		}
	}

	switch {
	case len(keys) > 0:
		return keys, nil
	case env("AWS_ENDPOINT_URL") == "":
		return nil, fmt.Errorf("boot: %s: there is no key; only a local stack can be without", EnvKeys)
	}
	return nil, nil
}
