package main

import (
	"github.com/aws/jsii-runtime-go"

	"archivist/pkg/app/boot"
	"archivist/pkg/kernel/access"
	"archivist/pkg/research"
)

// Settings are the deployment's choices, from the CDK context (-c name=value). They are
// checked before anything is made, and then only read. docs/deploy.md explains each.
type Settings struct {
	Local    bool   // for an emulator: host architecture, loopback sources, no deletion protection
	Timing   string // name of the chain of times
	Limits   boot.Limits
	NAAN     string // of minted arks
	Shoulder string
	Crashes  string // local only: file that says where a test ends processes
	Open     bool   // local only: no authorizer; the core of LocalStack takes none
	// Code is for local stacks only: the folder with the zip files of the functions; "" =
	// what is built for AWS.
	Code     string
	MailFrom string // sender of reports; the address must be verified with SES; "" = no mail
	// Contact is a http, https or mailto URL that requests to sources name; "" = the address
	// of MailFrom.
	Contact   string
	AlarmMail string // address to which alarms are sent, or ""
	Table     string // a restored table to work on; "" = that of the data stack

	TableStream string // ARN of the restored table's stream; "" = it has none
	// Targets are ARNs of functions and URLs of queues that consumers of events, and
	// components, may call.
	Targets []string
	// Tasks are ARNs of task definitions that components may run, and of the roles of their
	// containers.
	Tasks []string

	SearchDomain string // endpoint of an OpenSearch domain; "" = the search index is in a bucket

	ReplicaBucket string // second bucket, to which objects are copied; "" = they are not
	ReplicaRegion string // of that bucket; "" = that of the deployment

	Projects  []string       // of research
	Times     research.Times // of research
	TimesText string         // as they were given

	Revisions  bool     // the deployment has the revision queue
	NoPrograms bool     // its tasks find no more programs than the runtime has
	Images     []string // container images in which its tasks may run
	Network    Network  // of their containers

	Resolver bool // ARKs resolve for everybody

	EZID, EZIDTarget string // where ARKs are registered, and what they resolve to; "" = nowhere

	Scanner string // ARN of the function that scans files for viruses; "" = none

	Sources []string // buckets whose objects may be submitted

	Origins []string // of web pages whose scripts may call the API, and send files to the work bucket

	Issuer Issuer // of tokens of the API

	// SignInDomain and MachineRoles are of the user pool, which there is if the settings name no issuer.
	SignInDomain string         // prefix of its domain; "" = one is made
	MachineRoles []access.Grant // that programs can have beside those that are limited to nothing

	LogRoleExists bool // the account has a role for the logs of its APIs
	Reserve       bool // concurrency of its own for the scheduler and the API
	// SecretsKey is the ARN of the key by which the secrets of callbacks are encrypted; "" =
	// AWS's own.
	SecretsKey string
	Tags       map[string]string // of every resource
}

// tlsOnly says whether a resource's policy refuses calls without TLS. An emulator that
// evaluates policies is called without TLS, and would refuse everything. On AWS every bucket,
// queue and topic refuses them.
func (s Settings) tlsOnly() *bool { return jsii.Bool(!s.Local) }

// Network is where the containers of tasks run.
type Network struct {
	Subnets, Groups []string // ids of subnets and of security groups
	Public          bool     // they have public addresses, as they need in public subnets
}
