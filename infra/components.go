package main

import (
	"slices"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsstepfunctions"
	"github.com/aws/jsii-runtime-go"

	"archivist/pkg/components/component"
	"archivist/pkg/ingest"
	"archivist/pkg/objects/formats"
	"archivist/pkg/objects/replica"
)

// newComponents makes the state machine by which components run, with the function that does
// their work. Components that ship run in that function, too.
func (a *App) newComponents(p FunctionProps, timing ingest.Timing) {
	p.Code, p.Timeout, p.Memory = "run-component", component.FunctionTime, 1024
	a.Component = newFunction(a.Stack, "component", p)
	props := machineProps(component.Machine, timing,
		map[string]*string{componentPlaceholder: a.Component.FunctionName()})
	props.StateMachineName = a.runName()
	m := awsstepfunctions.NewStateMachine(a.Stack, jsii.String(component.Machine), props)
	m.AddToRolePolicy(awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{
		Actions:   jsii.Strings("lambda:InvokeFunction"),
		Resources: &[]*string{a.Component.FunctionArn()}}))

	a.grantTasks(m, p.Settings)
	a.Machines[component.Machine] = m
	a.grantComponents(p)
}

// grantTasks lets the state machine run the containers that the settings name ("Run Amazon
// ECS or Fargate tasks with Step Functions"). A container answers with a role of its own. To
// run a task is to pass its roles, which is limited to ECS.
func (a *App) grantTasks(m awsstepfunctions.StateMachine, s Settings) {
	tasks, roles := s.taskARNs()
	if len(tasks) > 0 {
		m.AddToRolePolicy(awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{
			Actions: jsii.Strings("ecs:RunTask"), Resources: jsii.Strings(tasks...)}))
	}

	if len(roles) > 0 {
		m.AddToRolePolicy(awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{
			Actions:   jsii.Strings("iam:PassRole"),
			Resources: jsii.Strings(roles...),
			Conditions: &map[string]any{"StringEquals": map[string]any{
				"iam:PassedToService": "ecs-tasks.amazonaws.com"}},
		}))
	}
}

// grantComponents lets the function of component-run do what the components that ship do, start the
// next run, and call the functions that the settings name.
func (a *App) grantComponents(p FunctionProps) {
	f := a.Component
	grantRows(f, p.Data, nil)
	grantSearch(f, p.Data)
	grantBatches(f, p.Data) // it compares rows of a line, of which nothing could be done, with their items
	a.grantRuns(f)
	grantObjects(f, p.Data.Storage, "*", get)
	grantObjects(f, p.Data.Derived, formats.Folder+"*", put)
	a.grantReplica(f, p)
	functions, _ := p.Settings.targetARNs(*a.Stack.Region())
	if len(functions) > 0 {
		allow(f, []string{"lambda:InvokeFunction"}, *jsii.Strings(functions...)...)
	}

	grantMetrics(f)
}

// grantReplica lets a function copy objects to the second bucket, and repair files from
// there. The owner of that bucket permits it too, if that is another account. It may not
// delete versions: neither bucket allows that, if both are as ours.
func (a *App) grantReplica(f awslambda.Function, p FunctionProps) {
	if p.Settings.ReplicaBucket == "" {
		return
	}

	second := a.Stack.FormatArn(&awscdk.ArnComponents{
		Service:  jsii.String("s3"),
		Region:   jsii.String(""),
		Account:  jsii.String(""),
		Resource: jsii.String(p.Settings.ReplicaBucket),
	})

	allow(f, slices.Concat(get, put, remove), jsii.String(*second+"/*"))
	allow(f, []string{"s3:ListBucket"}, second)
	grantObjects(f, p.Data.Storage, "*", put)
	grantObjects(f, p.Data.Work, replica.Notes+"*", get, put, remove)
	grantObjects(f, p.Data.Work, replica.Quarantine+"*", put)
}
