package console_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"archivist/localstack"
	v1 "archivist/pkg/api/v1"
)

// picks lets the dialog of the operating system, which the page opens next, choose files.
func (v *window) picks(files ...string) (picked func()) {
	v.Helper()
	opened := make(chan cdp.BackendNodeID, 1)
	err := chromedp.Listen(v.ctx, func(event any) {
		if e, is := event.(*page.EventFileChooserOpened); is {
			opened <- e.BackendNodeID
		}
	})
	if err == nil {
		_, err = chromedp.Call(v.ctx, page.Enable, page.EnableParams{})
	}
	if err == nil {
		_, err = chromedp.Call(v.ctx, page.SetInterceptFileChooserDialog,
			page.SetInterceptFileChooserDialogParams{Enabled: true})
	}
	if err != nil {
		v.Fatal(err)
	}
	return func() {
		v.Helper()
		select {
		case <-v.ctx.Done():
			v.Fatalf("no dialog has opened: %q", v.wrong())
		case node := <-opened:
			_, err := chromedp.Call(v.ctx, dom.SetFileInputFiles,
				dom.SetFileInputFilesParams{Files: files, BackendNodeID: node})
			if err != nil {
				v.Fatal(err)
			}
		}
	}
}

// did waits until the page says what was done.
func (v *window) did(did string) {
	v.Helper()
	v.waits(fmt.Sprintf(`document.querySelector("p.done")?.textContent === %q && %s`, did, loaded))
	v.fine(did)
}

// submitted is the job of the batch whose page was reached, once it is Completed.
func (w *world) submitted(v *window) (job v1.Job) {
	v.Helper()
	v.waits(`location.pathname.includes("/console/batches/")`)
	batch := ask[string](v, `location.pathname.split("/").pop()`)
	err := until(v.Context(), "the batch is Completed", func() (bool, error) {
		all, err := w.api.Jobs(v.Context(), v1.Filter{Batch: batch})
		done := func(j v1.Job) bool { return j.State == v1.Completed }
		if len(all) == 0 || !slices.ContainsFunc(all, done) {
			return false, err
		}
		job = all[0]
		return true, err
	})
	if err != nil {
		v.Fatal(err)
	}
	return job
}

// TestDeposit: a person without a mouse deposits a folder of 200 files. All are one object, with their digests.
func TestDeposit(t *testing.T) {
	w := of(t)
	if err := w.pause(t.Context(), "resume"); err != nil {
		t.Fatal(err)
	}
	folder, sums := filepath.Join(t.TempDir(), "scans"), map[string]string{}
	for i := range 200 {
		name := fmt.Sprintf("%d/page-%03d.txt", i%7, i)
		sum := sha256.Sum256([]byte(content(name)))
		sums["producer/"+name] = hex.EncodeToString(sum[:])
		at := filepath.Join(folder, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(content(name)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	v := w.open(t, 1280, "light")
	v.goTo("submit")
	v.tabTo(`at.id === "collection"`)
	v.press("maps")
	picked := v.picks(folder)
	v.tabTo(`at.id === "folder"`)
	v.press(kb.Enter)
	picked()
	v.waits(`document.getElementById("chosen").textContent.startsWith("200 files")`)
	v.signsInAgain(w.open(t, 1280, "light"))
	v.tabTo(`at.id === "send"`)
	v.press(kb.Enter)
	v.waits(`!document.getElementById("ready").hidden`)
	if wrong := v.wrong(); len(wrong) != 1 || !strings.Contains(wrong[0], "403") {
		t.Errorf("%q; expected the note of one refusal", wrong)
	}
	v.tabTo(`at.id === "what"`)
	v.press("Scans of a diary")
	v.tabTo(`at.matches("button") && at.value === "do"`)
	v.press(kb.Enter)
	job := w.submitted(v)
	files := w.filesOf(t, job.Identifiers.Primary)
	for name, sum := range sums {
		if files[name] != sum {
			t.Errorf("%s has %q; expected %s", name, files[name], sum)
		}
	}
	v.fine("the deposit")
}

// signsInAgain gives a browser the session of another one, as after another sign-in: the form of its page is not of
// that.
func (v *window) signsInAgain(other *window) {
	v.Helper()
	got, err := chromedp.Call(other.ctx, network.GetCookies, network.GetCookiesParams{URLs: []string{v.at}})
	for i := 0; err == nil && i < len(got.Cookies); i++ {
		c := got.Cookies[i]
		_, err = chromedp.Call(v.ctx, network.SetCookie, network.SetCookieParams{Name: c.Name, Value: c.Value,
			URL: v.at, Path: c.Path, HTTPOnly: &c.HTTPOnly})
	}
	if err != nil {
		v.Fatal(err)
	}
}

// filesOf are the digests of the files that were deposited of an object, by their paths.
func (w *world) filesOf(t *testing.T, ark string) map[string]string {
	t.Helper()
	files := map[string]string{}
	page, err := w.api.FilePage(t.Context(), ark, 1, "", 1000)
	if err != nil || page.Cursor != "" {
		t.Fatalf("%q, %v", page.Cursor, err)
	}
	for _, f := range page.Items {
		files[f.Path] = f.Digests["sha256"]
	}
	return files
}

// TestManifest: without a mouse, a manifest with three faults is written, and refused with the line of each; corrected,
// it is submitted.
func TestManifest(t *testing.T) {
	w := of(t)
	if err := w.pause(t.Context(), "resume"); err != nil {
		t.Fatal(err)
	}
	good, err := w.manifestOf("book", book)
	if err != nil {
		t.Fatal(err)
	}
	bad := strings.Replace(good, "#%eof", w.files.URL+"/x | sha9 | 12 | | | x\nhalf a row\n"+
		w.files.URL+"/y | sha256 | short | 5 | | y\n#%eof", 1)
	if bad == good {
		t.Fatalf("the manifest has no end:\n%s", good)
	}
	v := w.open(t, 1280, "light")
	v.goTo("submit")
	v.tabTo(`at.id === "collection"`)
	v.press("maps")
	v.tabTo(`at.name === "kind"`) // of the choices, the tabulator reaches the one that is chosen
	v.press(kb.ArrowDown, kb.ArrowDown)
	submit := func(text string) {
		t.Helper()
		v.tabTo(`at.id === "manifest"`)
		v.do(chromedp.KeyEvent("a", chromedp.KeyModifiers(chromedp.ModifierCtrl)))
		v.press(text)
		v.tabTo(`at.matches("#submission button") && at.value === "do"`)
		v.press(kb.Enter)
	}
	submit(bad)
	v.waits(`document.getElementById("checked")?.textContent === "The manifest would be refused" && ` + loaded)
	n := ask[int](v, `document.querySelectorAll("section[aria-labelledby=checked] b.bad").length`)
	if n != 3 {
		t.Errorf("%d faults are named: %s", n, ask[string](v, `document.querySelector("main section").textContent`))
	}
	if kept := ask[string](v, `document.getElementById("manifest").value.trim()`); kept != strings.TrimSpace(bad) {
		t.Errorf("what was written is now %q", kept)
	}
	v.wrong() // the browser notes the status 422
	submit(good)
	job := w.submitted(v)
	if files := w.filesOf(t, job.Identifiers.Primary); len(files) < len(book) {
		t.Errorf("the object has the files %v", files)
	}
	v.fine("the manifest")
}

// finds opens a job by the field that searches, by the keyboard alone.
func (v *window) finds(job string) {
	v.Helper()
	v.press("/", job, kb.Enter)
	v.waits(fmt.Sprintf(`location.pathname.endsWith("/jobs/%s") && %s`, job, loaded))
}

// TestStuck: without a mouse, a person learns on the page of a job that waits for which pause it does, and ends that;
// the job goes on.
func TestStuck(t *testing.T) {
	w := of(t)
	if err := w.pause(t.Context(), "pause"); err != nil {
		t.Fatal(err)
	}
	jobs, err := w.submit(t.Context(), v1.BatchRequest{Collection: "maps",
		Payload: v1.Payload{URL: w.files.URL + "/stuck.txt", Type: "file"}}, v1.Pending)
	if err != nil {
		t.Fatal(err)
	}
	v := w.open(t, 1280, "light")
	v.finds(jobs[0].ID)
	v.waits(`/paused/.test(document.querySelector("section[aria-labelledby=why] .chain")?.textContent)`)
	v.press("g", "q")
	v.waits(`document.querySelector("h1").textContent === "Queue" && ` + loaded)
	v.fill("Resume the queue", "reason", "The cooling is repaired")
	v.waits(`document.querySelector("h1").textContent === "Resume?" && ` + loaded)
	v.does()
	v.did("The pause has ended.")
	v.finds(jobs[0].ID)
	v.waits(`document.querySelector("#live .lead .state").textContent === "Completed"`)
}

// TestRedrive: without a mouse, the events that a consumer could not handle are handled again, once its function works.
func TestRedrive(t *testing.T) {
	w := of(t)
	if err := os.RemoveAll(w.broken); err != nil {
		t.Fatal(err)
	}
	v := w.open(t, 1280, "light")
	v.goTo("consumers/outside")
	v.fill("Handle all parked events again", "reason", "The function is corrected")
	v.did("The parked events are handled again within a minute or two.")
	if err := w.parked(t.Context(), func(n int64) bool { return n == 0 }); err != nil {
		t.Error(err)
	}
}

// TestForce: without a mouse, an item passes a component that fails, by an event that a person records.
func TestForce(t *testing.T) {
	w := of(t)
	v := w.open(t, 1280, "light")
	v.goTo("components/second?class=failed")
	v.tabTo(`at.matches("a[href*='item?id=']")`)
	v.press(kb.Enter)
	v.waits(`location.pathname.endsWith("/item") && ` + loaded)
	v.fill("Force: record an event by hand", "event", "Second_done", "reason", "Done by hand")
	v.did("The event is recorded.")
	is, err := w.api.Item(t.Context(), item)
	forced := func(e v1.ItemMark) bool { return e.Name == "Second_done" && e.Outcome == "success" }
	if err != nil || !slices.ContainsFunc(is.Events, forced) {
		t.Errorf("%+v, %v", is, err)
	}
}

// TestListen: without a mouse, from a clip a person comes to the place where it was found, and the
// player begins there, although the host of the recording leads to another one.
func TestListen(t *testing.T) {
	w := of(t)
	v := w.open(t, 1280, "light")
	v.goTo("research/" + localstack.ResearchProject + "/matrix")
	for _, to := range []string{"/clips/", "?at="} {
		v.tabTo(fmt.Sprintf("at.matches(\"a[href*='%s']\")", to))
		v.press(kb.Enter)
		v.waits(fmt.Sprintf("location.href.includes(%q) && %s", to, loaded))
	}
	v.waits(`document.querySelector("audio")?.src.endsWith("/episodes.wav#t=75.500")`)
	v.waits(`(a => (a.preload = "auto", a.duration > 99 && a.currentTime >= 75.5))(document.querySelector("audio"))`)
	v.fine("the recording")
}
