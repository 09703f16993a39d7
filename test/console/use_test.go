package console_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	v1 "archivist/pkg/api/v1"
	"archivist/test/browser"
)

// TestFinds: what the other tests look for is found where it is: a page that loads what its policy forbids, that is
// wider than its window, and that not everybody can use.
func TestFinds(t *testing.T) {
	w := of(t)
	axe := w.axe(t)
	v := w.open(t, 390, "light")
	v.goTo("queue")
	v.fine("queue")
	const spoil = `document.querySelector("main").insertAdjacentHTML("beforeend",
		'<img src="https://evil.example/x.png"><p style="color: red"></p><input><p id="wide">wide</p>');
		document.getElementById("wide").style.width = "2000px";
		document.querySelector("h1").style.cssText = "height: 3px; overflow: hidden"`
	ask[string](v, spoil)
	v.waits("document.documentElement.scrollWidth > 390")
	found := strings.Join(ask[[]string](v, axe+";\n"+judged), "\n")
	for _, rule := range []string{"image-alt", "label"} {
		if !strings.Contains(found, rule) {
			t.Errorf("axe-core does not find %s: %s", rule, found)
		}
	}
	if parts := strings.Join(ask[[]string](v, cut), "\n"); !strings.Contains(parts, `id="wide"`) ||
		!strings.Contains(parts, "<h1") {
		t.Errorf("what is cut is not found: %s", parts)
	}
	logged := strings.Join(v.wrong(), "\n")
	for _, directive := range []string{"img-src", "style-src"} {
		if !strings.Contains(logged, directive) {
			t.Errorf("a violation of %s is not noted: %s", directive, logged)
		}
	}
}

// TestInPlace: while a job moves, the part of its page that changes is replaced, and nothing else: the page is not
// loaded again, what is written stays, and the focus stays where it is. A tab that nobody sees asks for nothing.
func TestInPlace(t *testing.T) {
	w := of(t)
	v := w.open(t, 1280, "light")
	v.goTo("jobs/" + w.pending.ID)
	ask[int](v, `window.asked = []; window.marker = 7;
		document.addEventListener("htmx:beforeSend", () => asked.push(document.hidden)); 1`)
	hide := func(hidden bool) string {
		return fmt.Sprintf(`Object.defineProperty(document, "hidden", {value: %v, configurable: true});
			document.dispatchEvent(new Event("visibilitychange"));`, hidden)
	}
	// While it is hidden it is asked to wake up, and does not; once it is seen, it does.
	ask[int](v, hide(true)+`asked.length = 0; document.getElementById("live").dispatchEvent(new Event("wake")); 1`)
	ask[int](v, hide(false)+"1")
	v.waits("asked.length > 0")
	if asked := ask[[]bool](v, "asked"); slices.Contains(asked, true) {
		t.Errorf("a tab that nobody sees has asked: %v", asked)
	}

	v.do(chromedp.SendKeys(chromedp.CSS("#q"), "half a word"))
	ask[int](v, `document.querySelector("#live a").dataset.old = "yes"; 1`)
	if err := w.pause(t.Context(), "resume"); err != nil {
		t.Fatal(err)
	}
	v.waits(`document.querySelector("#live .lead .state").textContent === "Completed"`)
	if state := ask[string](v, `[window.marker, document.getElementById("q").value, document.activeElement.id,
		document.querySelectorAll("[data-old]").length].join(" ")`); state != "7 half a word q 0" {
		t.Errorf("after the swap: %s", state)
	}
	if said := ask[string](v, `document.getElementById("said").textContent`); !strings.Contains(said, "is Completed") {
		t.Errorf("who cannot see it is told %q", said)
	}

	// The focus within the part that is replaced goes to the same link of the new one.
	const swap = `document.getElementById("live").removeAttribute("data-tag");
		document.querySelectorAll("#live a")[1].focus();
		document.querySelectorAll("#live a")[1].dataset.old = "yes"; asked.length = 0;`
	ask[int](v, swap+hide(false)+"1")
	v.waits(`document.querySelectorAll("[data-old]").length === 0`)
	if !ask[bool](v, `document.activeElement === document.querySelectorAll("#live a")[1]`) {
		t.Errorf("the focus is at %s", ask[string](v, "document.activeElement.outerHTML.slice(0, 300)"))
	}
	v.fine("the job")
}

// press presses keys, one after the other: each is a key, or a text that is typed.
func (v *window) press(keys ...string) {
	v.Helper()
	for _, key := range keys {
		if len(key) > 1 || key < " " || key > "~" {
			v.do(chromedp.KeyEvent(key))
			continue
		}
		// In one event, as from a keyboard: what the page does with the key keeps it from being written.
		for _, kind := range []input.DispatchKeyEventType{input.DispatchKeyEventTypeKeyDown,
			input.DispatchKeyEventTypeKeyUp} {
			e := input.DispatchKeyEventParams{Type: kind, Key: key}
			if kind == input.DispatchKeyEventTypeKeyDown {
				e.Text = key
			}
			if _, err := chromedp.Call(v.ctx, input.DispatchKeyEvent, e); err != nil {
				v.Fatal(err)
			}
		}
	}
}

// tabTo moves the focus by the tabulator until an expression is true of the element that has it, which is at.
func (v *window) tabTo(expression string) {
	v.Helper()
	for range 200 {
		v.press(kb.Tab)
		if ask[bool](v, "(at => Boolean(at && "+expression+"))(document.activeElement)") {
			return
		}
	}
	v.Fatalf("no element with the focus is %s", expression)
}

// fill opens a form of "What you can do", by the title of it, fills it in by names and values, and sends it.
func (v *window) fill(title string, fields ...string) {
	v.Helper()
	v.presses(fmt.Sprintf(`at.matches("summary") && at.textContent === %q`, title))
	for i := 0; i+1 < len(fields); i += 2 {
		v.writes(fmt.Sprintf(`at.name === %q && at.closest("details[name=act][open]")`, fields[i]), fields[i+1])
	}
	v.presses(`at.matches("details[name=act][open] button")`)
}

// previews does the same, and comes to the page that says what it would do.
func (v *window) previews(title string, fields ...string) {
	v.Helper()
	v.fill(title, fields...)
	v.waits(fmt.Sprintf(`document.querySelector("h1").textContent === %q && %s`, title+"?", loaded))
}

// does presses the button that does it.
func (v *window) does() {
	v.Helper()
	v.presses(`at.matches("button") && at.value === "do"`)
}

// TestKeyboard: a person who has no mouse finds a job, acts on it, deletes it after having confirmed that, and moves
// between the pages.
func TestKeyboard(t *testing.T) {
	w := of(t)
	v := w.open(t, 1280, "dark")
	v.finds("jobs", w.failed.ID)
	v.previews("Set the priority", "reason", "It is urgent", "priority", "3")
	v.does()
	v.did("Its priority was set.")
	v.previews("Delete", "reason", "It was submitted twice")
	v.tabTo(`at.name === "confirm"`)
	v.press(" ")
	v.does()
	v.did("It was deleted.")
	j, err := w.api.Job(t.Context(), w.failed.ID)
	if err != nil || j.State != v1.Deleted || j.Priority != 3 {
		t.Errorf("the job is %+v, %v", j, err)
	}

	for key, page := range map[string]string{"b": "Batches", "j": "Jobs", "q": "Queue", "h": "Home"} {
		v.goes(key, page)
	}
	v.press("?")
	v.waits(`document.querySelector("#keys").open`)
	v.press(kb.Escape)
	v.waits(`!document.querySelector("#keys").open`)
	if !ask[bool](v, `(() => { document.activeElement.blur(); return true })()`) {
		t.Error("nothing has the focus")
	}
	v.press(kb.Tab)
	if !ask[bool](v, `document.activeElement.matches("a.skip") &&
		getComputedStyle(document.activeElement).outlineStyle !== "none"`) {
		t.Errorf("the first element is %s", ask[string](v, "document.activeElement.outerHTML"))
	}
	v.fine("the pages")
}

// TestCalm: who asks for no motion sees none.
func TestCalm(t *testing.T) {
	w := of(t)
	v := w.open(t, 1280, "light")
	if err := browser.Prefer(v.ctx, "prefers-reduced-motion", "reduce"); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"", "jobs/" + w.done.ID, "queue"} {
		v.goTo(path)
		moving := ask[[]string](v, `[...document.querySelectorAll("*")].filter(e => { const s = getComputedStyle(e);
			return [s.animationDuration, s.transitionDuration].some(d => d.split(", ").some(x => parseFloat(x) > 0.01))
				|| s.scrollBehavior === "smooth" }).map(e => e.outerHTML.slice(0, 80))`)
		if len(moving) > 0 {
			t.Errorf("%q moves: %q", path, moving)
		}
	}
}

// TestPrint: a batch on paper has its facts and jobs, and nothing that can only be clicked.
func TestPrint(t *testing.T) {
	w := of(t)
	v := w.open(t, 1280, "dark")
	v.goTo("batches/" + w.failed.Batch)
	pdf, err := chromedp.Run(v.ctx, chromedp.PrintToPDF())
	if err != nil || !strings.HasPrefix(string(pdf), "%PDF-") {
		t.Fatalf("%.20s, %v", pdf, err)
	}
	if err := os.WriteFile(root+"/"+pictures+"/batch.pdf", pdf, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := browser.Media(v.ctx, "print"); err != nil {
		t.Fatal(err)
	}
	shown := ask[[]string](v, `[...document.querySelectorAll("nav, form, button, input, h1, .facts, table")].filter(e =>
		e.getClientRects().length > 0).map(e => e.localName)`)
	for _, name := range []string{"nav", "form", "button", "input"} {
		if slices.Contains(shown, name) {
			t.Errorf("%s is printed: %q", name, shown)
		}
	}
	for _, name := range []string{"h1", "dl", "table"} {
		if !slices.Contains(shown, name) {
			t.Errorf("%s is not printed: %q", name, shown)
		}
	}
	if cut := ask[int](v, `[...document.querySelectorAll(".wide")].filter(e => getComputedStyle(e).overflowX !== "visible")
		.length`); cut > 0 {
		t.Errorf("%d tables are cut at the edge of the paper", cut)
	}
	if ground := ask[string](v, "getComputedStyle(document.body).backgroundColor"); ground != "rgb(255, 255, 255)" {
		t.Errorf("the ground of the paper is %s", ground)
	}
}

// TestNarrow: in a narrow window the page that is open is seen in the row of pages, and a text of several lines that is
// written from right to left begins at its right edge.
func TestNarrow(t *testing.T) {
	w := of(t)
	v := w.open(t, 390, "light")
	for _, path := range []string{"", "queue", "doctor"} {
		v.goTo(path)
		if !ask[bool](v, `(r => r.left >= 0 && r.right <= innerWidth)(
			document.querySelector("nav.places [aria-current]").getBoundingClientRect())`) {
			t.Errorf("%q is not seen in the row of pages", path)
		}
	}
	for _, title := range []string{"document.querySelector('h1 bdi')", `(() => {
		document.querySelector(".list tbody .text").replaceChildren(document.createElement("bdi"));
		return document.querySelector(".list tbody .text bdi");
	})()`} {
		v.goTo("objects")
		lines := ask[[]float64](v, fmt.Sprintf(`(e => {
			e.textContent = %q;
			const text = document.createRange();
			text.selectNodeContents(e);
			return [...text.getClientRects()].map(r => Math.round(e.getBoundingClientRect().right - r.right));
		})(%s)`, strings.Repeat(fromRight+" ", 9), title))
		if len(lines) < 2 || slices.Max(lines) > 1 {
			t.Errorf("%s: lines end so many pixels before the right edge: %v", title, lines)
		}
	}
}
