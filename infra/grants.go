package main

import (
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/jsii-runtime-go"

	"archivist/pkg/boot"
	"archivist/pkg/collection"
	"archivist/pkg/queue"
)

// grantStage gives a stage's function its rows, its content, and the wake-ups that
// its changes owe.
func (a *App) grantStage(st *Stage, p FunctionProps) {
	p.Data.Table.GrantReadWriteData(st.Handler)
	st.grantContent(p.Data)
	if st.Batch != "" { // its changes owe mails
		grantMail(st.Handler, p.Settings.MailFrom)
	}
	if st.Name == "notify" {
		grantSecretsKey(st.Handler, p.Settings.SecretsKey)
	}
	grantMetrics(st.Handler)
	a.Wake.GrantSendMessages(st.Handler)
	a.Machines[queue.MachineBatch].GrantTaskResponse(st.Handler)
	a.Machines[queue.MachineJob].GrantTaskResponse(st.Handler)
	a.Machines[queue.MachineBatch].GrantStartExecution(st.Handler) // the last job to close starts the report
}

// grantClock gives the clock's function what it does for others.
func (a *App) grantClock(p FunctionProps) {
	p.Data.Table.GrantReadWriteData(a.Clock)
	a.Wake.GrantSendMessages(a.Clock)
	p.Data.Work.GrantRead(a.Clock, jsii.String("jobs/*")) // the work files of jobs that failed long ago
	p.Data.Work.GrantDelete(a.Clock, jsii.String("jobs/*"))
	p.Data.Storage.GrantRead(a.Clock, nil)                   // whether a version of such a job is committed
	p.Data.Work.GrantRead(a.Clock, jsii.String("reports/*")) // for mails that are sent again
	grantMail(a.Clock, p.Settings.MailFrom)
	grantMetrics(a.Clock)
	for _, m := range a.Machines {
		m.GrantStartExecution(a.Clock)
		m.GrantExecution(a.Clock, jsii.String("states:StopExecution"), jsii.String("states:DescribeExecution"), jsii.String("states:GetExecutionHistory"))
	}
}

// grantAPI gives the API's function what its routes do.
func (a *App) grantAPI(p FunctionProps) {
	p.Data.Table.GrantReadWriteData(a.API)
	p.Data.Storage.GrantRead(a.API, nil)
	p.Data.Work.GrantRead(a.API, jsii.String("reports/*"))
	p.Data.Work.GrantRead(a.API, jsii.String("jobs/*")) // what a job at Storing has prepared
	a.Wake.GrantSendMessages(a.API)
	grantMetrics(a.API)
	for _, m := range a.Machines {
		m.GrantStartExecution(a.API)
		m.GrantExecution(a.API, jsii.String("states:StopExecution"))
	}
}

// grantMail lets a function send mails from an address, which SES has verified
// itself or by its domain.
func grantMail(f awslambda.Function, from string) {
	if from == "" {
		return
	}
	// An identity may have a configuration set by default, which is asked for too ("Actions,
	// resources, and condition keys for Amazon SES"); its name is not known here.
	var resources []*string
	for _, r := range [][2]string{{"identity", from}, {"identity", from[strings.LastIndex(from, "@")+1:]}, {"configuration-set", "*"}} {
		resources = append(resources, awscdk.Stack_Of(f).FormatArn(&awscdk.ArnComponents{Service: jsii.String("ses"), Resource: jsii.String(r[0]), ResourceName: jsii.String(r[1])}))
	}
	f.AddToRolePolicy(awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{Actions: jsii.Strings("ses:SendRawEmail"), Resources: &resources}))
}

// grantSecretsKey lets a function read secrets that are encrypted by a customer's own
// key, through Secrets Manager only ("Secret encryption and decryption in AWS Secrets Manager").
func grantSecretsKey(f awslambda.Function, arn string) {
	if arn == "" {
		return
	}
	via := "secretsmanager." + *awscdk.Stack_Of(f).Region() + "." + *awscdk.Stack_Of(f).UrlSuffix()
	f.AddToRolePolicy(awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{Actions: jsii.Strings("kms:Decrypt"), Resources: jsii.Strings(arn),
		Conditions: &map[string]any{"StringEquals": map[string]any{"kms:ViaService": via}}}))
}

// grantMetrics lets a function count the system's own metrics.
func grantMetrics(f awslambda.Function) {
	f.AddToRolePolicy(awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{Actions: jsii.Strings("cloudwatch:PutMetricData"), Resources: jsii.Strings("*"),
		Conditions: &map[string]any{"StringEquals": map[string]any{"cloudwatch:namespace": boot.Namespace}}}))
}

// grantContent gives each stage what its step does with content, and no more.
func (st *Stage) grantContent(d *Data) {
	switch st.Name {
	case "unpack":
		d.Work.GrantReadWrite(st.Handler, jsii.String("batches/*"))
	case "download":
		d.Work.GrantReadWrite(st.Handler, jsii.String("jobs/*"))
	case "estimate", "process":
		d.Work.GrantReadWrite(st.Handler, jsii.String("jobs/*"))
		d.Storage.GrantRead(st.Handler, nil) // whose an object is, and what it is called
	case "store":
		d.Work.GrantReadWrite(st.Handler, jsii.String("jobs/*"))
		d.Storage.GrantReadWrite(st.Handler, nil)
	case "record":
		d.Storage.GrantRead(st.Handler, nil)
	case "notify":
		d.Work.GrantRead(st.Handler, jsii.String("jobs/*"))
		d.Work.GrantDelete(st.Handler, jsii.String("jobs/*"))
		st.Handler.AddToRolePolicy(awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{Actions: jsii.Strings("secretsmanager:GetSecretValue"),
			Resources: &[]*string{awscdk.Stack_Of(st.Handler).FormatArn(&awscdk.ArnComponents{Service: jsii.String("secretsmanager"), Resource: jsii.String("secret"),
				ResourceName: jsii.String(collection.SecretPrefix + "*"), ArnFormat: awscdk.ArnFormat_COLON_RESOURCE_NAME})}}))
	case "report":
		d.Work.GrantRead(st.Handler, jsii.String("batches/*")) // its pages under way
		d.Work.GrantPut(st.Handler, jsii.String("batches/*"))
		d.Work.GrantRead(st.Handler, jsii.String("reports/*")) // for the mail
		d.Work.GrantPut(st.Handler, jsii.String("reports/*"))
		d.Storage.GrantRead(st.Handler, nil) // the files of each object
	}
}
