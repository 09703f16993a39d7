package inprocess

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/app/boot"
	"archivist/pkg/formats/checkm"
	"archivist/pkg/kernel/explain"
)

// gated lets downloads wait until the source is opened.
func (s *source) gated() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gate = make(chan struct{})
}

// submitted submits as a depositor. The metadata has markers, which nobody else may read.
func (w *world) submitted(caller, collection, file, ark string) (batch, job string) {
	w.Helper()
	in := v1.BatchRequest{Collection: collection, Submitter: "marker-" + collection,
		Note:     "marker " + collection,
		Payload:  v1.Payload{URL: sourceURL + file, Type: "file"},
		Metadata: &v1.Metadata{What: "marker " + collection}}
	if strings.HasSuffix(file, ".checkm") {
		in.Payload.Type, in.Metadata = "single-file-batch-manifest", nil
	} else {
		w.src.put(file, "content of "+collection+file)
	}
	if ark != "" {
		in.Identifiers = &v1.Identifiers{Primary: ark}
	}
	c := w.with(w.tokens[caller])
	out, err := c.Submit(w.Context(), in, "")
	w.must(err)
	return out.ID, out.ID + "-00001"
}

// waitsFor asks until a thing waits for a kind, and returns the last answer as it is and as text.
func (w *world) waitsFor(caller, id string, kind explain.Wait) (x v1.Explanation, text string) {
	w.Helper()
	w.until("it waits for "+string(kind), func() bool {
		status, body := w.asked(caller, http.MethodGet, "/v1/explain/"+id, "")
		text, x = body, v1.Explanation{}
		return status == http.StatusOK && json.Unmarshal([]byte(body), &x) == nil && len(x.Chain) > 0 &&
			x.Chain[len(x.Chain)-1].WaitsFor == string(kind)
	})
	return x, text
}

// counted is what counts the jobs of all.
var counted = regexp.MustCompile(`[0-9]+ waiting|ahead|first of|GiB|MiB|[0-9] B`)

// TestExplainedLimits: a job that waits since the jobs of another depositor run is explained to its own one without
// those: they are neither named nor counted, and it is said that it goes on by itself. An operator is told all.
func TestExplainedLimits(t *testing.T) {
	w, is := guarded(t, func(s *Settings) {
		s.Limits = boot.DefaultLimits
		s.Limits.MaxInFlight = 1
	})
	w.src.gated()
	theirs, running := w.submitted("depositor", "maps", "/running.txt", "")
	w.until("it runs", func() bool { return w.src.waiting("/running.txt") })
	batch, job := w.submitted("other", "letters", "/waits.txt", "")
	_, behind := w.submitted("depositor", "maps", "/behind.txt", "")
	for _, id := range []string{job, batch} {
		x, text := w.waitsFor("other", id, explain.Limit)
		for _, secret := range []string{"maps", theirs, running, behind, is.ark, is.job} {
			if strings.Contains(text, secret) {
				t.Errorf("%s: %q is told: %s", id, secret, text)
			}
		}
		last := x.Chain[len(x.Chain)-1]
		if counted.MatchString(text) || !strings.Contains(last.Why, "goes on by itself") || last.ID != job {
			t.Errorf("%s: %s", id, text)
		}
	}
	if _, text := w.waitsFor("operator", job, explain.Limit); !counted.MatchString(text) {
		t.Errorf("the operator is told %s", text)
	}
	w.src.open()
}

// TestForeignARK: who names an ARK of another collection is told what is told of an ARK that does not exist, also
// while a job works on that object: when it is submitted, and in the job, its events, its explanation and its report.
// An ARK of the own collection can be used.
func TestForeignARK(t *testing.T) {
	w, is := guarded(t)
	status, text := w.asked("administrator", http.MethodPut, "/v1/collections/letters", `{"shoulder":"fk5"}`)
	if status != http.StatusOK {
		t.Fatal(status, text)
	}
	const none = "ark:/99999/fk4nobody"
	w.refusedAtTheDoor(is.ark, none)

	w.src.gated()
	w.submitted("depositor", "maps", "/running.txt", is.ark)
	w.until("it runs", func() bool { return w.src.waiting("/running.txt") })
	var jobs []string
	for i, ark := range []string{is.ark, none, is.theirARK} {
		name := fmt.Sprintf("/own-%d.txt", i)
		w.src.put(name, "content")
		row := w.src.row(name)
		row.Primary = ark
		var list strings.Builder
		const profile = "http://uc3.cdlib.org/registry/ingest/manifest/mrt-single-file-batch-manifest"
		w.must(checkm.WriteBatch(&list, profile, []checkm.Row{row}))
		w.src.put(fmt.Sprintf("/own-%d.checkm", i), list.String())
		_, job := w.submitted("other", "letters", fmt.Sprintf("/own-%d.checkm", i), "")
		jobs = append(jobs, job)
	}
	c := w.with(w.tokens["other"])
	w.until("it is refused, and does not wait for the job that works on the object", func() bool {
		j, err := c.Job(t.Context(), jobs[0])
		return err == nil && j.State == v1.Failed
	})
	w.src.open()

	var told [3]string
	times := regexp.MustCompile(`"[a-z]+":"2[0-9-]+T[^"]*"|"seconds":[0-9.]+`)
	for i, ark := range []string{is.ark, none, is.theirARK} {
		batch, _, _ := strings.Cut(jobs[i], "-")
		own := fmt.Sprintf("own-%d", i)
		names := strings.NewReplacer(batch, "BATCH", ark, "ARK", own, "own")
		w.until("the batch has ended", func() bool {
			b, err := c.Batch(t.Context(), batch)
			return err == nil && (b.State == v1.Completed || b.State == v1.Failed)
		})
		for _, path := range []string{"/v1/jobs/" + jobs[i], "/v1/jobs/" + jobs[i] + "/receipt",
			"/v1/explain/" + jobs[i], "/v1/explain/" + batch} {
			_, text := w.asked("other", http.MethodGet, path, "")
			text = names.Replace(text)
			told[i] += path[:9] + ": " + times.ReplaceAllString(text, "") + "\n"
		}
		body, err := c.Report(t.Context(), batch, 0)
		w.must(err)
		report, err := io.ReadAll(body)
		w.must(err)
		w.must(body.Close())
		told[i] += times.ReplaceAllString(names.Replace(string(report)), "")
		events, err := c.Events(t.Context(), jobs[i])
		w.must(err)
		for _, e := range events {
			told[i] += e.Type + strings.ReplaceAll(string(e.Detail), ark, "ARK") + "\n"
		}
	}
	if told[0] != told[1] {
		t.Errorf("they can be told apart:\n%s\n%s", told[0], told[1])
	}
	if !strings.Contains(told[0], "ARK is not an object that this submission may change") ||
		strings.Contains(told[2], "may change") || !strings.Contains(told[2], "version 2") {
		t.Errorf("%s\n%s", told[0], told[2])
	}
}

// refusedAtTheDoor: submissions that name these ARKs are refused with the same text.
func (w *world) refusedAtTheDoor(arks ...string) {
	w.Helper()
	for _, ark := range arks {
		body := fmt.Sprintf(`{"collection":"letters","payload":{"url":"`+sourceURL+
			`/a.txt"},"identifiers":{"primary":%q}}`, ark)
		status, text := w.asked("other", http.MethodPost, "/v1/batches", body)
		const want = "identifiers.primary: ARK is not an object that this submission may change, " +
			"and a new one cannot have it"
		text = strings.ReplaceAll(text, ark, "ARK")
		if status != http.StatusUnprocessableEntity || !strings.Contains(text, want) {
			w.Errorf("%s: %d %s", ark, status, text)
		}
	}
}
