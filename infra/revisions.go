package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambdadestinations"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsstepfunctions"
	"github.com/aws/jsii-runtime-go"

	"archivist/infra/toolchain"
	"archivist/pkg/app/boot"
	"archivist/pkg/ingest"
	"archivist/pkg/revisions/revision"
	"archivist/pkg/revisions/runner"
)

// attemptRows are the rows that the beginning and the end of an attempt change, by the beginning
// of their partition key, and revisionRows those that the manager of the revision queue changes.
var (
	attemptRows = []string{"ARCHIVE#*", "REVISION#*", "TASK#*", "TASKNAMES#*", "TASKLIVE#*",
		"TASKTIMED#*",
		"TASKLOCK#*", "TASKLINE#*"}

	revisionRows = append([]string{"WORKFLOW#*", "TASKCANCEL#*", "LEASE#archive-*"}, attemptRows...)
)

// repositoryDisk is the scratch space of a function that reads repositories, in MB: they stay
// there between calls.
const repositoryDisk = 8192

// newRevisions makes the functions of the revision queue and the state machine that runs
// tasks, and returns what the API needs of them. The runner is bare: it gets the name of the
// work bucket and nothing else, since its tasks can read its environment if the shield
// against that should fail.
func (a *App) newRevisions(p FunctionProps, timing ingest.Timing) (env map[string]*string) {
	if !p.Settings.Revisions {
		return map[string]*string{}
	}

	r := &Revisions{}
	a.Revisions = r
	r.Manager = a.newManager(p, timing)
	env = map[string]*string{boot.EnvRevisions: r.Manager.FunctionName()}
	a.Consumer.AddEnvironment(jsii.String(boot.EnvRevisions), r.Manager.FunctionName(), nil)
	control := p.with(env)
	control.Code, control.Timeout, control.Memory = "task-control", revision.ControlTime, 1024
	control.Disk = repositoryDisk
	r.Control = newFunction(a.Stack, "task-control", control)
	run := FunctionProps{Settings: p.Settings, Data: p.Data, Bare: true}
	run.Code, run.Timeout, run.Memory, run.Disk = "task-runner", revision.RunnerTime, 2048, 10240
	run.Tenants, run.Programs = !p.Settings.Local, !p.Settings.Local
	r.Runner = newFunction(a.Stack, "task-runner", run)
	a.addPrograms(p.Settings)
	router := FunctionProps{Settings: p.Settings, Data: p.Data, Bare: true}
	router.Code, router.Timeout, router.Memory = "task-router", revision.RunnerTime, 128
	r.Router = newFunction(a.Stack, "task-router", router)
	r.Router.AddEnvironment(jsii.String(boot.EnvRunner), r.Runner.FunctionName(), nil)
	r.Run = awsiam.NewRole(a.Stack, jsii.String("task"), &awsiam.RoleProps{AssumedBy: r.Router.Role(),
		Description: jsii.String("What runs of tasks may reach; each takes less of it")})
	r.Router.AddEnvironment(jsii.String(boot.EnvTaskRole), r.Run.RoleArn(), nil)
	if !p.Settings.Local { // emulators share the folder of the machine, and know no tenants
		r.Runner.AddEnvironment(jsii.String(boot.EnvOwnTemp), jsii.String("true"), nil)
		r.Router.AddEnvironment(jsii.String(boot.EnvTenants), jsii.String("true"), nil)
	}
	a.newTaskMachine(timing)
	a.grantRevisions(p)
	a.newContainers(p)
	return env
}

// addPrograms gives the runner the layer of programs for tasks. Emulators run it with those of this
// machine.
func (a *App) addPrograms(s Settings) {
	if s.Local || s.NoPrograms {
		return
	}

	a.Revisions.Runner.AddLayers(awslambda.NewLayerVersion(a.Stack, jsii.String("task-programs"),
		&awslambda.LayerVersionProps{
			Code:                    awslambda.Code_FromAsset(jsii.String(s.dist(toolchain.TaskPrograms)), nil),
			CompatibleArchitectures: &[]awslambda.Architecture{awslambda.Architecture_X86_64()},
			CompatibleRuntimes:      &[]awslambda.Runtime{awslambda.Runtime_PROVIDED_AL2023()},
			Description:             jsii.String("Git, Python, jq and other programs, for tasks of archives"),
		}))
}

// newManager makes the function that manages the revision queue. Each archive has an
// invocation of its own. The minute's rule finds the archives that a lost wake-up was for.
func (a *App) newManager(p FunctionProps, timing ingest.Timing) awslambda.Function {
	p.Code, p.Timeout, p.Memory, p.Disk = "revisions", timing.Research().Timeout, 1024,
		repositoryDisk
	p.WakesItself = true // when there is more to do than fits into an invocation
	f := newFunction(a.Stack, "revisions", p)
	f.ConfigureAsyncInvoke(&awslambda.EventInvokeConfigOptions{
		OnFailure:     awslambdadestinations.NewSqsDestination(a.WakeDead),
		RetryAttempts: jsii.Number(2),
		MaxEventAge:   minutes(15),
	})

	a.EachMinute.AddTarget(a.target(f))
	a.wakesItself("RevisionsWakesItself", f)
	return f
}

// newTaskMachine makes the state machine that runs an attempt. It may call the two functions,
// and the containers if there are any.
func (a *App) newTaskMachine(timing ingest.Timing) {
	r := a.Revisions
	props := machineProps(runner.Machine, timing,
		map[string]*string{taskControlPlaceholder: r.Control.FunctionName(),
			taskRunnerPlaceholder: r.Router.FunctionName()})

	props.StateMachineName = a.taskName()
	r.Machine = awsstepfunctions.NewStateMachine(a.Stack, jsii.String(runner.Machine), props)
	r.Machine.AddToRolePolicy(awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{
		Actions: jsii.Strings("lambda:InvokeFunction"),
		Resources: &[]*string{r.Control.FunctionArn(),
			r.Router.FunctionArn()}}))

	// By a rule of its own, Step Functions knows when containers have ended. It makes no state
	// machine that could run one without the permission, also if there is none to run ("Run
	// Amazon ECS or Fargate tasks with Step Functions").
	allow(r.Machine, []string{"events:PutTargets", "events:PutRule", "events:DescribeRule"},
		a.Stack.FormatArn(&awscdk.ArnComponents{
			Service:      jsii.String("events"),
			Resource:     jsii.String("rule"),
			ResourceName: jsii.String("StepFunctionsGetEventsForECSTaskRule"),
		}))

	a.Machines[runner.Machine] = r.Machine
}

// grantRevisions lets the functions do what they do. The manager plans and starts, the
// control function packs files and records; neither runs what is in archives.
func (a *App) grantRevisions(p FunctionProps) {
	r := a.Revisions
	runs := runner.Prefix + "*"
	secret := a.taskSecret()
	for _, f := range []awslambda.Function{r.Manager, r.Control} {
		grantObjects(f, p.Data.Storage, "*", get) // objects are archives, too
		allow(f, []string{"secretsmanager:GetSecretValue"}, secret)
		grantSecretsKey(f, p.Settings.SecretsKey)
		grantMetrics(f)
	}

	grantRows(r.Manager, p.Data, revisionRows)
	grantRows(r.Control, p.Data, attemptRows)
	grantSearch(r.Manager, p.Data, "work")
	grantSearch(r.Control, p.Data) // whether an attempt that failed is superseded already
	grantObjects(r.Manager, p.Data.Work, runs, put)
	// What ended long ago is an object.
	grantObjects(r.Manager, p.Data.Events, revision.BucketPrefix+"*", get, put)
	grantObjects(r.Control, p.Data.Work, runs, get, put)
	allow(r.Control, []string{"lambda:InvokeFunction"}, r.Manager.FunctionArn())
	// Versions of objects are notified by a consumer.
	allow(a.Consumer, []string{"lambda:InvokeFunction"}, r.Manager.FunctionArn())
	allow(r.Manager, []string{"states:StartExecution"}, a.taskMachine())
	execution := a.Stack.FormatArn(&awscdk.ArnComponents{
		Service:      jsii.String("states"),
		Resource:     jsii.String("execution"),
		ResourceName: jsii.String(*a.taskName() + ":*"),
		ArnFormat:    awscdk.ArnFormat_COLON_RESOURCE_NAME,
	})

	allow(r.Manager, []string{"states:StopExecution"}, execution)

	allow(r.Router, []string{"lambda:InvokeFunction"}, r.Runner.FunctionArn())
	allow(r.Router, []string{"sts:AssumeRole"}, r.Run.RoleArn())
	a.grantRunner(r.Run, p)
}

// grantRevisionsAPI lets the API show what runs have left, tell one to end, and preview what a
// revision would plan.
func (a *App) grantRevisionsAPI(p FunctionProps) {
	if a.Revisions == nil {
		return
	}
	grantObjects(a.API, p.Data.Work, runner.Prefix+"*", get)
	allow(a.API, []string{"s3:PutObject"},
		p.Data.Work.ArnForObjects(jsii.String(runner.Prefix+"*/"+runner.CancelKey)))
	allow(a.API, []string{"lambda:InvokeFunction"}, a.Revisions.Manager.FunctionArn())
}
