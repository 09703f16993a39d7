package workflow

// manual reads whether a person starts the task: true, or who that is.
func (s *source) manual(n *node) string {
	if n.kind != truth {
		return s.text("manual", n, maxText)
	}

	if !s.truth("manual", n) {
		return ""
	}
	return anyPerson
}

// anyPerson starts a task that does not say who does.
const anyPerson = "a person"

// manualAlone checks that what a person is to start is started by nothing else. COMMIT and what no commit starts
// need no such step.
func (d *draft) manualAlone() {
	switch t := &d.task; {
	case t.Manual == "":
	case !t.OnCommit:
		d.refuse("manual", "manual: commits do not start the task, so it is started by hand in any case")
	case len(t.Schedules) > 0:
		d.refuse("manual", "manual: a schedule would start the task without a person")
	}
}
