package main

import (
	"fmt"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/jsii-runtime-go"

	"archivist/pkg/boot"
)

// own is one of the system's own metrics.
func own(name, statistic string, minutes float64) awscloudwatch.IMetric {
	return awscloudwatch.NewMetric(&awscloudwatch.MetricProps{Namespace: jsii.String(boot.Namespace), MetricName: jsii.String(name), Statistic: jsii.String(statistic), Period: awscdk.Duration_Minutes(jsii.Number(minutes))})
}

// newDashboard shows each stage at a glance. It is made of metrics that AWS has
// anyway, of functions and queues, and of the log: they cost nothing while idle.
func (a *App) newDashboard() {
	d := awscloudwatch.NewDashboard(a.Stack, jsii.String("Dashboard"), &awscloudwatch.DashboardProps{DefaultInterval: awscdk.Duration_Hours(jsii.Number(12))})
	type metrics = []awscloudwatch.IMetric
	graph := func(title string, left, right metrics) awscloudwatch.IWidget {
		p := &awscloudwatch.GraphWidgetProps{Title: jsii.String(title), Width: jsii.Number(6), Left: &left}
		if right != nil {
			p.Right = &right
		}
		return awscloudwatch.NewGraphWidget(p)
	}
	d.AddWidgets(
		graph("Waiting longest (s)", metrics{own("OldestWaiting", "Maximum", 5)}, nil),
		graph("Repairs by the sweep", metrics{own("Repairs", "Sum", 5)}, nil),
		graph("Clock", metrics{a.Clock.MetricDuration(nil)}, metrics{a.Clock.MetricErrors(nil)}),
		graph("API", metrics{a.API.MetricInvocations(nil), a.API.MetricErrors(nil)}, metrics{a.API.MetricDuration(nil)}),
	)
	var groups []*string
	for _, st := range a.Stages {
		d.AddWidgets(
			graph(st.Name+": messages waiting and in work", metrics{st.Queue.MetricApproximateNumberOfMessagesVisible(nil), st.Queue.MetricApproximateNumberOfMessagesNotVisible(nil)}, nil),
			graph(st.Name+": oldest message (s)", metrics{st.Queue.MetricApproximateAgeOfOldestMessage(nil)}, nil),
			graph(st.Name+": runs and their time (ms)", metrics{st.Handler.MetricInvocations(nil)}, metrics{st.Handler.MetricDuration(nil)}),
			graph(st.Name+": errors and dead letters", metrics{st.Handler.MetricErrors(nil), st.Dead.MetricApproximateNumberOfMessagesVisible(nil)}, nil),
		)
		groups = append(groups, st.Handler.LogGroup().LogGroupName())
	}
	log := func(title string, lines ...*string) awscloudwatch.IWidget {
		return awscloudwatch.NewLogQueryWidget(&awscloudwatch.LogQueryWidgetProps{Title: jsii.String(title), Width: jsii.Number(24), LogGroupNames: &groups, QueryLines: &lines, View: awscloudwatch.LogQueryVisualizationType_TABLE})
	}
	d.AddWidgets(log("Tries that failed, newest first", jsii.String("fields @timestamp, stage, batch, job, exec, error"), jsii.String(`filter level = "WARN" or level = "ERROR"`), jsii.String("sort @timestamp desc"), jsii.String("limit 50")))
	d.AddWidgets(log("Steps by stage", jsii.String(`filter msg = "handled"`), jsii.String("stats count(*) as steps, avg(ms), pct(ms, 95), max(ms) by stage")))
	awscdk.NewCfnOutput(a.Stack, jsii.String("dashboard"), &awscdk.CfnOutputProps{Value: jsii.String(fmt.Sprintf("https://console.aws.amazon.com/cloudwatch/home#dashboards:name=%s", *d.DashboardName()))})
}
