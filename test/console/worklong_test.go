package console_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/ingest/upload"
	"archivist/pkg/kernel/table"
)

// TestHold: a person holds a collection, and its jobs wait; released, they go on.
func TestHold(t *testing.T) {
	w := of(t)
	byHands(t, func(v *window) {
		v.goes("c", "Collections")
		v.presses(`at.matches("main a") && at.textContent === "maps"`)
		v.waits(`location.pathname.endsWith("/collections/maps") && ` + loaded)
		v.previews("Hold", "reason", "The rights are not clear")
		v.does()
		v.did("It is on hold.")
		accepted, err := w.api.Submit(v.Context(), v1.BatchRequest{Collection: "maps",
			Payload: v1.Payload{URL: w.files.URL + "/held.txt", Type: "file"}}, "")
		if err != nil {
			v.Fatal(err)
		}
		if err := until(v.Context(), "the batch is held", func() (bool, error) {
			b, err := w.api.Batch(v.Context(), accepted.ID)
			return b.State == v1.Held, err
		}); err != nil {
			v.Fatal(err)
		}
		v.previews("Release", "reason", "They are")
		v.does()
		v.did("It was released.")
		v.bulk("They are clear", "1 of 1")
		v.finds("batches", accepted.ID)
		v.waits(`document.querySelector("#live .lead .state").textContent === "Completed"`)
	})
}

// bulk fills in the form of an action on many jobs, sees how many it would be done with, does it, and follows it to its
// end.
func (v *window) bulk(reason, all string) {
	v.Helper()
	v.writes(`at.name === "reason"`, reason)
	v.presses(`at.value === "preview"`)
	const lead = `document.querySelector("#live .lead")?.textContent`
	v.waits(fmt.Sprintf(`%s.includes(%q) && Boolean(document.querySelector("button[value=do]")) && %s`, lead,
		all+" would be done", loaded))
	preview := ask[string](v, "location.pathname")
	v.does()
	v.waits(fmt.Sprintf(`location.pathname.includes("/operations/") && location.pathname !== %q &&
		%s.includes(%q) && document.querySelector("#live .lead .state").textContent === "Done"`, preview, lead,
		all+" done"))
}

// TestFollow: who has the page of a revision open sees the states of its tasks change in the picture, and does not load
// the page again.
func TestFollow(t *testing.T) {
	w := of(t)
	if err := w.pause(t.Context(), "resume"); err != nil {
		t.Fatal(err)
	}
	runs := func(plan v1.RevisionPlan) bool {
		return slices.ContainsFunc(plan.Plan, func(task v1.Task) bool { return task.State == "running" })
	}
	if err := w.archived(t.Context(), "live", runs); err != nil {
		t.Fatal(err)
	}
	v := w.open(t, 1280, "light")
	v.goTo("archives/live/revisions/1")
	ask[int](v, "window.marker = 7")
	shows := func(one, two string) {
		t.Helper()
		v.waits(fmt.Sprintf(`(() => {
			const said = [...document.querySelectorAll(".graph svg g title")].map(t => t.textContent);
			return said.some(t => t.startsWith("one, ") && t.endsWith(%q)) &&
				said.some(t => t.startsWith("two, ") && t.endsWith(%q));
		})()`, one, two))
	}
	shows("running", "blocked")
	if err := os.WriteFile(w.goes, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	shows("succeeded", "succeeded")
	if !ask[bool](v, "window.marker === 7") {
		t.Error("the page was loaded again")
	}
	v.fine("the revision")
}

// TestRepair: what the doctor finds is repaired after it was confirmed, and then all agrees again.
func TestRepair(t *testing.T) {
	w := of(t)
	byHands(t, func(v *window) {
		up, err := w.api.OpenUpload(v.Context(), v1.UploadRequest{Collection: "maps", Files: 1, Bytes: 1}, "")
		if err != nil {
			v.Fatal(err)
		}
		damaged := table.Item{"pk": &types.AttributeValueMemberS{Value: "UPLOADS#maps"},
			"sk": &types.AttributeValueMemberS{Value: "UPLOAD#" + up.ID}}
		if _, err := w.System().Table().DeleteItem(v.Context(), &dynamodb.DeleteItemInput{Key: damaged,
			ConditionExpression: aws.String("attribute_exists(pk)")}); err != nil {
			v.Fatal(err)
		}

		v.goes("d", "Doctor")
		v.fill("Check everything", "reason", "A look")
		v.examined("found")
		finding := fmt.Sprintf(`[...document.querySelectorAll("#live tbody tr")].find(r =>
			r.textContent.includes(%q))`, up.ID)
		if says := ask[string](v, finding+"?.textContent || ''"); !strings.Contains(says, "doctor --repair") {
			v.Fatalf("the finding is %q", says)
		}
		v.previews("Check, and repair what can be repaired without loss", "reason", "A row was lost")
		v.presses(`at.name === "sure"`, " ")
		v.does()
		v.examined("repaired")
		if says := ask[string](v, finding+"?.textContent || ''"); !strings.Contains(says, "done") {
			v.Errorf("the finding is %q", says)
		}
		v.goes("d", "Doctor")
		v.fill("Check everything", "reason", "Another look")
		v.examined("nothing found")
		v.waits(`document.querySelector("p.none.good")?.textContent === "All agree."`)
	})
}

// examined waits until an examination has ended, of whose page the first line says something.
func (v *window) examined(says string) {
	v.Helper()
	v.waits(fmt.Sprintf(`location.pathname.includes("/console/doctor/") && %s &&
		document.querySelector("#live .lead .state")?.textContent === "Done" &&
		document.querySelector("#live .lead").textContent.includes(%q)`, loaded, says))
}

// lose lets requests of a window fail that send something to the storage, as if the connection was lost, while lost
// says so of their addresses. passed returns the addresses of those that were passed on since the last call.
func (v *window) lose(lost func(url string) bool) (passed func() []string) {
	v.Helper()
	var mu sync.Mutex
	var all []string
	paused := make(chan *fetch.EventRequestPaused, 1000)
	err := chromedp.Listen(v.ctx, func(event any) {
		if e, is := event.(*fetch.EventRequestPaused); is {
			paused <- e
		}
	})
	if err == nil {
		_, err = chromedp.Call(v.ctx, fetch.Enable, fetch.EnableParams{
			Patterns: []*fetch.RequestPattern{{URLPattern: "*X-Amz-Signature*"}}})
	}
	if err != nil {
		v.Fatal(err)
	}
	go func() {
		for {
			select {
			case <-v.ctx.Done():
				return
			case e := <-paused:
				if lost(e.Request.URL) {
					_, _ = chromedp.Call(v.ctx, fetch.FailRequest, fetch.FailRequestParams{RequestID: e.RequestID,
						ErrorReason: network.ErrorReasonInternetDisconnected})
					continue
				}
				if e.Request.Method == "PUT" {
					mu.Lock()
					all = append(all, e.Request.URL)
					mu.Unlock()
				}
				_, _ = chromedp.Call(v.ctx, fetch.ContinueRequest, fetch.ContinueRequestParams{RequestID: e.RequestID})
			}
		}
	}()
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		were := all
		all = nil
		return were
	}
}

// send chooses files on the page Submit, and begins to send them.
func (v *window) send(files ...string) {
	v.Helper()
	v.goTo("submit?collection=maps")
	v.do(chromedp.SetUploadFiles(chromedp.CSS("#some"), files))
	v.waits(`!document.getElementById("send").hidden`)
	v.do(chromedp.Click(chromedp.CSS("#send")))
}

// TestLost: a deposit whose connection is lost in the middle, to the archive and to the storage, goes on by itself.
func TestLost(t *testing.T) {
	w := of(t)
	if err := w.pause(t.Context(), "resume"); err != nil {
		t.Fatal(err)
	}
	var files []string
	for i := range 12 {
		at := filepath.Join(t.TempDir(), fmt.Sprintf("page-%02d.txt", i))
		if err := os.WriteFile(at, []byte(content(at)), 0o644); err != nil {
			t.Fatal(err)
		}
		files = append(files, at)
	}
	v := w.open(t, 1280, "light")
	var mu sync.Mutex
	sent, failed, back := 0, 0, false
	passed := v.lose(func(string) bool {
		mu.Lock()
		defer mu.Unlock()
		sent++
		if sent <= 5 || back {
			return false
		}
		failed++
		return true
	})
	v.send(files...)
	if err := until(v.ctx, "requests fail", func() (bool, error) {
		mu.Lock()
		defer mu.Unlock()
		back = failed >= 4
		return back, nil
	}); err != nil {
		t.Fatal(err)
	}
	v.waits(`!document.getElementById("ready").hidden`)
	v.wrong() // the browser notes that a connection was lost
	if n := len(passed()); n != len(files)+1 {
		t.Errorf("%d requests for %d files and a manifest", n, len(files))
	}
	v.do(chromedp.Click(chromedp.CSS("#submission button[value=do]")))
	job := w.submitted(v)
	if stored := w.filesOf(t, job.Identifiers.Primary); len(stored) < len(files) {
		t.Errorf("the object has the files %v", stored)
	}
	v.fine("the deposit")
}

// TestResume: of a large file, a page that is loaded again in the middle sends only the parts that are missing.
func TestResume(t *testing.T) {
	w := of(t)
	if err := w.pause(t.Context(), "resume"); err != nil {
		t.Fatal(err)
	}
	data := make([]byte, upload.DefaultPart+1) // as little as is sent in two parts
	at := filepath.Join(t.TempDir(), "film.mxf")
	if err := os.WriteFile(at, data, 0o644); err != nil {
		t.Fatal(err)
	}
	v := w.open(t, 1280, "light")
	v.leaves()
	var mu sync.Mutex
	var stored []string
	err := chromedp.Listen(v.ctx, func(event any) {
		e, is := event.(*network.EventResponseReceived)
		if is && e.Type == network.ResourceTypeXHR && strings.Contains(e.Response.URL, "partNumber=") {
			mu.Lock()
			defer mu.Unlock()
			stored = append(stored, e.Response.URL)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	answers := func(n int) {
		t.Helper()
		if err := until(v.ctx, fmt.Sprint("the storage has ", n, " parts"), func() (bool, error) {
			mu.Lock()
			defer mu.Unlock()
			return len(stored) >= n, nil
		}); err != nil {
			t.Fatalf("%v; %q; the page says %q", err, v.wrong(),
				ask[string](v, `document.getElementById("sent").textContent`))
		}
	}
	v.block(&network.BlockPattern{URLPattern: `*://*:*/*\?*partNumber=2*`, Block: true})
	v.send(at)
	answers(1)
	v.block()
	v.wrong() // the browser notes that a request was blocked
	v.send(at)
	v.waits(`!document.getElementById("ready").hidden`)
	answers(2)
	if len(stored) != 2 || !strings.Contains(stored[1], "partNumber=2") {
		t.Errorf("of two parts %d were sent: %q", len(stored), stored)
	}
	v.do(chromedp.Click(chromedp.CSS("#submission button[value=do]")))
	job := w.submitted(v)
	sum := sha256.Sum256(data)
	if files := w.filesOf(t, job.Identifiers.Primary); files["producer/film.mxf"] != hex.EncodeToString(sum[:]) {
		t.Errorf("the object has the files %v", files)
	}
	v.fine("the film")
}

// block lets requests fail whose addresses fit a pattern.
func (v *window) block(patterns ...*network.BlockPattern) {
	v.Helper()
	_, err := chromedp.Call(v.ctx, network.SetBlockedURLs, network.SetBlockedURLsParams{URLPatterns: patterns})
	if err != nil {
		v.Fatal(err)
	}
}

// leaves lets the browser leave a page that asks whether it may be left.
func (v *window) leaves() {
	v.Helper()
	asked := make(chan bool, 1)
	err := chromedp.Listen(v.ctx, func(event any) {
		if _, is := event.(*page.EventJavascriptDialogOpening); is {
			asked <- true
		}
	})
	if err == nil {
		_, err = chromedp.Call(v.ctx, page.Enable, page.EnableParams{})
	}
	if err != nil {
		v.Fatal(err)
	}
	go func() {
		select {
		case <-v.ctx.Done():
		case <-asked:
			_, _ = chromedp.Call(v.ctx, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{Accept: true})
		}
	}()
}

// TestStored: a file that others have stored, and that a browser could run, is downloaded and not opened, also by a
// link that does not ask for that.
func TestStored(t *testing.T) {
	w := of(t)
	if err := w.pause(t.Context(), "resume"); err != nil {
		t.Fatal(err)
	}
	v := w.open(t, 1280, "light")
	refused := make(chan string, 10)
	if err := chromedp.Listen(v.ctx, func(event any) {
		if e, is := event.(*network.EventLoadingFailed); is && e.Type == network.ResourceTypeDocument {
			refused <- e.ErrorText
		}
	}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"evil.html", "evil.svg"} {
		jobs, err := w.submit(t.Context(), v1.BatchRequest{Collection: "maps",
			Payload: v1.Payload{URL: w.files.URL + "/" + name, Type: "file"}}, v1.Completed)
		if err != nil {
			t.Fatal(err)
		}
		v.goTo("objects/" + strings.TrimPrefix(jobs[0].Identifiers.Primary, "ark:/"))
		at := ask[string](v, "location.href")
		ask[int](v, `(() => {
			const link = document.querySelector("a[href*='/content?'][download]");
			link.removeAttribute("download");
			link.click();
			return 1;
		})()`)
		select {
		case <-refused:
		case <-v.ctx.Done():
			t.Fatalf("%s is not refused as a page: %q", name, v.wrong())
		}
		if now := ask[string](v, "location.href"); now != at || ask[bool](v, `"evil" in window`) {
			t.Errorf("%s: the browser is at %s", name, now)
		}
		v.fine(name)
	}
}

// TestMany: a person requeues a thousand failed jobs, after having seen what that would do.
func TestMany(t *testing.T) {
	w := of(t)
	accepted, err := w.api.Submit(t.Context(), v1.BatchRequest{Collection: "maps",
		Payload: v1.Payload{URL: w.files.URL + "/many.checkm", Type: "single-file-batch-manifest"}}, "")
	if err != nil {
		t.Fatal(err)
	}
	byHands(t, func(v *window) { // the second time they have failed again
		if err := until(v.Context(), "all have failed", func() (bool, error) {
			b, err := w.api.Batch(v.Context(), accepted.ID)
			return b.Counts.Failed == many && v1.Ended(b.State), err
		}); err != nil {
			v.Fatal(err)
		}
		if err := w.pause(v.Context(), "pause"); err != nil { // so that they wait, and can be counted
			v.Fatal(err)
		}
		v.finds("batches", accepted.ID)
		v.presses(`at.textContent === "Requeue all failed jobs"`)
		v.waits(`location.pathname.endsWith("/operations/new") && ` + loaded)
		v.bulk("The source is back", "1,000 of 1,000")
		op, err := w.api.Operation(v.Context(), ask[string](v, `location.pathname.split("/").pop()`))
		if err != nil || op.DryRun || op.Counts.Done != many || op.Counts.Refused != 0 {
			v.Errorf("%+v, %v", op, err)
		}
		if b, err := w.api.Batch(v.Context(), accepted.ID); err != nil || b.Counts.Failed != 0 {
			v.Errorf("%+v, %v", b.Counts, err)
		}
	})
}
