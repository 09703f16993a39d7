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

	runes "github.com/jedib0t/go-pretty/v6/text"

	"archivist/cmd/archivist/command"
	"archivist/cmd/archivist/command/commandtest"
	v1 "archivist/pkg/api/v1"
)

var update = flag.Bool("update", false, "write the golden files")

// commandLine is a command line, and fields to print of it as JSON.
type commandLine struct{ line, fields string }

// golden are the commands whose output is kept in testdata/golden, each on a terminal
// of 80 columns, in a pipe, and with some fields as JSON.
var golden = map[string]commandLine{
	"batch-uploads":       {"batch uploads -c maps", "id,state,batch"},
	"batch-discard":       {"batch discard " + upload1 + " --reason wrong", "id,state"},
	"batch-cancel":        {"batch cancel " + batch1 + " --reason wrong", "summary,operation"},
	"batch-clean-up":      {"batch clean-up " + batch1 + " --reason wrong --dry-run", "summary,dryRun"},
	"batch-delete":        {"batch delete " + batch1 + " --reason wrong", "changed"},
	"batch-hold":          {"batch hold " + batch1 + " --reason wait --until 2h", "summary"},
	"batch-list":          {"batch list -c maps", "id,state,note"},
	"batch-list-all":      {"batch list", "id,collection"},
	"batch-list-empty":    {"batch list -c empty", "id"},
	"batch-release":       {"batch release " + batch1 + " --reason on", "summary,next"},
	"batch-report-csv":    {"batch report " + batch1 + " --csv", ""},
	"batch-report":        {"batch report " + batch1, "batch,counts"},
	"batch-show":          {"batch show " + batch1, "id,counts,mailProblems"},
	"demo":                {"demo", ""}, // its program is not there
	"batch-update-report": {"batch update-report " + batch1 + " --reason corrected", "from,to"},
	"batch-show-watch":    {"batch show " + batch1 + " --watch", "id,state"},
	"collection-hold":     {"collection hold maps --reason wait --until 2026-12-01", "summary"},
	"collection-list":     {"collection list", "name"},
	"collection-release":  {"collection release maps --reason on", "summary,next"},
	"collection-set":      {"collection set maps -", "name,default"},
	"collection-show":     {"collection show maps", "name,profile"},
	"completion":          {"completion fish", ""},
	"config":              {"config", "api,from,hasKey,profiles"},
	"event-raise-epoch":   {"event raise-epoch --reason restored", "action,epoch,summary"},
	"event-verify":        {"event verify", "files,events,findings"},
	"event-acts":          {"event acts --actor ann", "time,actor,reason"},
	"event-list":          {"event list -c maps", "id,type,seq"},
	"event-list-subject":  {"event list -s " + ark1 + " --filter Object+Create", "id,type"},
	"event-show":          {"event show " + ark1 + " 1", "type,parents,after"},
	"event-tail":          {"event tail maps -n 2", "seq,type"},
	"consumer-apply":      {"consumer apply - --reason new", "name,version"},
	"consumer-delete":     {"consumer delete search --reason old --discard", "action,summary"},
	"consumer-discard":    {"consumer discard search --all --reason wrong", "summary"},
	"consumer-preview":    {"consumer preview Object+Create", "read,selected,cursor"},
	"consumer-list":       {"consumer list", "name,behind,parked"},
	"consumer-parked":     {"consumer parked search", "event,reason"},
	"consumer-pause":      {"consumer pause search --reason wait", "summary"},
	"consumer-redrive":    {"consumer redrive search --all --reason back", "summary"},
	"consumer-reset":      {"consumer reset search --to latest --reason old", "summary"},
	"consumer-resume":     {"consumer resume search --reason on", "summary"},
	"consumer-run":        {"consumer run search --reason now", "summary"},
	"consumer-show":       {"consumer show search", "name,partitions"},
	"consumer-skip":       {"consumer skip search --partition maps --seq 1842 --reason bad", "summary"},
	"consumer-replay":     {"consumer replay search --from seq:2 --partition maps --reason bug --no-watch", "id,state"},
	"consumer-rebuild":    {"consumer rebuild search --reason lost", "id,state,read"},
	"research-work":       {"research work -p unknown --name r", ""},

	"research-list":            {"research list", "name,analysis"},
	"research-show":            {"research show jingles", "name,round"},
	"research-apply":           {"research apply - --reason new", "name,round"},
	"research-pause":           {"research pause jingles --reason wait", "paused"},
	"research-resume":          {"research resume jingles --reason on", "name"},
	"research-resume-one":      {"research resume jingles --researcher bench-3 --reason corrected", "name"},
	"research-status":          {"research status jingles", "coverage,lastHour,trouble"},
	"research-status-watch":    {"research status done --watch", "coverage"},
	"research-episodes":        {"research episodes list jingles", "key,coverage"},
	"research-episodes-show":   {"research episodes show jingles " + episode1, "key,state"},
	"research-episodes-import": {"research episodes import jingles list.csv", "accepted,refused"},
	"research-episodes-retry":  {"research episodes retry jingles " + episode1 + " --reason back", "key,state"},
	"research-clips":           {"research clips list jingles --state set-aside", "key,reason"},
	"research-clips-show":      {"research clips show jingles " + clip1, "key,state"},
	"research-clips-import":    {"research clips import jingles list.csv", "accepted,refused"},
	"research-clips-retry-all": {"research clips retry jingles --all --why silent --reason back", "key,state"},
	"research-clips-retry":     {"research clips retry jingles " + clip1 + " --reason back", "key,state"},
	"research-feeds":           {"research feeds list jingles", "key,problem"},
	"research-feeds-show":      {"research feeds show jingles " + feed1, "key,skipped"},
	"research-feeds-look":      {"research feeds look jingles " + feed2, "key,failures"},
	"research-leases":          {"research leases jingles", "id,researcher"},
	"research-differences":     {"research differences jingles", "episode,clip"},
	"research-decide": {"research decide jingles " + episode1 + " " + clip1 + " --lease " + operation1 +
		" --reason echo", "due,why"},
	"research-matrix":     {"research matrix jingles", "rows,cursor"},
	"research-matrix-csv": {"research matrix jingles --all --csv", ""},
	"research-reviews":    {"research reviews jingles", "episode,waiting"},
	"research-review": {"research review jingles " + episode1 + " " + clip1 + " --accept --lease " + operation1 +
		" --hit 1 --reason heard", "waitsFor,why"},
	"research-revoke":          {"research revoke jingles " + operation1 + " --reason hangs", "id,why"},
	"research-researchers":     {"research researchers jingles", "name,capacity"},
	"research-results":         {"research results jingles --episode " + episode1, "clip,hits"},
	"research-results-clip":    {"research results jingles --clip " + clip1, "episode,hits"},
	"research-export":          {"research export jingles", ""},
	"research-export-json":     {"research export jingles --format json", ""},
	"research-export-webvtt":   {"research export jingles --episode " + episode1 + " --format webvtt", ""},
	"research-export-audacity": {"research export jingles --episode " + episode1 + " --format audacity", ""},
	"research-history":         {"research history jingles", "type,detail"},
	"research-history-lease":   {"research history jingles leases/" + operation1, "type,detail"},

	"archive-list":       {"archive list", "name,watermark"},
	"archive-show":       {"archive show maps", "name,gap,locks"},
	"archive-show-watch": {"archive show old-maps --watch", "name,watermark"},
	"archive-add": {"archive add maps --git https://git.example.org/maps.git --branch main",
		"name,mode"},
	"archive-pause":               {"archive pause maps --reason wait", "mode,why"},
	"archive-resume":              {"archive resume maps --reason on", "mode"},
	"archive-skip":                {"archive skip maps 13 --reason damaged", "mode"},
	"archive-backfill":            {"archive backfill maps 1 3 --reason history", "name"},
	"archive-delete":              {"archive delete maps --reason old", "mode,why"},
	"archive-revision-list":       {"archive revision list maps", "id,state,endedCount"},
	"archive-revision-show":       {"archive revision show maps/12", "id,plan"},
	"archive-revision-show-watch": {"archive revision show maps/11 --watch", "id,endedCount"},
	"archive-revision-notify":     {"archive revision notify maps/12 --transaction 9fceb02d", "id,state"},
	"archive-revision-plan":       {"archive revision plan maps/13", "revision,tasks"},
	"archive-revision-graph":      {"archive revision graph maps/12 --format json", ""},
	"archive-task-list":           {"archive task list maps --state running", "id,state"},
	"archive-task-show":           {"archive task show maps/12/index", "id,attempts"},
	"archive-task-logs":           {"archive task logs maps/11/index", ""},
	"archive-task-logs-last":      {"archive task logs maps/11/index --last", ""},
	"archive-task-outputs":        {"archive task outputs maps/11/index", "path,size"},
	"archive-task-output":         {"archive task output maps/11/index build/maps.pdf", ""},
	"archive-task-run":            {"archive task run maps index --reason damaged", "id,trigger"},
	"archive-task-run-watch":      {"archive task run maps index --reason again --watch --key once", "id,state"},
	"archive-task-rerun": {
		"archive task rerun maps/11/index --with-dependents --reason again",
		"id,trigger,follow",
	},
	"archive-task-rerun-failed": {"archive task rerun maps/12 --failed --reason again", "id,trigger"},
	"archive-task-start":        {"archive task start maps/12/index --set FORMAT=pdf --reason seen", "id,state"},
	"archive-task-cancel":       {"archive task cancel maps/12/index --reason hangs", "id,told"},

	"archive-workflow-lint":       {"archive workflow lint archive", "file,line"},
	"archive-workflow-lint-wrong": {"archive workflow lint wrong.yaml", "file,line,column,message"},
	"archive-workflow-graph":      {"archive workflow graph archive --format mermaid", ""},
	"archive-workflow-plan":       {"archive workflow plan archive --revision 3", "task,cancels"},
	"archive-workflow-run":        {"archive workflow run hello played --set WHOM=Anna", ""},
	"archive-workflow-schema":     {"archive workflow schema", ""},

	"consumer-replays":             {"consumer replays search", "id,state,failed"},
	"consumer-show-replay":         {"consumer show-replay " + operation1, "id,failures"},
	"consumer-show-replay-watch":   {"consumer show-replay " + operation1 + " --watch", "id,failures"},
	"consumer-cancel-replay":       {"consumer cancel-replay " + operation1 + " --reason wrong", "id,state"},
	"component-list":               {"component list", "name,counts"},
	"component-show":               {"component show metadata", "name,counts"},
	"component-apply":              {"component apply - --reason new", "name,version"},
	"component-schema":             {"component schema", ""},
	"component-history":            {"component history metadata", "type,detail"},
	"component-graph":              {"component graph --mermaid", ""},
	"component-line":               {"component line metadata", "item,priority"},
	"component-run":                {"component run metadata --reason corrected", "id,state"},
	"component-run-watch":          {"component run metadata --reason corrected --watch", "id,state,counts"},
	"component-runs":               {"component runs metadata", "id,counts"},
	"component-runs-show":          {"component runs metadata " + operation1, "id,items"},
	"component-interrupt":          {"component interrupt metadata --reason wrong", "summary"},
	"component-pause":              {"component pause metadata --reason wait", "summary"},
	"component-resume":             {"component resume metadata --reason on", "summary"},
	"component-delete":             {"component delete metadata --reason old", "summary"},
	"component-item-list":          {"component item list --type delivery", "id,lines"},
	"component-item-show":          {"component item show " + item1, "id,events"},
	"component-item-show-timeline": {"component item show " + item1 + " --timeline", "id,history"},
	"component-item-history":       {"component item history " + item1, "name,revoked"},
	"component-item-create": {
		"component item create delivery-17 --type delivery --parent Collection:maps --reason new",
		"changed",
	},
	"component-item-change": {
		"component item change " + item1 + " --type delivery --reason wrong",
		"changed,summary",
	},
	"component-item-forget": {"component item forget " + item1 + " --reason twice", "changed,summary"},
	"component-item-import": {"component item import " + item1 + " - --reason migration", "imported,refused"},
	"component-item-event": {
		"component item event " + item1 + " Structure_checked --reason seen",
		"changed,summary",
	},
	"component-item-revoke": {
		"component item revoke " + item1 + " Structure_checked --reason back",
		"changed,summary",
	},
	"component-item-restart": {"component item restart " + item1 + " --reason back", "changed,summary"},
	"component-item-stop":    {"component item stop " + item1 + " --reason wrong", "changed,summary"},
	"component-item-prioritize": {
		"component item prioritize " + item1 + " --priority 9 --reason soon",
		"changed,summary",
	},
	"component-item-release":  {"component item release " + item1 + " metadata --reason dead", "changed,summary"},
	"explain-batch":           {"explain " + batch1, "state,waitsFor"},
	"explain-job":             {"explain " + job2, "state,waitsFor,chain"},
	"explain-event":           {"explain Object:" + ark1 + " --event 1 --consumer search", "state,why"},
	"explain-item":            {"explain " + item1 + " --component metadata", "waitsFor,why"},
	"explain-pair":            {"explain jingles/" + episode1 + " --clip " + clip1, "why,ahead"},
	"explain-archive":         {"explain maps", "waitsFor,why"},
	"explain-task":            {"explain maps/12/pdf", "waitsFor,chain"},
	"explain-two":             {"explain delivery", "why"},
	"explain-renamed":         {"component explain metadata " + item1, ""},
	"help":                    {"help", ""},
	"help-job":                {"help job", ""},
	"help-submit":             {"help submit", ""},
	"doctor":                  {"doctor", "id,state,counts"},
	"queue-holds":             {"queue holds", "target,until"},
	"operation-list":          {"operation list", "id,state"},
	"operation-show":          {"operation show " + operation1, "id,counts,refusals"},
	"operation-show-watch":    {"operation show " + operation1 + " --watch", "id,state,refusals"},
	"operation-interrupt":     {"operation interrupt " + operation1 + " --reason wrong", "id,state"},
	"operation-continue":      {"operation continue " + operation1 + " --reason on", "id,state"},
	"job-requeue-bulk":        {"job requeue -b " + batch1 + " --all-failed --reason back", "id,state,counts"},
	"job-requeue-start":       {"job requeue -c maps --message 404 --reason back --no-watch", "id,state"},
	"help-requeue":            {"help job requeue", ""},
	"help-collection":         {"help collection hold", ""},
	"job-clean-up":            {"job clean-up " + job2 + " --reason space", "summary"},
	"job-delete":              {"job delete " + job2 + " --reason twice --confirm", "summary,warnings"},
	"job-hold":                {"job hold " + job2 + " --reason wait", "summary,state"},
	"job-prioritize":          {"job prioritize " + job2 + " --priority 1 --reason first", "summary,priority"},
	"job-release":             {"job release " + job2 + " --reason on", "summary"},
	"job-fail":                {"job fail " + job2 + " --reason wrong", "id,state"},
	"login":                   {"login --device", "subject"}, // there is no issuer
	"logout":                  {"logout", ""},
	"whoami":                  {"whoami", "subject,grants,expires"},
	"token-create":            {"token create hook --role viewer --days 9 --reason new", "id,token"},
	"token-list":              {"token list --state active", "id,name,used"},
	"token-revoke":            {"token revoke hook --reason gone", "state,revokedBy"},
	"token-show":              {"token show hook", "name,expires"},
	"job-counts":              {"job counts", "collections,all"},
	"batch-counts":            {"batch counts", "states"},
	"job-list":                {"job list -c maps", "id,state,message"},
	"job-list-batch":          {"job list -b " + batch1 + " --state FAILED --limit 1", "id,identifiers"},
	"job-list-failed":         {"job list -c maps --state failed", "id,message"},
	"job-list-empty":          {"job list -c empty", "id"},
	"job-receipt-csv":         {"job receipt " + job1 + " --csv", ""},
	"job-receipt":             {"job receipt " + job1, "ark,version,files"},
	"job-requeue":             {"job requeue " + job2 + " --reason back", "id,state"},
	"job-show":                {"job show " + job2, "id,state,recoverable,events"},
	"job-show-unknown":        {"job show " + batch1 + "-00099", "id"},
	"job-show-watch":          {"job show " + job1 + " --watch", "id,state"},
	"batch-check-bag":         {"batch check-bag delivery", "valid,version,files,problems"},
	"batch-check-bag-profile": {"batch check-bag delivery --bagit-profile profile.json", "valid,problems"},
	"batch-check-bag-invalid": {"batch check-bag holey", "valid,problems"},
	"batch-check-manifest":    {"batch check-manifest -", "accepted,kind,rows"},
	"object-files":            {"object files " + ark1, "path,size,mediaType"},
	"object-fixity":           {"object fixity " + ark1, "outcome,problems"},
	"object-formats":          {"object formats " + ark1, "path,formats"},
	"object-correct": {
		"object correct " + ark1 + " --who Blunt --withdraw-local-id map-1 --reason x",
		"id,state",
	},
	"object-withdraw":            {"object withdraw " + ark1 + " --reason rights", "id,state"},
	"object-reinstate":           {"object reinstate " + ark1 + " --reason settled", "id,state"},
	"object-hold-place":          {"object legal-hold place " + ark1 + " --reason case", "id,state"},
	"object-hold-lift":           {"object legal-hold lift " + ark1 + " --reason settled", "id,state"},
	"object-retain":              {"object retain " + ark1 + " --until 2036-12-31 --reason law", "id,state"},
	"object-embargo":             {"object embargo " + ark1 + " --until 2028-12-31 --reason wish", "id,state"},
	"object-repair":              {"object repair " + ark1 + " v1/content/x --reason damaged", "id,state"},
	"object-repairs":             {"object repairs " + ark1, "state,token"},
	"object-export":              {"object export " + ark1 + " -o export", "ark,folder,files"},
	"object-get":                 {"object get " + ark1 + " -o get", "path,local,kept"},
	"object-history":             {"object history " + ark1, "type,subjectId,actor"},
	"object-list":                {"object list -c maps", "ark,version,title"},
	"object-search":              {"object search ghent", "ark,title"},
	"object-browse":              {"object browse --by creator --starting-at a", "value,object"},
	"help-search":                {"help object search", ""},
	"object-reindex":             {"object reindex " + ark1, "objects,failed"},
	"object-show":                {"object show " + ark1, "ark,localIds,versions"},
	"object-preservation-report": {"object preservation report /missing/report --key /missing/key.pem", "file"},
	"object-preservation-verify": {"object preservation verify /missing/report --key /missing/public.pem", "file"},
	"object-preservation-status": {"object preservation status -c maps", "collection,verified,attention"},
	"queue":                      {"queue", "running,waiting"},
	"queue-show":                 {"queue show", "running"},
	"queue-pause":                {"queue pause --reason network --until 90m", "summary,changed"},
	"queue-resume":               {"queue resume --reason network", "summary,changed"},
	"collection-statistics":      {"collection statistics", "collection,downloads"},
	"collection-formats":         {"collection formats maps", "objects,formats"},
	"collection-formats-csv":     {"collection formats --csv", ""},
	"queue-pause-storage":        {"queue pause-storage --reason network", "summary,changed"},
	"queue-resume-storage":       {"queue resume-storage --reason network", "summary,changed"},
	"settings":                   {"settings", "version,items"},
	"restore-status":             {"restore status", "table,items"},
	"status":                     {"status", "at,attention,sections"},
	"submit":                     {"submit https://example.org/map.tif -c maps --local-id map-17", "id,warnings"},
	"submit-files":               {"submit letters -c maps", "id,upload,files,bytes"},
	"submit-dry-run": {
		"submit https://example.org/map.tif -c maps --local-id map-17 --dry-run",
		"object,version",
	},
}

const (
	batch1     = "01M7ZBMEYHBB62YP6RY21T1GQ6"
	job1       = batch1 + "-00001"
	job2       = batch1 + "-00002"
	operation1 = "01M7ZBMEYHBB62YP6RY21T1GQ8"
	upload1    = "01M7ZBMEYHBB62YP6RY21T1GQ9"

	item1 = "item:delivery-17"

	episode1 = "mfrggzdfmztwq2lknnwg23tp"
	clip1    = "nbswy3dpnbswy3dpnbswy3dp"
	feed1    = "mfrggzdfmztwq2lknnwg23tq"
	feed2    = "nbswy3dpfqqho33snrscaldo"

	ark1 = "ark:/99999/fk4tq65d6k"
)

const manifest1 = `#%checkm_0.7
#%profile | http://uc3.cdlib.org/registry/ingest/manifest/mrt-ingest-manifest
#%prefix | mrt: | http://merritt.cdlib.org/terms#
#%prefix | nfo: | http://www.semanticdesktop.org/ontologies/2007/03/22/nfo#
#%fields | nfo:fileUrl | nfo:hashAlgorithm | nfo:hashValue | nfo:fileSize | nfo:fileLastModified | nfo:fileName | mrt:mimeType
https://example.org/a.txt | md5 | 5d41402abc4b2a76b9719d911017c592 | 5 | | a.txt | text/plain
https://example.org/b.txt | md5 | 5d41402abc4b2a76b9719d911017c592 | 5 | | b.txt | text/plain
#%eof
`

// wire serves what an archive answered, by method and path.
func wire(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "wire.json"))
	if err != nil {
		t.Fatal(err)
	}
	var answers map[string]json.RawMessage
	if err := json.Unmarshal(data, &answers); err != nil {
		t.Fatal(err)
	}

	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := r.Method + " " + r.URL.RequestURI()
		var in struct{ Action string }
		if r.Method == http.MethodPost && json.NewDecoder(r.Body).Decode(&in) == nil && in.Action != "" {
			path += " " + in.Action
		}
		body, known := answers[path]
		var content string // of a file
		var refusal v1.Problem
		switch {
		case !known:
			w.WriteHeader(http.StatusNotFound)
			_ = json.NewEncoder(w).Encode(v1.Problem{Status: 404, Detail: "there is nothing at " + path})
		case json.Unmarshal(body, &refusal) == nil && refusal.Status > 0:
			w.WriteHeader(refusal.Status)
			_, _ = w.Write(body)
		case json.Unmarshal(body, &content) == nil:
			_, _ = w.Write([]byte(content))
		default:
			_ = json.NewEncoder(w).Encode(body) // in one line, as the API writes it
		}
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
	url := wire(t)
	for name, g := range golden {
		t.Run(name, func(t *testing.T) {
			commandtest.EmptyHome(t)
			kept(t, filepath.Join(dir, name+".txt"), g.record(t, url))
		})
	}
}

// kept: a text is what a golden file has.
func kept(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || string(want) != got {
		t.Errorf("%v: got\n%s\nwant\n%s", err, got, want)
	}
}

// TestGoldenIsComplete: no command is left out.
func TestGoldenIsComplete(t *testing.T) {
	parser := newProgram().Parser(command.Machine{Getenv: func(string) string { return "" }}, func(int) {})
	for _, command := range parser.Model.Leaves(false) {
		path := strings.TrimPrefix(command.FullPath(), "archivist ")
		isKept := false
		for _, g := range golden {
			isKept = isKept || g.line == path || strings.HasPrefix(g.line, path+" ")
		}
		if !isKept {
			t.Errorf("there is no golden output of %s", path)
		}
	}
}

var anyPort = regexp.MustCompile(`http://127\.0\.0\.1:\d+`)

// bags makes a valid bag and one that is not.
func bags(t *testing.T) {
	t.Helper()
	for _, bag := range []string{"delivery", "holey"} {
		if err := os.MkdirAll(bag+"/data", 0o755); err != nil {
			t.Fatal(err)
		}
		commandtest.Write(t, bag+"/bagit.txt", "BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n")
		commandtest.Write(t, bag+"/data/map.txt", "A map.\n")
		commandtest.Write(t, bag+"/manifest-sha256.txt",
			"220e610c1e7a7cb55b1bf9c47571fdd866df2fbd603713c3157f5506ad01a495  data/map.txt\n")
	}
	commandtest.Write(t, "holey/data/map.txt", "Another.\n")
	commandtest.Write(t, "profile.json", `{"BagIt-Profile-Info": {"BagIt-Profile-Identifier": "https://example.org/p"},
		"Accept-BagIt-Version": ["1.0"], "Manifests-Required": ["md5"]}`)
	commandtest.Write(t, "holey/data/Thumbs.db", "")
}

// console is a computer with what a command reads.
func (g commandLine) console(t *testing.T, url string) *commandtest.Console {
	t.Helper()
	c := with(t, url)
	c.Env["NO_COLOR"], c.Env["HOME"] = "1", "~" // a name of a fixed length: lines are cut at the terminal's width
	c.Stdin = manifest1
	if strings.HasPrefix(g.line, "consumer apply") {
		c.Stdin = "name: search\nfilter: Object+Create|Modify|Delete\ntarget:\n  handler: search\n"
	}
	if strings.HasPrefix(g.line, "component apply") {
		c.Stdin = "name: metadata\nevent: Metadata_checked\nfuture: [Metadata_checked]\nrunnable: {function: x}\n"
	}
	if strings.HasPrefix(g.line, "research apply") {
		c.Stdin = "name: jingles\nanalysis: {name: correlation, version: \"1\"}\n"
	}
	if strings.Contains(g.line, "list.csv") {
		commandtest.Write(t, "list.csv", "source,id,url\nradio,one,https://example.org/1.mp3\nradio,two,no address\n")
	}
	if strings.HasPrefix(g.line, "submit letters") {
		commandtest.Write(t, "letters/letter.txt", "Dear reader\n")
	}
	if strings.HasPrefix(g.line, "batch check-bag") {
		bags(t)
	}
	if strings.HasPrefix(g.line, "archive workflow") {
		if err := os.MkdirAll("archive/_workflows", 0o755); err != nil {
			t.Fatal(err)
		}
		commandtest.Write(t, "archive/_workflows/build.yaml", "- name: indexing\n  depends: PREV\n- name: build-PDF\n"+
			"  depends: indexing\n  cancels: PREV\n")
		commandtest.Write(t, "archive/_workflows/nightly.json", `[{"name": "report", "triggers": {"schedule": {"cron": "0 4 * * *"}}}]`)
		commandtest.Write(t, "archive/_workflows/README.md", "no tasks")
		if err := os.MkdirAll("played/_workflows", 0o755); err != nil {
			t.Fatal(err)
		}
		commandtest.Write(t, "played/_workflows/hello.yaml", "- name: hello\n  command: echo \"Hello, $WHOM\"\n"+
			"  parameters: {WHOM: {default: world}}\n")
		commandtest.Write(t, "wrong.yaml", "- name: index\n  comand: make\n  depends: [PREV, indx]\n- name: index\n")
	}
	if strings.HasPrefix(g.line, "collection") {
		c.Stdin = `{"requireDigest": true}`
	}

	return c
}

// record runs a command on a terminal, in a pipe and for JSON.
func (g commandLine) record(t *testing.T, url string) string {
	t.Helper()
	c := g.console(t, url)
	text := g.run(t, c, 80, "", "") + g.run(t, c, 0, "", " | cat")
	if g.fields != "" {
		text += g.run(t, c, 0, " --json "+g.fields, "")
	}
	return text
}

// run runs a command on a terminal of a width, or in a pipe, and returns what is seen of it.
func (g commandLine) run(t *testing.T, c *commandtest.Console, width int, flags, shown string) string {
	t.Helper()
	if err := os.RemoveAll("get"); err != nil {
		t.Fatal(err)
	}

	c.Width = width
	code := c.Run(g.line + flags)
	text := fmt.Sprintf("$ archivist %s%s%s\n", g.line, flags, shown)
	if width > 0 {
		text += c.Seen()
		forPrograms := strings.HasPrefix(g.line, "research export") || g.line == "archive workflow schema" ||
			strings.HasPrefix(g.line, "token create") ||
			strings.HasSuffix(g.line, " --csv")
		if !forPrograms {
			fits(t, width, c.Out.String())
		}
	} else {
		text += c.Out.String()
	}

	if width == 0 && c.Err.Len() > 0 {
		text += "--- standard error\n" + c.Err.String()
	}
	text += fmt.Sprintf("--- exit code %d\n\n", code)
	return anyPort.ReplaceAllString(text, "http://archive")
}

// fits: no line is wider than the terminal, unless it is a script, or a command to be pasted.
func fits(t *testing.T, width int, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		n := runes.StringWidthWithoutEscSequences(strings.TrimRight(line, "\n"))
		if n > width && !strings.HasPrefix(text, "#") && !strings.HasPrefix(line, "  archivist ") {
			t.Errorf("a line of %d columns: %s", n, line)
		}
	}
}
