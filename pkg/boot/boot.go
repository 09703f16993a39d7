// Package boot wires the system from its environment: clients, the scheduler, ids
// and the services. Time and chance enter here and nowhere below.
package boot

import (
	"context"
	crand "crypto/rand"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/ses"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/guregu/dynamo/v2"
	"github.com/oklog/ulid/v2"

	"archivist/pkg/api"
	"archivist/pkg/bucket"
	"archivist/pkg/collection"
	"archivist/pkg/fetch"
	"archivist/pkg/ingest"
	"archivist/pkg/inventory"
	"archivist/pkg/lease"
	"archivist/pkg/ocfl"
	"archivist/pkg/queue"
	"archivist/pkg/stage"
	"archivist/pkg/table"
)

// The environment of every function. infra sets it.
const (
	EnvTable        = "ARCHIVIST_TABLE"
	EnvStorage      = "ARCHIVIST_STORAGE_BUCKET"
	EnvWork         = "ARCHIVIST_WORK_BUCKET"
	EnvWake         = "ARCHIVIST_WAKE_QUEUE"
	EnvJobMachine   = "ARCHIVIST_JOB_MACHINE"
	EnvBatchMachine = "ARCHIVIST_BATCH_MACHINE"
	EnvTiming       = "ARCHIVIST_TIMING" // name of a timing, e.g. "production"
	EnvStage        = "ARCHIVIST_STAGE"  // name of the stage, of a stage's function
	EnvQueue        = "ARCHIVIST_QUEUE"  // URL of the stage's queue
	EnvLimits       = "ARCHIVIST_LIMITS" // Limits as JSON
	EnvNAAN         = "ARCHIVIST_NAAN"
	EnvShoulder     = "ARCHIVIST_SHOULDER"
	EnvAllow        = "ARCHIVIST_ALLOW"     // local only: private networks to fetch from, e.g. "127.0.0.0/8"
	EnvFaults       = "ARCHIVIST_FAULTS"    // local only: a file with the faults of a test
	EnvMailFrom     = "ARCHIVIST_MAIL_FROM" // sender of mails, verified with SES
	EnvBase         = "ARCHIVIST_BASE"      // path of the API's stage
	EnvAPI          = "ARCHIVIST_API_URL"   // of the API, for links in mails; "" = no links
)

// System is everything wired.
type System struct {
	Env       Env
	Queue     *queue.Queue
	Scheduler *queue.Scheduler
	Stages    *stage.Stages
	API       *api.API
	Answer    queue.Answers
	SQS       *sqs.Client
	Log       *slog.Logger
	faults    *faults
	metric    *metrics
}

// Env reads a variable of the environment, "" when it is not set.
type Env func(name string) string

// New wires the system from env.
func New(ctx context.Context, env Env) (*System, error) {
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return nil, fmt.Errorf("boot: AWS configuration: %w", err)
	}
	timing, ok := ingest.Timings[env(EnvTiming)]
	if !ok {
		return nil, fmt.Errorf("boot: %s: there is no timing %q", EnvTiming, env(EnvTiming))
	}
	log := slog.New(slog.NewJSONHandler(os.Stdout, nil))
	f, err := readFaults(env)
	if err != nil {
		return nil, err
	}
	counted := &metrics{client: cloudwatch.NewFromConfig(cfg), log: log}
	cfg.APIOptions = append(cfg.APIOptions, counted.refusals)
	s := &System{Env: env, Log: log, SQS: sqs.NewFromConfig(cfg), faults: f, metric: counted}
	t := table.New(dynamo.NewFromIface(tableClient(cfg)), env(EnvTable))
	machines := &executions{client: sfn.NewFromConfig(cfg), arns: map[string]string{queue.MachineJob: env(EnvJobMachine), queue.MachineBatch: env(EnvBatchMachine)}}
	s.Answer = machines
	limits, err := ParseLimits(env(EnvLimits))
	if err != nil {
		return nil, err
	}
	rules := limits.rules(timing)
	if err := limits.Check(); err != nil {
		return nil, fmt.Errorf("boot: %s: %w", EnvLimits, err)
	}
	s.Queue = &queue.Queue{Table: t, Now: time.Now, NewID: newID, Executions: machines, Wake: s.poke,
		Metric: counted.add, Rules: rules, Settings: limits.settings(), Log: log}
	s.Scheduler = &queue.Scheduler{Queue: s.Queue, Leases: &lease.Store{Table: t, Now: time.Now, NewID: newID}}
	return s, s.content(cfg, t)
}

// tableClient makes each request once: the table itself tries again, and two budgets
// would multiply.
func tableClient(cfg aws.Config) *dynamodb.Client {
	return dynamodb.NewFromConfig(cfg, func(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} })
}

// content wires what works on content: buckets, fetching, the storage root.
func (s *System) content(cfg aws.Config, t *table.Table) error {
	client := s3.NewFromConfig(cfg, func(o *s3.Options) {
		o.UsePathStyle = cfg.BaseEndpoint != nil // local hosts have no bucket names in their DNS
		o.APIOptions = append(o.APIOptions, s.faults.middleware)
	})
	work := bucket.Bucket{Client: client, Name: s.Env(EnvWork), Limits: bucket.DefaultLimits}
	root := ocfl.Root{Bucket: bucket.Bucket{Client: client, Name: s.Env(EnvStorage), Limits: bucket.DefaultLimits}, Work: work}
	guard, err := allowed(s.Env)
	if err != nil {
		return err
	}
	objects := inventory.Store{Table: t}
	profiles := collection.Store{Table: t, NewID: newID, Plain: cfg.BaseEndpoint != nil}
	s.Stages = &stage.Stages{Queue: s.Queue, Inventory: objects, Collections: profiles, Root: root, Work: work, Fetch: fetch.New(guard, rand.Float64),
		Now: time.Now, Draw: stage.Draw, NAAN: s.Env(EnvNAAN), Shoulder: s.Env(EnvShoulder), Version: version(), Parallel: 4,
		MailFrom: s.Env(EnvMailFrom), API: strings.TrimSuffix(s.Env(EnvAPI), "/"), SendMail: (&mailer{ses.NewFromConfig(cfg)}).send, Secret: (&secrets{secretsmanager.NewFromConfig(cfg)}).read}
	s.Queue.Clean, s.Queue.Stored = s.Stages.Clean, s.Stages.Stored
	if s.Stages.MailFrom != "" {
		s.Queue.Compose = s.Stages.Compose
	}
	s.API = &api.API{Queue: s.Queue, Inventory: objects, Collections: profiles, Root: root, Work: work, Stages: s.Stages, Log: s.Log, Base: s.Env(EnvBase)}
	return nil
}

// version of this software, as the build noted it.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

// allowed are the private networks of EnvAllow. On AWS there are none: the function's
// own runtime and its credentials are at such addresses.
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

// ids are random from the system's source: those of the library's own are not, they
// follow from the time at which the process began.
var ids = &ulid.LockedMonotonicReader{MonotonicReader: ulid.Monotonic(crand.Reader, 0)}

func newID() string { return ulid.MustNew(ulid.Now(), ids).String() }
