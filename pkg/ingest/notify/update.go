package notify

import (
	"fmt"
	"slices"
)

// ForUpdate composes the mail about what has changed since an earlier report, to be
// addressed; the arguments are those of ForReport. Attached are the jobs now preserved, and
// those that failed.
func ForUpdate(r Report, whole bool, link string) (m Mail, err error) {
	if r.Changes == nil {
		r.Changes = &Changes{}
	}

	sections := []section{
		{NowPreserved, r.Changes.NowPreserved, with(NowPreserved, r.Completed)},
		{NewlyFailed, r.Changes.NewlyFailed, with(NewlyFailed, r.Failed, r.Cancelled)},
		{StillFailed, r.Changes.StillFailed, with(StillFailed, r.Failed, r.Cancelled)},
		{NowDeleted, r.Changes.Deleted, with(NowDeleted, r.Deleted, r.Cancelled)},
	}

	if whole {
		if err := m.attach(sections[0].Jobs,
			slices.Concat(sections[1].Jobs, sections[2].Jobs), nil); err != nil {
			return m, err
		}
	}

	cut := false
	for i, s := range sections {
		sections[i].Jobs = s.Jobs[:min(len(s.Jobs), Shown)]
		cut = cut || s.N > len(sections[i].Jobs)
	}

	m.Subject = line(fmt.Sprintf("Update: %s: %s to %s", r.Changes, r.Batch, r.Collection))
	err = m.fill("update", filled{
		Report:   r,
		Subject:  m.Subject,
		Link:     link,
		Cut:      cut,
		Whole:    whole,
		Sections: sections,
	})
	return m, err
}

// with are the jobs that have a change.
func with(c Change, lists ...[]Job) (out []Job) {
	for _, j := range slices.Concat(lists...) {
		if j.Change == c {
			out = append(out, j)
		}
	}
	return out
}
