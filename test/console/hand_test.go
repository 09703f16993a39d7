package console_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// byHands plays a task twice: as a person who has no mouse, and as one who clicks. Nothing is paused when it begins.
func byHands(t *testing.T, play func(v *window)) {
	w := of(t)
	for _, hand := range []string{"keyboard", "mouse"} {
		t.Run(hand, func(t *testing.T) {
			if err := w.pause(t.Context(), "resume"); err != nil {
				t.Fatal(err)
			}
			v := w.open(t, 1280, "light")
			v.mouse = hand == "mouse"
			play(v)
			v.fine("the task by " + hand)
		})
	}
}

// place is the middle of the first element that a person sees, and of which an expression is true: at is the element.
// Of a field that is not to be seen, as that of files, it is its label. What is covered by another element, or outside
// the window after it was scrolled to, is named instead.
const place = `(() => {
	const seen = e => e.checkVisibility({opacityProperty: true, visibilityProperty: true}) &&
		e.getBoundingClientRect().width > 4 && e.getBoundingClientRect().height > 4;
	const where = e => seen(e) ? e : [...e.labels || []].find(seen);
	const e = [...document.querySelectorAll("a, button, input, select, textarea, summary, audio")].
		filter(at => %s).map(where).find(Boolean);
	if (!e) return {why: "nothing that is seen is it"};
	e.scrollIntoView({block: "center", inline: "center", behavior: "instant"});
	const r = e.getClientRects()[0], x = r.x + r.width * %g, y = r.y + r.height / 2;
	const hit = document.elementFromPoint(x, y);
	if (!e.contains(hit) && hit?.closest("label")?.control !== e)
		return {why: (hit?.outerHTML.slice(0, 80) ?? "the edge of the window") + " is over it"};
	return {x, y};
})()`

// clickAt clicks with the mouse on an element, at a part of its width, and waits until it can be clicked: the page can
// be on its way.
func (v *window) clickAt(expression string, part float64) {
	v.Helper()
	type found struct {
		X, Y float64
		Why  string
	}
	var is found
	var last error
	look := chromedp.Evaluate[found](fmt.Sprintf(place, expression, part))
	for end := time.Now().Add(clickable); ; {
		is, last = chromedp.Run(v.ctx, look)
		if last == nil && is.Why == "" {
			break
		}
		if time.Now().After(end) {
			v.Fatalf("no click on %s: %s, %v; %q", expression, is.Why, last, v.wrong())
		}
	}
	v.do(chromedp.MouseClickXY(is.X, is.Y))
}

// clickable bounds how long an element is waited for that cannot be clicked.
const clickable = 20 * time.Second

// presses presses what an expression is true of, with the key of it if it is not the return key.
func (v *window) presses(expression string, key ...string) {
	v.Helper()
	if v.mouse {
		v.clickAt(expression, 0.5)
		return
	}
	v.tabTo(expression)
	v.press(append(key, kb.Enter)[0])
}

// writes replaces the text of a field.
func (v *window) writes(expression, text string) {
	v.Helper()
	if v.mouse {
		v.clickAt(expression, 0.5)
	} else {
		v.tabTo(expression)
	}
	if ask[bool](v, `document.activeElement.matches("input, textarea")`) {
		v.do(chromedp.KeyEvent("a", chromedp.KeyModifiers(chromedp.ModifierCtrl)))
	}
	v.press(text)
}

// goes comes to one of the pages that are named at the top: by its shortcut, or by its link.
func (v *window) goes(key, title string) {
	v.Helper()
	if v.mouse {
		v.clickAt(fmt.Sprintf(`at.matches("nav.places a") && at.textContent === %q`, title), 0.5)
	} else {
		v.press("g", key)
	}
	v.waits(fmt.Sprintf(`(a => a?.textContent === %q && a.pathname === location.pathname)(
		document.querySelector("nav.places [aria-current=page]")) && %s`, title, loaded))
}

// finds opens the page of an id by the field that searches; path is that of its kind.
func (v *window) finds(path, id string) {
	v.Helper()
	if v.mouse {
		v.writes(`at.id === "q"`, id)
		v.clickAt(`at.matches("form.find button")`, 0.5)
	} else {
		v.press("/", id, kb.Enter)
	}
	v.waits(fmt.Sprintf(`location.pathname.endsWith("/%s/%s") && %s`, path, id, loaded))
}

// TestClickFinds: a click on what is covered, what cannot be seen, or what is not there, is none.
func TestClickFinds(t *testing.T) {
	w := of(t)
	v := w.open(t, 1280, "light")
	v.goTo("queue")
	ask[int](v, `(() => {
		const add = (id, style, text) => {
			const e = document.createElement("button");
			e.id = id;
			e.textContent = text;
			e.style.cssText = style;
			document.querySelector("main").append(e);
		};
		add("clear", "position: fixed; top: 200px; left: 100px; width: 90px", "a");
		add("below", "position: fixed; top: 300px; left: 100px; width: 90px", "b");
		add("over", "position: fixed; top: 290px; left: 90px; width: 200px; height: 90px", "c");
		add("faint", "opacity: 0", "d");
		add("gone", "visibility: hidden", "e");
		return 1;
	})()`)
	for id, says := range map[string]string{"clear": "", "below": `id="over"`, "faint": "seen", "gone": "seen",
		"none": "seen"} {
		why := ask[string](v, fmt.Sprintf(place, fmt.Sprintf("at.id === %q", id), 0.5)+`.why ?? ""`)
		if (says == "") != (why == "") || !strings.Contains(why, says) {
			t.Errorf("%s: %q", id, why)
		}
	}
}
