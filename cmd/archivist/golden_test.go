package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	v1 "archivist/pkg/api/v1"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden are the commands whose output is kept in testdata/golden, each on a terminal
// of 80 columns, in a pipe, and with some fields as JSON.
var golden = map[string]struct{ line, fields string }{
	"batch-list":       {"batch list -c maps", "id,state,note"},
	"batch-list-empty": {"batch list -c empty", "id"},
	"batch-report":     {"batch report " + batch1, "batch,counts"},
	"batch-show":       {"batch show " + batch1, "id,counts,mailProblems"},
	"batch-watch":      {"batch watch " + batch1, "id,state"},
	"collection-set":   {"collection set maps -", "name,default"},
	"collection-show":  {"collection show maps", "name,profile"},
	"completion":       {"completion fish", ""},
	"config":           {"config", "api,from,hasKey,profiles"},
	"explain-batch":    {"explain " + batch1, "state,waitsFor"},
	"explain-job":      {"explain " + job2, "state,waitsFor,on"},
	"help":             {"help", ""},
	"help-job":         {"help job", ""},
	"help-submit":      {"help submit", ""},
	"job-fail":         {"job fail " + job2 + " --reason wrong", "id,state"},
	"job-list":         {"job list -c maps", "id,state,message"},
	"job-list-batch":   {"job list -b " + batch1 + " --state FAILED --limit 1", "id,identifiers"},
	"job-list-empty":   {"job list -c empty", "id"},
	"job-receipt":      {"job receipt " + job1, "ark,version,files"},
	"job-requeue":      {"job requeue " + job2 + " --reason back", "id,state"},
	"job-show":         {"job show " + job2, "id,state,recoverable,events"},
	"job-show-unknown": {"job show " + batch1 + "-00099", "id"},
	"job-watch":        {"job watch " + job1, "id,state"},
	"manifest-check":   {"manifest check -", "accepted,kind,rows"},
	"object-files":     {"object files " + ark1, "path,size,mediaType"},
	"object-get":       {"object get " + ark1 + " -o get", "path,local,kept"},
	"object-list":      {"object list -c maps", "ark,version,title"},
	"object-reindex":   {"object reindex " + ark1, "objects,failed"},
	"object-show":      {"object show " + ark1, "ark,localIds,versions"},
	"queue":            {"queue", "running,waiting"},
	"submit":           {"submit https://example.org/map.tif -c maps --local-id map-17", "id,warnings"},
	"submit-dry-run":   {"submit https://example.org/map.tif -c maps --local-id map-17 --dry-run", "object,version"},
}

const (
	batch1      = "01M7ZBMEYHBB62YP6RY21T1GQ6"
	batch2      = "01M7ZAW3H2ZJ5VQ0TN8C4RXK7D"
	job1        = batch1 + "-00001"
	job2        = batch1 + "-00002"
	ark1        = "ark:/99999/fk4tq65d6k"
	moment      = "2026-11-22T05:12:03Z"
	helloSHA256 = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"
)

// hello is the content of every file, and its digest.
const (
	hello       = "hello"
	helloSHA512 = "9b71d224bd62f3785d96d46ad3ea3d73319bfbc2890caadae2dff72519673ca72323c3d99ba5c11d7c7acc6e14b8c5da0c4663475c2e5c3adef46f73bcdec043"
)

// answers are what the archive says, by path.
func answers() map[string]any {
	message := "https://example.org/scans/map-18.tif: the server answers 404 Not Found; correct the URL, or make the file available, and requeue the job. " +
		strings.Repeat("It was asked for ten times. ", 10)
	jobs := []v1.Job{
		{ID: job1, Batch: batch1, Collection: "maps", State: v1.Completed, LastSuccessfulState: v1.Notify, Priority: 5, Version: 2,
			Identifiers: v1.Identifiers{Primary: ark1, Local: []string{"map-17"}}, Progress: v1.Progress{Files: 3, Bytes: 1 << 20}},
		{ID: job2, Batch: batch1, Collection: "maps", State: v1.Failed, LastSuccessfulState: v1.Provisioning, Priority: 5, RetryCount: 1, Recoverable: true,
			Identifiers: v1.Identifiers{Local: []string{"map-18, second sheet of the atlas of 1771", "NL-18"}}, Message: message},
		{ID: batch2 + "-00001", Batch: batch2, Collection: "maps", State: v1.Downloading, Identifiers: v1.Identifiers{Local: []string{"carte/日本の地図"}}},
	}
	batches := []v1.Batch{
		{ID: batch1, State: v1.Failed, Collection: "maps", Submitter: "ann", Note: "Second delivery of the atlas, scanned in Ghent", Created: moment,
			Counts: v1.Counts{Expected: 2, Completed: 1, Failed: 1}, Report: "/v1/batches/" + batch1 + "/report",
			MailProblems: []v1.MailProblem{{Mail: "report", Text: "The report mail to a@example.org could not be delivered: mailbox full; next try at 06:00."}}},
		{ID: batch2, State: v1.Processing, Collection: "maps", Created: moment, Counts: v1.Counts{Expected: 30_000, Processing: 29_999, Completed: 1}},
	}
	object := v1.Object{ARK: ark1, Collection: "maps", Title: "Map of Ghent, with the fortifications and the suburbs, in six sheets", LocalIDs: []string{"map-17"},
		Version: 2, Created: moment, Modified: moment, InventoryDigest: helloSHA512, Stored: "ocfl/9d2/e4a/1f0/ark-99999-fk4tq65d6k/"}
	file := v1.File{Path: "producer/scans/sheet-1.tif", Size: 5, MediaType: "image/tiff", Digests: map[string]string{"sha256": helloSHA256, "sha512": helloSHA512}}
	priority := 3
	collection := v1.Collection{Name: "maps", Profile: v1.Profile{Title: "Maps", Priority: &priority, RequireDigest: true, Notification: []string{"maps@example.org"}}}
	const object1 = "/v1/objects/99999/fk4tq65d6k"
	failed := jobs[1]
	requeued := failed
	requeued.State = v1.Downloading
	return map[string]any{
		"GET /v1/batches?collection=maps":                                            v1.List[v1.Batch]{Items: batches},
		"GET /v1/batches?collection=empty":                                           v1.List[v1.Batch]{},
		"GET /v1/batches/" + batch1:                                                  batches[0],
		"GET /v1/batches/" + batch1 + "/jobs":                                        v1.List[v1.Job]{Items: jobs[:2]},
		"GET /v1/batches/" + batch1 + "/jobs?state=Failed":                           v1.List[v1.Job]{Items: []v1.Job{failed, jobs[2]}},
		"GET /v1/batches/" + batch1 + "/explain":                                     v1.Explanation{State: v1.Failed, WaitsFor: "person", Why: "1 of its 2 jobs failed: correct what the report says and requeue it."},
		"GET /v1/batches/" + batch1 + "/report":                                      json.RawMessage(report1),
		"GET /v1/jobs?collection=maps":                                               v1.List[v1.Job]{Items: jobs},
		"GET /v1/jobs?collection=empty":                                              v1.List[v1.Job]{},
		"GET /v1/jobs/" + job1:                                                       jobs[0],
		"GET /v1/jobs/" + job2:                                                       failed,
		"GET /v1/jobs/" + job2 + "/events":                                           v1.List[v1.Event]{Items: events()},
		"GET /v1/jobs/" + job2 + "/explain":                                          v1.Explanation{State: v1.Failed, WaitsFor: "person", On: "the source", Why: message[:137]},
		"POST /v1/jobs/" + job2 + "/actions":                                         requeued,
		"GET /v1/jobs/" + job1 + "/receipt":                                          v1.Receipt{Job: job1, Batch: batch1, ARK: ark1, Version: 2, Created: moment, Files: []v1.ReceiptFile{{Path: file.Path, Size: file.Size, Digests: file.Digests, Given: &v1.Digest{Algorithm: "md5", Value: "5d41402abc4b2a76b9719d911017c592"}}}},
		"GET /v1/objects?collection=maps":                                            v1.List[v1.Object]{Items: []v1.Object{object}},
		"GET /v1/objects?collection=maps&localId=map-17":                             v1.List[v1.Object]{Items: []v1.Object{object}},
		"GET " + object1:                                                             object,
		"GET " + object1 + "/versions":                                               v1.List[v1.Version]{Items: []v1.Version{{Version: 1, Created: moment, Job: batch2 + "-00007", Files: 2, Bytes: 5000, InventoryDigest: helloSHA512}, {Version: 2, Created: moment, Job: job1, Files: 3, Bytes: 1 << 20, InventoryDigest: helloSHA512}}},
		"GET " + object1 + "/versions/2/files":                                       v1.List[v1.File]{Items: []v1.File{file}},
		"GET " + object1 + "/versions/2/content?path=producer%2Fscans%2Fsheet-1.tif": hello,
		"GET /v1/collections/maps":                                                   collection,
		"PUT /v1/collections/maps":                                                   collection,
		"GET /v1/queue":                                                              v1.Queue{Waiting: map[string]int{"pending": 343, "provisioning": 12, "parked": 1}, Running: 100, MaxInFlight: 100, SpaceFree: 3 << 40, OldestWaiting: job2, OldestSince: moment, LastSweep: moment},
		"POST /v1/reindex?ark=ark%3A%2F99999%2Ffk4tq65d6k":                           v1.Reindexed{Objects: 1, Changed: 1, Failed: []v1.NotReindexed{{ARK: ark1, Stored: object.Stored, Why: "the inventory of v2 is not JSON"}}},
		"POST /v1/batches":                                                           v1.Accepted{ID: batch1, State: v1.Pending, Warnings: []string{"map-17 is known: this makes v3 of " + ark1}},
	}
}

const report1 = `{"batch":"` + batch1 + `","collection":"maps","note":"Second delivery","at":"` + moment + `",
	"failed":[{"job":"` + job2 + `","state":"Failed","title":"Sheet 2","localIds":["map-18"],"message":"https://example.org/scans/map-18.tif: the server answers 404 Not Found","next":"Correct the URL, or make the file available, and requeue the job.","recoverable":true}],
	"completed":[{"job":"` + job1 + `","state":"Completed","ark":"` + ark1 + `","version":2,"noChange":true,"title":"Map of Ghent","localIds":["map-17"],"files":3,"bytes":2048,"warnings":1}],
	"open":[],"counts":{"failed":1,"completed":1,"open":0}}`

func events() []v1.Event {
	detail := json.RawMessage(`{"from":"Downloading","reason":"https://example.org/scans/map-18.tif: the server answers 404 Not Found"}`)
	return []v1.Event{
		{ID: "a", Version: 1, Type: "job.created", Time: moment, Outcome: "success", Component: "unpack"},
		{ID: "b", Version: 2, Type: "job.failed", Time: moment, Outcome: "failure", Component: "download", Detail: detail},
	}
}

const manifest1 = `#%checkm_0.7
#%profile | http://uc3.cdlib.org/registry/ingest/manifest/mrt-ingest-manifest
#%prefix | mrt: | http://merritt.cdlib.org/terms#
#%prefix | nfo: | http://www.semanticdesktop.org/ontologies/2007/03/22/nfo#
#%fields | nfo:fileUrl | nfo:hashAlgorithm | nfo:hashValue | nfo:fileSize | nfo:fileLastModified | nfo:fileName | mrt:mimeType
https://example.org/a.txt | md5 | 5d41402abc4b2a76b9719d911017c592 | 5 | | a.txt | text/plain
https://example.org/b.txt | md5 | 5d41402abc4b2a76b9719d911017c592 | 5 | | b.txt | text/plain
#%eof
`

// wire serves the answers.
func wire(t *testing.T, answers map[string]any) string {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, known := answers[r.Method+" "+r.URL.RequestURI()]
		if text, isText := body.(string); isText {
			_, _ = w.Write([]byte(text))
			return
		}
		if !known {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusNotFound)
			body = v1.Problem{Status: 404, Title: "Not Found", Detail: fmt.Sprintf("there is nothing at %s %s", r.Method, r.URL.RequestURI())}
		}
		_ = json.NewEncoder(w).Encode(body)
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

// TestGolden: each command prints what it is known to print. Run it with -update to
// take over changes, and read them.
func TestGolden(t *testing.T) {
	dir, err := filepath.Abs(filepath.Join("testdata", "golden"))
	if err != nil {
		t.Fatal(err)
	}
	url := wire(t, answers())
	local := regexp.MustCompile(`http://127\.0\.0\.1:\d+`)
	for name, g := range golden {
		t.Run(name, func(t *testing.T) {
			home := emptyHome(t)
			var text strings.Builder
			for _, form := range []struct {
				width int
				shown string
				flags string
			}{{80, "", ""}, {0, " | cat", ""}, {0, "", " --json " + g.fields}} {
				if form.flags != "" && g.fields == "" {
					continue
				}
				if err := os.RemoveAll("get"); err != nil {
					t.Fatal(err)
				}
				c := with(t, url)
				c.width, c.env["NO_COLOR"], c.env["HOME"] = form.width, "1", home
				if c.stdin = manifest1; strings.HasPrefix(g.line, "collection") {
					c.stdin = `{"requireDigest": true}`
				}
				code := c.run(g.line + form.flags)
				fmt.Fprintf(&text, "$ archivist %s%s%s\n", g.line, form.flags, form.shown)
				if form.width > 0 {
					text.WriteString(c.seen())
				} else if text.WriteString(c.out.String()); c.err.Len() > 0 {
					fmt.Fprintf(&text, "--- standard error\n%s", &c.err)
				}
				fmt.Fprintf(&text, "--- exit code %d\n\n", code)
				fits(t, form.width, c.out.String())
			}
			got := strings.ReplaceAll(local.ReplaceAllString(text.String(), "http://archive"), home, "~")
			file := filepath.Join(dir, name+".txt")
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if want, err := os.ReadFile(file); err != nil || string(want) != got {
				t.Errorf("%v: got\n%s\nwant\n%s", err, got, want)
			}
		})
	}
}

// fits: no line is wider than the terminal, unless it is one word.
func fits(t *testing.T, width int, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		if n := len([]rune(strings.TrimRight(line, "\n"))); width > 0 && n > width && !strings.HasPrefix(text, "#") {
			t.Errorf("a line of %d characters: %s", n, line)
		}
	}
}
