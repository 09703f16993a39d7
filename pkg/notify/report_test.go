package notify

import (
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/mail"
	"strings"
	"testing"
	"time"
)

// parts reads a message's parts by content type or file name.
func parts(t *testing.T, raw []byte) (*mail.Message, map[string]string) {
	t.Helper()
	msg, err := mail.ReadMessage(strings.NewReader(string(raw)))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	var walk func(kind string, body io.Reader)
	walk = func(kind string, body io.Reader) {
		media, params, err := mime.ParseMediaType(kind)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(media, "multipart/") {
			data, err := io.ReadAll(body)
			if err != nil {
				t.Fatal(err)
			}
			if params["name"] != "" {
				media = params["name"]
			}
			out[media] = string(data)
			return
		}
		for r := multipart.NewReader(body, params["boundary"]); ; {
			p, err := r.NextPart()
			if err == io.EOF {
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			walk(p.Header.Get("Content-Type"), p)
		}
	}
	walk(msg.Header.Get("Content-Type"), msg.Body)
	return msg, out
}

func TestReportMail(t *testing.T) {
	r := Report{Batch: "B1", Collection: "maps", At: "2026-11-21T16:00:00Z",
		Completed: []Job{{Job: "B1-2", ARK: "ark:/99999/fk4tq65d6k", Version: 2, Files: 3, Bytes: 70, Title: "<b>Map</b>"}},
		Failed:    []Job{{Job: "B1-1", Message: "file a.txt: the depositor's md5 is 1", LocalIDs: []string{"x"}}, {Job: "B1-3", Message: "404", Recoverable: true}}}
	m, err := ForReport(r, "archive@example.org", []string{"me@example.org", "you@example.org"}, "https://x/")
	if err != nil {
		t.Fatal(err)
	}
	raw, err := m.Encode(time.Unix(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	msg, got := parts(t, raw)
	if s := msg.Header.Get("Subject"); s != "2 of 3 objects failed: B1 to maps" || msg.Header.Get("Message-ID") != "<B1.2026-11-21T16:00:00Z@archivist>" {
		t.Errorf("%s, %s", s, msg.Header.Get("Message-ID"))
	}
	for part, says := range map[string]string{"text/plain": "A new submission is needed", "text/html": "&lt;b&gt;Map&lt;/b&gt;", "completed.json": "", "failed.json": ""} {
		if body, ok := got[part]; !ok || !strings.Contains(body, says) {
			t.Errorf("%s: %.200s", part, body)
		}
	}
	again, err := ForReport(r, "archive@example.org", []string{"me@example.org"}, "")
	if err != nil || again.ID != m.ID {
		t.Errorf("the id of a repeat is %s, %v", again.ID, err)
	}
}

func TestLargeReportIsLinked(t *testing.T) {
	r := Report{Batch: "B1", Collection: "maps"}
	for i := range 30000 {
		r.Completed = append(r.Completed, Job{Job: fmt.Sprintf("B1-%05d", i), Title: strings.Repeat("long ", 30)})
	}
	m, err := ForReport(r, "a@example.org", []string{"b@example.org"}, "https://x/report")
	if err != nil || len(m.Attach) > 0 || !strings.Contains(m.Text, "https://x/report") || !strings.Contains(m.HTML, "https://x/report") || len(m.HTML) > 100_000 {
		t.Errorf("%d attached, %d bytes of HTML, %v", len(m.Attach), len(m.HTML), err)
	}
}

func TestSubmissionFailed(t *testing.T) {
	m, err := ForReport(Report{Batch: "B1", Collection: "maps", Message: "the manifest is rejected: line 3"}, "a@example.org", []string{"b@example.org"}, "")
	if err != nil || !strings.HasPrefix(m.Subject, "Submission failed") || !strings.Contains(m.Text, "line 3") {
		t.Errorf("%+v, %v", m, err)
	}
	if _, err := (Mail{From: "no address"}).Encode(time.Unix(0, 0)); err == nil {
		t.Error("a bad address was taken")
	}
}
