package console_test

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"archivist/pkg/console"
	"archivist/pkg/console/consoletest"
	"archivist/test/browser"
)

// more are addresses that no link of a list leads to, beside those that are found.
func (w *world) more() []string {
	return []string{"components/second", "consumers/outside", "item?id=" + item,
		"jobs/" + w.failed.ID, "jobs/" + w.done.ID, "jobs/" + w.pending.ID, "batches/" + w.failed.Batch,
		"jobs?state=Storing", "search?q=letter", "search?q=%3Cscript%3E", "nowhere/at/all"}
}

// manifold are the pages that differ by what they show: two of each are opened, and one of others.
var manifold = []string{"jobs/{id}", "batches/{id}", "operations/{id}", "deed", "task", "event"}

// queried are the pages of what the query of the address names. Without one there is nothing to show.
var queried = []string{"deed", "event", "task", "item"}

// addresses are addresses of each page of the console: of a list its own, and of others what pages link to. A page that
// nothing leads to is a mistake.
func (w *world) addresses(t *testing.T) (all []string) {
	t.Helper()
	mux, token := http.NewServeMux(), ""
	for _, p := range console.Paths() {
		mux.Handle("GET /console/"+p, http.NotFoundHandler())
	}
	token, err := w.Issuer.Machine("the-demo")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]int{}
	take := func(path string) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.APIURL+"/console/"+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, pattern := mux.Handler(r)
		each := 1
		if slices.Contains(manifold, strings.TrimPrefix(pattern, "GET /console/")) {
			each = 2
		}
		if pattern != "" && found[pattern] < each && !slices.Contains(all, path) {
			found[pattern]++
			all = append(all, path)
		}
	}
	for _, p := range console.Paths() {
		if p == "{$}" {
			p = ""
		}
		if !strings.Contains(p, "{") && !slices.Contains(queried, p) {
			take(p)
		}
	}
	all = append(all, w.more()...)
	for i := 0; i < len(all); i++ { // it grows
		if strings.HasPrefix(all[i], "nowhere") {
			continue
		}
		for _, to := range w.links(t, all[i], token) {
			take(to)
		}
	}
	for _, p := range console.Paths() {
		if found["GET /console/"+p] == 0 {
			t.Errorf("no page leads to one of %s, so it was not opened: let something happen that it shows", p)
		}
	}
	return all
}

// links are the addresses below /console/ to which a page links, with the queries that are needed.
func (w *world) links(t *testing.T, path, token string) (all []string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.APIURL+"/console/"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.AddCookie(&http.Cookie{Name: "archivist", Value: token})
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d, %v\n%s", path, resp.StatusCode, err, data)
	}
	for n := range consoletest.Parse(t, string(data)).Descendants() {
		to, err := resp.Request.URL.Parse(consoletest.Attr(n, "href"))
		below, inside := strings.CutPrefix(to.EscapedPath(), "/console/")
		if slices.Contains(queried, below) {
			below += "?" + to.RawQuery
		}
		if n.Data == "a" && err == nil && inside {
			all = append(all, below)
		}
	}
	return all
}

// judged runs axe-core in a page by all its rules of WCAG 2.2 AA, and those of good practice.
const judged = `axe.run(document, {runOnly:
	["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]})` + said

// said are the violations as texts.
const said = `.then(r => r.violations.map(v => v.id + ": " + v.help + ": " +
		v.nodes.slice(0, 3).map(n => n.target.join(" ") + " " + (n.any[0]?.message || "")).join(" | ")))`

// file is the name of the file of a picture of a page.
func file(path, scheme string, width int64) string {
	path, _ = url.PathUnescape(path)
	name := strings.Trim(regexp.MustCompile(`[^A-Za-z0-9]+`).ReplaceAllString(path, "-"), "-")
	if name == "" {
		name = "home"
	}
	return fmt.Sprintf("%.60s-%s-%d.png", name, scheme, width)
}

// widths are those in which each page is judged, and beside each one in which it only has to fit: the least and the
// most that the console promises.
var widths = map[int64]int64{390: 360, 1280: 2560}

// cut are the elements of a page whose content is cut off at their edges, unless that is shown by an ellipsis, and
// those that are beside the window, unless something around them can be scrolled. The text of a field scrolls in it.
const cut = `(() => {
	const scrolls = e => e && (["auto", "scroll"].includes(getComputedStyle(e).overflowX) || scrolls(e.parentElement));
	const hides = (how, has, is) => ["hidden", "clip"].includes(how) && has > is + 1;
	return [...document.querySelectorAll("body *:not(script, svg *)")].filter(e => {
		const s = getComputedStyle(e), r = e.getBoundingClientRect();
		if (!e.getClientRects().length || e.closest(".hidden, .skip")) return false;
		return e.tagName !== "INPUT" && s.textOverflow !== "ellipsis" && s.webkitLineClamp === "none" &&
			(hides(s.overflowX, e.scrollWidth, e.clientWidth) || hides(s.overflowY, e.scrollHeight, e.clientHeight)) ||
			(r.right > innerWidth + 1 || r.left < -1) && !scrolls(e.parentElement);
	}).map(e => e.outerHTML.slice(0, 120));
})()`

// fits fails for a page that is wider than a window of a width, or cut off there.
func (v *window) fits(path string, width int64) {
	v.Helper()
	v.do(chromedp.EmulateViewport(width, 900))
	if wide := ask[int64](v, "document.documentElement.scrollWidth"); wide > width {
		v.Errorf("%s %d: it has %d pixels", path, width, wide)
	}
	for _, e := range ask[[]string](v, cut) {
		v.Errorf("%s %d: it is cut: %s", path, width, e)
	}
}

// axe is the source of axe-core.
func (w *world) axe(t *testing.T) string {
	t.Helper()
	source, err := os.ReadFile(w.tools.Axe)
	if err != nil {
		t.Fatal(err)
	}
	return string(source)
}

// TestPages: each page, light and dark, narrow and wide, shows itself without an error or a violation of its policy,
// can be used by everybody as far as axe-core knows, and is not wider than the window. Pictures are kept.
func TestPages(t *testing.T) {
	w := of(t)
	axe := w.axe(t)
	addresses := w.addresses(t)
	t.Logf("%d addresses of %d pages", len(addresses), len(console.Paths()))
	for width := range widths {
		t.Run(fmt.Sprint(width), func(t *testing.T) {
			t.Parallel()
			v := w.open(t, width, "light")
			for _, path := range addresses {
				v.goTo(path)
				v.judged(path, width, axe)
			}
		})
	}
}

// judged judges the page that is open, light and dark.
func (v *window) judged(what string, width int64, axe string) {
	v.Helper()
	for _, scheme := range []string{"light", "dark"} {
		if err := browser.Prefer(v.ctx, "prefers-color-scheme", scheme); err != nil {
			v.Fatal(err)
		}
		v.judge(what, scheme, width, axe)
	}
	v.fits(what, widths[width])
	v.do(chromedp.EmulateViewport(width, 900))
}

// contrast asks only for what another scheme of colours changes. axe-core is in the page already.
const contrast = `axe.run(document, {runOnly: {type: "rule", values: ["color-contrast", "link-in-text-block"]}})` + said

// judge looks at the page that is open: in light by all rules, and in dark by those of colours.
func (v *window) judge(path, scheme string, width int64, axe string) {
	v.Helper()
	what := fmt.Sprint(path, " ", scheme, " ", width)
	if wide := ask[int64](v, "document.documentElement.scrollWidth"); wide > width {
		v.Errorf("%s: it has %d pixels", what, wide)
	}
	asked := axe + ";\n" + judged
	if scheme == "dark" {
		asked = contrast
	}
	for _, violation := range ask[[]string](v, asked) {
		v.Errorf("%s: %s", what, violation)
	}
	for _, wrong := range v.wrong() {
		// A page that is not there is logged as such, and nothing else of it.
		if !strings.HasPrefix(path, "nowhere") || !strings.Contains(wrong, "404") {
			v.Errorf("%s: %s", what, wrong)
		}
	}
	if !*withPictures {
		return
	}
	png, err := chromedp.Run(v.ctx, chromedp.FullScreenshot(100))
	if err != nil {
		v.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, pictures, file(path, scheme, width)), png, 0o644); err != nil {
		v.Fatal(err)
	}
}
