package boot

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

	"archivist/pkg/queue"
)

// Namespace of the system's own metrics.
const Namespace = "Archivist"

// metrics are gathered while an invocation lasts, and put by one request at its end:
// the request is what costs. An invocation that has nothing to tell puts none.
type metrics struct {
	client *cloudwatch.Client
	log    *slog.Logger
	mu     sync.Mutex
	sums   map[string]float64
}

// add counts something.
func (m *metrics) add(name string, n float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.sums == nil {
		m.sums = map[string]float64{}
	}
	m.sums[name] += n
}

// put sends what was gathered. What could not be sent is lost, and logged.
func (m *metrics) put(ctx context.Context) error {
	m.mu.Lock()
	sums := m.sums
	m.sums = nil
	m.mu.Unlock()
	if len(sums) == 0 {
		return nil
	}
	in := &cloudwatch.PutMetricDataInput{Namespace: aws.String(Namespace)}
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		in.MetricData = append(in.MetricData, types.MetricDatum{MetricName: &name, Value: aws.Float64(sums[name])})
	}
	if _, err := m.client.PutMetricData(ctx, in); err != nil {
		m.log.Error("metrics were lost", "metrics", fmt.Sprint(sums), "error", err)
		return err
	}
	return nil
}

// refusals counts, on every client but CloudWatch's own, the calls that AWS refused
// for want of a permission. Who called deals with the error; a person has to hear of
// it whatever becomes of it.
func (m *metrics) refusals(stack *middleware.Stack) error {
	count := func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (
		middleware.InitializeOutput, middleware.Metadata, error) {
		out, meta, err := next.HandleInitialize(ctx, in)
		if queue.Denied(err) {
			m.add(queue.Refused, 1)
			m.log.Error("AWS refused a call: a permission is missing",
				"service", middleware.GetServiceID(ctx), "operation", middleware.GetOperationName(ctx), "error", err)
		}
		return out, meta, err
	}
	return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("refusals", count), middleware.Before)
}
