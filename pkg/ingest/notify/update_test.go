package notify

import (
	"fmt"
	"strings"
	"testing"
)

// updated is a report with one job of each change, and one without.
func updated() Report {
	return Report{Batch: "01ABC", Collection: "maps", At: "2026-11-23T09:00:00Z", Number: 2,
		Since: "2026-11-21T16:00:00Z", Note: "Second delivery",
		Counts:  Counts{Failed: 2, Completed: 2, Deleted: 1},
		Changes: &Changes{NowPreserved: 1, NewlyFailed: 1, StillFailed: 1, Deleted: 1},
		Completed: []Job{{Job: "01ABC-00001", ARK: "ark:/99999/fk4old", Version: 1},
			{Job: "01ABC-00002", Change: NowPreserved, ARK: "ark:/99999/fk4tq65d6k", Title: "Sheet 2",
				LocalIDs: []string{"map-2"}, Version: 1, Files: 1, Bytes: 70, Warnings: []string{"file 2.tif: size"}}},
		Failed: []Job{{Job: "01ABC-00003", Change: StillFailed, Title: "Sheet 3", Message: "file 3.tif: 404",
			Recoverable: true, Next: NextStep(false, true)},
			{Job: "01ABC-00004", Change: NewlyFailed, ARK: "ark:/99999/fk44", Version: 2,
				Message: "preserved as ark:/99999/fk44 v2; the callback was refused", Next: NextStep(false, true)}},
		Deleted: []Job{{Job: "01ABC-00005", Change: NowDeleted, Title: "Sheet 5"}}}
}

func ExampleForUpdate() {
	m, err := ForUpdate(updated(), true, "https://archive.example.org/v1/batches/01ABC/report?number=2")
	fmt.Println(m.Text, err)
	// Output:
	// Update: 1 now preserved, 1 newly failed, 1 still failed, 1 deleted: 01ABC to maps
	//
	// Note:
	//   Second delivery
	//
	// This is what has changed since the report of 2026-11-21T16:00:00Z.
	//
	// NOW PRESERVED ark:/99999/fk4tq65d6k: Sheet 2 (map-2)
	//   version 1, 1 file, 70 bytes
	//   Warning: file 2.tif: size
	// NEWLY FAILED 01ABC-00004
	//   preserved as ark:/99999/fk44 v2; the callback was refused
	//   Correct the cause, then requeue the job.
	// STILL FAILED 01ABC-00003: Sheet 3
	//   file 3.tif: 404
	//   Correct the cause, then requeue the job.
	// DELETED 01ABC-00005: Sheet 5
	//   It was deleted before it was preserved. Submit it again if it is to be preserved.
	//
	// The batch now: 2 preserved, 2 failed, 1 deleted.
	//
	// The whole report: archivist batch report 01ABC --number 2
	// https://archive.example.org/v1/batches/01ABC/report?number=2
	//
	// Batch 01ABC, 2026-11-23T09:00:00Z.
	//  <nil>
}

// TestUpdateMail: the mail has the jobs with a change, in both forms, and no others.
func TestUpdateMail(t *testing.T) {
	m, err := ForUpdate(updated(), true, "https://example.org/r?number=2")
	if err != nil {
		t.Fatal(err)
	}
	if m.Subject != "Update: 1 now preserved, 1 newly failed, 1 still failed, 1 deleted: 01ABC to maps" {
		t.Error(m.Subject)
	}
	for _, says := range []string{"Now preserved: 1", "Newly failed: 1", "Still failed: 1", "Deleted: 1", "Sheet 2",
		"file 3.tif: 404", "the callback was refused", "Sheet 5", "Submit it again", "2026-11-21T16:00:00Z",
		"--number 2", "https://example.org/r?number=2", "2 preserved, 2 failed, 1 deleted"} {
		if !strings.Contains(m.HTML, says) {
			t.Errorf("the HTML does not say %q:\n%s", says, m.HTML)
		}
	}
	if strings.Contains(m.Text+m.HTML, "fk4old") {
		t.Errorf("a job without a change is listed:\n%s", m.Text)
	}
	if len(m.Attach) != 2 || strings.Contains(string(m.Attach[0].JSON), "fk4old") ||
		!strings.Contains(string(m.Attach[0].JSON), "fk4tq65d6k") ||
		!strings.Contains(string(m.Attach[1].JSON), "01ABC-00003") ||
		!strings.Contains(string(m.Attach[1].JSON), "01ABC-00004") {
		t.Errorf("%s", m.Attach)
	}

	r := updated()
	r.Since = ""
	if m, err = ForUpdate(r, false, ""); err != nil || !strings.Contains(m.Text, "There is no earlier report") ||
		!strings.Contains(m.HTML, "There is no earlier report") || len(m.Attach) != 0 {
		t.Errorf("%s, %v", m.Text, err)
	}
}

// TestLargeUpdate: a mail lists the first jobs of each change, and says so.
func TestLargeUpdate(t *testing.T) {
	r := updated()
	r.Changes.StillFailed = 30000
	for range Shown {
		r.Failed = append(r.Failed, Job{Job: "x", Change: StillFailed, Message: strings.Repeat("ü", 300000)})
	}
	m, err := ForUpdate(r, false, "")
	if err != nil || !strings.Contains(m.Subject, "30000 still failed") ||
		!strings.Contains(m.Text, "Only the first 50") ||
		!strings.Contains(m.HTML, "Only the first 50") || len(m.Text)+len(m.HTML) > 1_200_000 {
		t.Errorf("%s, %d and %d bytes, %v", m.Subject, len(m.Text), len(m.HTML), err)
	}
}

// TestCancelledInReport: what a person cancelled is not taken for what failed, nor hidden among it.
func TestCancelledInReport(t *testing.T) {
	r := Report{Batch: "B1", Collection: "maps", Counts: Counts{Failed: 1, Cancelled: 2},
		Failed: []Job{{Job: "B1-1", Title: "Sheet 1", State: "Failed", Message: "404"}},
		Cancelled: []Job{
			{Job: "B1-2", Title: "Sheet 2", State: "Failed", Cancelled: true, Message: "cancelled by me: a test",
				Recoverable: true, Next: NextStep(true, true)},
			{Job: "B1-3", Title: "Sheet 3", State: "Deleted", Cancelled: true, Message: "cancelled by me: a test"}}}
	m, err := ForReport(r, true, "")
	if err != nil || m.Subject != "1 of 3 objects failed: B1 to maps" || len(m.Attach) != 3 ||
		m.Attach[2].Name != "cancelled.json" || !strings.Contains(string(m.Attach[2].JSON), "B1-3") ||
		strings.Contains(string(m.Attach[1].JSON), "B1-2") {
		t.Error(m.Subject, m.Attach, err)
	}
	if n := strings.Count(m.Text, "FAILED "); n != 1 || strings.Count(m.Text, "CANCELLED ") != 2 {
		t.Errorf("%d failed in:\n%s", n, m.Text)
	}
	for _, text := range []string{m.Text, m.HTML} {
		for _, says := range []string{"Requeue the job to continue it", "It had not started"} {
			if !strings.Contains(text, says) {
				t.Errorf("it does not say %q:\n%s", says, text)
			}
		}
	}
	r.Counts.Failed, r.Failed = 0, nil
	if !strings.HasPrefix(subject(r), "2 of 2 objects cancelled") {
		t.Error(subject(r))
	}
}

// TestDeletedInReport: a first report names the deleted jobs too.
func TestDeletedInReport(t *testing.T) {
	r := Report{Batch: "B1", Collection: "maps", Counts: Counts{Completed: 1, Deleted: 2},
		Incomplete: "cancelled by me: the wrong shelf",
		Completed:  []Job{{ARK: "ark:/99999/fk4x", Version: 1}},
		Deleted: []Job{{Job: "B1-2", Title: "Sheet 2"},
			{Job: "B1-3", Message: "cancelled by me", ARK: "ark:/99999/fk4y", Version: 3}}}
	m, err := ForReport(r, true, "")
	if err != nil || m.Subject != "2 of 3 objects deleted: B1 to maps" {
		t.Error(m.Subject, err)
	}
	for _, text := range []string{m.Text, m.HTML} {
		for _, says := range []string{"Not all of the submission was ingested:", "cancelled by me: the wrong shelf",
			"Sheet 2", "deleted before it was preserved", "cancelled by me",
			"preserved as ark:/99999/fk4y, version 3"} {
			if !strings.Contains(text, says) {
				t.Errorf("it does not say %q:\n%s", says, text)
			}
		}
	}
}
