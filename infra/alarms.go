package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsstepfunctions"
	"github.com/aws/jsii-runtime-go"

	"archivist/pkg/app/boot"
	"archivist/pkg/aws/awserror"
	"archivist/pkg/aws/cloudwatch"
	"archivist/pkg/components/preservation"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/research"
	"archivist/pkg/research/feed"
	"archivist/pkg/revisions/revision"
)

// watch is an alarm. says is what the operator reads in the mail: what is wrong, what follows
// from it, and where the cause is found. The alarm is raised when the metric is above the
// bound for so many periods in a row.
type watch struct {
	id, says string
	metric   awscloudwatch.IMetric
	above    float64
	periods  float64 // in a row
	silence  bool    // raised below 1, and by missing data
}

// Missing data is good but for silence: most metrics have no values while nothing is wrong.
func (w watch) props() *awscloudwatch.AlarmProps {
	p := &awscloudwatch.AlarmProps{AlarmDescription: jsii.String(w.says), Metric: w.metric,
		Threshold: jsii.Number(w.above), EvaluationPeriods: jsii.Number(w.periods),
		ComparisonOperator: awscloudwatch.ComparisonOperator_GREATER_THAN_THRESHOLD,
		TreatMissingData:   awscloudwatch.TreatMissingData_NOT_BREACHING}
	if w.silence {
		p.ComparisonOperator = awscloudwatch.ComparisonOperator_LESS_THAN_THRESHOLD
		p.TreatMissingData = awscloudwatch.TreatMissingData_BREACHING
	}
	return p
}

// newAlarms makes the alarms. An alarm costs 0.10 US$ a month for each metric that it names,
// so none is named twice, and no alarm is the sum of many (Amazon CloudWatch Pricing). All of
// them go to one topic, to which the settings subscribe an address.
func (a *App) newAlarms(s Settings) {
	topic := newTopic(a.Stack, s)
	for _, list := range [][]watch{a.watchScheduler(), watchItems(), a.watchServices(),
		a.watchAdmin(), watchMail(s),
		watchEvents(), a.watchResearch(), a.watchRevisions()} {
		for _, w := range list {
			awscloudwatch.NewAlarm(a.Stack, jsii.String(w.id), w.props()).AddAlarmAction(topic)
		}
	}
}

// watchScheduler raises an alarm when the scheduler is silent. All other alarms depend on it:
// they treat missing data as good. Lambda reports no zero for a function that is not invoked
// ("Types of metrics for Lambda functions").
func (a *App) watchScheduler() []watch {
	return []watch{
		{id: "SchedulerSilent",
			says: "The scheduler has not run for 5 minutes, or was deployed just now: " +
				"no job is admitted, and nothing is repaired",
			metric: a.Scheduler.MetricInvocations(nil), above: 1, periods: 1, silence: true},
		{id: "SchedulerErrors",
			says:   "The scheduler fails: no job is admitted, and nothing is repaired",
			metric: a.Scheduler.MetricErrors(nil), above: 2, periods: 3},
		{id: "DeadWake",
			says: "Wake-ups of the scheduler, the relay, a consumer or the function pending-work became dead " +
				"letters; they tell what fails, and are to be purged",
			metric: a.WakeDead.MetricApproximateNumberOfMessagesVisible(nil), periods: 1},
	}
}

// watchItems are the system's own metrics. They are put only when there is something to
// count, so an idle system pays nothing for them, and missing data is good. A bound is above
// what a healthy system has now and then; one of 0 is for what never happens in one.
func watchItems() []watch {
	return []watch{
		{id: "ManyRepairs",
			says:   "The sweep repaired more than 20 items in 15 minutes: messages or executions get lost",
			metric: own(queue.Repairs, "Sum", 15), above: 20, periods: 1},
		// One job that crashes its worker again and again does so three times an hour.
		{id: "Crashes",
			says:   "Functions of stages ended in the middle of a step: out of memory or time, or a defect",
			metric: own(queue.Crashes, "Sum", 60), above: 2, periods: 1},
		{id: "Stuck",
			says: "An item is repaired again and again without progress, or AWS refuses a call that it needs; " +
				"explain names the cause",
			metric: own(queue.Stuck, "Sum", 15), periods: 1},
		{id: "RepairErrors",
			says:   "Repairs fail; the scheduler's log says why",
			metric: own(queue.RepairErrors, "Sum", 15), above: 5, periods: 1},
		{id: "GateErrors",
			says:   "Jobs could not be admitted or provisioned; the scheduler's log says why",
			metric: own(queue.GateErrors, "Sum", 15), above: 5, periods: 1},
		{id: "Refused",
			says:   "AWS refused calls because a permission is missing; the functions' logs name the calls",
			metric: own(awserror.Refused, "Sum", 15), periods: 1},
		{id: "MissingRows",
			says:   "Slots, space or locks were gone when an item gave them back: something else changed the table",
			metric: own(queue.MissingRows, "Sum", 15), periods: 1},
		{id: "OldestWaiting",
			says:   "A job has been waiting for more than a day",
			metric: own(queue.OldestWaiting, "Maximum", 5), above: 24 * 3600, periods: 3},
		{id: "SpaceUsed",
			says:   "More than 90 % of the work space has been in use for an hour",
			metric: own(queue.SpaceUsed, "Maximum", 15), above: 90, periods: 4},
		{id: "FailedJobs",
			says:   "More than 100 jobs failed in an hour; the reports say why",
			metric: own(queue.FailedJobs, "Sum", 60), above: 100, periods: 1},
	}
}

// watchServices are metrics that AWS counts anyway. Throttles are those of the whole account
// in this region, because functions share the account's concurrency ("Viewing metrics for
// Lambda functions"). Crashes of stages are one metric of our own instead of eight.
func (a *App) watchServices() []watch {
	sum := &awscloudwatch.MetricOptions{Statistic: jsii.String("Sum")}
	table := func(operation string) awscloudwatch.IMetric {
		m := metric("AWS/DynamoDB", "ThrottledRequests", "Sum", 5)
		m.DimensionsMap = &map[string]*string{"TableName": a.Data.Table.TableName(),
			"Operation": jsii.String(operation)}
		return awscloudwatch.NewMetric(m)
	}

	throttles := awscloudwatch.NewMetric(metric("AWS/Lambda", "Throttles", "Sum", 5))
	failed := func(m awsstepfunctions.StateMachine) awscloudwatch.IMetric {
		return m.MetricFailed(&awscloudwatch.MetricOptions{Statistic: jsii.String("Sum"),
			Period: minutes(60)})
	}
	return []watch{
		{id: "DeadLetters",
			says: "Messages to stages became dead letters: functions crash or cannot write to the table; " +
				"the sweep restarts the items",
			metric: a.Dead.MetricApproximateNumberOfMessagesVisible(nil), periods: 1},
		{id: "ApiErrors",
			says:   "The API answered more than 5 requests in 5 minutes with a 5xx",
			metric: a.Rest.MetricServerError(sum), above: 5, periods: 1},
		{id: "Throttles",
			says: "Functions were throttled for 15 minutes: the account's concurrency is used up; " +
				"request a higher quota or lower maxInFlight",
			metric: throttles, above: 10, periods: 3},
		// Throttling of an index shows as a throttled request of the table.
		{id: "TableWrites",
			says:   "DynamoDB has throttled writes for 15 minutes",
			metric: table("TransactWriteItems"), above: 50, periods: 3},
		{id: "TableReads",
			says:   "DynamoDB has throttled reads for 15 minutes",
			metric: table("Query"), above: 50, periods: 3},
		{id: "FailedBatchExecutions",
			says:   "An execution of a batch failed: unpacking or reporting was given up",
			metric: failed(a.Machines[queue.MachineBatch]), periods: 1},
	}
}

// watchAdmin watches the function of admin-action, not its executions: one that is refused
// is shown to the person who started it. An operation whose execution fails is started again
// by the sweep.
func (a *App) watchAdmin() []watch {
	errors := a.Admin.MetricErrors(&awscloudwatch.MetricOptions{Period: minutes(15)})
	return []watch{{id: "AdminErrors",
		says: "Actions and bulk operations fail at each try: AWS refuses a call or is not available, or there " +
			"is a defect; the log of the function admin says why",
		metric: errors, above: 5, periods: 1}}
}

// watchEvents is an alarm on damaged content, and one for all that can be wrong with consumers of
// events and with components; the list of consumers and the runs of components say what it is. A
// wake-up of the relay or of a consumer that fails is a dead letter.
func watchEvents() []watch {
	return []watch{{id: "PreservationFailures",
		says: "Stored files are damaged, missing or cannot be read, or versions cannot be copied: the lines of the " +
			"components fixity-check, copy-check and replication say which",
		metric: own(preservation.PreservationFailures, "Sum", 15), periods: 1},
		{id: "EventProblems",
			says: "A consumer of events is more than an hour behind or stopped, events are parked, old events cannot " +
				"expire, consumers or components cause each other's events without end, runs of components are lost, " +
				"their items cannot be read, or their lines had to be repaired",
			metric: own(boot.EventProblems, "Maximum", 15), periods: 1}}
}

// watchResearch are the alarms of a deployment with projects of research. Some leases always
// expire: a researcher that dies costs one.
func (a *App) watchResearch() []watch {
	if a.Research == nil {
		return nil
	}
	return []watch{
		{id: "ResearchDeadLetters",
			says: "Curated records or reports of researchers cannot be kept; the attribute reason of each message " +
				"in the queue research-dead says why",
			metric: a.Research.Dead.MetricApproximateNumberOfMessagesVisible(nil), periods: 1},
		{id: "ResearchSetAside",
			says: "Episodes or clips were set aside, because their recordings cannot be researched; the status of " +
				"the project says which, and why",
			metric: own(research.MetricQuarantined, "Sum", 60), periods: 1},
		{id: "ResearchersPaused",
			says: "A researcher has problems that others do not have, and gets no work items for a while; the status " +
				"of the project says which, and why",
			metric: own(research.MetricPaused, "Sum", 60), periods: 1},
		{id: "ResearchFeedsFailing",
			says: "A podcast feed has ended, or its newest five looks failed; archivist research feeds list PROJECT " +
				"says which, and why",
			metric: own(feed.MetricFailing, "Maximum", 60), periods: 1},
		{id: "ResearchLeasesExpired",
			says:   "More than 20 leases of work items expired in an hour: researchers die, or are too slow",
			metric: own(research.MetricExpired, "Sum", 60), above: 20, periods: 1},
		{id: "ResearchResent",
			says:   "More than 20 work items were sent again in an hour: messages to researchers get lost",
			metric: own(research.MetricResent, "Sum", 60), above: 20, periods: 1},
	}
}

// watchRevisions are the alarms of the revision queue. A revision that cannot be read once or
// twice is usual: a server is down for a while.
func (a *App) watchRevisions() []watch {
	if a.Revisions == nil {
		return nil
	}
	return []watch{
		{
			id: "ArchivesStopped",
			says: "A revision of an archive has become another, and the archive was stopped: archivist archive list " +
				"says which",
			metric:  own(revision.MetricStopped, "Sum", 15),
			periods: 1,
		},
		{
			id:      "RevisionsUnreadable",
			says:    "Revisions of archives cannot be read for an hour; archivist archive list says which, and why",
			metric:  own(revision.MetricUnreadable, "Sum", 60),
			above:   5,
			periods: 1,
		},
		{
			id:      "TasksLost",
			says:    "Executions of tasks end without a result: more than 20 in an hour",
			metric:  own(revision.MetricLost, "Sum", 60),
			above:   20,
			periods: 1,
		},
		{
			id:      "TasksResent",
			says:    "Executions of tasks do not begin and are started again: more than 20 in an hour",
			metric:  own(revision.MetricResent, "Sum", 60),
			above:   20,
			periods: 1,
		},
	}
}

// watchMail raises alarms before SES does something: it reviews an account from 5 % of
// bounces or 0.1 % of complaints on, and then stops its mail ("Reputation metrics messages").
func watchMail(s Settings) []watch {
	if s.MailFrom == "" {
		return nil
	}

	ses := func(name string) awscloudwatch.IMetric {
		return awscloudwatch.NewMetric(metric("AWS/SES", name, "Maximum", 60))
	}
	return []watch{
		{id: "MailFailures",
			says:   "Mails could not be sent; batch show and explain name the recipients and the reasons",
			metric: own(queue.MailFailures, "Sum", 60), above: 10, periods: 1},
		{id: "MailBounces",
			says:   "More than 4 % of the account's mails bounce; SES stops an account's mail above 10 %",
			metric: ses("Reputation.BounceRate"), above: 0.04, periods: 1},
		{id: "MailComplaints",
			says: "More than 0.08 % of the account's mails are reported as spam; SES stops an account's mail " +
				"above 0.5 %",
			metric: ses("Reputation.ComplaintRate"), above: 0.0008, periods: 1},
	}
}

// own is one of the system's own metrics. period is in minutes. The values of an invocation
// are added up before they are sent, so Sum is the one that counts.
func own(name, statistic string, period float64) awscloudwatch.IMetric {
	return awscloudwatch.NewMetric(metric(cloudwatch.Namespace, name, statistic, period))
}

// metric is a metric without dimensions, over periods of so many minutes.
func metric(namespace, name, statistic string, period float64) *awscloudwatch.MetricProps {
	return &awscloudwatch.MetricProps{Namespace: jsii.String(namespace),
		MetricName: jsii.String(name),
		Statistic:  jsii.String(statistic), Period: minutes(period)}
}
