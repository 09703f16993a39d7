package boot

import (
	crand "crypto/rand"
	"log/slog"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/oklog/ulid/v2"

	"archivist/pkg/api"
	"archivist/pkg/app/crash"
	"archivist/pkg/app/stepfunctions"
	"archivist/pkg/aws/cloudwatch"
	"archivist/pkg/aws/invoke"
	"archivist/pkg/aws/sqs"
	"archivist/pkg/components/component"
	"archivist/pkg/events/eventlog"
	"archivist/pkg/ingest/ezid"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/ingest/stage"
	"archivist/pkg/ingest/upload"
	"archivist/pkg/objects/formats"
	"archivist/pkg/research"
	"archivist/pkg/views/search"
)

// System has all services. Its methods make the functions; each main calls one of them.
type System struct {
	env Env
	log *slog.Logger
	// web and dir are the Process's, open is set by Component.
	web        http.RoundTripper
	dir        string
	queue      *queue.Queue
	scheduler  *queue.Scheduler
	uploads    *upload.Store
	stages     *stage.Stages
	registry   *ezid.Registry // nil: ARKs are registered nowhere
	api        *api.API
	executions *stepfunctions.Executions
	sqs        *awssqs.Client
	cfg        aws.Config
	events     *eventlog.Log
	functions  *invoke.Functions
	metrics    *cloudwatch.Metrics
	crashes    *crash.Injector
	remote     search.Index // in an OpenSearch domain, or nil
	limits     Limits
	open       formats.Open // loads the signatures of formats, or nil
	runner     *component.Runner

	researching researchSettings
}

// Process is what a process gives the system. New takes it from Lambda; a program that runs the
// functions itself has its own.
type Process struct {
	Config aws.Config // of all AWS clients
	Env    Env
	Log    *slog.Logger
	// Web is the transport of requests to sources and of callbacks; nil = the network, with
	// its guard.
	Web http.RoundTripper
	Dir string // for what is kept between calls; "" = Lambda's
}

// researchSettings are what the environment says of research. names are in the order of the
// environment; queues has one of each.
type researchSettings struct {
	times  research.Times
	names  []string // of projects
	queues pendingWork
}

// targets are what consumers may call: ARNs of functions and URLs of queues.
func (s *System) targets() []string { return list(s.env(EnvTargets)) }

// queueAt is the queue whose URL is in a variable of the environment.
func (s *System) queueAt(name string) sqs.Queue {
	return sqs.Queue{Client: s.sqs,
		URL: s.env(name)}
}

// ids are random from the system's source: those of the library's own are not, they
// follow from the time at which the process began.
var ids = &ulid.LockedMonotonicReader{MonotonicReader: ulid.Monotonic(crand.Reader, 0)}

// newID is a ULID: 26 characters that sort by the time at which it was made, in milliseconds.
// Those of one process and millisecond follow each other; MustNew panics only if the system
// has no random numbers.
func newID() string { return ulid.MustNew(ulid.Now(), ids).String() }
