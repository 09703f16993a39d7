package console

import (
	"time"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/terminal"
)

// activity is what was done and what waited in the last 24 hours, for the first page.
type activity struct {
	v1.Activity
	Charts []chart
	Idle   bool // nothing was done, and nothing waited
}

// activityOf reads it, and makes its charts.
func activityOf(v *visit) (*activity, error) {
	all, err := v.api.Activity(v.Context())
	if err != nil {
		return nil, err
	}
	a := &activity{Activity: all, Idle: true}
	for _, h := range all.Hours {
		a.Idle = a.Idle && h.Completed+h.Failed+h.Waited+int64(h.Running) == 0
	}
	for _, one := range []struct {
		title, tone string
		of          func(v1.ActivityHour) int64
		show        func(int64) string
	}{
		{"Jobs completed by hour", "", func(h v1.ActivityHour) int64 { return h.Completed }, number[int64]},
		{"Failures of jobs by hour", "bad", func(h v1.ActivityHour) int64 { return h.Failed }, number[int64]},
		{"Bytes stored by hour", "", func(h v1.ActivityHour) int64 { return h.Bytes }, terminal.Size},
		{"Longest wait at a gate by hour", "", func(h v1.ActivityHour) int64 { return h.Waited }, lasting},
	} {
		bars := make([]bar, len(all.Hours))
		for i, h := range all.Hours {
			bars[i] = bar{Label: parse(h.Begin).UTC().Format("Jan 2 15:04"), Value: one.of(h)}
		}
		c := charted(one.title, bars, one.show)
		c.Tone = one.tone
		a.Charts = append(a.Charts, c)
	}
	return a, nil
}

// lasting is a duration in seconds for people: 1h2m, or 5s.
func lasting(seconds int64) string {
	d := time.Duration(seconds) * time.Second
	if d >= time.Minute {
		d = d.Truncate(time.Minute)
		text := d.String()
		return text[:len(text)-len("0s")]
	}
	return d.String()
}
