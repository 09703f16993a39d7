package console_test

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"archivist/test/browser"
)

// TestFilterIsCompleted: a filter is written by the keyboard, each part of it completed where it is
// written, as a combobox that everybody can use; and it is applied.
func TestFilterIsCompleted(t *testing.T) {
	w := of(t)
	axe := w.axe(t)
	v := w.open(t, 390, "light")
	v.goTo("events")
	const field = "#f-filter"
	value := `document.querySelector("` + field + `").value`
	offered := `[...document.querySelectorAll(".words:not([hidden]) [role=option] b")]
		.map(e => e.textContent).join(" ")`
	types := func(keys ...string) {
		v.do(chromedp.SendKeys(chromedp.CSS(field), strings.Join(keys, "")))
	}
	v.do(chromedp.Focus(chromedp.CSS(field)))
	v.waits(`document.activeElement.getAttribute("role") === "combobox"`)

	types("jo")
	v.waits(offered + ` === "Job"`)
	types(kb.Home) // the list was of another place
	v.waits(offered + ` === ""`)
	types(kb.End, kb.ArrowDown)
	v.waits(`document.getElementById(document.activeElement.getAttribute("aria-activedescendant"))
		.textContent.startsWith("Job")`)
	for _, scheme := range []string{"light", "dark"} {
		if err := browser.Prefer(v.ctx, "prefers-color-scheme", scheme); err != nil {
			t.Fatal(err)
		}
		v.judge("events while a filter is written", scheme, 390, axe)
	}
	types(kb.Escape, kb.ArrowDown, kb.Enter) // pictures may have taken the focus away
	v.waits(value + ` === "Job" && ` + offered + ` === "+ |"`)
	types("+")
	v.waits(offered + ` === "create delete modify All"`)
	types("al", kb.ArrowDown, kb.Enter, "{ty", kb.ArrowDown, kb.Enter)
	types("=job.st", kb.ArrowDown, kb.Enter)
	v.waits(value + ` === "Job+All{type=job.state"`)
	types(",par", kb.ArrowDown, kb.Enter, "=map")
	v.waits(offered + `.startsWith("maps ")`)
	types(kb.ArrowDown, kb.Enter, "}", kb.Escape)
	v.waits(value + ` === "Job+All{type=job.state,parent=maps}" && ` + offered + ` === ""`)

	// In the middle, what is written there is completed, and what is behind it stays.
	types(kb.Home, kb.Delete, kb.Delete, kb.Delete, "batc", kb.ArrowDown, kb.Enter)
	v.waits(value + ` === "Batch+All{type=job.state,parent=maps}"`)
	types(kb.Escape, kb.Enter)
	v.waits(`location.search.includes("Batch") && ` + loaded)
	v.fine("events")

	// An empty field suggests examples, and one of a form that changes something is completed, too.
	v.do(chromedp.Focus(chromedp.CSS(field)))
	v.waits(`document.activeElement.getAttribute("role") === "combobox"`)
	ask[int](v, `document.querySelector("`+field+`").value = ""; 1`)
	types(kb.ArrowDown)
	v.waits(offered + `.startsWith("All+All{outcome=failure} ")`)
	v.goTo("deed?kind=consumer&deed=redrive-some&id=outside")
	v.do(chromedp.Focus(chromedp.CSS("#filter-deed")))
	v.waits(`document.activeElement.getAttribute("role") === "combobox"`)
	v.do(chromedp.SendKeys(chromedp.CSS("#filter-deed"), "obj"))
	v.waits(offered + ` === "Object"`)
	v.do(chromedp.Click(chromedp.CSS(".words [role=option]")))
	v.waits(`document.querySelector("#filter-deed").value === "Object"`)
	v.fine("deed")
}
