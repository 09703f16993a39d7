package inprocess

import (
	"strings"

	service "archivist/pkg/ingest/queue"
	"archivist/pkg/revisions/runner"
)

// The functions, by their names in infra. Those of the stages are fnStage and the stage's name.
const (
	fnAPI           = "api"
	fnAuthorizer    = "authorizer"
	fnScheduler     = "scheduler"
	fnRelay         = "relay"
	fnConsumer      = "consumer"
	fnComponent     = "component"
	fnAdmin         = "admin"
	fnRevisions     = "revisions"
	fnTaskControl   = "task-control"
	fnTaskRunner    = "task-runner"
	fnTaskRouter    = "task-router"
	fnPendingWork   = "pending-work"
	fnCompletedWork = "completed-work"
	fnCuration      = "curation"
	fnStage         = "run-"
)

// The table and the buckets.
const (
	tableName     = "archivist"
	storageBucket = "storage"
	workBucket    = "work"
	eventsBucket  = "events"
	derivedBucket = "derived"
)

// stack is what named resources begin with, as infra has it.
const stack = "Archivist-"

// The queues. Those of the stages have their names.
const (
	queueDead         = "dead"
	queueWake         = "wake"
	queueWakeDead     = "wake-dead"
	queueResearchDead = "research-dead"
	queueEpisodes     = stack + "curated-episodes"
	queueClips        = stack + "curated-clips"
	queueCompleted    = stack + "completed-work"
	queuePending      = stack + "pending-work-" // and the project's name
)

// The state machines.
const (
	jobMachine   = service.MachineJob
	batchMachine = service.MachineBatch
	adminMachine = service.MachineAdmin
	taskMachine  = runner.Machine
)

// Where everything is.
const (
	region  = "us-east-1"
	account = "000000000000"
)

// arn is an ARN of a service in the account.
func arn(service, resource string) string {
	return "arn:aws:" + service + ":" + region + ":" + account + ":" + resource
}

// ARN is the ARN of a function by its name.
func ARN(function string) string {
	return "arn:aws:lambda:" + region + ":" + account + ":function:" + function
}

// machineARN is the ARN of a state machine by its name.
func machineARN(name string) string { return arn("states", "stateMachine:"+name) }

// lastPart is what follows the last slash or colon of a URL or an ARN.
func lastPart(text string) string { return text[strings.LastIndexAny(text, "/:")+1:] }
