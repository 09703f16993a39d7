// Package console_test opens each page of the console in a real browser, and uses it by the keyboard.
//
//	go test ./test/console -v -browser
package console_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"archivist/infra/toolchain"
	"archivist/localstack/demo"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/formats/checkm"
	"archivist/test/browser"
)

var withBrowser = flag.Bool("browser", false, "open the pages in a browser, which is installed first")

var withPictures = flag.Bool("pictures", true, "with -browser: keep pictures of all pages in "+pictures)

var intoDocs = flag.Bool("docs", false, "with -browser: take the pictures of docs/images anew, by TestPictures")

// pictures is where pictures of all pages are kept, below the root of the repository.
const pictures = ".local/console"

// The root of the repository, and how long a browser may take in all: an end for what hangs.
const (
	root   = "../.."
	within = 8 * time.Minute
)

// world is a demo with an issuer, in which much has happened.
type world struct {
	*demo.Demo
	tools     toolchain.APITools
	api       *v1.Client // of an administrator
	files     *httptest.Server
	far       *httptest.Server // another host, to which that of a recording leads
	broken    string           // while there is this file, the function outside fails
	goes      string           // as long as this file is not there, a task of the archive live waits
	corrected atomic.Bool      // the source of faults.checkm is corrected
	place     string           // the form by which a person accepts the place of a clip, below /console/
	// Of one job each.
	failed, pending, done v1.Job
}

// theWorld is what all tests share.
var theWorld *world

// TestMain starts the demo, if pages are opened in a browser.
func TestMain(m *testing.M) {
	if broken, is := os.LookupEnv(brokenVar); is {
		beFunction(broken)
	}
	flag.Parse()
	code := 0
	if *withBrowser {
		w, err := begin(context.Background())
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		theWorld = w
		defer func() { os.Exit(code) }()
		defer w.end()
	}
	code = m.Run()
}

// of returns the world, and leaves a test out without a browser.
func of(t *testing.T) *world {
	t.Helper()
	if theWorld == nil {
		t.Skip("it opens a browser, which is installed first: go test ./test/console -browser")
	}
	return theWorld
}

// begin starts the demo, and lets happen what pages show.
func begin(ctx context.Context) (w *world, err error) {
	w = &world{}
	at, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	if w.tools, err = (toolchain.Checkout{Root: at, Log: os.Stderr}).InstallAPITools(ctx); err != nil {
		return nil, err
	}
	if err := errors.Join(os.RemoveAll(root+"/"+pictures), os.MkdirAll(root+"/"+pictures, 0o755)); err != nil {
		return nil, err
	}
	if *intoDocs {
		hostile, fromRight = "The ferry at the landing", "Port of Tunis"
	}
	if err := w.fault(); err != nil {
		return nil, err
	}
	functions, err := w.functions()
	if err != nil {
		return nil, err
	}
	if w.Demo, err = demo.Start(ctx, demo.Options{Issuer: true, Functions: functions}); err != nil {
		return nil, err
	}
	w.api = w.administrator()
	w.far = httptest.NewServer(http.HandlerFunc(sound))
	w.files = httptest.NewServer(http.HandlerFunc(w.serve))
	return w, w.happen(ctx)
}

// administrator is a client of the API that may do everything.
func (w *world) administrator() *v1.Client {
	return &v1.Client{URL: w.APIURL, HTTP: http.DefaultClient,
		Bearer: func(context.Context) (string, error) { return w.Issuer.Machine("the-demo") }}
}

func (w *world) end() {
	w.files.Close()
	w.far.Close()
	if err := errors.Join(w.Close(), os.RemoveAll(filepath.Dir(w.broken))); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

// hostile would be an element, an attribute, another direction of writing and a very long word, if it were not text.
var hostile = `<script>evil()</script><img src=x onerror=evil()> " onload="evil() ` +
	"\u202egpj.exe \u05e9\u05dc\u05d5\u05dd " + strings.Repeat("long", 200)

// fromRight is written from right to left.
var fromRight = "\u0645\u0631\u0643\u0632 \u0627\u0644\u0645\u062f\u064a\u0646\u0629"

// first is the begin of hostile.
func first(bytes int) string { return hostile[:min(bytes, len(hostile))] }

// content is what a file of the depositor has.
func content(path string) string { return "The content of " + path + "\n" }

// singleFiles is the profile of manifests whose rows are objects of one file.
const singleFiles = "http://uc3.cdlib.org/registry/ingest/manifest/mrt-single-file-batch-manifest"

// many is how many jobs TestBulk requeues.
const many = 1000

// serve is the depositor's server: of a manifest of objects, and of their files, of which some are not there.
func (w *world) serve(rw http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == "/objects.checkm":
		var rows []checkm.Row
		for i, title := range []string{"Map of the harbour", hostile, fromRight, "Letter to the editor",
			"View of the bridge", "Plan of the old town"} {
			name := fmt.Sprintf("object-%d.txt", i)
			if i > 3 {
				name = "missing-" + name
			}
			sum := sha256.Sum256([]byte(content("/" + name)))
			rows = append(rows, checkm.Row{URL: w.files.URL + "/" + name, Name: name, Title: title, Size: -1,
				Algorithm: "sha256", Digest: hex.EncodeToString(sum[:]),
				Local: []string{"map-" + fmt.Sprint(1851+i)}})
		}
		_ = checkm.WriteBatch(rw, singleFiles, rows) // the client may be gone
	case r.URL.Path == "/many.checkm":
		rows := make([]checkm.Row, many)
		for i := range rows {
			name := fmt.Sprintf("missing-%04d.txt", i)
			rows[i] = checkm.Row{URL: w.files.URL + "/" + name, Name: name, Size: -1, Local: []string{name}}
		}
		_ = checkm.WriteBatch(rw, singleFiles, rows)
	case r.URL.Path == "/book.checkm" || r.URL.Path == "/live.checkm":
		name := strings.TrimSuffix(r.URL.Path[1:], ".checkm")
		text, _ := w.manifestOf(name, map[string]map[string]string{"book": book, "live": w.live()}[name])
		fmt.Fprint(rw, text)
	case r.URL.Path == "/faults.checkm":
		_ = checkm.Write(rw, objectManifest, w.faulty())
	case strings.HasPrefix(r.URL.Path, "/faults/"):
		w.serveFault(rw, strings.TrimPrefix(r.URL.Path, "/faults/"))
	case strings.HasPrefix(r.URL.Path, "/book/"):
		fmt.Fprint(rw, book[strings.TrimPrefix(r.URL.Path, "/book/")])
	case strings.HasPrefix(r.URL.Path, "/live/"):
		fmt.Fprint(rw, w.live()[strings.TrimPrefix(r.URL.Path, "/live/")])
	case strings.HasPrefix(r.URL.Path, "/evil."):
		fmt.Fprint(rw, `<svg xmlns="http://www.w3.org/2000/svg"><script>window.evil = 1</script></svg>`)
	case r.URL.Path == "/episodes.wav":
		http.Redirect(rw, r, w.far.URL, http.StatusFound)
	case strings.Contains(r.URL.Path, "missing"):
		http.NotFound(rw, r)
	default:
		fmt.Fprint(rw, content(r.URL.Path))
	}
}

// sound answers with a recording of 100 s of silence: 8,000 samples a second, of a byte each.
func sound(rw http.ResponseWriter, r *http.Request) {
	const rate, seconds = 8000, 100
	data := binary.LittleEndian.AppendUint32([]byte("RIFF"), 36+rate*seconds)
	data = append(data, "WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00"...)
	data = binary.LittleEndian.AppendUint32(data, rate)
	data = binary.LittleEndian.AppendUint32(data, rate)
	data = append(data, "\x01\x00\x08\x00data"...)
	data = binary.LittleEndian.AppendUint32(data, rate*seconds)
	data = append(data, bytes.Repeat([]byte{0x80}, rate*seconds)...)
	http.ServeContent(rw, r, "sound.wav", time.Time{}, bytes.NewReader(data))
}

// happen lets jobs complete, fail, wait and be held, with texts that are no plain words.
func (w *world) happen(ctx context.Context) (err error) {
	in := v1.BatchRequest{Collection: "maps", Submitter: "Map Library " + first(60), Note: first(200),
		Payload: v1.Payload{URL: w.files.URL + "/objects.checkm", Type: "single-file-batch-manifest"}}
	ids, err := w.submit(ctx, in, v1.Completed, v1.Failed)
	if err != nil {
		return err
	}
	w.done, w.failed = ids[0], ids[1]
	if err := until(ctx, "the batch is reported", func() (bool, error) {
		b, err := w.api.Batch(ctx, w.failed.Batch)
		return v1.Ended(b.State), err
	}); err != nil {
		return err
	}
	bulk := v1.OperationRequest{Action: "requeue", Filter: &v1.JobFilter{Batch: w.failed.Batch},
		ActionOptions: v1.ActionOptions{Reason: "The source is back. " + first(60), DryRun: true}}
	op, err := w.api.Start(ctx, bulk, "")
	if err != nil {
		return err
	}
	if err := until(ctx, "the operation is done", func() (bool, error) {
		o, err := w.api.Operation(ctx, op.ID)
		return o.State == v1.OperationDone, err
	}); err != nil {
		return err
	}

	if err := errors.Join(w.scenes(ctx), w.pause(ctx, "pause")); err != nil {
		return err
	}
	in.Payload = v1.Payload{URL: w.files.URL + "/waits.txt", Type: "file"}
	in.Metadata = &v1.Metadata{What: "A letter that waits"}
	ids, err = w.submit(ctx, in, v1.Pending)
	if err == nil {
		w.pending = ids[0]
	}
	return err
}

// pause pauses or resumes the queue.
func (w *world) pause(ctx context.Context, action string) error {
	var out v1.ActionResult
	in := v1.Action{Action: action, Reason: "The cooling is repaired"}
	return w.api.Call(ctx, http.MethodPost, "/v1/queue/actions", in, &out)
}

// submit submits, and waits until jobs are in states.
func (w *world) submit(ctx context.Context, in v1.BatchRequest, states ...string) (found []v1.Job, err error) {
	accepted, err := w.api.Submit(ctx, in, "")
	if err != nil {
		return nil, err
	}
	err = until(ctx, fmt.Sprint("jobs are ", states), func() (bool, error) {
		all, err := w.api.Jobs(ctx, v1.Filter{Batch: accepted.ID})
		found = nil
		for _, state := range states {
			for _, j := range all {
				if j.State == state {
					found = append(found, j)
					break
				}
			}
		}
		return len(found) == len(states), err
	})
	if err != nil {
		b, _ := w.api.Jobs(context.WithoutCancel(ctx), v1.Filter{Batch: accepted.ID})
		err = fmt.Errorf("%w; the jobs are %+v", err, b)
	}
	return found, err
}

// until looks until f is true, for a limited time.
func until(ctx context.Context, what string, f func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		done, err := f()
		if done || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: not within 3 minutes", what)
		case <-tick.C:
		}
	}
}

// window is a window of a browser in which an administrator has signed in.
type window struct {
	*testing.T
	ctx   context.Context
	wrong func() []string
	at    string // the address of the console, with a slash
	mouse bool   // a person clicks, and uses no shortcut
}

// open opens one, in which the administrator signs in.
func (w *world) open(t *testing.T, width int64, scheme string) *window {
	t.Helper()
	return w.openAs(t, "alma", width, scheme)
}

// openAs opens one, in which another user of the issuer signs in.
func (w *world) openAs(t *testing.T, user string, width int64, scheme string) *window {
	t.Helper()
	v := &window{T: t, at: w.APIURL + "/console/"}
	v.ctx, v.wrong = browser.Open(t, w.tools, within, "http://127.0.0.1:", width, scheme)
	v.do(chromedp.Navigate(w.APIURL), chromedp.Click(chromedp.CSS("input[value="+user+"]")),
		chromedp.Click(chromedp.CSS("button[value=yes]")), chromedp.WaitVisible(chromedp.CSS("nav.places")))
	v.waits(loaded)
	return v
}

func (v *window) do(steps ...chromedp.Action[chromedp.Void]) {
	v.Helper()
	if err := chromedp.Do(v.ctx, steps...); err != nil {
		v.Fatalf("%v; %q", err, v.wrong())
	}
}

// goTo opens a page by its path below /console/.
func (v *window) goTo(path string) {
	v.Helper()
	v.do(chromedp.Navigate(v.at+path), chromedp.WaitVisible(chromedp.CSS("h1")))
	v.waits(loaded)
}

// loaded is true once the scripts of a page have run: a key that is pressed before is no shortcut yet.
const loaded = `document.readyState === "complete"`

// ask is the value of an expression in the page; a promise is awaited.
func ask[T any](v *window, expression string) T {
	v.Helper()
	got, err := chromedp.Run(v.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		v.Fatalf("%.200s: %v; %q", expression, err, v.wrong())
	}
	return got
}

// waits waits until an expression is true in the page, or in the one that is opened meanwhile.
func (v *window) waits(expression string) {
	v.Helper()
	var last error
	err := until(v.ctx, expression, func() (bool, error) {
		var is bool
		is, last = chromedp.Run(v.ctx, chromedp.Evaluate[bool](expression)) // not while a page is opened
		return is && last == nil, v.ctx.Err()
	})
	if err != nil {
		v.Fatalf("%v; %v; %q; at %s", err, last, v.wrong(), ask[string](v, "location.href"))
	}
}

// fine fails if something went wrong in the page since the last call.
func (v *window) fine(what string) {
	v.Helper()
	for _, w := range v.wrong() {
		v.Errorf("%s: %s", what, w)
	}
}
