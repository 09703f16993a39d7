package console_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"archivist/localstack"
	"archivist/localstack/demo"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/console"
)

// state is what a page shows that no link leads an administrator to.
type state struct {
	what   string
	path   string            // the page that is opened
	form   string            // the selector of the form of it that is sent; "" = none
	fields map[string]string // what is written into that, also into fields that nobody sees
	status int
	shows  string // the selector of what is there in this state only
	out    bool   // the session ends before the form is sent
}

// sends sends a form with other values, which the browser does not look at.
const sends = `(() => {
	const form = document.querySelector(%q);
	for (const [name, value] of Object.entries(%s)) {
		[...form.elements].filter(e => e.name === name).forEach(e => e.remove());
		const field = Object.assign(document.createElement("input"), {type: "hidden", name, value});
		form.append(field);
	}
	window.leaving = true;
	HTMLFormElement.prototype.submit.call(form);
	return 1;
})()`

// comes brings the page into a state. The path of the form that is sent is below /console/.
func (v *window) comes(s state) (form string) {
	v.Helper()
	v.goTo(s.path)
	if s.out {
		if _, err := chromedp.Call(v.ctx, network.ClearBrowserCookies, cdp.Empty{}); err != nil {
			v.Fatal(err)
		}
	}
	if s.form != "" {
		fields, err := json.Marshal(s.fields)
		if err != nil {
			v.Fatal(err)
		}
		if !ask[bool](v, fmt.Sprintf("Boolean(document.querySelector(%q))", s.form)) {
			v.Fatalf("%s: %s has no form %s", s.what, s.path, s.form)
		}
		form = ask[string](v, fmt.Sprintf(`document.querySelector(%q).getAttribute("action").split("/").at(-1)`, s.form))
		ask[int](v, fmt.Sprintf(sends, s.form, fields))
		v.waits(`!("leaving" in window) && ` + loaded)
	}
	status := ask[int](v, `performance.getEntriesByType("navigation")[0].responseStatus`)
	if status != s.status || !ask[bool](v, fmt.Sprintf("Boolean(document.querySelector(%q))", s.shows)) {
		v.Errorf("%s: status %d, expected %d with %s: %s", s.what, status, s.status, s.shows,
			ask[string](v, `document.querySelector("main").innerText.slice(0, 1500)`))
	}
	for _, wrong := range v.wrong() { // the browser notes such a status
		if s.status < 400 || !strings.Contains(wrong, fmt.Sprint(s.status)) {
			v.Errorf("%s: %s", s.what, wrong)
		}
	}
	return form
}

// why are the fields of a form with a reason, and what else is given: names and values.
func why(more ...string) map[string]string {
	all := map[string]string{"reason": hostile[:300]}
	for i := 0; i+1 < len(more); i += 2 {
		all[more[i]] = more[i+1]
	}
	return all
}

// sent are the states of an administrator that follow from a form, and those of errors.
func (w *world) sent(t *testing.T) []state {
	t.Helper()
	good, err := w.manifestOf("book", book)
	if err != nil {
		t.Fatal(err)
	}
	failed := "jobs/" + w.failed.ID
	const many = `main form[action$="/operations"]`
	act := func(name string) string {
		return fmt.Sprintf(`form[action$="/act"]:has([name=action][value=%q])`, name)
	}
	deed := func(name string) string { return fmt.Sprintf(`form[action$="/deed"]:has([name=deed][value=%q])`, name) }
	const problem, refused = "p.note.bad", "[aria-invalid=true]"
	return []state{
		{"preview of one", failed, act("requeue"), why("step", "preview"), 200, "button[value=do]", false},
		{"preview of a loss", failed, act("delete"), why("step", "preview"), 200, "input[name=confirm]", false},
		{"act refused", failed, act("requeue"), why("step", "do", "reason", ""), 422, problem, false},
		{"act in conflict", failed, act("requeue"), why("step", "do", "target", "job:"+w.done.ID), 409, problem, false},
		{"form of another session", failed, act("requeue"), why("form", "x"), 403, "#again", false},
		{"preview of many", "jobs?state=Failed", "#many",
			why("job", w.failed.ID, "action", "requeue", "step", "preview"), 200, "button[value=do]", false},
		{"selected and done", "jobs?state=Failed", "#many",
			why("job", w.done.ID, "action", "requeue", "step", "do"), 200, "p.lead", false},
		{"selected and refused", "jobs?state=Failed", "#many",
			why("job", w.failed.ID, "action", "requeue", "step", "preview", "reason", ""), 422, problem, false},
		{"act done", "jobs/" + w.pending.ID, act("prioritize"), why("priority", "5", "step", "do"), 200, "p.done",
			false},
		{"many previewed", "operations/new", many, why("collection", "maps", "action", "requeue", "step", "preview"),
			200, "dl.facts", false},
		{"many refused", "operations/new", many,
			why("collection", "maps", "priority", "x", "step", "preview"), 422, refused, false},
		{"many not there", "operations/new", many,
			why("collection", hostile[:99], "step", "preview"), 404, problem, false},
		{"profile refused", "collections/maps", "form.profile", map[string]string{"containers.maxFiles": hostile[:20]},
			422, refused, false},
		{"submission refused", "submit?collection=maps", "#submission",
			map[string]string{"kind": "url", "url": "ftp://" + first(200), "note": first(200), "step": "do"},
			422, refused, false},
		{"submission checked", "submit?collection=maps", "#submission",
			map[string]string{"kind": "manifest", "manifest": good, "step": "preview"}, 200, "#checked", false},
		{"manifest refused", "submit?collection=maps", "#submission", map[string]string{"kind": "manifest",
			"manifest": strings.Replace(good, "#%eof", first(300)+"\nhalf a row\n#%eof", 1), "step": "do"}, 422,
			"section.bad #checked", false},
		{"deed refused", "consumers/outside", deed("replay"), why("filter", first(90), "step", "try"), 422,
			"#wrong", false},
		{"trial of a filter", "consumers/outside", deed("replay"), why("filter", "Object+Create", "step", "try"), 200,
			"#trial", false},
		{"deed to confirm", "consumers/outside", deed("reset"), why("to", "latest", "step", "sure"), 200, "[name=sure]",
			false},
		{"no such job", "jobs/none", "", nil, 404, problem, false},
		{"filter refused", "jobs?state=None", "", nil, 422, problem, false},
		{"signed out meanwhile", failed, act("requeue"), why("step", "preview"), 401, "#again", true},
		{"signed out", "signed-out", "", nil, 200, "h1", false},
	}
}

// decided are the states of decisions about what was found, and of changes of an object.
func (w *world) decided() []state {
	object := "objects/" + strings.TrimPrefix(w.done.Identifiers.Primary, "ark:/")
	const correct = `main form[action$="/correct"]`
	return []state{
		{"place to accept", w.decides("accept"), "", nil, 200, "form.stack", false},
		{"place to reject", w.decides("reject"), "", nil, 200, "form.stack", false},
		{"decision refused", w.decides("accept"), deedForm, why("hit", "77", "step", "try"), 422, "#wrong", false},
		{"place accepted", w.decides("accept"), deedForm, why("change", "yes", "step", "try"), 200, "p.done", false},
		{"place rejected", w.decides("reject"), deedForm, why("change", "yes", "step", "try"), 200, "p.done", false},
		{"correction previewed", object + "/correct", correct, why("what", first(200), "step", "preview"), 200,
			"table.list", false},
		{"correction refused", object + "/correct", correct, why("ids", first(60), "step", "preview", "reason", ""),
			422, "[aria-invalid=true]", false},
		{"zip refused", object, `form[action$="/zip"]`, map[string]string{"version": "x"}, 422, "p.note.bad", false},
	}
}

// decides is the form by which a person decides about the place that was found, below /console/.
func (w *world) decides(action string) string {
	return strings.Replace(w.place, "deed=accept", "deed="+action, 1)
}

// kinds are forms of deeds as they are before anything is written, one of each kind.
func kinds() (all []state) {
	for _, path := range console.KindsOfDeeds() {
		all = append(all, state{path, path, "", nil, 200, deedForm, false})
	}
	return all
}

// deedForm is the form of the page of a deed.
const deedForm = `main form[action$="/deed"]`

// lands are the forms after which there is a page that links lead to, too, unless they are refused.
var lands = []string{"profile", "zip"}

// TestStates: what only a form leads to, what errors show, and what others than an administrator see is as good as the
// pages that a link leads to (TestPages).
func TestStates(t *testing.T) {
	w := of(t)
	axe := w.axe(t)
	states := slices.Concat(kinds(), w.decided(), w.sent(t))
	for width := range widths {
		t.Run(fmt.Sprint(width), func(t *testing.T) {
			t.Parallel()
			v := w.open(t, width, "light")
			accepted, refused := map[string]bool{}, map[string]bool{}
			for _, s := range states {
				sent := v.comes(s)
				accepted[sent], refused[sent] = accepted[sent] || s.status < 400, refused[sent] || s.status >= 400
				v.judged("state "+s.what, width, axe)
			}
			for _, f := range console.Forms() {
				if f != "sign-out" && (!refused[f] || !accepted[f] && !slices.Contains(lands, f)) {
					t.Errorf("%s: seen refused %v, and otherwise %v: it needs both states", f, refused[f], accepted[f])
				}
			}
			v = w.openAs(t, "dora", width, "light")
			for _, path := range []string{"", "batches", "jobs", "objects", "submit", "formats", "search?q=letter"} {
				v.goTo(path)
				v.judged("depositor "+path, width, axe)
			}
			v.comes(state{"not permitted", "queue", "", nil, 403, "p.note.bad", false})
			v.judged("depositor queue", width, axe)
			v = w.openAs(t, "nora", width, "light")
			v.judged("nobody", width, axe)
		})
	}
}

// TestEmpty: the pages of an archive in which nothing is; then a project of research that asks a person about each
// place, with as many pairs as a page shows at once.
func TestEmpty(t *testing.T) {
	w := &world{tools: of(t).tools}
	axe := w.axe(t)
	var err error
	if w.Demo, err = demo.Start(t.Context(), demo.Options{Issuer: true, Empty: true}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	w.api = w.administrator()
	each := func(judge func(v *window, width int64)) {
		t.Helper()
		t.Run("each", func(t *testing.T) {
			for width := range widths {
				t.Run(fmt.Sprint(width), func(t *testing.T) {
					t.Parallel()
					judge(w.open(t, width, "light"), width)
				})
			}
		})
	}
	each(func(v *window, width int64) {
		for _, p := range console.Paths() {
			if strings.Contains(p, "{id}") || strings.Contains(p, "{n") || strings.Contains(p, "{p") ||
				p == "deed" || p == "event" || p == "task" || p == "item" {
				continue
			}
			v.goTo(strings.TrimSuffix(p, "{$}"))
			v.judged("empty "+p, width, axe)
		}
	})
	w.matrix(t)
	each(func(v *window, width int64) {
		for _, path := range []string{"research/" + localstack.ResearchProject, matrixPage} {
			v.goTo(path)
			v.judged("large "+path, width, axe)
		}
		if n := ask[int](v, `document.querySelectorAll(".heat path").length`); n < 6 {
			v.Errorf("the picture has %d kinds of pairs", n)
		}
		if other := ask[[]string](v, otherwise); len(other) > 0 {
			v.Errorf("%d cells are not as in the picture, e.g. %s", len(other), other[0])
		}
	})
}

// otherwise are the cells of the table of pairs of which its picture says something else.
const otherwise = `(() => {
	const parts = [...document.querySelectorAll(".heat path")];
	return [...document.querySelectorAll(".matrix tbody tr")].flatMap((tr, y) => [...tr.cells].slice(1).map((td, x) => {
		const part = parts.find(p => p.isPointInFill(new DOMPoint(x + .5, y + .5)));
		return "cell " + part?.getAttribute("class") === td.className ? "" : td.className + " at " + [x, y];
	})).filter(Boolean);
})()`

const matrixPage = "research/" + localstack.ResearchProject + "/matrix"

// matrix makes a project of 50 episodes and 40 clips, with results of all kinds: in their rows, since
// a researcher would need minutes for them.
func (w *world) matrix(t *testing.T) {
	t.Helper()
	const project, episodes, clips = localstack.ResearchProject, 50, 40
	_, err := w.api.ApplyResearch(t.Context(), v1.ResearchDefinition{Name: project, Review: true,
		Analysis: v1.ResearchAnalysis{Name: "correlation", Version: "1"}}, "A test")
	for kind, n := range map[string]int{v1.Episodes: episodes, v1.Clips: clips} {
		var all []v1.ResearchRecord
		for i := range n {
			title := fmt.Sprintf("Letters from the harbour, part %d", i+1)
			if i%9 == 5 {
				title = first(200)
			}
			all = append(all, v1.ResearchRecord{Source: "radio", ID: fmt.Sprint(kind, i), Title: title,
				URL: w.APIURL + "/one.wav", Curated: "1999-12-31T10:00:00Z"})
		}
		if err == nil {
			_, err = w.api.Curate(t.Context(), project, kind, all)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, item := range w.System().Table().All() {
		if sk, is := item["sk"].(*types.AttributeValueMemberS); !is || sk.Value != "EPISODE" {
			continue
		}
		bits := cellsOf(n, clips)
		n++
		if _, err := w.System().Table().UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
			Key: map[string]types.AttributeValue{"pk": item["pk"], "sk": item["sk"]},
			UpdateExpression: aws.String("SET researched = :r, waiting = :w, differs = :d, places_found = :f, " +
				"tallied_n = :t"),
			ExpressionAttributeValues: bits}); err != nil {
			t.Fatal(err)
		}
	}
	if n != episodes {
		t.Fatalf("%d episodes have results", n)
	}
}

// cellsOf are results of an episode with each of its clips: mostly none, a few or many places, and in some a person is
// needed or another researcher. A number of places has a bit in each of four parts of a bitmap.
func cellsOf(episode, clips int) map[string]types.AttributeValue {
	const part = 1 << 20
	researched, waiting, differs, found := roaring.New(), roaring.New(), roaring.New(), roaring.New()
	for clip := uint32(1); clip <= uint32(clips); clip++ { // as they are numbered
		switch kind := (uint32(episode)*31 + clip*17 + clip*clip*uint32(episode)) % 23; {
		case kind == 0:
			waiting.Add(clip)
		case kind == 1:
			differs.Add(clip)
		case kind < 5 || episode > 45: // nobody has looked for it
		default:
			researched.Add(clip)
			places := map[uint32]uint32{5: 1, 6: 2, 7: 3, 8: 7, 9: 12, 10: 1}[kind]
			for bit := range uint32(4) {
				if places>>bit&1 == 1 {
					found.Add(bit*part + clip)
				}
			}
		}
	}
	values := map[string]types.AttributeValue{":t": &types.AttributeValueMemberN{
		Value: fmt.Sprint(researched.GetCardinality())}}
	for name, b := range map[string]*roaring.Bitmap{":r": researched, ":w": waiting, ":d": differs, ":f": found} {
		data, _ := b.ToBytes() // into memory
		values[name] = &types.AttributeValueMemberB{Value: data}
	}
	return values
}
