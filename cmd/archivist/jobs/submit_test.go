package jobs

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"archivist/cmd/archivist/command"
	"archivist/cmd/archivist/command/commandtest"
	v1 "archivist/pkg/api/v1"
)

const (
	objectProfile = "#%checkm_0.7\n#%profile | http://uc3.cdlib.org/registry/ingest/manifest/mrt-ingest-manifest\n"
	batchProfile  = "#%checkm_0.7\n#%profile | http://uc3.cdlib.org/registry/ingest/manifest/mrt-batch-manifest\n"
	prefixes      = "#%prefix | mrt: | http://merritt.cdlib.org/terms#\n" +
		"#%prefix | nfo: | http://www.semanticdesktop.org/ontologies/2007/03/22/nfo#\n"
	fileFields = "#%fields | nfo:fileUrl | nfo:hashAlgorithm | nfo:hashValue | nfo:fileSize | nfo:fileLastModified | " +
		"nfo:fileName | mrt:mimeType\n"
	goodRow = "https://example.org/a.txt | md5 | 5d41402abc4b2a76b9719d911017c592 | 5 | | a.txt |\n"
)

// depository is an archive that takes submissions and serves manifests, too.
type depository struct {
	*httptest.Server
	taken   []v1.BatchRequest
	profile v1.Profile
	known   []v1.Object
	files   map[string]string
}

func newDepository(t *testing.T) *depository {
	d := &depository{files: map[string]string{}}
	answer := func(w http.ResponseWriter, v any) { _ = json.NewEncoder(w).Encode(v) }
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/batches", func(w http.ResponseWriter, r *http.Request) {
		var in v1.BatchRequest
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			t.Error(err)
		}
		d.taken = append(d.taken, in)
		answer(w, v1.Accepted{ID: "B", State: v1.Pending})
	})
	mux.HandleFunc("GET /v1/batches/B", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, v1.Batch{ID: "B", State: v1.Completed, Counts: v1.Counts{Expected: 1, Completed: 1}})
	})
	mux.HandleFunc("GET /v1/collections/maps", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, v1.Collection{Name: "maps", Profile: d.profile})
	})
	mux.HandleFunc(
		"GET /v1/objects",
		func(w http.ResponseWriter, _ *http.Request) { answer(w, v1.List[v1.Object]{Items: d.known}) },
	)
	mux.HandleFunc("GET /files/", func(w http.ResponseWriter, r *http.Request) {
		text, known := d.files[strings.TrimPrefix(r.URL.Path, "/files/")]
		if !known && r.URL.Path != "/files/cut.checkm" {
			http.NotFound(w, r)
		}
		if r.URL.Path == "/files/cut.checkm" {
			w.Header().Set("Content-Length", "10000")
			text = objectProfile
		}
		_, _ = w.Write([]byte(text))
	})
	d.Server = httptest.NewServer(mux)
	t.Cleanup(d.Close)
	return d
}

// TestSubmitChecks: a manifest is validated by the rules of `batch check-manifest` before it
// is submitted, from its URL or a local copy. Nothing is submitted that would fail.
func TestSubmitChecks(t *testing.T) {
	commandtest.EmptyHome(t)
	good := objectProfile + prefixes + fileFields + goodRow + "#%eof\n"
	many := batchProfile + prefixes + fileFields + goodRow + "#%eof\n"
	longTitle := batchProfile + prefixes + "#%fields | nfo:fileUrl | nfo:fileName | mrt:title\n" +
		"https://example.org/a | a | " + strings.Repeat("t", 4001) + "\n#%eof\n"
	undigested := strings.Replace(good, "md5 | 5d41402abc4b2a76b9719d911017c592", " | ", 1)
	twoForms := strings.Replace(good, goodRow, goodRow[:strings.LastIndex(goodRow, "a.txt")]+"\u00e9 |\n"+
		goodRow[:strings.LastIndex(goodRow, "a.txt")]+"e\u0301 |\n", 1)
	foreign := strings.Replace(good, "merritt.cdlib", "example", 1)
	outside := strings.Replace(good, "| a.txt", "| ../a.txt", 1)
	commandtest.Write(t, "copy.checkm", outside)
	for name, k := range map[string]struct {
		line    string
		content string // of x.checkm
		strict  bool   // the collection wants digests
		code    int
		says    string
	}{
		"good":                {"submit URL/x.checkm", good, false, 0, ""},
		"not there":           {"submit URL/gone.checkm", good, false, 0, "the server answered 404 Not Found"},
		"cut off":             {"submit URL/cut.checkm", good, false, 0, "warning: the manifest was not checked: "},
		"no manifest at all":  {"submit URL/x.checkm", "a text", false, 2, "--type file preserves it as a file"},
		"kept as a file":      {"submit URL/x.checkm --type file", "a text", false, 0, ""},
		"said to be one":      {"submit URL/x.checkm --type object-manifest", "a text", false, 2, "x.checkm"},
		"wrong name":          {"submit URL/x.checkm", outside, false, 2, "nothing was submitted"},
		"local copy":          {"submit URL/x.checkm --manifest copy.checkm", good, false, 2, `"../a.txt" has the path segment ".."`},
		"no local copy":       {"submit URL/x.checkm --manifest gone.checkm", good, false, 2, "gone.checkm"},
		"lenient":             {"submit URL/x.checkm", undigested, false, 0, "warning: line 6: the file has no digest"},
		"strict":              {"submit URL/x.checkm", undigested, true, 2, "nothing was submitted"},
		"one object":          {"submit URL/x.checkm --local-id a", good, false, 0, ""},
		"many objects":        {"submit URL/x.checkm", many, false, 0, "accepted: batch manifest with 1 row"},
		"flag is lost":        {"submit URL/x.checkm --local-id a", many, false, 2, "--local-id cannot be used"},
		"as the archive":      {"submit URL/x.checkm", longTitle, false, 2, "the title has 4001 bytes"},
		"blanks after eof":    {"submit URL/x.checkm", good + "\n\n", false, 0, "warning: line "},
		"other prefix":        {"submit URL/x.checkm", foreign, false, 0, "warning: line "},
		"two forms of a name": {"submit URL/x.checkm", twoForms, false, 0, "warning: line "},
		"file":                {"submit URL/x.tif", "", false, 0, ""},
		"check character":     {"submit URL/x.tif --ark ark:/99999/fk4x", "", false, 0, "the check character of"},
		"right character":     {"submit URL/x.tif --ark ark:/99999/fk4tq65d6k", "", false, 0, ""},
		"no ARK":              {"submit URL/x.tif --ark doi:10/2", "", false, 2, "an ARK has the form"},
		"no digest":           {"submit URL/x.tif --digest sha256:12", "", false, 2, "--digest"},
		"no local id":         {"submit URL/x.tif --local-id a;b", "", false, 2, "--local-id"},
		"no type":             {"submit URL/x.tif --type zip", "", false, 2, "object-manifest"},
	} {
		d := newDepository(t)
		d.files["x.checkm"], d.profile.RequireDigest = k.content, k.strict
		for _, dry := range []string{"", " --dry-run"} {
			c := with(t, d.URL)
			code := c.Run(strings.ReplaceAll(k.line, "URL", d.URL+"/files") + " -c maps" + dry)
			want := 1
			if k.code != 0 || dry != "" {
				want = 0
			}
			if code != k.code || !strings.Contains(c.Err.String(), k.says) ||
				k.says == "" && c.Err.Len() > 0 ||
				len(d.taken) != want {
				t.Errorf("%s%s: exit code %d, %d submitted\n%s%s", name, dry, code, len(d.taken), &c.Out, &c.Err)
			}
			d.taken = nil
		}
	}
}

// TestSubmitDryRun: it says which version of which object would be made.
func TestSubmitDryRun(t *testing.T) {
	d := newDepository(t)
	for _, k := range []struct {
		known []v1.Object
		makes string
	}{
		{nil, "v1 of a new object"},
		{[]v1.Object{{ARK: "ark:/99999/fk4tq65d6k", Version: 2}}, "v3 of ark:/99999/fk4tq65d6k"},
	} {
		d.known = k.known
		c := with(t, d.URL)
		if code := c.Run("submit https://example.org/a.tif -c maps --local-id a --dry-run"); code != 0 ||
			!strings.Contains(c.Out.String(), "makes\t"+k.makes+"\n") ||
			len(d.taken) > 0 {
			t.Errorf("%d %s%s", code, &c.Out, &c.Err)
		}
	}
}

// TestSubmitAndWatch: a submission that is followed prints its batch, as JSON too.
func TestSubmitAndWatch(t *testing.T) {
	d := newDepository(t)
	c := with(t, d.URL)
	c.Want(t, "submit https://example.org/a.tif -c maps --watch", 0, "batch B\n100 %  1 of 1 job done: 1 completed\n")
	c.Want(t, "submit https://example.org/a.tif -c maps --watch --json state", 0, `{"state":"Completed"}`)
	c.Want(t, "submit https://example.org/a.tif -c maps --watch --json rows", command.ExitUsage, `no field "rows"`)
	c.Want(t, "submit https://example.org/a.tif -c maps --watch --dry-run", command.ExitUsage, "--dry-run and --watch")
}

// TestSubmitSendsAll: every flag of a submission arrives.
func TestSubmitSendsAll(t *testing.T) {
	d := newDepository(t)
	c := with(t, d.URL)
	code := c.Args(
		"submit",
		"https://example.org/a.tif",
		"-c",
		"maps",
		"--type",
		"file",
		"--filename",
		"b.tif",
		"--digest",
		"MD5:5d41402abc4b2a76b9719d911017c592",
		"--local-id",
		"one",
		"--local-id",
		"two, with a comma",
		"--ark",
		"ark:99999/fk4tq65d6k",
		"--who",
		"W",
		"--what",
		"T",
		"--when",
		"1771",
		"--submitter",
		"ann",
		"--notify",
		"a@example.org",
		"--callback",
		"https://example.org/x",
		"--note",
		"N",
		"--if-version",
		"3",
		"--stop-after-failures",
		"7",
	)
	if code != 0 || len(d.taken) != 1 || c.Out.String() != "B\n" {
		t.Fatal(code, c.Err.String())
	}
	got, err := json.Marshal(d.taken[0])
	const want = `{"collection":"maps","submitter":"ann","payload":{"url":"https://example.org/a.tif","type":"file","filename":"b.tif","digest":{"algorithm":"MD5","value":"5d41402abc4b2a76b9719d911017c592"}},` +
		`"identifiers":{"primary":"ark:/99999/fk4tq65d6k","local":["one","two, with a comma"]},"metadata":{"who":"W","what":"T","when":"1771"},"ifVersion":3,"stopAfterFailures":7,"notification":["a@example.org"],` +
		`"callback":"https://example.org/x","note":"N"}`
	if err != nil || string(got) != want {
		t.Errorf("%s, %v", got, err)
	}
}
