package boot

import (
	"context"

	"archivist/pkg/api/status"
	"archivist/pkg/aws/cloudwatch"
)

// alarms reads the alarms of the deployment that are raised, nil if it has none.
func (s *System) alarms() func(ctx context.Context) ([]status.Alarm, bool, error) {
	prefix := s.env(EnvAlarms)
	if prefix == "" {
		return nil
	}
	alarms := cloudwatch.Alarms{Client: s.metrics.Client, Prefix: prefix}
	return func(ctx context.Context) (out []status.Alarm, more bool, err error) {
		raised, more, err := alarms.Raised(ctx)
		for _, a := range raised {
			out = append(out, status.Alarm(a))
		}
		return out, more, err
	}
}
