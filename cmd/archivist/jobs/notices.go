package jobs

import (
	"fmt"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/terminal"
)

// noticeText is what became of a mail or a callback, in one line.
func noticeText(n v1.Notice) string {
	to := n.To
	if n.Others > 0 {
		to = terminal.Count(n.Others, "recipient")
	}
	if n.OfProfile > 0 {
		to = terminal.Count(n.OfProfile, "recipient") + " of the profile of the collection"
	}
	text := n.State
	if n.At != "" {
		text += fmt.Sprintf(" at %s, after %s", n.At, tries(n.Tries))
	}
	if to != "" {
		text = to + ": " + text
	}
	if n.Kind == "callback" {
		if n.NamedBy != "" {
			text = "of the " + n.NamedBy + ", " + text
		}
	} else {
		text = n.Kind + ", " + text
	}
	if n.Problem != "" {
		text += ": " + n.Problem
	}
	if n.NextTry != "" {
		text += "; next try at " + n.NextTry
	}
	if n.Advice != "" {
		text += ". " + n.Advice
	}
	return text
}

// tries is a number of tries.
func tries(n int) string {
	if n == 1 {
		return "1 try"
	}
	return fmt.Sprintf("%d tries", n)
}

// callbacksText is how many callbacks of a batch became what, "" if there are none.
func callbacksText(c *v1.CallbackCounts) string {
	if c == nil {
		return ""
	}
	text := fmt.Sprintf("%d delivered", c.Delivered)
	if c.Failed > 0 {
		text += fmt.Sprintf(", %d failed: a requeue of the job sends it again", c.Failed)
	}
	if c.GivenUp > 0 {
		text += fmt.Sprintf(", %d given up: the report names the jobs", c.GivenUp)
	}
	return text
}

// mostCallbacks is how many callbacks the output for a batch has.
const mostCallbacks = 20

// calledBack prints what became of the callbacks of jobs. Of many it prints only those that were
// not delivered.
func calledBack(p terminal.Page, jobs []v1.Job) {
	var all, open []string
	for _, j := range jobs {
		for _, c := range j.Callbacks {
			all = append(all, j.ID+" "+noticeText(c))
			if c.State != v1.NoticeDelivered {
				open = append(open, j.ID+" "+noticeText(c))
			}
		}
	}
	if len(all) > mostCallbacks {
		all = open[:min(len(open), mostCallbacks)]
	}
	for _, text := range all {
		p.Fields("callback", text)
	}
}

// noticed prints what became of mails and callbacks, a line each.
func noticed(p terminal.Page, name string, all []v1.Notice) {
	for _, n := range all {
		p.Fields(name, noticeText(n))
	}
}
