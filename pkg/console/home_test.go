package console_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/fault"
)

// TestDay: the first page has what was done in the last hours as charts and as a table, and what is paused by whom and
// why; before anything was done, it says so.
func TestDay(t *testing.T) {
	w := begin(t, true)
	b := w.browser()
	if _, page := b.get(""); !strings.Contains(page, "Nothing was done, and nothing waited") {
		t.Errorf("nothing was done yet:\n%s", page)
	}
	w.submit(w.file("sample", "here.txt", "content"), v1.Completed)
	_, err := call(w, "/v1/queue/actions", v1.Action{Action: "pause", Reason: evil})
	w.must(err)
	w.until("it is counted", func() bool {
		a, err := w.api.Activity(t.Context())
		w.must(err)
		last := a.Hours[len(a.Hours)-1]
		return last.Completed+a.Hours[len(a.Hours)-2].Completed == 1 && last.Bytes+a.Hours[len(a.Hours)-2].Bytes > 0
	})
	_, page := b.get("")
	for _, text := range []string{"Jobs completed by hour, at most 1", "Failures of jobs by hour, at most 0",
		"Longest wait at a gate", "Paused and on hold", "evil-tag"} {
		if !strings.Contains(page, text) {
			t.Errorf("no %q:\n%s", text, page)
		}
	}
	harmless(t, "home", page)
}

// TestOwnCollections: the first page of a depositor of two collections has what failed in either, and its events name
// who has submitted it by the token, whatever name the submission says.
func TestOwnCollections(t *testing.T) {
	w := begin(t, false)
	b := w.as("duo")
	w.adminOf(b)
	first, second := w.file("letters", "none.txt", ""), w.file("sample", "neither.txt", "")
	second.Submitter = `otto ("Otto, an operator")`
	w.submit(first, v1.Failed)
	job := w.submit(second, v1.Failed)
	_, page := b.get("")
	for _, text := range []string{"1 job of letters failed", "1 job of sample failed", ">letters</td>",
		">sample</td>"} {
		if !strings.Contains(page, text) {
			t.Errorf("no %q:\n%s", text, page)
		}
	}
	w.reported(job)
	for _, subject := range []string{"batches/" + job.Batch, "jobs/" + job.ID} {
		all, err := call2[v1.List[v1.Event]](w, "/v1/"+subject+"/events")
		for _, e := range all.Items {
			if e.Actor != "" && !strings.HasPrefix(e.Actor, "duo") {
				t.Errorf("%s: %s by %s", subject, e.Type, e.Actor)
			}
		}
		if err != nil || len(all.Items) < 2 {
			t.Errorf("%+v, %v", all, err)
		}
	}
	batches, err := w.api.Batches(t.Context(), v1.Filter{Collection: "letters"})
	if err != nil || len(batches) != 1 || !strings.HasPrefix(batches[0].Submitter, "duo") {
		t.Errorf("%+v, %v", batches, err)
	}
}

// TestWhoStored: the event of an object names who has submitted it by the token, too.
func TestWhoStored(t *testing.T) {
	w := begin(t, false)
	w.adminOf(w.as("duo"))
	in := w.file("sample", "here.txt", "content")
	in.Submitter = `otto ("Otto, an operator")`
	job := w.submit(in, v1.Completed)
	w.adminOf(w.as("alma"))
	all, err := call2[v1.List[v1.Event]](w, v1.ObjectPath(job.Identifiers.Primary)+"/events")
	if err != nil || len(all.Items) == 0 || !strings.HasPrefix(all.Items[0].Actor, "duo") {
		t.Errorf("%+v, %v", all.Items, err)
	}
}

// TestSweepsChangeNothing: a page that is open is not sent again because the scheduler has swept,
// which it does each minute.
func TestSweepsChangeNothing(t *testing.T) {
	w := begin(t, true)
	b := w.browser()
	swept := func() string {
		q, err := w.api.Queue(t.Context())
		w.must(err)
		return q.LastSweep
	}
	w.until("the scheduler has swept", func() bool { return swept() != "" })
	for _, path := range []string{"", "queue"} {
		resp, page := b.get(path)
		before, hour := swept(), time.Now().Hour()
		w.until("it has swept again", func() bool { return swept() != before })
		again, _ := b.get(path, "HX-Request", "true", "If-None-Match", resp.Header.Get("ETag"))
		if again.StatusCode != http.StatusNotModified && time.Now().Hour() == hour { // charts have hours
			t.Errorf("%q: %d", path, again.StatusCode)
		}
		if strings.Contains(page, "The scheduler has not swept") {
			t.Errorf("%q: it is said to be silent:\n%s", path, page)
		}
	}
}

// TestRebuilds: a reindex is shown with its progress and what failed, and what others have stored is text.
func TestRebuilds(t *testing.T) {
	w := begin(t, true)
	b := w.browser()
	if _, page := b.get("rebuilds"); !strings.Contains(page, "Nobody has reindexed") ||
		!strings.Contains(page, `data-said="0 runs of reindexes."`) ||
		!strings.Contains(page, "No table of the account and region is a copy of") {
		t.Errorf("nobody has:\n%s", page)
	}
	_, err := w.api.ReportReindex(t.Context(), "ABCDEFGH", v1.ReindexReport{Done: 1024, Total: 4096, Objects: 30,
		Failed: 2, Failures: []v1.NotReindexed{{Stored: evil, Why: evil}}})
	w.must(err)
	_, page := b.get("rebuilds")
	for _, text := range []string{"25 % of the storage", "2 failed", "And 1 more", "evil-tag"} {
		if !strings.Contains(page, text) {
			t.Errorf("no %q:\n%s", text, page)
		}
	}
	harmless(t, "rebuilds", page)
}

// TestRestores: a restore that AWS makes of the table is shown with what is known of it, then what the new table lacks
// with the commands that set it; to operators.
func TestRestores(t *testing.T) {
	w := begin(t, false)
	w.adminOf(w.signed("alma"))
	otto := w.signed("otto")
	db := dynamodb.NewFromConfig(w.Config())
	_, err := db.RestoreTableToPointInTime(t.Context(), &dynamodb.RestoreTableToPointInTimeInput{
		SourceTableName: aws.String("archivist"), TargetTableName: aws.String("archivist-restored"),
		RestoreDateTime: aws.Time(time.Date(2026, 11, 22, 9, 30, 0, 0, time.UTC))})
	w.must(err)
	one, err := w.api.Restores(t.Context(), "archivist-restored")
	w.must(err)
	if r := one.Items[0]; !r.Restoring || r.Ready || r.Moment != "2026-11-22T09:30:00Z" || r.Source != "archivist" {
		t.Errorf("while it is made: %+v", r)
	}
	w.must(w.Restored("archivist-restored"))
	_, page := otto.get("rebuilds")
	for _, text := range []string{
		"archivist-restored", "aws dynamodb update-time-to-live --table-name archivist-restored",
		"PointInTimeRecoveryEnabled=true", "StreamViewType=NEW_AND_OLD_IMAGES", "--deletion-protection-enabled",
		"archivist restore status"} {
		if !strings.Contains(page, text) {
			t.Errorf("no %q:\n%s", text, page)
		}
	}
	if _, page := w.signed("vera").get("rebuilds"); strings.Contains(page, "archivist-restored") ||
		strings.Contains(page, "What was restored") {
		t.Errorf("a viewer sees it:\n%s", page)
	}
	if _, err := w.api.Restores(t.Context(), "elsewhere"); !fault.Is(err, fault.NotFound) {
		t.Errorf("a table that is not there: %v", err)
	}
}

// TestSettingsPage: all settings are shown, those that the API does not know as such.
func TestSettingsPage(t *testing.T) {
	w := begin(t, true)
	_, page := w.browser().get("settings")
	for _, text := range []string{"maxInFlight", "not known to the API", "a local stack", "not set"} {
		if !strings.Contains(page, text) {
			t.Errorf("no %q:\n%s", text, page)
		}
	}
	w.light(map[string]int{"rebuilds": 10, "settings": 10})
}
