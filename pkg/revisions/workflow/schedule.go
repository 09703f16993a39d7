package workflow

import (
	"time"

	"archivist/pkg/kernel/definition"
)

// Next is the first time of the schedule after a time, in its zone. See definition.Schedule.Next
// for what becomes of times when the clock is changed.
func (s Schedule) Next(after time.Time) (time.Time, error) {
	return definition.NextTime(s.Cron, s.Zone, after)
}
