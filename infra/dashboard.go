package main

import (
	"fmt"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/jsii-runtime-go"

	"archivist/pkg/app/boot"
	"archivist/pkg/events/consumer"
	"archivist/pkg/ingest/queue"
)

// newDashboard shows each stage at a glance. It uses metrics that AWS counts anyway, and
// queries of the log, so it costs nothing while idle. An account has three dashboards of up
// to 50 metrics free; one with more costs 3 US$ a month (Amazon CloudWatch Pricing). It is
// not made locally, where nothing shows it.
func (a *App) newDashboard() {
	d := awscloudwatch.NewDashboard(a.Stack, jsii.String("Dashboard"),
		&awscloudwatch.DashboardProps{DefaultInterval: awscdk.Duration_Hours(jsii.Number(12))})
	type metrics = []awscloudwatch.IMetric

	// A widget has a quarter of the width; what is on the right has an axis of its own.
	graph := func(title string, left, right metrics) awscloudwatch.IWidget {
		p := &awscloudwatch.GraphWidgetProps{Title: jsii.String(title), Width: jsii.Number(6),
			Left: &left}
		if right != nil {
			p.Right = &right
		}
		return awscloudwatch.NewGraphWidget(p)
	}

	d.AddWidgets(
		graph("Waiting longest (s)", metrics{own(queue.OldestWaiting, "Maximum", 5)},
			metrics{own(queue.SpaceUsed, "Maximum", 5)}),
		graph("Repairs and failed jobs",
			metrics{own(queue.Repairs, "Sum", 5), own(queue.Stuck, "Sum", 5),
				own(queue.FailedJobs, "Sum", 5)}, nil),
		graph("Scheduler", metrics{a.Scheduler.MetricDuration(nil)},
			metrics{a.Scheduler.MetricErrors(nil),
				a.WakeDead.MetricApproximateNumberOfMessagesVisible(nil)}),
		graph("API", metrics{a.Rest.MetricCount(nil), a.Rest.MetricServerError(nil)},
			metrics{a.API.MetricDuration(nil)}),
	)

	d.AddWidgets(
		graph("Consumers of events: behind (s)", metrics{own(consumer.MetricLag, "Maximum", 5)},
			nil),
		graph("Events that wait for a person", metrics{own(boot.EventProblems, "Maximum", 5)}, nil),
		graph("Relay", metrics{a.Relay.MetricDuration(nil)}, metrics{a.Relay.MetricErrors(nil)}),
		graph("Consumers", metrics{a.Consumer.MetricDuration(nil)},
			metrics{a.Consumer.MetricErrors(nil)}),
	)

	if a.Research != nil {
		d.AddWidgets(a.Research.widgets(graph)...)
	}

	// Each stage has a row of four widgets, and its log is among those that the queries below
	// read.
	var groups []*string
	for _, st := range a.Stages {
		d.AddWidgets(
			graph(st.Name+": messages waiting",
				metrics{st.Queue.MetricApproximateNumberOfMessagesVisible(nil)}, nil),
			graph(st.Name+": oldest message (s)",
				metrics{st.Queue.MetricApproximateAgeOfOldestMessage(nil)}, nil),
			graph(st.Name+": time of a run (ms)", metrics{st.Handler.MetricDuration(nil)}, nil),
			graph(st.Name+": errors", metrics{st.Handler.MetricErrors(nil)}, nil),
		)
		groups = append(groups, st.Handler.LogGroup().LogGroupName())
	}

	dead := metrics{a.Dead.MetricApproximateNumberOfMessagesVisible(nil)}
	d.AddWidgets(graph("Dead letters of the stages", dead, nil))
	// A query runs when somebody opens the page, over the time that the page shows.
	log := func(title string, lines ...*string) awscloudwatch.IWidget {
		return awscloudwatch.NewLogQueryWidget(&awscloudwatch.LogQueryWidgetProps{Title: jsii.String(title),
			Width: jsii.Number(24), LogGroupNames: &groups, QueryLines: &lines,
			View: awscloudwatch.LogQueryVisualizationType_TABLE})
	}

	d.AddWidgets(log("Tries that failed, newest first",
		jsii.String("fields @timestamp, stage, batch, job, exec, error"),
		jsii.String(`filter level = "WARN" or level = "ERROR"`),
		jsii.String("sort @timestamp desc"),
		jsii.String("limit 50")))

	d.AddWidgets(log("Steps by stage", jsii.String(`filter msg = "handled"`),
		jsii.String("stats count(*) as steps, avg(ms), pct(ms, 95), max(ms) by stage")))
	url := fmt.Sprintf("https://console.aws.amazon.com/cloudwatch/home?region=%s#dashboards:name=%s",
		*a.Stack.Region(), *d.DashboardName())
	awscdk.NewCfnOutput(a.Stack, jsii.String("dashboard"), &awscdk.CfnOutputProps{Value: &url})
}
