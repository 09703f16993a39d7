package boot

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"
	"time"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/app/doctor"
	"archivist/pkg/app/lambda"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/kernel/access"
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

	issuer, err := readIssuer(s.env, s.web, s.queue.Now)
	if err != nil {
		return nil, err
	}
	if issuer != nil { // else it would be an interface that is not nil
		s.api.Issuer = issuer
		s.api.SignIn = readSignIn(s.env)
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

// The issuer of tokens of the API, "" if there is none: its URL, the audiences of its tokens, and the claims that have
// roles, both separated by commas. No claim is access.DefaultClaim.
const (
	EnvIssuer   = "ARCHIVIST_TOKEN_ISSUER"
	EnvAudience = "ARCHIVIST_TOKEN_AUDIENCE"
	EnvClaim    = "ARCHIVIST_TOKEN_CLAIM"
	EnvClient   = "ARCHIVIST_TOKEN_CLIENT" // as which the command line signs people in; "" = it does not
	EnvScopes   = "ARCHIVIST_TOKEN_SCOPES" // for which it asks, separated by blanks
)

// readSignIn is where people sign in, the zero value if the issuer has no client for them.
func readSignIn(env Env) v1.SignIn {
	if env(EnvClient) == "" {
		return v1.SignIn{}
	}
	return v1.SignIn{
		Issuer:   env(EnvIssuer),
		ClientID: env(EnvClient),
		Scopes:   strings.Fields(cmp.Or(env(EnvScopes), "openid profile offline_access")),
	}
}

// readIssuer is what verifies tokens of the issuer of an environment, nil if there is none. Nothing is asked of the
// issuer before the first token comes.
func readIssuer(env Env, web http.RoundTripper, now func() time.Time) (*access.Verifier, error) {
	issuer := env(EnvIssuer)
	if issuer == "" {
		return nil, nil
	}
	if err := access.CheckIssuer(issuer); err != nil {
		return nil, fmt.Errorf("boot: %s: %w", EnvIssuer, err)
	}

	audiences := list(env(EnvAudience))
	if len(audiences) == 0 {
		return nil, fmt.Errorf("boot: %s: tokens of everybody's programs would be accepted; expected an audience",
			EnvAudience)
	}
	if web == nil {
		web = http.DefaultTransport
	}
	return &access.Verifier{Issuer: issuer, Audiences: audiences, Claims: list(env(EnvClaim)),
		Now:  now,
		Keys: &access.Keys{Issuer: issuer, HTTP: web, Now: now}}, nil
}

// EnvKeys has the ids and names of the keys of the API by what they allow, as access.Parse reads it:
// ACCESS=ID/NAME+ID/NAME, comma-separated.
const EnvKeys = "ARCHIVIST_API_KEYS"

// readKeys reads EnvKeys. Only a local stack can be without keys: there, nil, calls need
// none. API Gateway has verified the key before; here its id is looked up. On AWS a
// deployment without keys would let everybody do everything, so the function does not start.
func readKeys(env Env) (map[string]access.Identity, error) {
	keys := map[string]access.Identity{}
	for _, pair := range list(env(EnvKeys)) {
		text, ids, _ := strings.Cut(pair, "=")
		grant, err := access.Parse(text)
		if err != nil {
			return nil, fmt.Errorf("boot: %s: %w", EnvKeys, err)
		}

		for one := range strings.SplitSeq(ids, "+") {
			id, name, _ := strings.Cut(one, "/")
			if id == "" { // a call without a key would have it
				return nil, fmt.Errorf("boot: %s: found %q; expected ACCESS=ID/NAME+ID/NAME", EnvKeys, pair)
			}
			keys[id] = access.Identity{Name: name, Grants: []access.Grant{grant}}
		}
	}

	switch {
	case len(keys) > 0:
		return keys, nil
	case env("AWS_ENDPOINT_URL") == "" && env(EnvIssuer) == "":
		return nil, fmt.Errorf("boot: %s: there is no key and no issuer of tokens; "+
			"only a local stack can be without", EnvKeys)
	}
	return nil, nil
}
