package main

import (
	"slices"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awss3"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"archivist/pkg/aws/cloudwatch"
	"archivist/pkg/components/component"
	"archivist/pkg/ingest/collection"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/ingest/workspace"
	"archivist/pkg/revisions/runner"
	"archivist/pkg/views/search/embedded"
	"archivist/pkg/views/search/opensearch"
	"archivist/pkg/views/versionzip"
)

// grantee is a function, a state machine or a role. All that is granted goes through allow
// and a few others below, with names of actions and resources: the CDK's own grants would
// give more than is used.
type grantee interface {
	awsiam.IGrantable
	constructs.IConstruct
}

// allow lets one do exactly these actions, on exactly these resources.
func allow(g grantee, actions []string, resources ...*string) {
	g.GrantPrincipal().AddToPrincipalPolicy(awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{
		Actions: jsii.Strings(actions...), Resources: &resources}))
}

// deny forbids exactly these actions, on exactly these resources, whatever is allowed.
func deny(g grantee, actions []string, resources ...*string) {
	g.GrantPrincipal().AddToPrincipalPolicy(awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{
		Effect: awsiam.Effect_DENY, Actions: jsii.Strings(actions...), Resources: &resources}))
}

// secretsBelow are the ARNs of the secrets whose names begin so.
func secretsBelow(scope constructs.IConstruct, prefix string) *string {
	return awscdk.Stack_Of(scope).FormatArn(&awscdk.ArnComponents{
		Service:      jsii.String("secretsmanager"),
		Resource:     jsii.String("secret"),
		ResourceName: jsii.String(prefix + "*"),
		ArnFormat:    awscdk.ArnFormat_COLON_RESOURCE_NAME,
	})
}

// The actions on objects. A copy reads its source and puts its target (Amazon S3 User
// Guide, "Required permissions for Amazon S3 API operations"). Parts of an upload and its
// completion are puts; aborting it is an action of its own.
var (
	get    = []string{"s3:GetObject"}
	put    = []string{"s3:PutObject", "s3:AbortMultipartUpload"}
	remove = []string{"s3:DeleteObject"}
	abort  = []string{"s3:AbortMultipartUpload"}
	// parts is to see which parts of an upload others have sent.
	parts = []string{"s3:ListMultipartUploadParts"}
)

// grantObjects lets one do these to the objects that match, e.g. "jobs/*",
// and list the bucket: without that a missing object looks like a forbidden one.
func grantObjects(g grantee, b awss3.Bucket, matching string, actions ...[]string) {
	allow(g, slices.Concat(actions...), b.ArnForObjects(jsii.String(matching)))
	allow(g, []string{"s3:ListBucket"}, b.BucketArn())
}

// jobRows are the rows that a step of a job may change, by the beginning of their
// partition key: the job, the batch that counts it, what lists it by name, and the reservations and locks that
// it gives back if it fails.
var jobRows = []string{"JOB#*", "BATCH#*", "LOCK#*", "NAMED#*", "SLOT", "SPACE"}

// stageRows are the rows that each stage may change. So a stage that parses hostile
// content cannot change objects, profiles, or the scheduler's lease. Store, which parses none, tells
// an object's history that it has healed files.
var stageRows = map[string][]string{
	"unpack":   {"BATCH#*", "JOB#*", "LOCK#*", "MAIL#*", "NAMED#*"},
	"estimate": jobRows,
	"download": jobRows,
	"process":  slices.Concat(jobRows, []string{"ARK#*", "LOCAL#*"}), // it reserves names
	"store":    slices.Concat(jobRows, []string{"OBJECT#*"}),
	"record":   slices.Concat(jobRows, []string{"ARK#*", "LOCAL#*", "OBJECT#*", "VERSION#*"}),
	"notify":   jobRows,
	"report":   {"BATCH#*", "MAIL#*", "NAMED#*"},
}

// grantRows lets a function read the table and change rows. Parts of a transaction are
// authorised as the single actions that they are, each with the key of its row (Service
// Authorization Reference, "Actions, resources, and condition keys for Amazon DynamoDB").
// Reading is not limited by key, nor is checking a row in a transaction, which a step does on
// the holds and pauses. keys are patterns of partition keys; nil allows all.
func grantRows(f awslambda.Function, d *Data, keys []string) {
	allow(f, []string{"dynamodb:GetItem", "dynamodb:ConditionCheckItem"}, d.Table.TableArn())
	write := &awsiam.PolicyStatementProps{Resources: &[]*string{d.Table.TableArn()},
		Actions: jsii.Strings(
			"dynamodb:PutItem", "dynamodb:UpdateItem", "dynamodb:DeleteItem")}
	if keys != nil {
		write.Conditions = &map[string]any{"ForAllValues:StringLike": map[string]any{"dynamodb:LeadingKeys": keys}}
	}
	f.AddToRolePolicy(awsiam.NewPolicyStatement(write))
}

// grantSearch lets a function query the table and these indexes. Indexes have resources of
// their own.
func grantSearch(f awslambda.Function, d *Data, indexes ...string) {
	allow(f, []string{"dynamodb:Query"}, d.Table.TableArn())
	for _, name := range indexes {
		allow(f, []string{"dynamodb:Query"}, jsii.String(*d.Table.TableArn()+"/index/"+name))
	}
}

// grantStage gives a stage's function its rows, its content, its answers, and the wake-ups
// that its changes owe. A test compares the grants with the calls that end-to-end tests make,
// in both directions.
func (a *App) grantStage(st *Stage, p FunctionProps) {
	grantRows(st.Handler, p.Data, stageRows[st.Name])
	// Process looks at the jobs that wait for a lock, record at an object's versions and events.
	if st.Name == "process" || st.Name == "record" {
		grantSearch(st.Handler, p.Data)
	}

	if st.Name == "report" { // all jobs of the batch
		grantBatches(st.Handler, p.Data)
	}

	st.grantContent(p.Data)
	if st.fetches() {
		grantObjects(st.Handler, p.Data.Work, workspace.Uploads+"*", get)
		allow(st.Handler, []string{"secretsmanager:GetSecretValue"},
			secretsBelow(st.Handler, collection.SourceSecretPrefix))
		for _, name := range p.Settings.Sources {
			arn := "arn:" + *awscdk.Aws_PARTITION() + ":s3:::" + name
			allow(st.Handler, get, jsii.String(arn+"/*"))
			allow(st.Handler, []string{"s3:ListBucket"}, jsii.String(arn)) // so that a missing object is told as one
		}
	}
	if st.Name == "download" && p.Settings.Scanner != "" {
		allow(st.Handler, []string{"lambda:InvokeFunction"}, jsii.String(p.Settings.Scanner))
	}
	if st.Name == "process" {
		grantEZID(st.Handler, p.Settings)
	}
	if st.fetches() || st.Name == "notify" {
		grantSecretsKey(st.Handler, p.Settings.SecretsKey)
	}

	grantMetrics(st.Handler)
	own := a.Machines[queue.MachineJob]
	if st.Batch != "" {
		own = a.Machines[queue.MachineBatch]
		grantMail(st.Handler, p.Settings.MailFrom) // its changes owe mails
	}

	// The Service Authorization Reference names no resource for answers; AWS checks
	// them on the machine that waits (so its refusals say).
	allow(st.Handler, []string{"states:SendTaskSuccess", "states:SendTaskFailure"},
		own.StateMachineArn())
	if st.Name != "report" { // the last job to close starts it; what is freed wakes the scheduler
		allow(st.Handler, []string{"sqs:SendMessage"}, a.Wake.QueueArn())
		allow(st.Handler, []string{"states:StartExecution"},
			a.Machines[queue.MachineBatch].StateMachineArn())
	}
}

// grantScheduler lets the scheduler's function run the gates, the sweep and the mails. It and
// the API change rows of every kind. It starts executions of every machine, and reads how
// those have ended that it repairs.
func (a *App) grantScheduler(p FunctionProps) {
	grantRows(a.Scheduler, p.Data, nil)
	grantSearch(a.Scheduler, p.Data, "work", "list") // all items of components are in a list
	// They are compared with their events and lines, many at once.
	grantBatches(a.Scheduler, p.Data)
	allow(a.Scheduler, []string{"sqs:SendMessage"}, a.Wake.QueueArn())
	// The work files of jobs that failed long ago or were deleted. By what such a job had
	// prepared at Storing, it is found out whether its version is committed.
	grantObjects(a.Scheduler, p.Data.Work, workspace.Jobs+"*", get, remove)
	grantObjects(a.Scheduler, p.Data.Storage, "*", get)
	// A mail that is sent again has the report.
	grantObjects(a.Scheduler, p.Data.Work, workspace.Reports+"*", get)
	// Uploads that are not needed any more, and what was begun of their files.
	grantObjects(a.Scheduler, p.Data.Work, workspace.Uploads+"*", remove, abort)
	allow(a.Scheduler, []string{"s3:ListBucketMultipartUploads"}, p.Data.Work.BucketArn())
	grantMail(a.Scheduler, p.Settings.MailFrom)
	grantMetrics(a.Scheduler)
	for _, m := range a.Machines {
		allow(a.Scheduler, []string{"states:StartExecution"}, m.StateMachineArn())
		m.GrantExecution(a.Scheduler, jsii.String("states:StopExecution"),
			jsii.String("states:DescribeExecution"),
			jsii.String("states:GetExecutionHistory"))
	}
}

// grantAdmin lets the function of admin-action do what a person can ask for. Its grants are
// not those of the API: nobody asks it for content.
func (a *App) grantAdmin(p FunctionProps) {
	grantRows(a.Admin, p.Data, nil)
	grantSearch(a.Admin, p.Data, "work", "list")
	// Whether the version of a job is committed. The doctor repairs the storage root: it removes
	// what crashes left, and writes stale sidecars again.
	grantObjects(a.Admin, p.Data.Storage, "*", get, put, remove)
	// It reads what a job at Storing has prepared, and cleans up.
	grantObjects(a.Admin, p.Data.Work, workspace.Jobs+"*", get, remove)
	grantObjects(a.Admin, p.Data.Work, workspace.Uploads+"*", remove) // those without an upload
	// It compares the search index with the objects, and indexes again what differs.
	grantObjects(a.Admin, p.Data.Derived, embedded.Folder+"*", get, put, remove)
	grantDomain(a.Admin, p.Settings, "es:ESHttpPut", "")
	grantDomain(a.Admin, p.Settings, "es:ESHttpPut", "/_mapping")
	grantDomain(a.Admin, p.Settings, "es:ESHttpPost", "/_bulk")
	grantDomain(a.Admin, p.Settings, "es:ESHttpPost", "/_mget")
	// The doctor reads every row, and the index work.
	allow(a.Admin, []string{"dynamodb:Scan"}, p.Data.Table.TableArn(),
		jsii.String(*p.Data.Table.TableArn()+"/index/work"))
	grantBatches(a.Admin, p.Data) // it compares the index with the rows
	allow(a.Admin, []string{"sqs:SendMessage"}, a.Wake.QueueArn())
	grantEZID(a.Admin, p.Settings) // it asks which ARKs are reserved for nothing
	grantMetrics(a.Admin)
	// Jobs are started by the scheduler alone: also one that a person requeues waits for its turn.
	for _, machine := range []*string{a.Machines[queue.MachineBatch].StateMachineArn(), a.adminMachine()} {
		allow(a.Admin, []string{"states:StartExecution"}, machine)
	}

	// The execution of a job that a person fails or cancels is stopped.
	a.Machines[queue.MachineJob].GrantExecution(a.Admin, jsii.String("states:StopExecution"))
}

// grantAuthorizer lets the authorizer read the rows of tokens, and do nothing else.
func (a *App) grantAuthorizer() {
	a.Authorizer.AddToRolePolicy(awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{
		Actions: jsii.Strings("dynamodb:GetItem"), Resources: &[]*string{a.Data.Table.TableArn()},
		Conditions: &map[string]any{"ForAllValues:StringLike": map[string]any{
			"dynamodb:LeadingKeys": []string{"TOKEN#*"}}}}))
}

// grantAPI lets the API's function do what its routes need. Content is read only, but for the
// files of uploads: what a person changes are rows.
func (a *App) grantAPI(p FunctionProps) {
	grantRows(a.API, p.Data, nil)
	grantSearch(a.API, p.Data, "work", "list")
	grantObjects(a.API, p.Data.Storage, "*", get)
	grantObjects(a.API, p.Data.Derived, "*", get) // also the search index
	grantObjects(a.API, p.Data.Derived, versionzip.Folder+"*", put)
	grantObjects(a.API, p.Data.Work, workspace.Reports+"*", get)
	grantObjects(a.API, p.Data.Work, workspace.Jobs+"*", get) // what a job at Storing has prepared
	// Signed requests have the rights of this role: so depositors send the files of uploads.
	grantObjects(a.API, p.Data.Work, workspace.Uploads+"*", get, put, parts)
	allow(a.API, []string{"sqs:SendMessage"}, a.Wake.QueueArn())
	grantBatches(a.API, p.Data)
	grantObjects(a.API, p.Data.Events, "*", get) // the archive of the log
	grantDomain(a.API, p.Settings, "es:ESHttpPost", "/_search")
	grantMetrics(a.API)
	grantAlarms(a.API)
	grantRestores(a.API)
	for name, m := range a.Machines {
		// The scheduler starts jobs, the manager of the revision queue tasks.
		if name != queue.MachineJob && name != runner.Machine {
			allow(a.API, []string{"states:StartExecution"}, m.StateMachineArn())
		}
	}

	// A person can fail a job, whose execution is then stopped.
	a.Machines[queue.MachineJob].GrantExecution(a.API, jsii.String("states:StopExecution"))
	// Or interrupt a run of a component.
	a.Machines[component.Machine].GrantExecution(a.API, jsii.String("states:StopExecution"))
}

// grantBatches lets a function read many rows in a request, such as events with their payload.
func grantBatches(f awslambda.Function, d *Data) {
	allow(f, []string{"dynamodb:BatchGetItem"}, d.Table.TableArn())
}

// grantRelay lets the relay place events of every subject, and wake consumers.
func (a *App) grantRelay(p FunctionProps) {
	grantRows(a.Relay, p.Data, nil)
	grantSearch(a.Relay, p.Data, "work")
	grantBatches(a.Relay, p.Data)
	allow(a.Relay, []string{"lambda:InvokeFunction"}, a.Consumer.FunctionArn())
	grantMetrics(a.Relay)
}

// grantConsumer lets the function of the consumers do what those that ship do, call the targets
// that the settings name, and invoke itself.
func (a *App) grantConsumer(p FunctionProps) {
	f := a.Consumer
	grantRows(f, p.Data, nil)
	grantSearch(f, p.Data, "work")
	grantBatches(f, p.Data)
	grantObjects(f, p.Data.Events, "*", get, put)
	grantObjects(f, p.Data.Derived, "*", get, put, remove)
	grantObjects(f, p.Data.Storage, "*", get)
	grantDomain(f, p.Settings, "es:ESHttpPut", "")
	grantDomain(f, p.Settings, "es:ESHttpPut", "/_mapping")
	grantDomain(f, p.Settings, "es:ESHttpPost", "/_bulk")
	allow(f, []string{"events:PutEvents"}, a.Bus.EventBusArn())
	a.grantRuns(f)
	functions, queues := p.Settings.targetARNs(*a.Stack.Region())
	if len(functions) > 0 {
		allow(f, []string{"lambda:InvokeFunction"}, *jsii.Strings(functions...)...)
	}

	if len(queues) > 0 {
		allow(f, []string{"sqs:SendMessage"}, *jsii.Strings(queues...)...)
	}

	grantEZID(f, p.Settings)
	grantMetrics(f)
	a.wakesItself("ConsumerWakesItself", f)
}

// wakesItself lets a function invoke itself, by a policy of its own: the function waits for its
// role's first one, which so cannot name it.
func (a *App) wakesItself(id string, f awslambda.Function) {
	awsiam.NewPolicy(a.Stack, jsii.String(id), &awsiam.PolicyProps{
		Roles: &[]awsiam.IRole{f.Role()}, Statements: &[]awsiam.PolicyStatement{
			awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{Actions: jsii.Strings("lambda:InvokeFunction"),
				Resources: &[]*string{f.FunctionArn()}})}})
}

// grantRuns lets a function start runs of components, as each does in which an item can become
// ready.
func (a *App) grantRuns(f awslambda.Function) {
	allow(f, []string{"states:StartExecution"}, a.runMachine())
}

// grantDomain lets a function make a request to the index of objects in the domain, if there
// is one. The domain's own policy must let the account's roles in ("Identity and Access
// Management in Amazon OpenSearch Service"). path is that of the request below the index, ""
// for the index and its documents' own.
func grantDomain(f awslambda.Function, s Settings, action, path string) {
	m := domainEndpoint.FindStringSubmatch(s.SearchDomain)
	if m == nil {
		return
	}
	allow(f, []string{action}, awscdk.Stack_Of(f).FormatArn(&awscdk.ArnComponents{
		Service:      jsii.String("es"),
		Region:       jsii.String(m[2]),
		Resource:     jsii.String("domain"),
		ResourceName: jsii.String(m[1] + "/" + opensearch.Objects + path),
	}))
}

// grantMail lets a function send mails from an address. SES has verified the address or its
// domain. Without an address nothing is granted.
func grantMail(f awslambda.Function, from string) {
	if from == "" {
		return
	}

	// An identity may have a configuration set by default, which is asked for too ("Actions,
	// resources, and condition keys for Amazon SES"); its name is not known here.
	var resources []*string
	for _, r := range [][2]string{{"identity", from},
		{"identity", from[strings.LastIndex(from, "@")+1:]},
		{"configuration-set", "*"}} {
		resources = append(resources, awscdk.Stack_Of(f).FormatArn(&awscdk.ArnComponents{
			Service:      jsii.String("ses"),
			Resource:     jsii.String(r[0]),
			ResourceName: jsii.String(r[1]),
		}))
	}

	allow(f, []string{"ses:SendRawEmail"}, resources...)
}

// grantSecretsKey lets one read secrets that are encrypted by a customer's own
// key, through Secrets Manager only ("Secret encryption and decryption in AWS Secrets Manager").
func grantSecretsKey(g grantee, arn string) {
	if arn == "" {
		return
	}
	via := "secretsmanager." + *awscdk.Stack_Of(g).Region() + "." + *awscdk.Stack_Of(g).UrlSuffix()
	g.GrantPrincipal().AddToPrincipalPolicy(awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{
		Actions:    jsii.Strings("kms:Decrypt"),
		Resources:  jsii.Strings(arn),
		Conditions: &map[string]any{"StringEquals": map[string]any{"kms:ViaService": via}},
	}))
}

// taskSecret are the ARNs of the secrets that tasks may name. Whoever may create secrets
// under that name decides what tasks can read.
func (a *App) taskSecret() *string { return secretsBelow(a.Stack, collection.TaskSecretPrefix) }

// grantRunner grants what runs of tasks may reach, of all archives together: files of runs, and secrets of tasks. A
// run in the function takes less of it, a container all. Neither can change a row or answer a state machine.
func (a *App) grantRunner(g grantee, p FunctionProps) {
	grantObjects(g, p.Data.Work, runner.Prefix+"*", get, put)
	allow(g, []string{"secretsmanager:GetSecretValue"}, a.taskSecret())
	grantSecretsKey(g, p.Settings.SecretsKey)
}

// grantMetrics lets a function count the system's own metrics. The action has no resources,
// so the namespace limits it.
func grantMetrics(f awslambda.Function) {
	f.AddToRolePolicy(awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{
		Actions: jsii.Strings(
			"cloudwatch:PutMetricData"),
		Resources:  jsii.Strings("*"),
		Conditions: &map[string]any{"StringEquals": map[string]any{"cloudwatch:namespace": cloudwatch.Namespace}},
	}))
}

// grantAlarms lets a function read which alarms are raised. They are asked for by what their names begin with, which is
// allowed on all of the account and region or not at all ("Actions, resources, and condition keys for Amazon
// CloudWatch").
func grantAlarms(f awslambda.Function) {
	allow(f, []string{"cloudwatch:DescribeAlarms"}, awscdk.Stack_Of(f).FormatArn(&awscdk.ArnComponents{
		Service: jsii.String("cloudwatch"), Resource: jsii.String("alarm"), ResourceName: jsii.String("*"),
		ArnFormat: awscdk.ArnFormat_COLON_RESOURCE_NAME}))
}

// grantRestores lets a function read how far restores of the table are, and what a restored table
// lacks. A new table may have any name, so each of the account and region may be described; nothing
// of its rows is read. Listing has no resources ("Actions, resources, and condition keys for Amazon
// DynamoDB").
func grantRestores(f awslambda.Function) {
	allow(f, []string{"dynamodb:ListTables"}, jsii.String("*"))
	tables := awscdk.Stack_Of(f).FormatArn(&awscdk.ArnComponents{Service: jsii.String("dynamodb"),
		Resource: jsii.String("table"), ResourceName: jsii.String("*")})
	allow(f, []string{"dynamodb:DescribeTable", "dynamodb:DescribeTimeToLive",
		"dynamodb:DescribeContinuousBackups"}, tables)
}

// grantEZID lets a function read the secret of EZID's user, if ARKs are registered there.
func grantEZID(g grantee, s Settings) {
	if s.EZID == "" {
		return
	}
	// Secrets Manager puts a hyphen and six characters behind the name.
	allow(g, []string{"secretsmanager:GetSecretValue"}, secretsBelow(g, collection.EZIDSecret+"-"))
	grantSecretsKey(g, s.SecretsKey)
}

// fetches reports whether a stage requests content from sources.
func (st *Stage) fetches() bool {
	return slices.Contains([]string{"unpack", "estimate", "download"}, st.Name)
}

// grantContent lets each stage do with content what its step does, and no more.
func (st *Stage) grantContent(d *Data) {
	f := st.Handler
	switch st.Name {
	case "unpack":
		grantObjects(f, d.Work, workspace.Batches+"*", get, put, remove)
	case "estimate", "download", "process":
		grantObjects(f, d.Work, workspace.Jobs+"*", get, put, remove)
		// Whose an object is, what it is called, and whether the job's version is stored already.
		grantObjects(f, d.Storage, "*", get)
	case "store":
		grantObjects(f, d.Work, workspace.Jobs+"*", get, put, remove)
		grantObjects(f, d.Storage, "*", get, put, remove)
	case "record":
		grantObjects(f, d.Storage, "*", get)
		// The system files are there together, so it need not read them one by one.
		grantObjects(f, d.Work, workspace.Jobs+"*", get)
	case "notify":
		grantObjects(f, d.Work, workspace.Jobs+"*", remove)
		read := []string{"secretsmanager:GetSecretValue"}
		allow(f, read, secretsBelow(f, collection.SecretPrefix))
		deny(f, read, secretsBelow(f, collection.TaskSecretPrefix))
		deny(f, read, secretsBelow(f, collection.SourceSecretPrefix))
		deny(f, read, secretsBelow(f, collection.EZIDSecret))
	case "report":
		grantObjects(f, d.Work, workspace.Batches+"*", get, put) // its pages under way
		grantObjects(f, d.Work, workspace.Reports+"*", get, put) // also for the mail
		grantObjects(f, d.Storage, "*", get)                     // the files of each object
	}
}
