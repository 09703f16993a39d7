// Package boot wires the system from the environment of a function: AWS clients,
// services, ids and the clock. The clock, random numbers and the environment are
// used only here, and passed to all other packages.
//
// A function's main is three calls:
//
//	system, err := boot.New(ctx, os.Getenv)
//	handler, err := system.Stage(pronom.OpenBrief)
//	boot.Start(handler.Handle)
//
// Everything is wired once, when a process of a function starts, and used by all of its
// invocations. No service is called here: a resource that is missing shows at its first use. What
// a function may use is decided by its role (infra), not by what is wired here: all functions
// have the same services, but those that need a large library, which only the mains that pass it
// contain.
package boot

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	awscloudwatch "github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	awslambda "github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	awssecretsmanager "github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	awsses "github.com/aws/aws-sdk-go-v2/service/ses"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/guregu/dynamo/v2"

	"archivist/pkg/api"
	"archivist/pkg/app/boot/authorizer"
	"archivist/pkg/app/crash"
	"archivist/pkg/app/stepfunctions"
	"archivist/pkg/aws/cloudwatch"
	"archivist/pkg/aws/invoke"
	"archivist/pkg/aws/secretsmanager"
	"archivist/pkg/aws/ses"
	"archivist/pkg/components/component"
	"archivist/pkg/components/histories"
	"archivist/pkg/events/consumer"
	"archivist/pkg/events/envelope"
	"archivist/pkg/events/event"
	"archivist/pkg/events/eventlog"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/collection"
	"archivist/pkg/ingest/identity"
	"archivist/pkg/ingest/provenance"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/ingest/stage"
	"archivist/pkg/ingest/token"
	"archivist/pkg/ingest/upload"
	"archivist/pkg/ingest/workspace"
	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/fetch"
	"archivist/pkg/kernel/lease"
	"archivist/pkg/kernel/table"
	"archivist/pkg/objects/inventory"
	"archivist/pkg/objects/ocfl"
	"archivist/pkg/revisions/runner"
	"archivist/pkg/views/acts"
	"archivist/pkg/views/formatcounts"
	"archivist/pkg/views/history"
	"archivist/pkg/views/statistics"
)

// New wires the system from env. It is for the mains of functions. An error ends the process,
// and Lambda reports it at each invocation.
func New(ctx context.Context, env Env) (*System, error) {
	p, err := onLambda(ctx, env)
	if err != nil {
		return nil, err
	}
	return p.New()
}

// onLambda is the process of a function on Lambda.
func onLambda(ctx context.Context, env Env) (p Process, err error) {
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return p, fmt.Errorf("boot: AWS configuration: %w", err)
	}
	return Process{Config: cfg, Env: env, Log: slog.New(slog.NewJSONHandler(os.Stdout, nil))}, nil
}

// New wires the system in the process. The error names the variable that is missing or wrong.
// No connection is opened.
func (p Process) New() (*System, error) {
	cfg, env, log := p.Config, p.Env, p.Log
	timing, ok := ingest.Timings[env(EnvTiming)]
	if !ok {
		return nil, fmt.Errorf("boot: %s: there is no timing %q", EnvTiming, env(EnvTiming))
	}

	limits, err := ParseLimits(env(EnvLimits))
	if err != nil {
		return nil, err
	}

	if err := limits.Check(); err != nil {
		return nil, fmt.Errorf("boot: %s: %w", EnvLimits, err)
	}

	// The client of the metrics itself is made without the middleware.
	metrics := &cloudwatch.Metrics{Client: awscloudwatch.NewFromConfig(cfg), Log: log}
	// It counts for every client that is created after this.
	cfg.APIOptions = append(cfg.APIOptions, metrics.CountRefusals)
	s := &System{env: env, log: log, web: p.Web, dir: p.Dir, sqs: awssqs.NewFromConfig(cfg),
		metrics: metrics, crashes: crash.New(env), cfg: cfg, limits: limits,
		functions: &invoke.Functions{Client: awslambda.NewFromConfig(cfg)}}

	s.executions = &stepfunctions.Executions{Client: sfn.NewFromConfig(cfg),
		ARNs: map[string]string{
			queue.MachineJob: env(EnvJobMachine), queue.MachineBatch: env(EnvBatchMachine),
			queue.MachineAdmin: env(EnvAdminMachine), component.Machine: env(EnvRunMachine),
			runner.Machine: env(EnvTaskMachine)}}

	t := table.New(dynamo.NewFromIface(authorizer.TableClient(cfg)), env(EnvTable))
	s.queue = &queue.Queue{Table: t, Now: time.Now, NewID: newID,
		Executions: s.executions, Wake: s.queueAt(EnvWake).Wake, Metric: metrics.Add,
		Names: &queue.Names{}, Rules: limits.rules(timing), Settings: limits.settings(), Log: log}

	s.scheduler = &queue.Scheduler{Queue: s.queue,
		Leases: &lease.Store{Table: t, Now: time.Now, NewID: newID}}
	err = s.readResearch()
	if err != nil {
		return nil, err
	}
	return s, s.content(cfg, t)
}

// Close closes connections to sources that are kept for further requests. A function's process
// just ends.
func (s *System) Close() { s.stages.Fetch.HTTP.CloseIdleConnections() }

// content wires the services for content: buckets, downloads, the storage root. It also makes
// the API and the runner of components, which use these.
func (s *System) content(cfg aws.Config, t *table.Table) error {
	client := s3.NewFromConfig(cfg, func(o *s3.Options) {
		o.UsePathStyle = cfg.BaseEndpoint != nil // local hosts have no bucket names in their DNS
		o.APIOptions = append(o.APIOptions, s.crashes.CountWrites)
	})

	work := bucket.Bucket{Client: client, Name: s.env(EnvWork), Limits: bucket.DefaultLimits}
	archive := bucket.Bucket{Client: client, Name: s.env(EnvEvents), Limits: bucket.DefaultLimits}
	s.events = &eventlog.Log{Table: t, Bucket: &archive, Now: time.Now, NewID: newID}
	objects := inventory.Store{Table: t}
	root := ocfl.Root{
		Bucket: bucket.Bucket{
			Client: client,
			Name:   s.env(EnvStorage),
			Limits: bucket.DefaultLimits,
		},
		Work:     work,
		Recorded: objects.Recorded,
	}

	guard, err := allowed(s.env)
	if err != nil {
		return err
	}

	profiles := collection.Store{Table: t, NewID: newID, Plain: cfg.BaseEndpoint != nil,
		Buckets: list(s.env(EnvSources)), EZID: s.env(EnvEZID) != "",
		Scanner:  s.env(EnvScanner) != "",
		Consumer: (&consumer.Store{Table: t}).Exists}
	s.stages = &stage.Stages{Queue: s.queue, Inventory: objects, Collections: profiles, Root: root,
		Work: workspace.Store{Bucket: work}, Fetch: s.fetcher(guard),
		Now: time.Now, Draw: identity.Draw, NAAN: s.env(EnvNAAN), Shoulder: s.env(EnvShoulder),
		Version:  version(),
		Parallel: 4,
		MailFrom: s.env(EnvMailFrom), API: strings.TrimSuffix(s.env(EnvAPI), "/"),
		SendMail: (&ses.Mailer{Client: awsses.NewFromConfig(cfg)}).Send,
		Secret:   (&secretsmanager.Secrets{Client: awssecretsmanager.NewFromConfig(cfg)}).Read}

	s.wireUploads(t, work)
	s.stages.S3 = func(name string) http.RoundTripper { return bucket.Bucket{Client: client, Name: name} }
	if to := s.env(EnvScanner); to != "" {
		s.stages.Scan = func(ctx context.Context, in stage.ScanRequest) (out stage.ScanAnswer, err error) {
			return out, s.functions.Call(ctx, to, in, &out)
		}
	}
	s.registry = s.newRegistry()
	if s.registry != nil {
		s.stages.Register = s.registry.Reserve
	}
	s.stages.Identify = s.identifyReceived()
	s.stages.Serve(s.queue)
	if s.stages.MailFrom != "" {
		s.queue.Compose = s.stages.Mail().Compose
	}

	s.api = &api.API{Queue: s.queue, Inventory: objects, Collections: profiles, Root: root,
		Work:     work,
		Uploads:  s.uploads,
		Tokens:   &token.Store{Table: t, Now: s.queue.Now, NewID: newID},
		Identity: s.stages.Identity(), Log: s.log, EventLog: s.events, EventArchive: s.events,
		Epochs:  s.events,
		History: history.Store{Table: t}, Statistics: statistics.Store{Table: t},
		Acts: acts.Store{Table: t}, Formats: formatcounts.Store{Table: t}, Replica: s.env(EnvReplica),
		Derived: bucket.Bucket{Client: client, Name: s.env(EnvDerived),
			Limits: bucket.DefaultLimits},
		Browse:   s.browse(),
		Resolves: s.env(EnvResolver) == "public",
		Histories: histories.Writer{Archive: provenance.Archive{NAAN: s.env(EnvNAAN),
			Version: version()}}}

	s.remote = s.domain(cfg)
	s.runner = s.newRunner()
	return nil
}

// wireUploads wires the uploads: the scheduler removes them, and stages read their files.
func (s *System) wireUploads(t *table.Table, work bucket.Bucket) {
	const day = 24 * time.Hour
	s.uploads = &upload.Store{Table: t, Work: work, Now: time.Now, NewID: newID, Batch: s.queue.Batch,
		Quota: int64(s.limits.UploadQuotaGiB) << 30, Keep: time.Duration(s.limits.UploadDays) * day,
		Part: upload.DefaultPart, Failed: s.uploadFailed}
	s.queue.Uploads = s.uploads.Sweep
	s.stages.Uploads = func(collection, id string) http.RoundTripper {
		return upload.Transport(work, collection, id)
	}
}

// uploadFailed logs and counts that the sweep could not handle an upload.
func (s *System) uploadFailed(id string, err error) {
	s.log.Error("an upload could not be ended or removed; it is tried again later", "upload", id, "error", err)
	s.metrics.Add(queue.RepairErrors, 1)
}

// fetcher downloads content. Its requests name a contact for the operators of the sources: by
// default the address that mails are sent from. With a transport of the process, the guard of
// addresses is not used.
func (s *System) fetcher(guard fetch.Guard) *fetch.Client {
	contact := s.env(EnvContact)
	if from := s.env(EnvMailFrom); contact == "" && from != "" {
		contact = "mailto:" + from
	}

	client := fetch.New(guard, rand.Float64)
	client.UserAgent = fetch.UserAgent(version(), contact)
	if s.web != nil {
		client.HTTP.Transport = s.web
	}
	return client
}

// version is the version of this software that the build recorded.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

// Origin is what the events of every change say of the software that made it. It is stored
// with each event, so that a later reader knows which release wrote it.
func Origin() event.Origin {
	return event.Origin{Version: version(),
		Modules: []envelope.Module{{Name: "go", Version: runtime.Version()}}}
}

// Start runs a handler as that of the function. The events of its changes have the Origin. It
// does not return.
func Start(handler any) {
	lambda.StartWithOptions(handler, lambda.WithContext(event.From(context.Background(), Origin())))
}

// allowed are the private networks of EnvAllow. On AWS there are none: the function's own
// runtime and its credentials are at such addresses. The variable of the endpoint is how a
// local stack is told from AWS.
func allowed(env Env) (g fetch.Guard, err error) {
	list := env(EnvAllow)
	if list != "" && env("AWS_ENDPOINT_URL") == "" {
		return g, fmt.Errorf("boot: %s is for local stacks only", EnvAllow)
	}

	for part := range strings.SplitSeq(list, ",") {
		if part == "" {
			continue
		}
		p, err := netip.ParsePrefix(part)
		if err != nil {
			return g, fmt.Errorf("boot: %s: %w", EnvAllow, err)
		}
		g.Allow = append(g.Allow, p)
	}
	return g, nil
}
