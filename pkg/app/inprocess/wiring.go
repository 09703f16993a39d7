package inprocess

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/lambda"

	"archivist/pkg/app/boot"
	"archivist/pkg/app/boot/authorizer"
	"archivist/pkg/components/component"
	"archivist/pkg/ingest"
	"archivist/pkg/kernel/cors"
	"archivist/pkg/objects/formats/pronom"
	"archivist/pkg/research/feed"
	"archivist/pkg/revisions/archive/kinds"
	"archivist/pkg/revisions/revision"
)

// maker makes the handler of a function from the system of its process: what its main does.
// An error means that the function does not start.
type maker func(system *boot.System, open boot.OpenIndex) (any, error)

// makers are the mains of the functions.
var makers = map[string]maker{
	fnAPI: func(s *boot.System, open boot.OpenIndex) (any, error) {
		h, err := s.API(open)
		if err != nil {
			return nil, err
		}
		return h.Handle, nil
	},
	fnScheduler: func(s *boot.System, _ boot.OpenIndex) (any, error) {
		return s.Scheduler().Handle, nil
	},
	fnRelay: func(s *boot.System, _ boot.OpenIndex) (any, error) {
		return s.Relay().Handle,
			nil
	},
	fnConsumer: func(s *boot.System, open boot.OpenIndex) (any, error) {
		return s.Consumer(open).Handle, nil
	},
	fnComponent: func(s *boot.System, _ boot.OpenIndex) (any, error) {
		return s.Component(pronom.Open).Handle, nil
	},
	fnAdmin: func(s *boot.System, open boot.OpenIndex) (any, error) {
		return s.AdminAction(open).Handle, nil
	},
	fnRevisions: func(s *boot.System, _ boot.OpenIndex) (any, error) {
		return s.Revisions(kinds.Opener).Handle, nil
	},
	fnPendingWork: func(s *boot.System, _ boot.OpenIndex) (any, error) {
		return s.PendingWork().Handle, nil
	},
	fnTaskControl: func(s *boot.System, _ boot.OpenIndex) (any, error) {
		c, err := s.TaskControl(kinds.Opener)
		if err != nil {
			return nil, err
		}
		return c.Handle, nil
	},
	fnCompletedWork: func(s *boot.System, _ boot.OpenIndex) (any, error) {
		return s.CompletedWork().Handle, nil
	},
	fnCuration: func(s *boot.System, _ boot.OpenIndex) (any, error) {
		return s.Curation().Handle, nil
	},
}

// runStage is the main of all stages.
func runStage(s *boot.System, _ boot.OpenIndex) (any, error) {
	st, err := s.Stage(pronom.OpenBrief)
	if err != nil {
		return nil, err
	}
	return st.Handle, nil
}

// newFunction makes a function of the system. Each of its environments has a system of its
// own, with the function's variables. The handler is wrapped by Lambda's own library, so
// payloads are decoded and answers encoded as on Lambda. An environment has a folder of its
// own.
func (s *System) newFunction(name string, timeout time.Duration, make maker,
	env map[string]string) *function {
	all := map[string]string{boot.EnvWork: workBucket}
	bare := name == fnTaskRunner || name == fnTaskRouter || name == fnAuthorizer
	if !bare { // what runs what is in archives knows nothing of the deployment, and who calls it needs nothing
		maps.Copy(all, s.deployment())
	}

	maps.Copy(all, env)
	all["AWS_LAMBDA_FUNCTION_NAME"], all["AWS_ENDPOINT_URL"] = name, s.endpoint
	f := &function{name: name, timeout: timeout, env: all}
	f.cold = func(p *process) (Function, func(), error) {
		dir := filepath.Join(s.dir, name+"-"+strconv.FormatInt(s.environments.Add(1), 10))
		own := s.process(p, all, dir)
		switch name {
		case fnTaskRunner:
			return onLambda(own.TaskRunner().Handle), func() {}, mkdir(dir)
		case fnTaskRouter:
			return onLambda(own.TaskRouter().Handle), func() {}, mkdir(dir)
		case fnAuthorizer:
			tokens, err := authorizer.New(own.Config, own.Env, own.Web, own.Log)
			return onLambda(tokens.Handle), func() {}, err
		}

		system, err := own.New()
		if err != nil {
			return nil, nil, err
		}

		open, closeIndex := s.index(dir)
		handle, err := make(system, open)
		if err != nil {
			return nil, nil, err
		}
		return onLambda(handle), func() { system.Close(); closeIndex() }, mkdir(dir)
	}
	return s.functions.add(f)
}

// onLambda is a handler as Lambda's own library wraps it. The answer is copied: the library's
// Invoke returns the bytes of a buffer that it has already given back, and the environment's
// next invocation writes into it while the caller still reads.
func onLambda(handle any) Function {
	h := lambda.NewHandler(handle)
	return func(ctx context.Context, payload []byte) ([]byte, error) {
		out, err := h.Invoke(ctx, payload)
		return bytes.Clone(out), err
	}
}

func mkdir(path string) error { return os.MkdirAll(path, 0o700) }

// process is what an environment gives the system. What consumers may call is asked for anew
// each time, since Register adds to it.
func (s *System) process(p *process, env map[string]string, dir string) boot.Process {
	return boot.Process{
		Config: s.config(p),
		Log:    s.log.With("function", env["AWS_LAMBDA_FUNCTION_NAME"]),
		Web:    s.settings.Web,
		Dir:    dir,
		Env: func(name string) string {
			if name == boot.EnvTargets {
				return s.allowed()
			}
			return env[name]
		},
	}
}

// deployment are the variables of most functions, as infra has them. Addresses of this
// machine may be downloaded from, because sources of tests are there.
func (s *System) deployment() map[string]string {
	set := s.settings
	env := map[string]string{boot.EnvTable: tableName, boot.EnvStorage: storageBucket,
		boot.EnvWork:   workBucket,
		boot.EnvEvents: eventsBucket, boot.EnvDerived: derivedBucket,
		boot.EnvTargets: strings.Join(set.Targets, ","),
		boot.EnvTiming:  set.Timing, boot.EnvLimits: set.Limits.String(), boot.EnvNAAN: set.NAAN,
		boot.EnvShoulder: set.Shoulder, boot.EnvMailFrom: set.MailFrom,
		boot.EnvContact: set.Contact,
		boot.EnvAllow:   "127.0.0.0/8,::1/128", boot.EnvAPI: set.APIURL,
		boot.EnvReplica: set.ReplicaBucket,
		boot.EnvWake:    QueueURL(queueWake), boot.EnvJobMachine: machineARN(jobMachine),
		boot.EnvBatchMachine: machineARN(batchMachine),
		boot.EnvAdminMachine: machineARN(adminMachine),
		boot.EnvRunMachine:   machineARN(component.Machine)}

	if set.EZID != "" {
		env[boot.EnvEZID], env[boot.EnvEZIDTarget] = set.EZID, set.EZIDTarget
	}
	if set.Scanner != "" {
		env[boot.EnvScanner] = set.Scanner
	}
	if set.Revisions {
		env[boot.EnvTaskMachine] = machineARN(taskMachine)
	}
	return env
}

// newFunctions makes the functions that every deployment has, and those of the API. The API
// comes last: it names the functions that it wakes.
func (s *System) newFunctions(timing ingest.Timing) {
	for _, st := range ingest.Stages {
		t := timing.Times(st)
		s.newFunction(fnStage+st.Name, t.Timeout, runStage,
			map[string]string{boot.EnvStage: st.Name, boot.EnvQueue: QueueURL(st.Name)})
		s.feed(fnStage+st.Name, 1, max(2, s.settings.Limits.MaxInFlight), st.Name)
	}

	// The functions of events: the consumer invokes itself, the relay the consumer.
	times := timing.Events()
	events := map[string]string{boot.EnvBus: bus}
	consumer := maps.Clone(events)
	if s.settings.Revisions {
		consumer[boot.EnvRevisions] = fnRevisions
	}

	s.newFunction(fnConsumer, times.Consumer, makers[fnConsumer], consumer).deadLetter = s.deadLetter
	relay := maps.Clone(events)
	relay[boot.EnvConsumer] = fnConsumer
	s.newFunction(fnRelay, times.Relay, makers[fnRelay], relay).deadLetter = s.deadLetter
	s.newFunction(fnScheduler, timing.Scheduler, makers[fnScheduler],
		map[string]string{boot.EnvQueue: QueueURL(queueWake)})
	s.feed(fnScheduler, 10, 2, queueWake)
	s.newFunction(fnAdmin, timing.Admin().Timeout, makers[fnAdmin], nil)
	s.newFunction(fnComponent, component.FunctionTime, makers[fnComponent], nil)

	env := s.newResearch(timing)
	maps.Copy(env, s.newRevisions(timing))
	env[boot.EnvResolver] = "public"
	if is := s.settings.Issuer; is.URL != "" {
		verifying := map[string]string{
			authorizer.EnvIssuer:   is.URL,
			authorizer.EnvAudience: is.Audience,
			authorizer.EnvClaim:    strings.Join(is.Claims, ","),
		}
		maps.Copy(env, verifying)
		env[boot.EnvClient], env[boot.EnvScopes] = is.Client, strings.Join(is.Scopes, " ")
		verifying[authorizer.EnvTable] = tableName
		s.newFunction(fnAuthorizer, 15*time.Second, nil, verifying)
	}
	if len(s.settings.Origins) > 0 {
		env[boot.EnvOrigins] = strings.Join(s.settings.Origins, ",")
	}
	if len(s.settings.Sources) > 0 {
		env[boot.EnvSources] = strings.Join(s.settings.Sources, ",")
	}
	s.newFunction(fnAPI, 29*time.Second, makers[fnAPI], env)
}

// deadLetter keeps what was asked for in vain. It is the dead-letter queue of asynchronous
// invocations.
func (s *System) deadLetter(payload []byte) {
	q, err := s.queues.named(queueWakeDead)
	if err == nil {
		q.send(string(payload), nil, 0)
	}
}

// newResearch makes the functions of research, and returns what the API needs of them. The
// order is that of infra: a function knows only those that were made before it.
func (s *System) newResearch(timing ingest.Timing) map[string]string {
	if len(s.settings.Projects) == 0 {
		return map[string]string{}
	}

	times := timing.Research()
	var queues []string
	for _, name := range s.settings.Projects {
		queues = append(queues, name+"="+QueueURL(queuePending+name))
	}

	env := map[string]string{boot.EnvResearchProjects: strings.Join(queues, ","),
		boot.EnvResearchTimes: s.settings.ResearchTimes,
		boot.EnvResearchDead:  QueueURL(queueResearchDead)}

	// Each function gets a copy of the variables as far as they are known here, like the
	// functions of infra.
	s.newFunction(fnPendingWork, times.Timeout, makers[fnPendingWork],
		maps.Clone(env)).deadLetter = s.deadLetter
	env[boot.EnvPendingWork] = fnPendingWork
	s.newFunction(fnCompletedWork, times.Timeout, makers[fnCompletedWork], maps.Clone(env))
	s.feed(fnCompletedWork, 10, 5, queueCompleted)
	s.newFunction(fnCuration, feed.Function, makers[fnCuration], maps.Clone(env))
	s.feed(fnCuration, 10, 5, queueEpisodes)
	s.feed(fnCuration, 10, 5, queueClips)
	env[boot.EnvCompletedWork] = QueueURL(queueCompleted)
	return env
}

// newRevisions makes the functions of the revision queue, and returns what the API needs of
// them. The runner and its router have no makers: newFunction makes them without a system.
func (s *System) newRevisions(timing ingest.Timing) map[string]string {
	if !s.settings.Revisions {
		return map[string]string{}
	}
	env := map[string]string{boot.EnvRevisions: fnRevisions}
	s.newFunction(fnRevisions, timing.Research().Timeout, makers[fnRevisions], nil).deadLetter = s.deadLetter
	s.newFunction(fnTaskControl, revision.ControlTime, makers[fnTaskControl], env)
	s.newFunction(fnTaskRunner, revision.RunnerTime, nil, nil)
	s.newFunction(fnTaskRouter, revision.RunnerTime, nil, map[string]string{boot.EnvRunner: fnTaskRunner})
	return env
}

// feed lets queues invoke a function. batch is the most messages of one invocation, at the
// most invocations at once. A queue that does not exist is a mistake of this package.
func (s *System) feed(function string, batch, at int, from string) {
	q, err := s.queues.named(QueueURL(from))
	if err != nil {
		panic(fmt.Sprintf("inprocess: %s: %v", function, err))
	}

	s.mappings = append(s.mappings, &mapping{
		id:       "mapping-" + from,
		queue:    q,
		function: function,
		batch:    batch,
		at:       at,
	})
}

// minutely are the functions that the minute's rule invokes. Each has a ticker of its own, so
// a slow one delays no other.
func (s Settings) minutely() []string {
	all := []string{fnScheduler, fnRelay}
	if len(s.Projects) > 0 {
		all = append(all, fnPendingWork, fnCuration)
	}
	if s.Revisions {
		all = append(all, fnRevisions)
	}
	return all
}

// complete fills in what is not set. It refuses a timing that does not exist, and limits out
// of their bounds.
func (s Settings) complete() (Settings, error) {
	s.Timing, s.NAAN, s.Shoulder = cmp.Or(s.Timing, "production"), cmp.Or(s.NAAN, "99999"),
		cmp.Or(s.Shoulder, "fk4")
	if s.Limits == (boot.Limits{}) {
		s.Limits = boot.DefaultLimits
	}
	s.Each, s.Window = cmp.Or(s.Each, time.Minute), cmp.Or(s.Window, streamWindow)
	if _, known := ingest.Timings[s.Timing]; !known {
		return s, fmt.Errorf("inprocess: there is no timing %q", s.Timing)
	}
	if _, err := cors.Origins(strings.Join(s.Origins, ",")); err != nil {
		return s, fmt.Errorf("inprocess: origins: %w", err)
	}
	return s, s.Limits.Check()
}
