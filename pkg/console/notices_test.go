package console_test

import (
	"net/http"
	"strings"
	"testing"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/app/inprocess"
)

// TestNotices: the page of a batch says what became of its mails and callbacks, and the page of a
// job of its own: to whom, when, after how many tries, why not, and what to do. The list has the
// bytes of each batch.
func TestNotices(t *testing.T) {
	w := beginWith(t, true, func(s *inprocess.Settings) { s.MailFrom = "archive@example.org" })
	status := http.StatusGone
	w.web.Hosts["hooks.example.org"] = http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		rw.WriteHeader(status)
	})
	profile := v1.Profile{Notification: []string{"a@example.org"}, Callback: &v1.Callback{Mode: "best-effort",
		Hosts: []string{"hooks.example.org"}}}
	_, err := w.api.PutCollection(t.Context(), "sample", profile)
	w.must(err)
	submit := func(name, text, state string) string {
		in := w.file("sample", name, text)
		in.Callback = "https://hooks.example.org/?SECRET"
		return w.submit(in, state).Batch
	}
	id := submit("a.txt", "abcde", v1.Completed)
	var b v1.Batch
	w.until("the mails are sent", func() bool {
		b, err = w.api.Batch(t.Context(), id)
		return err == nil && len(b.Mails) == 2 && b.Mails[1].State == v1.NoticeDelivered
	})
	if b.Bytes != 5 || *b.Callbacks != (v1.CallbackCounts{GivenUp: 1}) || b.Mails[1].Kind != "report" ||
		b.Mails[1].To != "a@example.org" || b.Mails[1].At == "" || b.Mails[1].Tries != 1 {
		t.Errorf("%+v, %+v", b, b.Callbacks)
	}

	br := w.browser()
	says := func(path string, texts ...string) {
		t.Helper()
		_, page := br.get(path)
		for _, text := range texts {
			if !strings.Contains(page, text) {
				t.Errorf("%s does not say %q:\n%s", path, text, page)
			}
		}
		if strings.Contains(page, "SECRET") {
			t.Errorf("%s says a secret", path)
		}
	}
	says("batches/"+id, "report mail", "a@example.org",
		`<span class="state good">delivered</span>`, "1 given up", "callback=given-up",
		"callback of the submission", "https://hooks.example.org", `<span class="state bad">given-up</span>`, "410",
		"It is not sent again", "5 B")
	calledSo(br, id)
	says("jobs/"+id+"-00001", "<h2 id=\"callbacks\">Callbacks</h2>", "410", "given-up")
	says("batches", "<td class=\"n\">5 B</td>")

	profile.Callback.Mode = "required"
	_, err = w.api.PutCollection(t.Context(), "sample", profile)
	w.must(err)
	id = submit("b.txt", "abc", v1.Failed)
	says("batches/"+id, "1 failed</b></a>: a requeue of the job sends it again", "archivist job requeue "+id+"-00001")
	status = http.StatusOK
	_, err = call(w, "/v1/jobs/"+id+"-00001/actions", v1.Action{Action: "requeue", Reason: "It works again"})
	w.must(err)
	w.until("the callback is delivered", func() bool {
		b, err = w.api.Batch(t.Context(), id)
		return err == nil && b.Callbacks != nil && *b.Callbacks == (v1.CallbackCounts{Delivered: 1})
	})
	j, err := w.api.Job(t.Context(), id+"-00001")
	if err != nil || len(j.Callbacks) != 1 || j.Callbacks[0].State != v1.NoticeDelivered ||
		j.Callbacks[0].Tries != 2 || j.Callbacks[0].Problem != "" {
		t.Errorf("%+v, %v", j.Callbacks, err)
	}
}

// calledSo fails unless the jobs of a batch, whose callback was given up, are found by that.
func calledSo(br *browser, id string) {
	t := br.T
	t.Helper()
	for state, has := range map[string]bool{"given-up": true, "failed": false, "delivered": false} {
		_, page := br.get("jobs?batch=" + id + "&callback=" + state)
		if strings.Contains(page, "jobs/"+id+"-00001") != has ||
			!strings.Contains(page, "--callback "+state) {
			t.Errorf("jobs with a callback that is %s:\n%s", state, page)
		}
	}
	if resp, page := br.get("jobs?batch=" + id + "&callback=lost"); resp.StatusCode != 422 ||
		!strings.Contains(page, "expected one of waits, delivered, failed, given-up") {
		t.Errorf("an unknown state of callbacks: %d\n%s", resp.StatusCode, page)
	}
}
