package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatchactions"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssns"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssnssubscriptions"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"
)

// newTopic makes the topic to which alarms go, and subscribes whom the settings name. The
// subscription has to be confirmed by the recipient, whom SNS writes to once.
func newTopic(scope constructs.Construct, s Settings) awscloudwatchactions.SnsAction {
	topic := awssns.NewTopic(scope, jsii.String("Alarms"),
		&awssns.TopicProps{EnforceSSL: s.tlsOnly()})
	// The statement that requires TLS replaces the default policy, by which the account may
	// publish; CloudWatch has to be allowed ("Why didn't I receive an SNS notification for my
	// CloudWatch alarm trigger?").
	account := awscdk.Stack_Of(topic)
	alarms := account.FormatArn(&awscdk.ArnComponents{
		Service:      jsii.String("cloudwatch"),
		Resource:     jsii.String("alarm"),
		ResourceName: jsii.String("*"),
		ArnFormat:    awscdk.ArnFormat_COLON_RESOURCE_NAME,
	})

	cloudwatch := awsiam.NewServicePrincipal(jsii.String("cloudwatch.amazonaws.com"), nil)
	topic.AddToResourcePolicy(awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{
		Sid:        jsii.String("AlarmsPublish"),
		Principals: &[]awsiam.IPrincipal{cloudwatch},
		Actions:    jsii.Strings("sns:Publish"),
		Resources:  &[]*string{topic.TopicArn()},
		Conditions: &map[string]any{"StringEquals": map[string]any{"aws:SourceAccount": account.Account()},
			"ArnLike": map[string]any{"aws:SourceArn": alarms}},
	}))

	if s.AlarmMail != "" {
		topic.AddSubscription(awssnssubscriptions.NewEmailSubscription(jsii.String(s.AlarmMail), nil))
	}
	return awscloudwatchactions.NewSnsAction(topic)
}
