package boot

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/app/boot/authorizer"
	"archivist/pkg/app/doctor"
	"archivist/pkg/app/lambda"
	"archivist/pkg/console"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/kernel/cors"
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
// has one. The error is that of the issuer of tokens, or of an origin that is none.
func (s *System) API(open OpenIndex) (h *lambda.API, err error) {
	tokens, err := authorizer.Authenticator(s.env, s.web, s.api.Tokens)
	if err != nil {
		return nil, err
	}
	s.api.Authenticator, s.api.Open = tokens, tokens.Issuer == nil
	s.api.SignIn, s.api.Settings = readSignIn(s.env), settingsOf(s.env, s.limits)
	s.api.Origins, err = cors.Origins(s.env(EnvOrigins))
	if err != nil {
		return nil, fmt.Errorf("boot: %s: %w", EnvOrigins, err)
	}

	s.api.Index, s.api.Consumers, s.api.Components = s.index(open), s.consumerStore(),
		s.components()
	s.api.Runs = s.runner
	s.api.Research, s.api.PendingWork, s.api.CompletedWork = s.research(), s.researching.queues,
		s.sendReports
	s.api.Feeds = s.feeds()
	s.api.Alarms = s.alarms()
	s.api.Restored = s.restored()
	if s.env(EnvRevisions) != "" {
		s.api.Revisions, s.api.Preview = s.revisionRows(), s.previewRevision
	}
	return &lambda.API{
		Routes:  s.withConsole(s.api.Handler()),
		Now:     s.queue.Now,
		Metrics: s.metrics,
		Log:     s.log,
	}, nil
}

// withConsole serves the console beside the routes of the API, whose client it is. No script of another site reads
// its pages.
func (s *System) withConsole(routes http.Handler) http.Handler {
	c := &console.Console{API: routes, Web: s.web, Client: s.env(EnvConsoleClient),
		Local: s.env("AWS_ENDPOINT_URL") != "", Now: s.queue.Now, Log: s.log, Uploads: s.uploadsTo}
	if c.Web == nil {
		c.Web = http.DefaultTransport
	}
	pages := c.Handler()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if console.Serves(r) {
			pages.ServeHTTP(w, r)
			return
		}
		routes.ServeHTTP(w, r)
	})
}

// uploadsTo is the origin of the requests that are signed for the work bucket. Signing asks nobody.
func (s *System) uploadsTo(ctx context.Context) string {
	put, err := s.stages.Work.SignPut(ctx, "uploads/none", 0, make([]byte, sha256.Size), time.Minute)
	if err != nil {
		s.log.Warn("the origin of uploads is not known", "error", err)
		return ""
	}
	u, err := url.Parse(put.URL)
	if err != nil {
		return ""
	}
	return u.Scheme + "://" + u.Host
}

// What people need of the issuer of tokens; authorizer has the rest.
const (
	EnvClient = "ARCHIVIST_TOKEN_CLIENT" // as which the command line signs people in; "" = it does not
	EnvScopes = "ARCHIVIST_TOKEN_SCOPES" // for which it asks, separated by blanks
	// EnvConsoleClient is the client as which the console signs people in; "" = that of the command line.
	EnvConsoleClient = "ARCHIVIST_CONSOLE_CLIENT"
)

// readSignIn is where people sign in, the zero value if the issuer has no client for them.
func readSignIn(env Env) v1.SignIn {
	if env(authorizer.EnvIssuer) == "" || env(EnvClient) == "" {
		return v1.SignIn{}
	}
	return v1.SignIn{
		Issuer:   env(authorizer.EnvIssuer),
		ClientID: env(EnvClient),
		Scopes:   strings.Fields(cmp.Or(env(EnvScopes), "openid profile offline_access")),
	}
}
