// Package cloudwatch writes the system's own metrics to Amazon CloudWatch.
//
// A request costs as much as a thousand values. So values are added up while an
// invocation lasts, and sent by one request at its end. An invocation without values
// sends none, so an idle system costs nothing.
package cloudwatch

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/smithy-go/middleware"

	"archivist/pkg/aws/awserror"
)

// Namespace of the system's own metrics.
const Namespace = "Archivist"

// Metrics are the values of one invocation. They may be added by several goroutines. A
// process has one invocation at a time, so one Metrics is enough for it.
type Metrics struct {
	Client *cloudwatch.Client
	Log    *slog.Logger

	mu   sync.Mutex
	sums map[string]float64
}

// Add adds n to a metric.
func (m *Metrics) Add(name string, n float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.sums == nil {
		m.sums = map[string]float64{}
	}
	m.sums[name] += n
}

// Put sends the values since the last Put. If that fails they are lost, and this is logged. A
// metric that is sent once for each invocation has its sum as the value; there are far fewer
// of them than the thousand that one request takes.
func (m *Metrics) Put(ctx context.Context) error {
	m.mu.Lock()
	sums := m.sums
	m.sums = nil
	m.mu.Unlock()
	if len(sums) == 0 {
		return nil
	}

	in := &cloudwatch.PutMetricDataInput{Namespace: aws.String(Namespace)}
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		in.MetricData = append(in.MetricData,
			types.MetricDatum{MetricName: &name, Value: aws.Float64(sums[name])})
	}

	if _, err := m.Client.PutMetricData(ctx, in); err != nil {
		m.Log.Error("metrics were lost", "metrics", fmt.Sprint(sums), "error", err)
		return err
	}
	return nil
}

// CountRefusals is middleware for every AWS client but CloudWatch's own. It counts the calls
// that AWS refused because a permission is missing. The caller handles the error; an operator
// must be alerted in any case. It stands around the retries of the SDK, so a call counts
// once.
func (m *Metrics) CountRefusals(stack *middleware.Stack) error {
	count := func(ctx context.Context, in middleware.InitializeInput,
		next middleware.InitializeHandler) (
		middleware.InitializeOutput, middleware.Metadata, error) {
		out, meta, err := next.HandleInitialize(ctx, in)
		if awserror.Denied(err) {
			m.Add(awserror.Refused, 1)
			m.Log.Error("AWS refused a call: a permission is missing",
				"service", middleware.GetServiceID(ctx), "operation",
				middleware.GetOperationName(ctx), "error", err)
		}
		return out, meta, err
	}
	return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("refusals", count),
		middleware.Before)
}
