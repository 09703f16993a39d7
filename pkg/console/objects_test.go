package console_test

import (
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	v1 "archivist/pkg/api/v1"
)

// objectOf is the page of the object of a job.
func objectOf(j v1.Job) string {
	return "objects/" + strings.TrimPrefix(j.Identifiers.Primary, "ark:/")
}

// TestObject: the page of an object shows its versions, what each changed, its files and its history.
func TestObject(t *testing.T) {
	w := begin(t, true)
	in := w.file("sample", "a.txt", "one")
	in.Identifiers = &v1.Identifiers{Local: []string{"map-1"}}
	w.submit(in, v1.Completed)
	in.Payload = w.file("sample", "b.txt", "two").Payload
	job := w.submit(in, v1.Completed)
	b := w.browser()
	_, page := b.get(objectOf(job))
	for _, says := range []string{"version 2 of 2", "1 file added, 1 file removed", "producer/b.txt", "map-1",
		job.ID, "archivist object show " + job.Identifiers.Primary, "not checked yet"} {
		if !strings.Contains(page, says) {
			t.Errorf("the page does not say %q\n%s", says, page)
		}
	}
	_, first := b.get(objectOf(job) + "?version=1")
	if !strings.Contains(first, "producer/a.txt") || strings.Contains(first, "producer/b.txt") ||
		strings.Contains(first, "What version") {
		t.Errorf("version 1:\n%s", first)
	}
	if resp, page := b.get(objectOf(job) + "?version=3"); resp.StatusCode != 404 {
		t.Errorf("version 3: %d\n%s", resp.StatusCode, page)
	}
	w.until("its history is recorded", func() bool {
		_, page = b.get(objectOf(job))
		return strings.Contains(page, "version.create")
	})
	w.until("its formats are identified", func() bool {
		_, page = b.get(objectOf(job))
		return !strings.Contains(page, "not identified yet")
	})
	if !strings.Contains(page, "Plain Text File") || !strings.Contains(page, "x-fmt/111") {
		t.Errorf("the formats of the files are not shown:\n%s", page)
	}

	still := b.still()
	resp, _ := still.get(objectOf(job) + "/content?version=2&path=" + url.QueryEscape("producer/b.txt"))
	to, err := url.Parse(resp.Header.Get("Location"))
	if err != nil || resp.StatusCode != 302 ||
		!strings.HasPrefix(to.Query().Get("response-content-disposition"), "attachment") {
		t.Errorf("a download: %d %s", resp.StatusCode, to)
	}
	if resp, _ := still.get(objectOf(job) + "/content?path=x"); resp.StatusCode != 422 {
		t.Errorf("a download of no version: %d", resp.StatusCode)
	}
	resp, text := still.get(objectOf(job) + "/premis")
	if resp.StatusCode != 200 || !strings.Contains(text, "<premis") ||
		!strings.HasPrefix(resp.Header.Get("Content-Disposition"), "attachment") {
		t.Errorf("PREMIS: %d %v %.200s", resp.StatusCode, resp.Header, text)
	}
}

// TestDecide: what is decided about an object is said first, is a batch then, and is shown.
func TestDecide(t *testing.T) {
	w := begin(t, true)
	job := w.submit(w.file("sample", "a.txt", "one"), v1.Completed)
	b := w.browser()
	_, page := b.get(objectOf(job))
	form := formAt(t, page, "deed", "deed=withdraw")
	form.Set("reason", "The rights are disputed")
	form.Set("step", "do")
	first, _ := b.post("deed", form)
	again, _ := b.post("deed", form)
	if at := first.Request.URL.String(); at != again.Request.URL.String() || !strings.HasPrefix(at, home+"batches/") {
		t.Errorf("%s, then %s", at, again.Request.URL)
	}
	w.until("it is withdrawn", func() bool {
		_, page = b.get(objectOf(job))
		return strings.Contains(page, "No file is given out")
	})
	if strings.Contains(page, "/content?") || !strings.Contains(page, "The rights are disputed") ||
		formAt(t, page, "deed", "deed=reinstate") == nil || formAt(t, page, "deed", "deed=withdraw") != nil {
		t.Errorf("a withdrawn object:\n%s", page)
	}
	resp, _ := b.still().get(objectOf(job) + "/content?version=1&path=" + url.QueryEscape("producer/a.txt"))
	if resp.StatusCode != http.StatusForbidden {
		t.Errorf("a file of it: %d", resp.StatusCode)
	}

	form = formAt(t, page, "deed", "deed=retain")
	form.Set("reason", "Grant 17")
	form.Set("step", "try")
	form.Set("retainUntil", "2099-12-31")
	if _, page := b.post("deed", form); !strings.Contains(page, "--until 2099-12-31") ||
		!strings.Contains(page, "This cannot be undone") {
		t.Errorf("what is lost is not said first:\n%s", page)
	}
	form.Set("step", "do")
	form.Set("sure", "yes")
	for _, row := range []struct { // the one that is accepted is the last: it uses the form
		until  string
		status int
	}{{"", 422}, {"soon", 422}, {"2001-01-01", 422}, {"2099-12-31", 303}} {
		form.Set("retainUntil", row.until)
		if resp, text := b.still().post("deed", form); resp.StatusCode != row.status {
			t.Errorf("retained until %q: %d\n%s", row.until, resp.StatusCode, text)
		}
	}
}

// TestZip: a zip file of a version is made when it is asked for, and is an attachment of the storage. It is given out
// only if files are.
func TestZip(t *testing.T) {
	w := begin(t, true)
	job := w.submit(w.file("sample", "a.txt", "one"), v1.Completed)
	b := w.browser()
	still := b.still()
	zip := objectOf(job) + "/zip?version=1"
	if resp, page := still.get(zip); resp.StatusCode != 404 || !strings.Contains(page, "no zip file") {
		t.Errorf("before it was made: %d\n%s", resp.StatusCode, page)
	}
	_, page := b.get(objectOf(job) + "?zip=made")
	if strings.Contains(page, "zip?version=1") {
		t.Errorf("it is offered before it was made:\n%s", page)
	}
	if !strings.Contains(page, ">Where it is stored<") || !strings.Contains(page, "/v1/</code>") {
		t.Errorf("it is not said where it is stored:\n%s", page)
	}
	form := formAt(t, page, "zip", "version=1")
	_, page = b.post("zip", form)
	if !strings.Contains(page, objectOf(job)+"/zip?version=1") {
		t.Fatalf("it is not offered:\n%s", page)
	}
	if formAt(t, page, "zip", "version=1") != nil {
		t.Errorf("it is there, and can be made again:\n%s", page)
	}
	resp, _ := still.get(zip)
	to, err := url.Parse(resp.Header.Get("Location"))
	if err != nil || resp.StatusCode != 302 ||
		!strings.HasPrefix(to.Query().Get("response-content-disposition"), "attachment") {
		t.Fatalf("%d %s", resp.StatusCode, to)
	}
	got, err := w.HTTP().Get(to.String())
	w.must(err)
	defer got.Body.Close()
	data, err := io.ReadAll(got.Body)
	if err != nil || !strings.HasPrefix(string(data), "PK") ||
		!strings.Contains(string(data), "/data/producer/a.txt") {
		t.Errorf("%d bytes, %v", len(data), err)
	}

	for version, status := range map[string]int{"2": 404, "x": 422, "0": 422} {
		form.Set("version", version)
		if resp, page := still.post("zip", form); resp.StatusCode != status {
			t.Errorf("version %s: %d\n%s", version, resp.StatusCode, page)
		}
	}
	form.Set("version", "1")
	form.Set("ark", "../../whoami")
	if resp, page := still.post("zip", form); resp.StatusCode != 422 {
		t.Errorf("of another address: %d\n%s", resp.StatusCode, page)
	}
	form.Set("ark", job.Identifiers.Primary)
	for _, in := range []v1.CorrectionRequest{{EmbargoUntil: "2099-12-31", Reason: "r"},
		{Access: "withdraw", Reason: "r"}} {
		made, err := w.api.Correct(t.Context(), job.Identifiers.Primary, in, "")
		w.must(err)
		w.until("it is decided", func() bool {
			b, err := w.api.Batch(t.Context(), made.ID)
			w.must(err)
			return v1.Ended(b.State)
		})
		if resp, page := still.get(zip); resp.StatusCode != 403 {
			t.Errorf("%+v: the zip file: %d\n%s", in, resp.StatusCode, page)
		}
		if resp, page := still.post("zip", form); resp.StatusCode != 403 {
			t.Errorf("%+v: to make one: %d\n%s", in, resp.StatusCode, page)
		}
		if _, page := b.get(objectOf(job)); formAt(t, page, "zip", "version=") != nil {
			t.Errorf("%+v: it is offered", in)
		}
	}
}

// TestCorrect: only what was changed is corrected, after it was shown; nothing is, if the object has changed meanwhile.
func TestCorrect(t *testing.T) {
	w := begin(t, true)
	in := w.file("sample", "a.txt", "one")
	in.Identifiers = &v1.Identifiers{Local: []string{"map-1", "map-2"}}
	in.Metadata = &v1.Metadata{Who: "Blunt", What: "Map\u202e of <b>", When: "1851"}
	job := w.submit(in, v1.Completed)
	b := w.browser()
	_, page := b.get(objectOf(job) + "/correct")
	form := formAt(t, page, "correct", "n=1")
	if form.Get("who") != "Blunt" || form.Get("when") != "1851" || !strings.Contains(page, "map-1\nmap-2</textarea>") {
		t.Fatalf("%v\n%s", form, page)
	}
	form.Set("ids", "map-1\nmap-2")
	send := func(status int, says ...string) string {
		t.Helper()
		resp, page := b.post("correct", form)
		for _, text := range says {
			if resp.StatusCode != status || !strings.Contains(page, text) {
				t.Errorf("%d, want %d and %q:\n%s", resp.StatusCode, status, text, page)
			}
		}
		return page
	}
	form.Set("step", "do")
	send(422, "say why")
	form.Set("reason", "A slip of the pen")
	send(422, "Nothing is changed")
	form.Set("who", "")
	send(422, "(:unkn)", `aria-describedby="wrong-who help-who"`, `id="wrong-who"`)
	form.Set("who", "Blunt, <i>John</i>")
	form.Set("ids", "map-2\r\n map-3 \r\n\r\nmap-3")
	form.Set("step", "preview")
	page = send(200, "Blunt, &lt;i&gt;John", "--add-local-id map-3 --withdraw-local-id map-1 --if-version 1")
	if strings.Contains(page, "1851") && strings.Contains(page, "--when") {
		t.Errorf("what was not changed is corrected:\n%s", page)
	}
	sure := formAt(t, page, "correct", "n=1")
	sure.Set("step", "do")
	resp, page := b.post("correct", sure)
	if !strings.HasPrefix(resp.Request.URL.String(), home+"batches/") ||
		!strings.Contains(page, "A version of the object is being made") {
		t.Errorf("%s\n%s", resp.Request.URL, page)
	}
	w.until("the version is there", func() bool {
		o, err := w.api.Object(t.Context(), job.Identifiers.Primary)
		w.must(err)
		return o.Version == 2
	})
	d, err := w.api.Description(t.Context(), job.Identifiers.Primary, 2)
	w.must(err)
	o, err := w.api.Object(t.Context(), job.Identifiers.Primary)
	w.must(err)
	if d.Who[0] != "Blunt, <i>John</i>" || d.When[0] != "1851" ||
		!slices.Equal(o.LocalIDs, []string{"map-2", "map-3"}) {
		t.Errorf("%+v %v", d, o.LocalIDs)
	}
	resp, _ = b.post("correct", sure) // once more: it has made that version
	if !strings.HasPrefix(resp.Request.URL.String(), home+"batches/") {
		t.Errorf("sent twice, it leads to %s: %d", resp.Request.URL, resp.StatusCode)
	}
	sure.Set("reason", "Another reason")
	if resp, page := b.post("correct", sure); resp.StatusCode != 409 {
		t.Errorf("another correction with the same content: %d\n%s", resp.StatusCode, page)
	}
	page = send(409, "at version 2 now")
	if !strings.Contains(page, `value="A slip of the pen"`) {
		t.Errorf("what was written is lost:\n%s", page)
	}
}

// TestFindObjects: words and fields together are a search; the collections of what it finds narrow it.
func TestFindObjects(t *testing.T) {
	w := begin(t, true)
	dated := func(collection, content, when string) v1.Job {
		in := w.file(collection, "harbour.txt", content)
		in.Metadata.When = when
		return w.submit(in, v1.Completed)
	}
	one := dated("sample", "one", "1851-05-17")
	dated("letters", "two", "circa 1904, not 1851")
	b, page := w.browser(), ""
	w.until("both are found", func() bool {
		_, page = b.get("objects?q=harbour")
		return strings.Contains(page, "2 found")
	})
	if !strings.Contains(page, "?collection=letters&amp;q=harbour") ||
		!strings.Contains(page, "?date=1904&amp;q=harbour") {
		t.Errorf("there is no facet\n%s", page)
	}
	_, page = b.get("objects?q=harbour&date=1851")
	if !strings.Contains(page, objectOf(one)) || !strings.Contains(page, "1 found") ||
		strings.Contains(page, "By year") {
		t.Errorf("narrowed to a year:\n%s", page)
	}
	_, page = b.get("objects?q=harbour&collection=sample&title=file")
	if !strings.Contains(page, objectOf(one)) || !strings.Contains(page, "1 found") {
		t.Errorf("narrowed:\n%s", page)
	}
	w.formats(b, one)
	if resp, page := b.get("objects?q=" + url.QueryEscape(`"open`)); resp.StatusCode != 422 ||
		!strings.Contains(page, "character") {
		t.Errorf("%d\n%s", resp.StatusCode, page)
	}
}

// formats: what is found is counted by format and narrowed to one, lists are sorted in either
// direction, and the page of a collection counts formats, too. one is the object of the
// collection sample.
func (w *world) formats(b *browser, one v1.Job) {
	w.Helper()
	_, page := b.get("objects?q=harbour")
	if !strings.Contains(page, "?format=text%2Fplain&amp;q=harbour") {
		w.Errorf("there is no facet of formats\n%s", page)
	}
	_, page = b.get("objects?format=text/plain&collection=sample")
	if !strings.Contains(page, objectOf(one)) || !strings.Contains(page, "1 found") ||
		!strings.Contains(page,
			"archivist object search &#39;collection:sample format:text/plain&#39;") {
		w.Errorf("narrowed to a format:\n%s", page)
	}
	_, page = b.get("objects?format=image/tiff")
	if !strings.Contains(page, "Nothing matches") {
		w.Errorf("a format of none:\n%s", page)
	}
	_, page = b.get("collections/sample")
	if !strings.Contains(page, `objects?collection=sample&amp;format=text%2fplain`) ||
		!strings.Contains(page, "How many of 1 objects") {
		w.Errorf("the page of the collection has no formats:\n%s", page)
	}

	for address, first := range map[string]string{"objects?sort=date": "1851",
		"objects?sort=date&order=descending": "1904"} {
		calls := w.TableCalls("api")
		_, page := b.get(address)
		older, newer := strings.Index(page, ">"+one.Identifiers.Primary+"<"),
			strings.LastIndex(page, `<a class="id"`)
		if n := calls(); n > 10 || !strings.Contains(page, "2 found") ||
			(older < newer) != (first == "1851") {
			w.Errorf("%s in %d calls, %d and %d:\n%s", address, n, older, newer, page)
		}
	}
	if resp, page := b.get("objects?sort=size"); resp.StatusCode != 422 || !strings.Contains(page,
		"relevance") {
		w.Errorf("%d\n%s", resp.StatusCode, page)
	}
}

// TestDownloads: what others have stored comes from the origin of the storage, as an attachment and without a type of
// its own, also if a browser could run it; and none of it is shown as a picture.
func TestDownloads(t *testing.T) {
	w := begin(t, true)
	b := w.browser()
	for name, text := range map[string]string{"evil.html": "<script>evil()</script>",
		"evil.svg": `<svg xmlns="http://www.w3.org/2000/svg" onload="evil()"/>`, "evil.js": "evil()",
		"evil.xml": "<?xml version=\"1.0\"?><evil/>"} {
		job := w.submit(w.file("sample", name, text), v1.Completed)
		w.reported(job)
		_, page := b.get(objectOf(job))
		if strings.Contains(page, "<img") || !strings.Contains(page, name) {
			t.Errorf("%s:\n%s", name, page)
		}
		for _, path := range []string{objectOf(job) + "/content?version=1&path=producer/" + name,
			"batches/" + job.Batch + "/report"} {
			led, _ := b.still().get(path)
			resp, said := b.get(path)
			h := resp.Header
			if resp.StatusCode != 200 || resp.Request.URL.Host == consoleHost ||
				h.Get("Content-Type") != "binary/octet-stream" ||
				!strings.HasPrefix(h.Get("Content-Disposition"), "attachment") ||
				led.Header.Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("%s of %s: %d %v %.200s", path, resp.Request.URL.Host, resp.StatusCode, h, said)
			}
		}
		if resp, text := b.get(objectOf(job) + "/thumbnail?version=1&path=producer/" + name); resp.StatusCode < 400 {
			t.Errorf("a thumbnail of %s: %d %.200s", name, resp.StatusCode, text)
		}
	}
}

// TestReport: the link of a report leads to the storage.
func TestReport(t *testing.T) {
	w := begin(t, true)
	job := w.submit(w.file("sample", "here.txt", "content"), v1.Completed)
	w.until("there is a report", func() bool {
		b, err := w.api.Batch(t.Context(), job.Batch)
		w.must(err)
		return b.Report != ""
	})
	b := w.browser().still()
	resp, _ := b.get("batches/" + job.Batch + "/report")
	if to := resp.Header.Get("Location"); resp.StatusCode != 302 || !strings.Contains(to, "Signature=") {
		t.Errorf("%d %s", resp.StatusCode, to)
	}
	if resp, page := b.get("batches/" + job.Batch + "/report?number=7"); resp.StatusCode != 404 {
		t.Errorf("%d\n%s", resp.StatusCode, page)
	}
}
