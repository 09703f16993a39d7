package console_test

import (
	"fmt"
	"html"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/app/inprocess"
)

// jingles is a deployment with a research project.
func jingles(s *inprocess.Settings) { s.Projects = []string{"jingles"} }

// found makes a project in which a clip was found in an episode, at 75 s, and returns their keys.
func (w *world) found() (episode, clip string) { return w.foundIn(v1.ResearchDefinition{}) }

// foundIn is found in a project that is like another one.
func (w *world) foundIn(like v1.ResearchDefinition) (episode, clip string) {
	w.Helper()
	_, err := w.api.ApplyResearch(w.Context(), v1.ResearchDefinition{Name: "jingles",
		Description: evil, Review: like.Review,
		Analysis: v1.ResearchAnalysis{Name: "correlation", Version: "1"}}, evil)
	w.must(err)
	keys := map[string]string{}
	for _, kind := range []string{v1.Episodes, v1.Clips} {
		out, err := w.api.Curate(w.Context(), "jingles", kind, []v1.ResearchRecord{{Source: "radio",
			ID: kind + "-one", Title: evil, URL: "http://" + sourceHost + "/" + kind + ".wav",
			Curated: "1999-12-31T10:00:00Z"}})
		w.must(err)
		if out[0].Problem != "" {
			w.Fatal(out[0])
		}
		keys[kind] = out[0].Key
	}
	_, err = w.api.Hello(w.Context(), "jingles", v1.ResearchHello{Researcher: "bench", Capacity: 1,
		Host: "<evil-tag>"})
	w.must(err)
	var work *v1.ResearchWork
	w.until("a work item is there", func() bool {
		work, err = w.api.NextWork(w.Context(), "jingles", v1.ResearchNext{Researcher: "bench",
			Token: "first"})
		w.must(err)
		return work != nil
	})
	w.must(w.api.ReportWork(w.Context(), "jingles", v1.ResearchReport{Project: "jingles",
		Lease:      work.Lease.ID,
		Researcher: "bench", Analysis: "correlation@1", Episode: work.Episode.Key,
		Clip:     work.Clips[0].Key,
		Sequence: 1, Final: true, Count: 1, Waveform: w.sound,
		Hits: []v1.ResearchHit{{Offset: 75_500_000_000, Length: 2_000_000_000, Score: 0.9}}}))
	w.until("the pair is researched", func() bool {
		is, err := w.api.ResearchStatus(w.Context(), "jingles")
		w.must(err)
		return is.Coverage.Researched == 1
	})
	return keys[v1.Episodes], keys[v1.Clips]
}

// TestResearchPages: the matrix has the pair, the player starts at the place that was found, from the host of
// the recording only, and the places are exported.
func TestResearchPages(t *testing.T) {
	w := beginWith(t, true, jingles)
	episode, clip := w.found()
	b := w.browser()
	b.plain("research", "research/jingles", "research/jingles/matrix")
	_, page := b.get("research/jingles/matrix")
	if !strings.Contains(page, `<td class="cell hit" title="1 place found"><span aria-hidden="true">1</span>`) {
		t.Errorf("the matrix:\n%s", page)
	}
	at := "research/jingles/episodes/" + episode
	_, page = b.get(at)
	if !strings.Contains(page, `href="?at=75500000000#player"`) || !strings.Contains(page,
		"1:15.5") {
		t.Errorf("the episode:\n%s", page)
	}
	resp, page := b.get(at + "?at=75500000000")
	if policy := resp.Header.Get("Content-Security-Policy"); !strings.HasSuffix(policy,
		"; media-src http: https:") || strings.Contains(policy, "unsafe") {
		t.Error(policy)
	}
	if !strings.Contains(page, `src="http://`+sourceHost+`/episodes.wav#t=75.500"`) {
		t.Errorf("the player:\n%s", page)
	}
	if !strings.Contains(page, `href="http://`+sourceHost+`/episodes.wav" rel="noreferrer"`) {
		t.Errorf("the recording itself:\n%s", page)
	}
	if resp, _ := b.get("research/jingles"); strings.Contains(resp.Header.Get("Content-Security-Policy"), "media") {
		t.Error("media are permitted where there is no player")
	}
	for format, want := range map[string]string{"csv": "75.5", "webvtt": "WEBVTT",
		"audacity": "75.5"} {
		resp, text := b.get(at + "/labels?format=" + format)
		if resp.StatusCode != 200 || !strings.Contains(text, want) ||
			!strings.HasPrefix(resp.Header.Get("Content-Disposition"), "attachment") {
			t.Errorf("%s: %d %v\n%s", format, resp.StatusCode, resp.Header, text)
		}
	}
	_, page = b.get("research/jingles/clips/" + clip)
	if !strings.Contains(page, "episodes/"+episode+"?at=75500000000#player") {
		t.Errorf("the clip:\n%s", page)
	}
	_, page = b.get("research/jingles")
	if to, _ := b.doDeed(page, "pause"); to != "research/jingles" {
		t.Error(to)
	}
	if is, err := w.api.ResearchProject(t.Context(), "jingles"); err != nil || is.Paused == "" {
		t.Errorf("%+v, %v", is, err)
	}
	w.light(map[string]int{"research": 10, "research/jingles": 30,
		"research/jingles/matrix": 10, at: 10})
}

// TestMatrixPage: a project of many recordings is read in parts, in both directions, each at the
// cost of few calls, with a picture of its pairs; names are in the order of people.
func TestMatrixPage(t *testing.T) {
	w := beginWith(t, true, jingles)
	_, err := w.api.ApplyResearch(t.Context(), v1.ResearchDefinition{Name: "jingles",
		Analysis: v1.ResearchAnalysis{Name: "correlation", Version: "1"}}, evil)
	w.must(err)
	for kind, n := range map[string]int{v1.Episodes: 60, v1.Clips: 90} {
		var all []v1.ResearchRecord
		for i := range n {
			all = append(all, v1.ResearchRecord{Source: "radio", ID: fmt.Sprint(kind, i),
				Title: fmt.Sprint("Part ", i),
				URL:   "http://" + sourceHost + "/one.wav", Curated: "1999-12-31T10:00:00Z"})
		}
		_, err := w.api.Curate(t.Context(), "jingles", kind, all)
		w.must(err)
	}
	b := w.browser()
	const at = "research/jingles/matrix"
	seen := map[string]bool{}
	for path, next := at, ""; ; path = at + next {
		_, page := b.get(path)
		clips := regexp.MustCompile(`clips/[a-z2-7]{24}`).FindAllString(page, -1)
		for _, key := range clips {
			seen[key] = true
		}
		if strings.Count(page, "<tr><th scope=\"row\">") != 50 || strings.Count(page,
			"<td class=\"cell ") != 50*len(clips) ||
			!strings.Contains(page, `viewBox="0 0 90 50"`) || !strings.Contains(page,
			`<path class="open" d="M0 `) {
			t.Errorf("%s: %d rows, %d clips", path, strings.Count(page, "<tr><th scope=\"row\">"),
				len(clips))
		}
		if before := strings.Contains(page, ">Clips before<"); before != (path != at) {
			t.Errorf("%s leads back: %v", path, before)
		}
		more := regexp.MustCompile(`<a href="([^"]*)">Next clips<`).FindStringSubmatch(page)
		if more == nil {
			break
		}
		next = html.UnescapeString(more[1])
	}
	_, page := b.get(at)
	w.numbered(page)
	rest := regexp.MustCompile(`<a href="([^"]*)" rel="next">`).FindStringSubmatch(page)
	_, last := b.get(at + html.UnescapeString(rest[1]))
	back := regexp.MustCompile(`<a href="([^"]*)" rel="prev">`).FindStringSubmatch(last)
	if back == nil || strings.Contains(page, `rel="prev"`) {
		t.Errorf("the second page leads back by %q; the first is:\n%s", back, page)
	} else if _, again := b.get(at + html.UnescapeString(back[1])); again != page {
		t.Errorf("the page before the last:\n%s", again)
	}
	if len(seen) != 90 || strings.Count(last, "<tr><th scope=\"row\">") != 10 {
		t.Errorf("%d clips; on the last page:\n%s", len(seen), last)
	}
	if resp, _ := b.get(at + "?clip=x"); resp.StatusCode != 422 {
		t.Errorf("no number: %d", resp.StatusCode)
	}
	w.light(map[string]int{at: 10, at + "?clip=41": 10})
}

// numbered: the columns of a page are in another order than the API's, and have its numbers.
func (w *world) numbered(page string) {
	w.Helper()
	part, err := w.api.ResearchMatrix(w.Context(), "jingles", "", 0)
	w.must(err)
	columns := regexp.MustCompile(`clips/([a-z2-7]{24})"><b>(\d+)</b>`).FindAllStringSubmatch(page, -1)
	moved := false
	for i, c := range columns {
		n, err := strconv.Atoi(c[2])
		if err != nil || n < 1 || n > len(part.Clips) || part.Clips[n-1].Key != c[1] {
			w.Errorf("column %d has the number %s", i, c[2])
		}
		moved = moved || n != i+1
	}
	if len(columns) != len(part.Clips) || !moved {
		w.Errorf("%d columns of %d clips, in another order: %t", len(columns), len(part.Clips), moved)
	}
}

// TestWaveformPage: a recording of which a researcher has said how it sounds is drawn, to its end,
// with the place that was found as a link; without that, the page has a line of the time.
func TestWaveformPage(t *testing.T) {
	for _, sound := range []*v1.ResearchWaveform{nil, {Length: 151e9, Peaks: []byte{0, 64, 128,
		32}}} {
		w := beginWith(t, true, jingles)
		w.sound = sound
		episode, _ := w.found()
		_, page := w.browser().get("research/jingles/episodes/" + episode)
		drawn := strings.Contains(page, `d="M0 49v2M250 25v50M500 0v100M750 37v25"`) &&
			strings.Contains(page, `<span>2:31</span>`) && strings.Contains(page, `<span>1:15</span>`) &&
			strings.Contains(page, `<a href="?at=75500000000#player" tabindex="-1" aria-label="Listen at 1:15.5`) &&
			strings.Contains(page, `x="500" width="13" height="100"`)
		if drawn != (sound != nil) || strings.Contains(page, `viewBox="0 0 1000 24"`) == drawn {
			t.Errorf("with %+v:\n%s", sound, page)
		}
	}
}

// TestReviewPages: in a project with a review, a place waits for a person. It is accepted and
// rejected by forms of the page of its recording; files have it only while it is accepted.
func TestReviewPages(t *testing.T) {
	w := beginWith(t, true, jingles)
	episode, _ := w.foundIn(v1.ResearchDefinition{Review: true})
	b := w.browser()
	at := "research/jingles/episodes/" + episode
	b.plain("research/jingles")
	w.needed(b, "research/jingles#reviews", "archivist research reviews jingles")
	_, page := b.get("research/jingles/matrix")
	if !strings.Contains(page, `<td class="cell review" title="1 place found, to review"><span aria-hidden="true">1?<`) {
		t.Errorf("the matrix:\n%s", page)
	}
	_, page = b.get("research/jingles")
	if !strings.Contains(page, at+`#hits"`) || !strings.Contains(page, "1 of 1 places wait") {
		t.Errorf("the project:\n%s", page)
	}
	for _, c := range []struct {
		deed, says, offers, change string
		labels                     int
	}{{"accept", "accepted", "reject", "", 1}, {"reject", "rejected", "accept", "yes", 0}} {
		_, page = b.get(at)
		link := regexp.MustCompile(`deed\?[^"]*deed=` + c.deed + `[^"]*`).FindString(page)
		_, form := b.get(html.UnescapeString(link))
		if strings.Contains(form, `value="yes" checked`) != (c.deed == "reject") {
			t.Errorf("to %s, of a place that waits or is decided:\n%s", c.deed, form)
		}
		to, page := b.doDeed(form, c.deed, "change", c.change)
		if to != at || !strings.Contains(page, `<td class="text">`+c.says) ||
			strings.Contains(page, "deed="+c.deed) || !strings.Contains(page, "deed="+c.offers) {
			t.Errorf("%s leads to %s:\n%s", c.deed, to, page)
		}
		if _, text := b.get(at + "/labels?format=audacity"); strings.Count(text, "\n") != c.labels {
			t.Errorf("labels, %s: %q", c.says, text)
		}
	}
	w.needed(b, "", "archivist research reviews jingles")
	_, page = b.get("research/jingles/matrix")
	if !strings.Contains(page, `title="1 place found"`) {
		t.Errorf("the matrix:\n%s", page)
	}
	w.light(map[string]int{"research/jingles": 32, at: 12})
}

// TestDifferingPage: a pair of which two researchers have found something else is counted and
// listed on the page of its project.
func TestDifferingPage(t *testing.T) {
	w := beginWith(t, true, jingles)
	_, err := w.api.ApplyResearch(w.Context(), v1.ResearchDefinition{Name: "jingles", Quorum: 2,
		Analysis: v1.ResearchAnalysis{Name: "correlation", Version: "1"}}, evil)
	w.must(err)
	for _, kind := range []string{v1.Episodes, v1.Clips} {
		_, err := w.api.Curate(w.Context(), "jingles", kind, []v1.ResearchRecord{{Source: "radio",
			ID: "one", URL: "http://" + sourceHost + "/one.wav", Curated: "1999-12-31T10:00:00Z"}})
		w.must(err)
	}
	for n, name := range []string{"first", "second"} {
		_, err = w.api.Hello(w.Context(), "jingles", v1.ResearchHello{Researcher: name, Capacity: 1})
		w.must(err)
		w.until("a work item is there", func() bool {
			work, err := w.api.NextWork(w.Context(), "jingles", v1.ResearchNext{Researcher: name,
				Token: name})
			w.must(err)
			if work == nil {
				return false
			}
			w.must(w.api.ReportWork(w.Context(), "jingles", v1.ResearchReport{Project: "jingles",
				Lease: work.Lease.ID, Researcher: name, Analysis: "correlation@1",
				Episode: work.Episode.Key, Clip: work.Clips[0].Key, Sequence: 1, Final: true, Count: 1,
				Hits: []v1.ResearchHit{{Offset: int64(n) * 9e9, Length: 2e9, Score: 0.9}}}))
			return true
		})
	}
	w.until("the results differ", func() bool {
		is, err := w.api.ResearchStatus(w.Context(), "jingles")
		w.must(err)
		return len(is.Differences) == 1
	})
	_, page := w.browser().get("research/jingles")
	if !strings.Contains(page, "<dt>Pairs</dt><dd>1 <small>0 researched, 1 differ</small>") ||
		!strings.Contains(page, "Results that differ") {
		t.Errorf("the project:\n%s", page)
	}
	b := w.browser()
	w.needed(b, "research/jingles#differ", "archivist research differences jingles")
	_, page = b.get("research/jingles/matrix")
	if !strings.Contains(page, `class="cell problem" title="results differ"><span aria-hidden="true">≠<`) {
		t.Errorf("the matrix:\n%s", page)
	}
	all, err := w.api.ResearchDifferences(t.Context(), "jingles", 0)
	w.must(err)
	_, err = w.api.DecidePair(t.Context(), "jingles", v1.ResearchDecision{Action: "decide",
		Episode: all[0].Episode, Clip: all[0].Clip, Lease: all[0].Results[0].Lease, Reason: evil})
	w.must(err)
	_, page = b.get("research/jingles/matrix")
	if !strings.Contains(page, `class="cell hit" title="1 place found"><span aria-hidden="true">1<`) {
		t.Errorf("the matrix, after the decision:\n%s", page)
	}
	w.needed(b, "", "archivist research differences jingles")
}

// needed checks that the first page says with a link, and with a command, that a person is needed; or
// with no link that it says nothing of it.
func (w *world) needed(b *browser, to, command string) {
	w.Helper()
	_, page := b.get("")
	_, list, _ := strings.Cut(page, "Needs a person</h2>")
	list, _, _ = strings.Cut(list, "</section>")
	if strings.Contains(list, command) != (to != "") || !strings.Contains(list, to) {
		w.Errorf("the first page has not %q and %q, or should not:\n%s", to, command, list)
	}
}

// TestResearchRoles: each role sees the research that the API gives it, and is offered what it may do.
func TestResearchRoles(t *testing.T) {
	w := beginWith(t, false, jingles)
	w.adminOf(w.as("alma"))
	episode, clip := w.found()
	none := [5]string{}
	w.roles([]roleRow{
		{"research", usual, none},
		{"research/jingles", usual, [5]string{"pause", "pause"}},
		{"research/none", [5]int{404, 404, 404, 403, 403}, none},
		{"research/jingles/matrix", usual, none},
		{"research/jingles/episodes/" + episode, usual, none},
		{"research/jingles/episodes/" + episode + "?at=x", [5]int{422, 422, 422, 403, 403}, none},
		{"research/jingles/episodes/" + episode + "/labels?format=csv", usual, none},
		{"research/jingles/episodes/" + episode + "/labels?format=x", [5]int{422, 422, 422, 422,
			422}, none},
		{"research/jingles/clips/" + clip, usual, none},
		{"research/jingles/offsets", usual, none},
		{"research/none/offsets", [5]int{404, 404, 404, 403, 403}, none},
		{"research/jingles/clips/none", [5]int{404, 404, 404, 403, 403}, none},
		{"search?q=https%3A%2F%2Fexample.org%2Fmap", [5]int{200, 200, 200, 200, 200}, none},
		{"search?q=abcdefghijklmnopqrstuvwx", [5]int{200, 200, 200, 200, 200}, none},
	})
	w.denied("project", "pause", []string{"jingles"}, []string{"vera", "dora", "nora"})
	w.denied("episode", "retry", []string{"jingles", episode}, []string{"vera", "dora", "nora"})
	w.denied("episode", "accept", []string{"jingles", episode}, []string{"vera", "dora", "nora"})
}

// TestDoctorPages: the doctor is asked, what it found is shown, and a repair has to be confirmed.
func TestDoctorPages(t *testing.T) {
	w := begin(t, true)
	w.submit(w.file("sample", "here.txt", "content"), v1.Completed)
	b := w.browser()
	_, page := b.get("doctor")
	form := formAt(t, page, "deed", "deed=repair")
	form.Set("reason", evil)
	form.Set("step", "sure")
	_, page = b.post("deed", form)
	sure := formAt(t, page, "deed", "deed=repair")
	if all, err := w.api.Operations(t.Context(), 0); sure == nil || err != nil || len(all) > 0 {
		t.Fatalf("%v, %v\n%s", all, err, page)
	}
	sure.Set("step", "do")
	sure.Set("sure", "yes")
	first, _ := b.post("deed", sure)
	again, _ := b.post("deed", sure)
	at, found := strings.CutPrefix(first.Request.URL.String(), home)
	if !found || !strings.HasPrefix(at, "doctor/") ||
		first.Request.URL.String() != again.Request.URL.String() {
		t.Fatalf("%s, then %s", first.Request.URL, again.Request.URL)
	}
	at, _, _ = strings.Cut(at, "?")
	w.until("the examination has ended", func() bool {
		_, page = b.get(at)
		return strings.Contains(page, v1.OperationDone)
	})
	b.plain("doctor", at)
}

// TestDoctorRoles: each role sees the examinations that the API gives it, and is offered what it may do.
func TestDoctorRoles(t *testing.T) {
	w := begin(t, false)
	w.adminOf(w.as("alma"))
	op, err := w.api.Start(t.Context(), v1.OperationRequest{Action: v1.Doctor,
		ActionOptions: v1.ActionOptions{Reason: "A check"}}, "")
	w.must(err)
	w.until("it has ended", func() bool {
		is, err := w.api.Operation(t.Context(), op.ID)
		w.must(err)
		return is.State == v1.OperationDone
	})
	none := [5]string{}
	w.roles([]roleRow{
		{"doctor", usual, [5]string{"doctor repair", "doctor"}},
		{"doctor/" + op.ID, usual, none},
		{"doctor/none", [5]int{404, 404, 404, 403, 403}, none},
	})
	w.denied("doctor", "doctor", nil, []string{"vera", "dora", "nora"})
	for _, user := range []string{"vera", "dora"} {
		form := url.Values{"form": {"none"}, "kind": {"doctor"}, "deed": {"doctor"}}
		if resp, _ := w.signed(user).post("deed", form); resp.StatusCode != 403 {
			t.Errorf("%s: a form of another session: %d", user, resp.StatusCode)
		}
	}
}
