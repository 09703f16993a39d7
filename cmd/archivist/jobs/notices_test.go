package jobs

import (
	"strings"
	"testing"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/terminal"
)

// TestNoticeText: a line says to whom, what became of it, when, after how many tries, why, and what
// to do.
func TestNoticeText(t *testing.T) {
	for want, n := range map[string]v1.Notice{
		"report, a@example.org: failed at T, after 2 tries: no; next try at U": {Kind: "report", To: "a@example.org",
			State: v1.NoticeFailed, At: "T", Tries: 2, Problem: "no", NextTry: "U"},
		"of the profile, https://h: given-up at T, after 1 try: 410. Call": {Kind: "callback", To: "https://h",
			NamedBy: "profile", State: v1.NoticeGivenUp, At: "T", Tries: 1, Problem: "410", Advice: "Call"},
		"delayed, waits; next try at U": {Kind: "delayed", State: v1.NoticeWaits, NextTry: "U"},
		"queued, 2 recipients: delivered at T, after 1 try": {Kind: "queued", State: v1.NoticeDelivered,
			At: "T", Tries: 1, Others: 2},
	} {
		if got := noticeText(n); got != want {
			t.Errorf("%q, expected %q", got, want)
		}
	}
	b := v1.Batch{ID: "B"}
	if got := reportText(b); got != "" {
		t.Error(got)
	}
	b.Report, b.Reports = "/v1", 3
	if got := reportText(b); got != "archivist batch report B; the earlier ones: --number 1 to 2" {
		t.Error(got)
	}
	if got := callbacksText(&v1.CallbackCounts{Delivered: 3, GivenUp: 1}); got != "3 delivered, 1 given up: the "+
		"report names the jobs" {
		t.Error(got)
	}
}

// TestCalledBack: of many callbacks only those that were not delivered are printed.
func TestCalledBack(t *testing.T) {
	jobs := []v1.Job{{ID: "j1", Callbacks: []v1.Notice{{Kind: "callback", State: v1.NoticeDelivered}}}}
	printed := func() string {
		var out strings.Builder
		calledBack(terminal.Page{Writer: &out}, jobs)
		return out.String()
	}
	if got := printed(); got != "callback\tj1 delivered\n" {
		t.Errorf("%q", got)
	}
	for range mostCallbacks {
		jobs = append(jobs, v1.Job{ID: "j2", Callbacks: jobs[0].Callbacks})
	}
	jobs[3].Callbacks = []v1.Notice{{Kind: "callback", State: v1.NoticeGivenUp}}
	if got := printed(); got != "callback\tj2 given-up\n" {
		t.Errorf("%q", got)
	}
}
