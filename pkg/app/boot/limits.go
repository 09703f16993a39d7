package boot

import (
	"encoding/json"
	"fmt"
	"time"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/kernel/fault"
)

// Limits are the settings of a deployment for concurrency and retention. infra takes them
// from the CDK context, under the names of the JSON. All are whole numbers in the unit of
// their name; the JSON is also what the functions get (EnvLimits).
type Limits struct {
	MaxInFlight int `json:"maxInFlight"` // running jobs at once
	Share       int `json:"share"`       // running jobs of one collection at once; 0 = all
	SpaceGiB    int `json:"spaceGiB"`    // of work files at once
	// ReserveGiB: jobs of unknown size wait while less than this is free.
	ReserveGiB int `json:"reserveGiB"`
	// PatienceMinutes is the time after which a waiting job reserves freed space; 0 = never.
	PatienceMinutes int `json:"patienceMinutes"`
	// AgingMinutes is the time in which a waiting job gains one step of priority; 0 = never.
	AgingMinutes    int `json:"agingMinutes"`
	FailedDays      int `json:"failedDays"`      // a failed job's work files are kept for a requeue
	FailedKeepHours int `json:"failedKeepHours"` // minimum, even if other jobs lack space
	// KeepDays is for how long the rows of a completed batch are kept; 0 = unlimited.
	KeepDays int `json:"keepDays"`
	// FixityDays is the time after which stored files are checked again; 0 = only after a
	// change.
	FixityDays int `json:"fixityDays"`
	FixityGiB  int `json:"fixityGiB"` // that these checks may read in a day
	DelayDays  int `json:"delayDays"` // a batch that has not ended is reported
	// UploadQuotaGiB is what the uploads of a collection have together; UploadDays is how long one waits for its
	// submission.
	UploadQuotaGiB int `json:"uploadQuotaGiB"`
	UploadDays     int `json:"uploadDays"`
}

// DefaultLimits are the limits of a deployment without settings: 100 jobs keep within
// Lambda's default concurrency of an account, 10 TiB is a large deposit day.
var DefaultLimits = Limits{
	MaxInFlight:     100,
	SpaceGiB:        10 << 10,
	ReserveGiB:      1 << 10,
	PatienceMinutes: 6 * 60,
	FailedDays:      30,
	FailedKeepHours: 24,
	KeepDays:        365,
	FixityDays:      90,
	FixityGiB:       1 << 10,
	DelayDays:       7,
	UploadQuotaGiB:  1 << 10,
	UploadDays:      7,
}

// Named returns every limit by its name. The pointers are to l's own fields, so that a caller
// can set them.
func (l *Limits) Named() map[string]*int {
	return map[string]*int{"maxInFlight": &l.MaxInFlight, "share": &l.Share,
		"spaceGiB":   &l.SpaceGiB,
		"reserveGiB": &l.ReserveGiB, "patienceMinutes": &l.PatienceMinutes,
		"agingMinutes": &l.AgingMinutes, "failedDays": &l.FailedDays,
		"failedKeepHours": &l.FailedKeepHours,
		"keepDays":        &l.KeepDays, "fixityDays": &l.FixityDays, "fixityGiB": &l.FixityGiB,
		"delayDays": &l.DelayDays, "uploadQuotaGiB": &l.UploadQuotaGiB, "uploadDays": &l.UploadDays}
}

// Bounds of the numbers. Beyond them a product would not fit into an int64 of bytes or
// nanoseconds, or AWS refuses it. An event source runs at most 1,000 invocations at once
// (AWS::Lambda::EventSourceMapping ScalingConfig). With the slowest aging the worst
// priority is still a time of 13 digits, by which jobs are sorted.
const (
	mostJobs    = 1000
	mostGiB     = 1 << 30        // 1 EiB
	mostDays    = 100 * 365      // a century
	mostHours   = mostDays * 24  // a century
	mostMinutes = mostHours * 60 // a century
	mostAging   = 30 * 24 * 60   // a month
	// mostUploadDays: who has not sent a submission in a quarter of a year has forgotten it.
	mostUploadDays = 90
)

// Check returns an Invalid that names the first limit that is out of its range, or with which
// no job could ever proceed. The bounds are included. reserveGiB is bounded by spaceGiB,
// since otherwise it would never be free.
func (l Limits) Check() error {
	for _, r := range []struct {
		name           string
		value, min, to int
	}{
		{"maxInFlight", l.MaxInFlight, 1, mostJobs},
		{"share", l.Share, 0, mostJobs},
		{"spaceGiB", l.SpaceGiB, 1, mostGiB},
		{"reserveGiB", l.ReserveGiB, 0, l.SpaceGiB},
		{"patienceMinutes", l.PatienceMinutes, 0, mostMinutes},
		{"agingMinutes", l.AgingMinutes, 0, mostAging},
		{"failedDays", l.FailedDays, 0, mostDays},
		{"failedKeepHours", l.FailedKeepHours, 0, mostHours},
		{"keepDays", l.KeepDays, 0, mostDays},
		{"fixityDays", l.FixityDays, 0, mostDays},
		{"fixityGiB", l.FixityGiB, 1, mostGiB},
		{"delayDays", l.DelayDays, 1, mostDays},
		{"uploadQuotaGiB", l.UploadQuotaGiB, 1, mostGiB},
		{"uploadDays", l.UploadDays, 1, mostUploadDays},
	} {
		if r.value < r.min || r.value > r.to {
			return fault.New(fault.Invalid, "%s: found %d; expected %d to %d", r.name, r.value,
				r.min, r.to)
		}
	}
	return l.settings().Check()
}

// String returns the limits as JSON.
func (l Limits) String() string {
	data, _ := json.Marshal(l) // numbers can always be encoded
	return string(data)
}

// ParseLimits reads limits as String writes them. What the JSON leaves out has its default;
// the numbers are not checked. "" is an error.
func ParseLimits(text string) (Limits, error) {
	l := DefaultLimits
	if err := json.Unmarshal([]byte(text), &l); err != nil {
		return l, fmt.Errorf("boot: %s: %w", EnvLimits, err)
	}
	return l, nil
}

// settings are the limits of the gates and the sweep, in bytes and durations.
func (l Limits) settings() queue.Settings {
	return queue.Settings{
		MaxInFlight: l.MaxInFlight,
		Space:       int64(l.SpaceGiB) << 30,
		Reserve:     int64(l.ReserveGiB) << 30,
		Share:       l.Share,
		Patience:    time.Duration(l.PatienceMinutes) * time.Minute,
		FailedKeep:  time.Duration(l.FailedKeepHours) * time.Hour,
		SweepPage:   sweepPage,
	}
}

// sweepPage limits the work of a tick, so that it ends in time.
const sweepPage = 200

// rules are the limits that decide about single jobs and batches.
func (l Limits) rules(timing ingest.Timing) ingest.Rules {
	const day = 24 * time.Hour
	return ingest.Rules{
		Timing:          timing,
		Aging:           time.Duration(l.AgingMinutes) * time.Minute,
		FailedRetention: time.Duration(l.FailedDays) * day,
		Retention:       time.Duration(l.KeepDays) * day,
	}
}
