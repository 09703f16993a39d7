package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambdadestinations"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambdaeventsources"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/jsii-runtime-go"

	"archivist/pkg/app/boot"
	"archivist/pkg/ingest"
	"archivist/pkg/research"
	"archivist/pkg/research/feed"
)

// These bound the projects of a deployment, and the characters of all their names: the
// environment of a function, of 4 KB, has the URLs of their queues, and what keys of the API are
// for ("Lambda quotas").
const (
	mostProjects = 10
	mostNames    = 300
)

// readResearch reads the names of the projects of research, separated by commas, and their
// times. The times are checked by the code that uses them.
func (s *Settings) readResearch(names, times string) (wrong []error) {
	for name := range strings.SplitSeq(names, ",") {
		name = strings.TrimSpace(name)
		switch {
		case name == "":
		case !research.Names.MatchString(name):
			wrong = append(wrong,
				fmt.Errorf("researchProjects: found %q; expected names of lower-case letters, "+
					"digits and hyphens, at most 40, separated by commas", name))
		case slices.Contains(s.Projects, name):
			wrong = append(wrong, fmt.Errorf("researchProjects: found %q twice", name))
		default:
			s.Projects = append(s.Projects, name)
		}
	}

	if len(s.Projects) > mostProjects {
		wrong = append(wrong,
			fmt.Errorf("researchProjects: found %d; a deployment can have %d", len(s.Projects),
				mostProjects))
	}

	if n := len(strings.Join(s.Projects, "")); n > mostNames {
		wrong = append(wrong,
			fmt.Errorf("researchProjects: the names have %d characters; together they can have %d",
				n,
				mostNames))
	}

	t, err := researchTimes(times)
	if err != nil {
		wrong = append(wrong, fmt.Errorf("researchTimes: %w", err))
	}

	s.Times, s.TimesText = t, times
	return wrong
}

// researchTimes reads the times of research, which are returned beside an error, too.
func researchTimes(text string) (research.Times, error) {
	t, err := boot.ParseResearchTimes(text)
	if err != nil {
		return t, err
	}
	if t.Queue > longestQueue {
		return t, fmt.Errorf("queue is %s; SQS keeps a message for at most %s", t.Queue, longestQueue)
	}
	return t, nil
}

// longestQueue is the longest time for which SQS keeps a message ("SetQueueAttributes").
const longestQueue = 14 * 24 * time.Hour

// pendingVisibility is for how long a work item is hidden that a researcher has received and not
// accepted.
const pendingVisibility = time.Minute

// Of the event sources. Each report changes the row of its episode, and each new clip that of its
// project: more at once would only meet each other.
const (
	researchBatch      = 10
	researchConcurrent = 5
)

// newResearch makes the queues and the functions of research, if there is a project, and
// returns what the API needs of them. A queue of pending work has no dead letters: a message
// that expires there is no loss, since the work item is a row.
func (a *App) newResearch(p FunctionProps, timing ingest.Timing) (env map[string]*string) {
	s := p.Settings
	if len(s.Projects) == 0 {
		return map[string]*string{}
	}

	times := timing.Research()
	curated := times
	curated.Timeout, curated.Visibility = feed.Function, feed.Function+timing.Return
	r := &Research{Dead: newDead(a.Stack, s, "research-dead", times)}
	r.Episodes = a.named("curated-episodes", fedProps(s, curated, r.Dead))
	r.Clips = a.named("curated-clips", fedProps(s, curated, r.Dead))
	r.Completed = a.named("completed-work", fedProps(s, times, r.Dead))
	var queues []string
	for _, name := range s.Projects {
		q := a.named("pending-work-"+name, &awssqs.QueueProps{
			RetentionPeriod:   seconds(s.Times.Queue),
			VisibilityTimeout: seconds(pendingVisibility),
			Encryption:        awssqs.QueueEncryption_SQS_MANAGED,
			EnforceSSL:        s.tlsOnly(),
		})
		r.Pending = append(r.Pending, q)
		queues = append(queues, name+"="+*q.QueueUrl())
	}

	a.Research = r
	env = map[string]*string{boot.EnvResearchProjects: jsii.String(strings.Join(queues, ",")),
		boot.EnvResearchTimes: jsii.String(s.TimesText)}
	own := func() FunctionProps {
		return p.with(map[string]*string{boot.EnvResearchDead: r.Dead.QueueUrl()}).with(env)
	}

	a.newPendingWork(own(), times)
	env[boot.EnvPendingWork] = r.PendingWork.FunctionName()
	r.CompletedWork = a.newReader("completed-work", own(), times, r.Completed)
	r.Curation = a.newReader("curation", own(), curated, r.Episodes, r.Clips)
	a.EachMinute.AddTarget(a.target(r.PendingWork))
	a.EachMinute.AddTarget(a.target(r.Curation))
	a.grantResearch(p)
	a.researchOutputs(s)
	env[boot.EnvCompletedWork] = r.Completed.QueueUrl()
	return env
}

// named makes a queue with a name by which people know it: NAME behind that of the stack.
// Such a queue cannot be replaced by CloudFormation without being deleted first.
func (a *App) named(name string, p *awssqs.QueueProps) awssqs.Queue {
	p.QueueName = jsii.String(*a.Stack.StackName() + "-" + name)
	return awssqs.NewQueue(a.Stack, jsii.String(name+"-queue"), p)
}

// newPendingWork makes the function of the assigner. An invocation that
// fails is repeated twice; then it is a dead letter, and the minute's rule makes up for it.
func (a *App) newPendingWork(p FunctionProps, times ingest.Times) {
	p.Code, p.Timeout, p.Memory = "pending-work", times.Timeout, 512
	p.WakesItself = true // when there is more to do than fits into an invocation
	f := newFunction(a.Stack, "pending-work", p)
	f.ConfigureAsyncInvoke(&awslambda.EventInvokeConfigOptions{
		OnFailure:     awslambdadestinations.NewSqsDestination(a.WakeDead),
		RetryAttempts: jsii.Number(2),
		MaxEventAge:   minutes(15),
	})
	a.Research.PendingWork = f
}

// newReader makes a function that queues feed. Messages that it does not handle are delivered
// again one by one.
func (a *App) newReader(name string, p FunctionProps, t ingest.Times,
	from ...awssqs.Queue) awslambda.Function {
	p.Code, p.Timeout, p.Memory = name, t.Timeout, 512
	f := newFunction(a.Stack, name, p)
	for _, q := range from {
		f.AddEventSource(awslambdaeventsources.NewSqsEventSource(q,
			&awslambdaeventsources.SqsEventSourceProps{
				BatchSize:               jsii.Number(researchBatch),
				ReportBatchItemFailures: jsii.Bool(true),
				MaxConcurrency:          jsii.Number(researchConcurrent),
			}))
	}
	return f
}

// researchRows are the rows that research changes, by the beginning of their partition key.
var researchRows = []string{"RESEARCHPROJECT#*", "EPISODE#*", "CLIP#*", "CLIPS#*",
	"RESEARCHLEASE#*", "RESEARCHLINE#*", "RESEARCHCOUNTS#*", "RESEARCHOPINIONS#*"}

// grantResearch lets the functions of research, and the API, do what they do. Each function
// may change what all change, and a few kinds of rows of its own.
func (a *App) grantResearch(p FunctionProps) {
	r := a.Research
	for f, rows := range map[awslambda.Function][]string{r.PendingWork: {"RESEARCHWALK#*",
		"LEASE#*"},
		r.CompletedWork: {"RESULTS#*"}, r.Curation: {"RESEARCHFEEDS#*", "LEASE#feeds"}} {
		grantRows(f, p.Data, slices.Concat(researchRows, rows))
		grantSearch(f, p.Data)
		grantBatches(f, p.Data) // the rows of a change are read together
		grantMetrics(f)
	}

	var pending []*string
	for _, q := range r.Pending {
		pending = append(pending, q.QueueArn())
	}

	allow(r.PendingWork, []string{"sqs:SendMessage"}, pending...)
	for _, f := range []awslambda.Function{r.CompletedWork, r.Curation} {
		allow(f, []string{"sqs:SendMessage"}, r.Dead.QueueArn())
		allow(f, []string{"lambda:InvokeFunction"}, r.PendingWork.FunctionArn())
	}

	a.wakesItself("PendingWorkWakesItself", r.PendingWork)
	for i, name := range p.Settings.Projects {
		a.newResearcherRole(name, r.Pending[i])
	}
}

// receive are the actions of who receives work items from a queue.
var receive = []string{"sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility"}

// grantResearchAPI lets the API hand work items to researchers and take their reports.
// Researchers that use the API need no role of AWS.
func (a *App) grantResearchAPI() {
	if a.Research == nil {
		return
	}
	var pending []*string
	for _, q := range a.Research.Pending {
		pending = append(pending, q.QueueArn())
	}
	allow(a.API, receive, pending...)
	allow(a.API, []string{"sqs:SendMessage"}, a.Research.Completed.QueueArn())
	allow(a.API, []string{"lambda:InvokeFunction"}, a.Research.PendingWork.FunctionArn())
}

// newResearcherRole makes the role of researchers that receive work items of a project from
// its queue. A principal of the account that may assume it gets nothing else. Whoever
// administers the account decides who may assume it.
func (a *App) newResearcherRole(project string, pending awssqs.Queue) {
	role := awsiam.NewRole(a.Stack, jsii.String("researcher-"+project), &awsiam.RoleProps{
		AssumedBy:   awsiam.NewAccountPrincipal(a.Stack.Account()),
		Description: jsii.String("Receives work items of the research project " + project)})
	role.AddToPolicy(awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{
		Actions: jsii.Strings(receive...), Resources: &[]*string{pending.QueueArn()}}))
	a.Research.Roles = append(a.Research.Roles, role)
}

// researchOutputs names what people and programs need: NAME=VALUE of each project.
func (a *App) researchOutputs(s Settings) {
	r := a.Research
	var queues, roles []string
	for i, name := range s.Projects {
		queues = append(queues, name+"="+*r.Pending[i].QueueUrl())
		roles = append(roles, name+"="+*r.Roles[i].RoleArn())
	}

	for name, v := range map[string]*string{"pendingQueues": jsii.String(strings.Join(queues, ",")),
		"researcherRoles":      jsii.String(strings.Join(roles, ",")),
		"curatedEpisodesQueue": r.Episodes.QueueUrl(), "curatedClipsQueue": r.Clips.QueueUrl(),
		"completedWorkQueue": r.Completed.QueueUrl(), "researchDeadQueue": r.Dead.QueueUrl(),
		"pendingWorkFunction": r.PendingWork.FunctionName()} {
		awscdk.NewCfnOutput(a.Stack, jsii.String(name), &awscdk.CfnOutputProps{Value: v})
	}
}

// widgets show the queues and the functions of research. graph makes one widget, as
// newDashboard has it.
func (r *Research) widgets(graph func(title string, left,
	right []awscloudwatch.IMetric) awscloudwatch.IWidget) (
	row []awscloudwatch.IWidget) {
	type metrics = []awscloudwatch.IMetric
	return []awscloudwatch.IWidget{
		graph("Research: messages waiting",
			metrics{r.Episodes.MetricApproximateNumberOfMessagesVisible(nil),
				r.Clips.MetricApproximateNumberOfMessagesVisible(nil)},
			metrics{r.Completed.MetricApproximateNumberOfMessagesVisible(nil)}),
		graph("Research: errors",
			metrics{r.PendingWork.MetricErrors(nil), r.CompletedWork.MetricErrors(nil),
				r.Curation.MetricErrors(nil)}, nil),
		graph("Research: leases expired, set aside", metrics{own(research.MetricExpired, "Sum", 5),
			own(research.MetricQuarantined, "Sum", 5)}, nil),
	}
}
