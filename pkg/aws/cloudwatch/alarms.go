package cloudwatch

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
)

// Alarm is an alarm that is raised: its name, what it says, and since when it is raised.
type Alarm struct {
	Name  string
	Text  string
	Since time.Time
}

// mostAlarms is the size of a page: more than a deployment has.
const mostAlarms = 100

// Alarms are those whose names begin with Prefix.
type Alarms struct {
	Client *cloudwatch.Client
	Prefix string
}

// Raised returns the alarms in the state ALARM, and whether there are more than these.
func (a Alarms) Raised(ctx context.Context) (raised []Alarm, more bool, err error) {
	page, err := a.Client.DescribeAlarms(ctx, &cloudwatch.DescribeAlarmsInput{
		AlarmNamePrefix: aws.String(a.Prefix),
		AlarmTypes:      []types.AlarmType{types.AlarmTypeMetricAlarm},
		StateValue:      types.StateValueAlarm,
		MaxRecords:      aws.Int32(mostAlarms),
	})
	if err != nil {
		return nil, false, err
	}
	for _, m := range page.MetricAlarms {
		raised = append(raised, Alarm{Name: aws.ToString(m.AlarmName),
			Text:  aws.ToString(m.AlarmDescription),
			Since: aws.ToTime(m.StateUpdatedTimestamp)})
	}
	return raised, aws.ToString(page.NextToken) != "", nil
}
