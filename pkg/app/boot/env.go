package boot

import (
	"strings"

	"archivist/pkg/app/boot/authorizer"
)

// Env reads a variable of the environment, "" when it is not set. os.Getenv is one; a program
// that runs several functions in one process gives each its own.
type Env func(name string) string

// The environment of every function. infra sets it.
const (
	// Names of tables and buckets are plain names, those of machines ARNs, those of queues
	// URLs.
	EnvTable        = authorizer.EnvTable
	EnvStorage      = "ARCHIVIST_STORAGE_BUCKET"
	EnvWork         = "ARCHIVIST_WORK_BUCKET"
	EnvWake         = "ARCHIVIST_WAKE_QUEUE"
	EnvJobMachine   = "ARCHIVIST_JOB_MACHINE"
	EnvBatchMachine = "ARCHIVIST_BATCH_MACHINE"
	EnvAdminMachine = "ARCHIVIST_ADMIN_MACHINE"
	EnvRunMachine   = "ARCHIVIST_COMPONENT_MACHINE"
	EnvTiming       = "ARCHIVIST_TIMING" // name of a timing, e.g. "production"
	EnvStage        = "ARCHIVIST_STAGE"  // name of the stage, of a stage's function
	EnvQueue        = "ARCHIVIST_QUEUE"  // URL of the stage's queue
	EnvLimits       = "ARCHIVIST_LIMITS" // Limits as JSON
	EnvNAAN         = "ARCHIVIST_NAAN"
	EnvEZID         = "ARCHIVIST_EZID"           // URL of EZID; "" = no ARK is registered there
	EnvEZIDTarget   = "ARCHIVIST_EZID_TARGET"    // what ARKs registered there resolve to, before the ARK
	EnvScanner      = "ARCHIVIST_SCAN_FUNCTION"  // ARN of the virus scanner; "" = there is none
	EnvSources      = "ARCHIVIST_SOURCE_BUCKETS" // whose objects may be submitted as s3 URLs, separated by commas
	EnvResolver     = "ARCHIVIST_ARK_RESOLVER"   // "public": ARKs resolve for everybody
	EnvOrigins      = "ARCHIVIST_CORS_ORIGINS"   // of pages whose scripts may call the API, separated by commas
	EnvShoulder     = "ARCHIVIST_SHOULDER"
	// EnvAllow is for local stacks only: private networks to download from, e.g.
	// "127.0.0.0/8".
	EnvAllow    = "ARCHIVIST_ALLOW"
	EnvMailFrom = "ARCHIVIST_MAIL_FROM" // sender of mails, verified with SES
	// EnvContact is a URL of a contact in requests to sources, for their operators.
	EnvContact  = "ARCHIVIST_CONTACT"
	EnvAlarms   = "ARCHIVIST_ALARMS"  // what the names of the deployment's alarms begin with; "" = it has none
	EnvAPI      = "ARCHIVIST_API_URL" // of the API, for links in mails; "" = no links
	EnvEvents   = "ARCHIVIST_EVENTS_BUCKET"
	EnvDerived  = "ARCHIVIST_DERIVED_BUCKET"
	EnvBus      = "ARCHIVIST_BUS"      // of public events
	EnvConsumer = "ARCHIVIST_CONSUMER" // name of the function in which consumers run
	// EnvTargets has the ARNs and queue URLs that consumers may call, comma-separated.
	EnvTargets = "ARCHIVIST_CONSUMER_TARGETS"
)

// EnvTasks has ARNs of task definitions that components may run, comma-separated.
const EnvTasks = "ARCHIVIST_COMPONENT_TASKS"

// list reads a list that is separated by commas. It is nil for "". Nothing in it is trimmed.
func list(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' })
}
