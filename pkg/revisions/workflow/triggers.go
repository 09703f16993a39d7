package workflow

import (
	"strings"

	"archivist/pkg/kernel/definition"
)

// maxSchedules is how many schedules a task has at most.
const maxSchedules = 10

// Triggers of tasks.
const (
	onCommit   = "commit"
	onDemand   = "manual"
	onSchedule = "schedule"
)

// readTriggers reads what starts the task: a list of words and schedules, or a mapping. A task that
// nothing would start is a problem.
func (d *draft) readTriggers(n *node) {
	t, s := &d.task, d.source
	before := len(s.problems)
	known := map[string]func(*node){
		onCommit:   func(v *node) { t.OnCommit = s.truth(onCommit, v) },
		onDemand:   func(v *node) { t.OnDemand = s.truth(onDemand, v) },
		onSchedule: func(v *node) { d.readSchedules(v) },
	}

	if n.kind == mapping {
		s.fields("triggers", n, known)
	} else {
		for _, v := range s.entries("triggers", n, maxSchedules+2) {
			d.readTrigger(v, known)
		}
	}

	// Said only if nothing else is wrong with the triggers: one that could not be read may have
	// been meant.
	if !t.OnCommit && !t.OnDemand && d.keys[onSchedule] == nil && len(s.problems) == before {
		s.refuse(n, "triggers: nothing would start the task")
	}
}

// readTrigger reads one entry of a list of triggers.
func (d *draft) readTrigger(n *node, known map[string]func(*node)) {
	switch {
	case n.kind == mapping:
		d.source.fields("triggers", n, known)
	case n.kind == text && n.text == onCommit:
		d.task.OnCommit = true
	case n.kind == text && n.text == onDemand:
		d.task.OnDemand = true
	case n.kind == text && n.text == onSchedule:
		d.source.refuse(n, `triggers: schedule needs times: "schedule: {cron: 30 2 * * *}"`)
	default:
		d.source.refuse(n, "triggers: %s: expected commit, manual or schedule", n.said())
	}
}

// readSchedules reads a schedule or a list of them.
func (d *draft) readSchedules(n *node) {
	d.keys[onSchedule] = n
	for _, v := range d.source.entries(onSchedule, n, maxSchedules) {
		if len(d.task.Schedules) == maxSchedules {
			d.source.refuse(v, "schedule: more than %d of a task", maxSchedules)
			return
		}
		d.task.Schedules = append(d.task.Schedules, d.source.schedule(v))
	}
}

// schedule reads one schedule. The zone is checked first, with a time that there is: so a wrong
// zone is not taken for a wrong cron. Times that never come, such as February 30, and forms with
// more or fewer than five fields are refused.
func (s *source) schedule(n *node) Schedule {
	out := Schedule{Zone: "UTC", Overlap: Skip}
	var cron, zone *node
	if !s.fields(onSchedule, n, map[string]func(*node){
		"cron": func(v *node) { cron, out.Cron = v, s.text("cron", v, maxText) },
		"zone": func(v *node) { zone, out.Zone = v, s.text("zone", v, maxText) },
		"overlap": func(v *node) {
			out.Overlap = Overlap(s.choice("overlap", v, string(Skip), string(Queue),
				string(Replace)))
		},
	}) {
		return out
	}

	if cron == nil {
		s.refuse(n, "schedule: cron is missing")
		return out
	}

	if _, err := definition.ParseSchedule("0 0 1 1 *", out.Zone); err != nil {
		if out.Zone != "" {
			s.refuse(zone, "zone: %q: expected a name such as Europe/Berlin", clip(out.Zone))
		}
		return out
	}

	_, err := definition.ParseSchedule(out.Cron, out.Zone)
	if out.Cron != "" &&
		(err != nil || len(strings.Fields(out.Cron)) != 5 || strings.Contains(out.Cron, "(")) {
		s.refuse(cron, "cron: %q: expected five fields (minute, hour, day of the month, month, day of the week) of a "+
			`time that there is, such as "30 2 * * *"`, clip(out.Cron))
	}
	return out
}
