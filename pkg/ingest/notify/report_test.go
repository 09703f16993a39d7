package notify

import (
	"encoding/base64"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/mail"
	"regexp"
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
	var walk func(kind, encoding string, body io.Reader)
	walk = func(kind, encoding string, body io.Reader) {
		media, params, err := mime.ParseMediaType(kind)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(media, "multipart/") {
			if encoding == "base64" {
				body = base64.NewDecoder(base64.StdEncoding, body)
			}
			data, err := io.ReadAll(body)
			if err != nil {
				t.Fatal(err)
			}
			if params["name"] != "" {
				media = params["name"]
			}
			out[media] = strings.ReplaceAll(string(data), "\r\n", "\n")
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
			walk(p.Header.Get("Content-Type"), p.Header.Get("Content-Transfer-Encoding"), p)
		}
	}
	walk(msg.Header.Get("Content-Type"), "", msg.Body)
	return msg, out
}

// sent composes a report's mail, sends it, and reads it as a recipient.
func sent(t *testing.T, r Report, whole bool, link string) (*mail.Message, map[string]string) {
	t.Helper()
	m, err := ForReport(r, whole, link)
	if err != nil {
		t.Fatal(err)
	}
	m.From, m.To = "archive@example.org", "me@example.org"
	if m.ID, err = MessageID(m.From, m.To, "01ABC.report.2"); err != nil {
		t.Fatal(err)
	}
	raw, err := m.Encode(time.Unix(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	return parts(t, raw)
}

func ExampleForReport() {
	m, err := ForReport(Report{Batch: "01ABC", Collection: "maps", At: "2026-11-21T16:00:00Z", Note: "Second delivery",
		Counts: Counts{Failed: 1, Completed: 1},
		Failed: []Job{{Job: "01ABC-00001", Title: "Sheet 1", LocalIDs: []string{"map-1"}, Next: NextStep(false, true),
			Message: "file 1.tif: https://example.org/1.tif answered 404 Not Found"}},
		Completed: []Job{{Job: "01ABC-00002", ARK: "ark:/99999/fk4tq65d6k", Title: "Sheet 2",
			LocalIDs: []string{"map-2"}, Version: 1, Files: 1, Bytes: 70,
			Warnings: []string{"file 2.tif: the depositor's size is 80 bytes, but 70 were received"}}},
	}, true, "https://archive.example.org/v1/batches/01ABC/report")
	fmt.Println(m.Text, err)
	// Output:
	// 1 of 2 objects failed: 01ABC to maps
	//
	// Note:
	//   Second delivery
	//
	// FAILED 01ABC-00001: Sheet 1 (map-1)
	//   file 1.tif: https://example.org/1.tif answered 404 Not Found
	//   Correct the cause, then requeue the job.
	// PRESERVED ark:/99999/fk4tq65d6k: Sheet 2 (map-2)
	//   version 1, 1 file, 70 bytes
	//   Warning: file 2.tif: the depositor's size is 80 bytes, but 70 were received
	//
	// The whole report: archivist batch report 01ABC
	// https://archive.example.org/v1/batches/01ABC/report
	//
	// Batch 01ABC, 2026-11-21T16:00:00Z.
	//  <nil>
}

func heading(t *testing.T, msg *mail.Message) string {
	t.Helper()
	s, err := new(mime.WordDecoder).DecodeHeader(msg.Header.Get("Subject"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestReportMail(t *testing.T) {
	r := Report{Batch: "B1", Collection: "maps", At: "2026-11-21T16:00:00Z",
		Counts: Counts{Failed: 2, Completed: 1, Open: 1},
		Completed: []Job{{Job: "B1-2", ARK: "ark:/99999/fk4tq65d6k", Version: 2, Files: 3, Bytes: 70,
			Title:    "<b>Map</b>",
			Warnings: []string{"file a.txt: the depositor's size is 3 bytes", "w2", "<i>w3</i>", "w4", "w5"}}},
		Failed: []Job{{Job: "B1-1", Message: "file a.txt: the depositor's md5 is 1", LocalIDs: []string{"x"},
			Next: NextStep(false, false)}, {Job: "B1-3", Message: "404", Next: NextStep(false, true)}}}
	msg, got := sent(t, r, true, "https://example.org/v1/batches/B1/report")
	if s := heading(t, msg); s != "2 of 4 objects failed: B1 to maps" {
		t.Error(s)
	}
	for part, says := range map[string][]string{
		"text/plain": {"a new submission is needed", "requeue the job",
			"  Warning: file a.txt: the depositor's size is 3 bytes", "Warning: 2 more in the report",
			"archivist batch report B1", "https://example.org/v1/batches/B1/report", "not listed here: 1."},
		"text/html": {"&lt;b&gt;Map&lt;/b&gt;", "a new submission is needed", "size is 3 bytes", "2 more in the report",
			"https://example.org/v1/batches/B1/report"},
		"completed.json": {"ark:/99999/fk4tq65d6k"}, "failed.json": {"404"}} {
		for _, s := range says {
			if body, there := got[part]; !there || !strings.Contains(body, s) {
				t.Errorf("%s does not say %q: %.400s", part, s, body)
			}
		}
	}
}

// TestMessageID: an id has the form of RFC 5322, is stable, and differs by recipient.
func TestMessageID(t *testing.T) {
	form := regexp.MustCompile("^<[A-Za-z0-9!#$%&'*+/=?^_`{|}~.-]+@[A-Za-z0-9-]+([.][A-Za-z0-9-]+)+>$")
	msg, _ := sent(t, Report{Batch: "B1", At: "2026-11-21T16:00:00Z"}, true, "")
	again, _ := sent(t, Report{Batch: "B1"}, true, "")
	id := msg.Header.Get("Message-ID")
	if !form.MatchString(id) || !strings.HasSuffix(id, "@example.org>") || again.Header.Get("Message-ID") != id {
		t.Errorf("%s, again %s", id, again.Header.Get("Message-ID"))
	}
	you, err := MessageID("Archive <archive@bücher.example>", "you@example.org", "01ABC.report.2")
	if err != nil || "<"+you+">" == id || !strings.HasSuffix(you, "@xn--bcher-kva.example") ||
		!form.MatchString("<"+you+">") {
		t.Errorf("%s, %v", you, err)
	}
	if _, err := MessageID("nobody", "you@example.org", "x"); err == nil {
		t.Error("a sender without address is accepted")
	}
}

// TestOtherScripts: text that is not ASCII arrives unchanged, in 7-bit headers.
func TestOtherScripts(t *testing.T) {
	const title = "Bücher, 例え and 🜚"
	m, err := ForReport(Report{Batch: "B1", Collection: "c", Note: title, Counts: Counts{Completed: 1},
		Completed: []Job{{Title: title}}}, true, "")
	if err != nil {
		t.Fatal(err)
	}
	m.From, m.To, m.Subject, m.ID = "Archiv der Bücher <archive@example.org>", "me@bücher.example", title,
		"x@example.org"
	raw, err := m.Encode(time.Unix(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	head, _, _ := strings.Cut(string(raw), "\r\n\r\n")
	for _, c := range head {
		if c > 126 {
			t.Fatalf("a header is not ASCII: %s", head)
		}
	}
	msg, got := parts(t, raw)
	from, err := msg.Header.AddressList("From")
	if err != nil || from[0].Name != "Archiv der Bücher" || heading(t, msg) != title ||
		msg.Header.Get("To") != "<me@xn--bcher-kva.example>" {
		t.Errorf("from %v, %v, to %s: %s", from, err, msg.Header.Get("To"), heading(t, msg))
	}
	if !strings.Contains(got["text/plain"], title) || !strings.Contains(got["text/html"], title) {
		t.Errorf("%s\n%s", got["text/plain"], got["text/html"])
	}
}

// TestLinesCannotBeForged: texts of depositors can neither begin a line of the report
// nor reach a terminal as control characters.
func TestLinesCannotBeForged(t *testing.T) {
	const evil = "x\nPRESERVED ark:/99999/fk4forged\r\nFAILED y\u2028PRESERVED z\x1b[31m\u202e\x00\u0085PRESERVED"
	r := Report{Batch: "B1", Collection: "c", Note: evil, Warnings: []string{evil}, Incomplete: evil,
		Counts:    Counts{Failed: 1, Completed: 1},
		Failed:    []Job{{Job: "B1-1", Title: evil, LocalIDs: []string{evil}, Message: evil, Next: "Requeue it."}},
		Completed: []Job{{ARK: "ark:/1/2", Title: evil, LocalIDs: []string{evil}, Warnings: []string{evil}}}}
	m, err := ForReport(r, true, "")
	if err != nil {
		t.Fatal(err)
	}
	queued, err := ForQueued(Queued{Batch: "B1", Collection: "c", Note: evil})
	if err != nil {
		t.Fatal(err)
	}
	delayed, err := ForDelayed(Delayed{Batch: "B1", Collection: "c", Note: evil, Held: evil, Days: 7, Open: 1})
	if err != nil || !strings.Contains(delayed.Text, "archivist explain B1") {
		t.Fatal(delayed.Text, err)
	}
	begin := 0
	for change, jobs := range map[Change]*[]Job{NowPreserved: &r.Completed, StillFailed: &r.Failed} {
		(*jobs)[0].Change = change
	}
	r.Deleted = []Job{{Job: "B1-2", Title: evil, LocalIDs: []string{evil}, Message: evil, Change: NowDeleted}}
	r.Changes = &Changes{NowPreserved: 1, StillFailed: 1, NextStep: 1, Deleted: 1}
	update, err := ForUpdate(r, true, "")
	if err != nil || !strings.Contains(update.Text, "DELETED B1-2") {
		t.Fatal(update.Text, err)
	}
	for _, text := range []string{m.Text, queued.Text, update.Text, delayed.Text} {
		for l := range strings.SplitSeq(text, "\n") {
			if regexp.MustCompile("^(NOW |STILL )?(PRESERVED|FAILED|CANCELLED|DELETED)").MatchString(l) {
				begin++
			}
			if strings.ContainsAny(l, "\x1b\x00\r\u0085\u2028\u202e") {
				t.Errorf("%q", l)
			}
		}
	}
	if begin != 5 {
		t.Errorf("%d lines of jobs, expected 2 and 3:\n%s\n%s", begin, m.Text, update.Text)
	}
	for _, s := range []string{"\x1b", "\x00", "\u202e"} {
		if strings.Contains(m.HTML, s) {
			t.Errorf("the HTML has %q", s)
		}
	}
}

// TestLargeReportIsLinked: a mail has a limited size, however large the report is.
func TestLargeReportIsLinked(t *testing.T) {
	r := Report{Batch: "B1", Collection: "maps", Counts: Counts{Failed: 30000, Completed: 30000}}
	for range Shown {
		r.Completed = append(r.Completed, Job{Title: strings.Repeat("long ", 30000)})
		r.Failed = append(r.Failed, Job{Message: strings.Repeat("ü", 300000)})
	}
	msg, got := sent(t, r, false, "https://example.org/v1/batches/B1/report")
	if s := heading(t, msg); s != "30000 of 60000 objects failed: B1 to maps" {
		t.Error(s)
	}
	for part, body := range got {
		if strings.HasSuffix(part, ".json") || len(body) > 600_000 ||
			!strings.Contains(body, "https://example.org/v1/batches/B1/report") ||
			!strings.Contains(body, "Only the first 50") {
			t.Errorf("%s has %d bytes", part, len(body))
		}
	}
}

func TestSubmissionFailed(t *testing.T) {
	msg, got := sent(t, Report{Batch: "B1", Collection: "maps",
		Message: "the manifest is rejected:\nline 3: x\nline 4: y"}, true, "https://example.org/")
	if !strings.HasPrefix(heading(t, msg), "Submission failed") || !strings.Contains(got["text/plain"],
		"\nline 4: y\n") || !strings.Contains(got["text/plain"], "No objects were ingested") {
		t.Errorf("%s: %s", heading(t, msg), got["text/plain"])
	}
	if len(got) != 2 || strings.Contains(got["text/plain"], "https://") {
		t.Errorf("%v", got)
	}
	for _, m := range []Mail{{From: "no address", To: "me@example.org"},
		{From: "a@example.org", To: "Me <me@example.org>"}} {
		if _, err := m.Encode(time.Unix(0, 0)); err == nil {
			t.Errorf("%+v was encoded", m)
		}
	}
}
