package inprocess

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"archivist/pkg/app/boot"
	"archivist/pkg/app/inprocess/states"
	"archivist/pkg/kernel/bucket/buckettest"
	"archivist/pkg/kernel/table/tabletest"
	"archivist/pkg/views/search"
)

// Settings are those of a deployment, with the names of infra, and what differs in a process. The
// zero value is a system with nothing optional.
type Settings struct {
	Timing   string      // "" = production
	Limits   boot.Limits // zero = boot.DefaultLimits
	NAAN     string      // "" = 99999
	Shoulder string      // "" = fk4
	MailFrom string      // "" = no mail
	Contact  string
	APIURL   string   // for links in mails; "" = none
	Targets  []string // consumerTargets: ARNs of functions and URLs of queues, see ARN and QueueURL

	Projects      []string // of research
	ResearchTimes string
	Revisions     bool
	ReplicaBucket string
	Sources       []string // sourceBuckets
	EZID          string
	EZIDTarget    string
	Scanner       string   // scanFunction
	Issuer        Issuer   // of tokens; the zero value: none, and calls need no token
	Origins       []string // corsOrigins: of pages whose scripts may call the API, and send files
	Console       []string // the origins of the console, whose scripts may send files

	// A test makes both small, so that it does not wait, or works in a bubble, where waiting
	// costs nothing.
	Each time.Duration // the interval of the rules; 0 = a minute, less = they never fire: nothing moves by itself
	// Window is the time in which the stream's records are collected for an invocation; 0 = a
	// second.
	Window time.Duration

	// Listen is the address on which S3 is served too, for signed URLs: "127.0.0.1:0". "" =
	// nowhere: then nothing of the system uses a socket; HTTP has a client for signed URLs.
	Listen string
	// Dir is for large content and for what functions keep; "" = a temporary folder, which
	// Close removes.
	Dir string
	Web http.RoundTripper // of downloads and callbacks; nil = the network

	// A table or buckets that are given are still there after Close, e.g. for a system that
	// is started again.
	Table   *tabletest.Fake  // nil = an empty one
	Buckets *buckettest.Twin // nil = empty ones
	Index   search.Index     // of objects; nil = the one that ships. In a bubble: NoIndex

	Mail func(Mail)   // gets each mail, if set
	Log  *slog.Logger // of the functions; nil = none
}

// Issuer says whose tokens the API takes, as the settings token… of infra do.
type Issuer struct {
	URL      string
	Audience string
	Claims   []string // nil = that of Amazon Cognito
	Client   string   // of the command line
	Scopes   []string // nil = the usual ones
}

// System is a system that runs. Its methods may be called concurrently.
type System struct {
	settings   Settings
	log        *slog.Logger
	dir        string
	temporary  bool // the folder is removed at the end
	endpoint   string
	server     *http.Server // of S3, or nil
	cancel     context.CancelFunc
	running    sync.WaitGroup
	operations operations
	points     points

	table     *tabletest.Fake
	tables    *tables
	buckets   *buckettest.Twin
	queues    *queues
	functions *functions
	machines  *states.Machines
	rules     *rules
	services  *services
	mappings  []*mapping
	gateway   *gateway
	// watched is put back by Close, so that a table can be given to the next system.
	watched func([]tabletest.Change) // what the table told before

	targets      []string     // of consumers and components; functions.mu guards it
	environments atomic.Int64 // that were made
}
