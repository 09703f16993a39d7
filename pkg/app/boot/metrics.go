package boot

import (
	"archivist/pkg/components/component"
	"archivist/pkg/events/consumer"
)

// ExpiryBlocked counts partitions of the log with old events that cannot be removed.
const ExpiryBlocked = "EventExpiryBlocked"

// EventProblems is the metric of the alarm on events that need a person. It sums up what single
// metrics count, because an alarm on each would cost more than all else about events.
const EventProblems = "EventProblems"

// longBehind is from when on a consumer that is behind is a problem, in seconds.
const longBehind = 3600

// consumerMetric adds to a metric of the consumers, and to EventProblems if it tells of events
// that nobody handles unless a person acts.
func (s *System) consumerMetric(name string, value float64) {
	if value == 0 {
		return
	}

	s.metrics.Add(name, value)
	switch name {
	case consumer.MetricParked, consumer.MetricStopped, consumer.MetricDepth, ExpiryBlocked:
		s.metrics.Add(EventProblems, value)
	case consumer.MetricLag:
		if value > longBehind {
			s.metrics.Add(EventProblems, 1)
		}
	}
}

// componentMetric adds to a metric of the components, and to EventProblems if a person should
// look. A value of 0 is not sent.
func (s *System) componentMetric(name string, value float64) {
	s.consumerMetric(name, value)
	switch name {
	case component.MetricRepairs, component.MetricBroken, component.MetricReconciled:
		s.metrics.Add(EventProblems, value)
	}
}
