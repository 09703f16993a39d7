package main

import (
	"maps"
	"strings"
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsapigateway"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsevents"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambdaeventsources"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsstepfunctions"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"archivist/pkg/app/boot"
	"archivist/pkg/components/component"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
)

// AppProps of the app stack. Data may be of another table: see Data.On.
type AppProps struct {
	Settings Settings
	Data     *Data
}

// NewApp makes the app stack.
//
// The order follows from what refers to what: queues, then machines, then functions with the
// names of both, then the API, whose function knows most of the others. Where that would be a
// cycle, a name is fixed beforehand (adminMachine, runMachine, taskMachine).
func NewApp(scope constructs.Construct, id string, p AppProps) *App {
	a := &App{Stack: awscdk.NewStack(scope, jsii.String(id), &awscdk.StackProps{
		Description:           jsii.String("Archivist: queues, functions, state machines, API"),
		TerminationProtection: jsii.Bool(!p.Settings.Local)}),
		Machines: map[string]awsstepfunctions.StateMachine{}}

	p.Data = p.Data.On(a.Stack, p.Settings)
	a.Data = p.Data

	timing := ingest.Timings[p.Settings.Timing]
	a.Dead = newDead(a.Stack, p.Settings, "dead", timing.Times(ingest.Stages[0]))
	for _, st := range ingest.Stages {
		a.Stages = append(a.Stages, newQueue(a.Stack, p.Settings, st, timing.Times(st), a.Dead))
	}

	for _, name := range []string{queue.MachineJob, queue.MachineBatch} {
		a.Machines[name] = newMachine(a.Stack, name, timing, a.Stages)
	}

	a.newWake(p.Settings, timing)

	base := FunctionProps{
		Settings: p.Settings,
		Data:     p.Data,
		Env: map[string]*string{
			boot.EnvWake:         a.Wake.QueueUrl(),
			boot.EnvJobMachine:   a.Machines[queue.MachineJob].StateMachineArn(),
			boot.EnvBatchMachine: a.Machines[queue.MachineBatch].StateMachineArn(),
			boot.EnvAdminMachine: a.adminMachine(), boot.EnvRunMachine: a.runMachine()},
	}

	if p.Settings.Revisions {
		base.Env[boot.EnvTaskMachine] = a.taskMachine()
	}

	if p.Settings.ReplicaBucket != "" { // the scheduler installs the component that copies to it
		base.Env[boot.EnvReplica] = jsii.String(p.Settings.ReplicaBucket)
		base.Env[boot.EnvReplicaRegion] = jsii.String(p.Settings.ReplicaRegion)
	}

	if p.Settings.EZID != "" {
		base.Env[boot.EnvEZID] = jsii.String(p.Settings.EZID)
		base.Env[boot.EnvEZIDTarget] = jsii.String(p.Settings.EZIDTarget)
	}

	if p.Settings.Scanner != "" {
		base.Env[boot.EnvScanner] = jsii.String(p.Settings.Scanner)
	}

	a.newAdmin(base, timing)
	a.newComponents(base, timing)
	for _, st := range a.Stages {
		st.newHandler(a.Stack, base, timing.Times(st.Stage))
		a.grantStage(st, base)
	}

	a.newEvents(base, timing)
	a.newScheduler(base, timing)
	env := a.newResearch(base, timing)
	maps.Copy(env, a.newRevisions(base, timing))
	env[boot.EnvSearch] = jsii.String(p.Settings.SearchDomain)
	if p.Settings.Resolver || p.Settings.Local {
		env[boot.EnvResolver] = jsii.String("public")
	}
	maps.Copy(env, set(map[string]string{boot.EnvSources: strings.Join(p.Settings.Sources, ","),
		boot.EnvOrigins: strings.Join(p.Settings.Origins, ",")}))
	env[boot.EnvAlarms] = jsii.String(*a.Stack.StackName() + "-") // as CloudFormation names them
	is := p.Settings.Issuer
	if p.Data.Issuer != nil {
		is = *p.Data.Issuer
	}
	maps.Copy(env, is.signingIn())
	a.newAPI(base.with(env), is)

	a.newAlarms(p.Settings)
	if !p.Settings.Local {
		a.newDashboard()
	}

	a.outputs(p.Data)
	return a
}

// newWake makes the queue whose messages ask the scheduler to look at the gates. Its dead
// letters are also those of functions that are invoked asynchronously.
func (a *App) newWake(s Settings, timing ingest.Timing) {
	t := timing.Wake()
	a.WakeDead = newDead(a.Stack, s, "wake-dead", t)
	a.Wake = fed(a.Stack, s, "wake", t, a.WakeDead)
}

// Reserved concurrency, where the settings ask for it. The scheduler runs the minute's tick,
// one or two wake-ups and an execution that was stopped; the API answers calls of half a
// second at the rate that the stage admits. Lambda keeps 100 unreserved in an account
// ("Configuring reserved concurrency for a function"), and a new account has 10 in all, so
// reserving is a choice.
const (
	schedulerReserve = 4
	apiReserve       = 25
)

// newScheduler makes the scheduler's function, its rule, and what else wakes it. Two wake-ups
// at a time are the least that Lambda takes; only one tick runs anyway.
func (a *App) newScheduler(p FunctionProps, timing ingest.Timing) {
	p.Code, p.Timeout, p.Memory = "scheduler", timing.Scheduler, 512
	p.Reserve, p.WakesItself = schedulerReserve, true // what it frees, others may take
	p = p.with(map[string]*string{boot.EnvQueue: a.Wake.QueueUrl()})
	a.Scheduler = newFunction(a.Stack, "scheduler", p)
	a.grantScheduler(p)
	wake := &awslambdaeventsources.SqsEventSourceProps{
		BatchSize:               jsii.Number(10),
		ReportBatchItemFailures: jsii.Bool(true),
		MaxConcurrency:          jsii.Number(2),
	}

	a.Scheduler.AddEventSource(awslambdaeventsources.NewSqsEventSource(a.Wake, wake))
	// One rule: when it is off, the alarm on the scheduler's silence tells for both.
	a.EachMinute = awsevents.NewRule(a.Stack, jsii.String("EachMinute"), &awsevents.RuleProps{
		Schedule: awsevents.Schedule_Rate(minutes(1)),
		Targets:  &[]awsevents.IRuleTarget{a.target(a.Scheduler), a.target(a.Relay)}})

	aborted := map[string]any{"status": []string{"ABORTED"},
		"stateMachineArn": []*string{a.Machines[queue.MachineJob].StateMachineArn()}}
	awsevents.NewRule(a.Stack, jsii.String("Stopped"), &awsevents.RuleProps{
		Targets: &[]awsevents.IRuleTarget{a.target(a.Scheduler)},
		EventPattern: &awsevents.EventPattern{
			Source:     jsii.Strings("aws.states"),
			DetailType: jsii.Strings("Step Functions Execution Status Change"),
			Detail:     &aborted,
		}})
}

// apiStage is the name of the API's only stage, and its path.
const apiStage = "prod"

// The rate of calls per second that the stage admits, and how many can come at once.
const (
	apiRate  = 50
	apiBurst = 100
)

// newAPI makes the REST API in front of its function. On AWS every call of a route of the
// archive needs a token.
func (a *App) newAPI(p FunctionProps, is Issuer) {
	p.Reserve = apiReserve
	// The inventory of very many files is read within the 29 s that a gateway waits.
	p.Code, p.Timeout, p.Memory = "api", 29*time.Second, 1024
	a.API = newFunction(a.Stack, "api", p)
	a.grantAPI(p)
	a.grantResearchAPI()
	a.grantRevisionsAPI(p)

	logs := newLog(a.Stack, "AccessLog", p.Settings)
	// An account without a role for the logs of its APIs refuses a stage that has one ("Set up
	// CloudWatch logging for REST APIs in API Gateway"). The role is the account's, for all of its
	// APIs in the region, so it stays when the stack goes; the stage depends on it.
	role := !p.Settings.Local && !p.Settings.LogRoleExists
	signIn := is.Client != ""
	rest := awsapigateway.NewLambdaRestApi(a.Stack, jsii.String("Api"),
		&awsapigateway.LambdaRestApiProps{
			// Not every partition has edge-optimized endpoints, which are the default ("API
			// endpoint types for REST APIs in API Gateway").
			EndpointTypes: &[]awsapigateway.EndpointType{awsapigateway.EndpointType_REGIONAL},
			// Answers of any kind may be bytes: the page's script is compressed.
			BinaryMediaTypes:            jsii.Strings("*/*"),
			Handler:                     a.API,
			Proxy:                       jsii.Bool(false),
			RestApiName:                 a.Stack.StackName(),
			CloudWatchRole:              jsii.Bool(role),
			CloudWatchRoleRemovalPolicy: keptIf(role),
			DefaultMethodOptions:        methods(a.newAuthorizer(p.Settings, is)),
			DeployOptions: &awsapigateway.StageOptions{
				StageName:            jsii.String(apiStage),
				TracingEnabled:       jsii.Bool(true),
				ThrottlingRateLimit:  jsii.Number(apiRate),
				ThrottlingBurstLimit: jsii.Number(apiBurst),
				MethodOptions:        openRates(p.Settings, signIn),
				AccessLogDestination: awsapigateway.NewLogGroupLogDestination(logs),
				AccessLogFormat:      awsapigateway.AccessLogFormat_JsonWithStandardFields(nil),
			},
		})

	a.Rest = rest
	routes(rest, p.Settings, signIn)
	problems(rest, p.Settings)
	a.newConsole(rest, is)
	if !p.Settings.Local { // an emulator has the API elsewhere
		for _, f := range a.mailers() {
			f.AddEnvironment(jsii.String(boot.EnvAPI), rest.Url(), nil)
		}
	}

	awscdk.NewCfnOutput(a.Stack, jsii.String("apiId"),
		&awscdk.CfnOutputProps{Value: rest.RestApiId()})
	awscdk.NewCfnOutput(a.Stack, jsii.String("apiUrl"), &awscdk.CfnOutputProps{Value: rest.Url()})
}

// keptIf is the removal policy of a resource that stays when its stack is deleted, if it is
// there. "" is the policy of the CDK.
func keptIf(there bool) awscdk.RemovalPolicy {
	if there {
		return awscdk.RemovalPolicy_RETAIN
	}
	return ""
}

// mailers are the functions that send mails. The URL of the API stands in their mails.
func (a *App) mailers() []awslambda.Function {
	out := []awslambda.Function{a.Scheduler}
	for _, st := range a.Stages {
		if st.Batch != "" {
			out = append(out, st.Handler)
		}
	}
	return out
}

// outputs names the resources that tests, the command line and people need. Their names are
// fixed: programs read them.
func (a *App) outputs(d *Data) {
	for name, v := range map[string]*string{"tableName": d.Table.TableName(),
		"storageBucket": d.Storage.BucketName(),
		"workBucket":    d.Work.BucketName(), "eventsBucket": d.Events.BucketName(),
		"derivedBucket":     d.Derived.BucketName(),
		"jobMachine":        a.Machines[queue.MachineJob].StateMachineArn(),
		"batchMachine":      a.Machines[queue.MachineBatch].StateMachineArn(),
		"schedulerFunction": a.Scheduler.FunctionName(), "relayFunction": a.Relay.FunctionName(),
		"consumerFunction": a.Consumer.FunctionName(), "bus": a.Bus.EventBusName(),
		"componentFunction": a.Component.FunctionName(),
		"componentMachine":  a.Machines[component.Machine].StateMachineArn()} {
		awscdk.NewCfnOutput(a.Stack, jsii.String(name), &awscdk.CfnOutputProps{Value: v})
	}

	for _, st := range a.Stages {
		awscdk.NewCfnOutput(a.Stack, jsii.String("queue"+st.Name),
			&awscdk.CfnOutputProps{Value: st.Queue.QueueUrl()})
	}

	if r := a.Revisions; r != nil {
		awscdk.NewCfnOutput(a.Stack, jsii.String("revisionsFunction"),
			&awscdk.CfnOutputProps{Value: r.Manager.FunctionName()})
		awscdk.NewCfnOutput(a.Stack, jsii.String("taskMachine"),
			&awscdk.CfnOutputProps{Value: r.Machine.StateMachineArn()})
	}
}
