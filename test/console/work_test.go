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

// TestDeposit: a person deposits a folder of 200 files. All are one object, with their digests.
func TestDeposit(t *testing.T) {
	w := of(t)
	byHands(t, func(v *window) {
		folder, sums := scans(v)
		v.goes("s", "Submit")
		v.writes(`at.id === "collection"`, "maps")
		picked := v.picks(folder)
		v.presses(`at.id === "folder"`)
		picked()
		v.waits(`document.getElementById("chosen").textContent.startsWith("200 files")`)
		v.signsInAgain(w.open(v.T, 1280, "light"))
		v.presses(`at.id === "send"`)
		v.waits(`!document.getElementById("ready").hidden`)
		if wrong := v.wrong(); len(wrong) != 1 || !strings.Contains(wrong[0], "403") {
			v.Errorf("%q; expected the note of one refusal", wrong)
		}
		v.writes(`at.id === "what"`, "Scans of a diary")
		v.does()
		job := w.submitted(v)
		files := w.filesOf(v.T, job.Identifiers.Primary)
		for name, sum := range sums {
			if files[name] != sum {
				v.Errorf("%s has %q; expected %s", name, files[name], sum)
			}
		}
	})
}

// scans are 200 files in a folder, which differ for each hand, and their digests as they are stored.
func scans(v *window) (folder string, sums map[string]string) {
	v.Helper()
	folder, sums = filepath.Join(v.TempDir(), "scans"), map[string]string{}
	for i := range 200 {
		name := fmt.Sprintf("%d/page-%03d.txt", i%7, i)
		text := fmt.Sprintf("%s by the mouse: %v", content(name), v.mouse)
		sum := sha256.Sum256([]byte(text))
		sums["producer/"+name] = hex.EncodeToString(sum[:])
		at := filepath.Join(folder, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			v.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
			v.Fatal(err)
		}
	}
	return folder, sums
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

// TestManifest: a manifest with three faults is written, and refused with the line of each; corrected, it is submitted.
func TestManifest(t *testing.T) {
	w := of(t)
	good, err := w.manifestOf("book", book)
	if err != nil {
		t.Fatal(err)
	}
	bad := strings.Replace(good, "#%eof", w.files.URL+"/x | sha9 | 12 | | | x\nhalf a row\n"+
		w.files.URL+"/y | sha256 | short | 5 | | y\n#%eof", 1)
	if bad == good {
		t.Fatalf("the manifest has no end:\n%s", good)
	}
	byHands(t, func(v *window) {
		v.goes("s", "Submit")
		v.writes(`at.id === "collection"`, "maps")
		v.chooses("kind", "manifest", 2)
		v.writes(`at.id === "manifest"`, bad)
		v.does()
		v.waits(`document.getElementById("checked")?.textContent === "The manifest would be refused" && ` + loaded)
		n := ask[int](v, `document.querySelectorAll("section[aria-labelledby=checked] b.bad").length`)
		if n != 3 {
			v.Errorf("%d faults are named: %s", n, ask[string](v, `document.querySelector("main section").textContent`))
		}
		if kept := ask[string](v, `document.getElementById("manifest").value.trim()`); kept != strings.TrimSpace(bad) {
			v.Errorf("what was written is now %q", kept)
		}
		v.wrong() // the browser notes the status 422
		v.writes(`at.id === "manifest"`, good)
		v.does()
		job := w.submitted(v)
		if files := w.filesOf(v.T, job.Identifiers.Primary); len(files) < len(book) {
			v.Errorf("the object has the files %v", files)
		}
	})
}

// chooses chooses one of several values, which is so many after the one that is chosen: of them, the tabulator reaches
// that one.
func (v *window) chooses(name, value string, after int) {
	v.Helper()
	if v.mouse {
		v.presses(fmt.Sprintf("at.name === %q && at.value === %q", name, value))
		return
	}
	v.tabTo(fmt.Sprintf("at.name === %q", name))
	for range after {
		v.press(kb.ArrowDown)
	}
}

// TestFaults: of the files of a manifest, the source does not give three. A person finds all of them on the page of the
// job that failed, and requeues it when the source is corrected; then all are preserved.
func TestFaults(t *testing.T) {
	w := of(t)
	byHands(t, func(v *window) {
		w.corrected.Store(false)
		v.goes("s", "Submit")
		v.writes(`at.id === "collection"`, "maps")
		v.chooses("kind", "url", 1)
		v.writes(`at.id === "url"`, w.files.URL+"/faults.checkm")
		v.does()
		v.waits(`location.pathname.includes("/console/batches/")`)
		v.waits(`document.querySelector("#live .lead .state").textContent === "Failed" && ` + loaded)
		v.presses(`at.matches("#live a[href*='/jobs/']")`)
		v.waits(`location.pathname.includes("/console/jobs/") && ` + loaded)
		says := ask[string](v, `document.querySelector("section[aria-labelledby=why] .chain").textContent`)
		for name := range faults {
			if name != "good.txt" && !strings.Contains(says, name) {
				v.Errorf("%s is not named: %s", name, says)
			}
		}
		w.corrected.Store(true)
		v.previews("Requeue", "reason", "The three files are corrected")
		v.does()
		v.did("It was requeued.")
		v.waits(`document.querySelector("#live .lead .state").textContent === "Completed"`)
		job, err := w.api.Job(v.Context(), ask[string](v, `location.pathname.split("/").pop()`))
		if err != nil {
			v.Fatal(err)
		}
		stored := w.filesOf(v.T, job.Identifiers.Primary)
		for name, text := range faults {
			if sum := sha256.Sum256([]byte(text)); stored["producer/"+name] != hex.EncodeToString(sum[:]) {
				v.Errorf("%s is stored as %v", name, stored)
			}
		}
	})
}

// TestStuck: a person learns on the page of a job that waits for which pause it does, and ends that; the job goes on.
func TestStuck(t *testing.T) {
	w := of(t)
	byHands(t, func(v *window) {
		if err := w.pause(v.Context(), "pause"); err != nil {
			v.Fatal(err)
		}
		jobs, err := w.submit(v.Context(), v1.BatchRequest{Collection: "maps",
			Payload: v1.Payload{URL: w.files.URL + "/stuck.txt", Type: "file"}}, v1.Pending)
		if err != nil {
			v.Fatal(err)
		}
		v.finds("jobs", jobs[0].ID)
		v.waits(`/paused/.test(document.querySelector("section[aria-labelledby=why] .chain")?.textContent)`)
		v.goes("q", "Queue")
		v.fill("Resume the queue", "reason", "The cooling is repaired")
		v.waits(`document.querySelector("h1").textContent === "Resume?" && ` + loaded)
		v.does()
		v.did("The pause has ended.")
		v.finds("jobs", jobs[0].ID)
		v.waits(`document.querySelector("#live .lead .state").textContent === "Completed"`)
	})
}

// TestRedrive: the events that a consumer could not handle are handled again, once its function works.
func TestRedrive(t *testing.T) {
	w := of(t)
	byHands(t, func(v *window) {
		if err := os.WriteFile(w.broken, nil, 0o644); err != nil {
			v.Fatal(err)
		}
		if _, err := w.submit(v.Context(), v1.BatchRequest{Collection: "maps",
			Payload: v1.Payload{URL: w.files.URL + "/parked.txt", Type: "file"}}, v1.Completed); err != nil {
			v.Fatal(err)
		}
		if err := w.parked(v.Context(), func(n int64) bool { return n > 0 }); err != nil {
			v.Fatal(err)
		}
		if err := os.Remove(w.broken); err != nil {
			v.Fatal(err)
		}
		v.goes("n", "Consumers")
		v.presses(`at.matches("main a") && at.textContent === "outside"`)
		v.waits(`location.pathname.endsWith("/consumers/outside") && ` + loaded)
		v.fill("Handle all parked events again", "reason", "The function is corrected")
		v.did("The parked events are handled again within a minute or two.")
		if err := w.parked(v.Context(), func(n int64) bool { return n == 0 }); err != nil {
			v.Error(err)
		}
	})
}

// TestForce: an item passes a component that fails, by an event that a person records.
func TestForce(t *testing.T) {
	w := of(t)
	byHands(t, func(v *window) {
		id := fmt.Sprint("item:by-the-mouse-", v.mouse)
		if err := w.fails(v.Context(), id); err != nil {
			v.Fatal(err)
		}
		v.goTo("components/second?class=failed")
		v.presses(fmt.Sprintf(`at.matches("a[href*='item?id=']") && at.textContent.includes(%q)`, id))
		v.waits(`location.pathname.endsWith("/item") && ` + loaded)
		v.fill("Force: record an event by hand", "event", "Second_done", "reason", "Done by hand")
		v.did("The event is recorded.")
		is, err := w.api.Item(v.Context(), id)
		forced := func(e v1.ItemMark) bool { return e.Name == "Second_done" && e.Outcome == "success" }
		if err != nil || !slices.ContainsFunc(is.Events, forced) {
			v.Errorf("%+v, %v", is, err)
		}
	})
}

// TestListen: from a clip a person comes to the place where it was found, and hears the recording from there, although
// its host leads to another one.
func TestListen(t *testing.T) {
	byHands(t, func(v *window) {
		v.goTo("research/" + localstack.ResearchProject + "/matrix")
		for _, to := range []string{"/clips/", "?at="} {
			v.presses(fmt.Sprintf("at.matches(\"a[href*='%s']\")", to))
			v.waits(fmt.Sprintf("location.href.includes(%q) && %s", to, loaded))
		}
		const player = `document.querySelector("audio")`
		v.waits(player + `?.src.endsWith("/episodes.wav#t=75.500")`)
		ask[int](v, player+`.addEventListener("loadedmetadata", e => began = e.target.currentTime); window.began = -1`)
		if v.mouse {
			v.clickAt(`at.matches("audio")`, 0.03) // its button
		} else {
			v.tabTo(`at.matches("audio")`)
			v.do(chromedp.KeyEvent(" "))
		}
		v.waits(`(a => !a.paused && a.readyState >= 2 && a.currentTime > 75.6)(` + player + `)`)
		if began := ask[float64](v, "began"); began != 75.5 {
			v.Errorf("the player begins at %g s", began)
		}
		if long := ask[float64](v, player+`.duration`); long != 100 {
			v.Errorf("the recording has %g s", long)
		}
	})
}
