package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatchactions"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssns"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssnssubscriptions"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"
)

// newTopic makes the topic to which alarms go, and subscribes whom the settings name.
func newTopic(scope constructs.Construct, s Settings) awscloudwatchactions.SnsAction {
	topic := awssns.NewTopic(scope, jsii.String("Alarms"), &awssns.TopicProps{EnforceSSL: jsii.Bool(true)})
	if s.AlarmMail != "" {
		topic.AddSubscription(awssnssubscriptions.NewEmailSubscription(jsii.String(s.AlarmMail), nil))
	}
	return awscloudwatchactions.NewSnsAction(topic)
}
