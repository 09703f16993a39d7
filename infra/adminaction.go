package main

import (
	"fmt"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsstepfunctions"
	"github.com/aws/jsii-runtime-go"

	"archivist/pkg/app/boot"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
)

// newAdmin makes the state machine by which persons act in the AWS console, and by which the
// system does bulk operations, with its function. Who may start executions of it is an
// administrator of the archive.
func (a *App) newAdmin(p FunctionProps, timing ingest.Timing) {
	p = p.with(map[string]*string{boot.EnvSearch: jsii.String(p.Settings.SearchDomain)})
	// The doctor compares the search index with the objects; it is kept in memory.
	p.Code, p.Timeout, p.Memory = "admin-action", timing.Admin().Timeout, 1024
	a.Admin = newFunction(a.Stack, "admin", p)
	props := machineProps(queue.MachineAdmin, timing,
		map[string]*string{"admin": a.Admin.FunctionName()})
	props.StateMachineName = a.adminName()
	m := awsstepfunctions.NewStateMachine(a.Stack, jsii.String(queue.MachineAdmin), props)
	m.AddToRolePolicy(awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{
		Actions:   jsii.Strings("lambda:InvokeFunction"),
		Resources: &[]*string{a.Admin.FunctionArn()}}))

	a.Machines[queue.MachineAdmin] = m
	a.grantAdmin(p)

	// The page has the button "Start execution", and the definition with its comment, which
	// shows examples of the input.
	url := fmt.Sprintf("https://%[1]s.console.aws.amazon.com/states/home?region=%[1]s#/statemachines/view/%[2]s",
		*a.Stack.Region(), *m.StateMachineArn())
	for name, v := range map[string]*string{"adminMachine": m.StateMachineArn(),
		"adminConsole": &url} {
		awscdk.NewCfnOutput(a.Stack, jsii.String(name), &awscdk.CfnOutputProps{Value: v})
	}
}
