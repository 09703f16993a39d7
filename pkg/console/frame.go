package console

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"html/template"
	"net/http"
	"path"
	"strings"

	"archivist/pkg/kernel/access"
)

// place is an entry of the navigation.
type place struct {
	Path  string      // below /console/; "" = the first page
	Title string      // in the navigation
	Role  access.Role // who sees it, beside depositors; "" = everybody
	Own   bool        // depositors see it, too
	Key   string      // after g: the shortcut
	Says  string      // what one finds there
}

// places is the navigation.
var places = []place{
	{"", "Home", "", true, "h", "what needs a person now"},
	{"submit", "Submit", access.Operator, true, "s",
		"deposit files, content of a URL, or a manifest"},
	{"batches", "Batches", access.Viewer, true, "b", "submissions, with their jobs and reports"},
	{"jobs", "Jobs", access.Viewer, true, "j", "the ingest of each object"},
	{"objects", "Objects", access.Viewer, true, "p",
		"what is preserved: search, versions, files, history"},
	{"collections", "Collections", access.Viewer, true, "c", "profiles, holds, statistics"},
	{"queue", "Queue", access.Viewer, false, "q", "what runs, what waits, and why"},
	{"operations", "Operations", access.Viewer, false, "o", "actions on many jobs"},
	{"events", "Events", access.Viewer, false, "e", "what has happened, who did it, and why"},
	{"consumers", "Consumers", access.Viewer, false, "n", "what reacts to events, and what failed"},
	{"components", "Assembly lines", access.Viewer, false, "l",
		"components, and what each can work on"},
	{"research", "Research", access.Viewer, false, "r", "clips in recordings, and who looks for them"},
	{"archives", "Archives", access.Viewer, false, "a",
		"revisions that start tasks, and what runs"},
	{"doctor", "Doctor", access.Viewer, false, "d", "whether all rows and files agree"},
}

// view is what a page shows.
type view struct {
	Title string
	// Command does or shows the same on the command line; "" = there is none.
	Command string
	// Moving: something of it changes by itself within seconds.
	Moving bool
	// Status is that of the answer; 0 = 200.
	Status int
	// Still: it does not change by itself, so it is not asked for again.
	Still bool
	// Said is what is read out when it has changed, in a sentence.
	Said string
	Body any
}

// frame is a page with what is around it.
type frame struct {
	view
	v      *visit
	Base   string // the relative path to /console/
	Places []place
	At     string // the place of the page
	Every  int    // seconds until it is asked for again; 0 = not
	Tag    string
	Done   string // what was just done
}

// Form is the token of a new form.
func (f frame) Form() string { return f.v.form() }

// Open reports whether everybody may do everything: on a local stack without an issuer.
func (f frame) Open() bool { return f.v.open }

// Who is the name of the visitor, "" if nobody is signed in.
func (f frame) Who() string {
	if f.v.who.Name != "" {
		return f.v.who.Name
	}
	return f.v.who.Subject
}

// Grants are the roles of the visitor.
func (f frame) Grants() []string { return f.v.who.Grants }

// May reports whether the visitor has a role.
func (f frame) May(role string) bool { return f.v.may(access.Role(role)) }

// Submits reports whether the visitor may submit something.
func (f frame) Submits() bool { return f.v.submits() }

// Here is the address of the page below /console/, with its query.
func (f frame) Here() string { return f.v.here() }

// Least is the shortest pause after an answer, in seconds.
func (f frame) Least() int { return whileMoving }

// Most is the longest pause after an answer, in seconds.
func (f frame) Most() int { return unchanged }

// Start is the address of the first page.
func (f frame) Start() string { return f.Base + start }

// Asset is the path of an asset.
func (f frame) Asset(name string) string { return f.Base + "assets/" + named[name] }

// below is a path below /console/.
func below(path string) string {
	return strings.TrimPrefix(strings.TrimPrefix(path, "/console"),
		"/")
}

// baseOf is the relative path from a page to /console/. All addresses are relative: so the console, as the API, does
// not need to know under which path a gateway serves it.
func baseOf(r *http.Request) string {
	if r.URL.Path == "/console" {
		return "console/"
	}
	return "./" + strings.Repeat("../", strings.Count(below(r.URL.EscapedPath()), "/"))
}

// templates are those of pages, by the names of their files.
var templates = readTemplates()

// readTemplates reads the templates of pages. Each has those of shared.html and layout.html, too.
func readTemplates() map[string]*template.Template {
	shared := template.Must(template.New("").Funcs(functions).Funcs(ofEvents).ParseFS(files, "templates/layout.html",
		"templates/shared.html", "templates/forms.html", "templates/deeds.html",
		"templates/queues.html"))
	names, err := files.ReadDir("templates/pages")
	if err != nil {
		panic(err) // they are not embedded
	}
	out := map[string]*template.Template{}
	for _, file := range names {
		page := template.Must(template.Must(shared.Clone()).ParseFS(files,
			path.Join("templates/pages", file.Name())))
		out[strings.TrimSuffix(file.Name(), ".html")] = page
	}
	return out
}

// show answers with a page: whole, or the part of it that changes, or that nothing of it has changed.
func (c *Console) show(v *visit, status int, name string, is view) {
	if v.via.refused && status == http.StatusOK { // the session has ended in the middle of the page
		is, status, name = endedView(v), http.StatusUnauthorized, "problem"
	}
	is.Command = strings.TrimSpace(is.Command)
	f := frame{view: is, v: v, Base: baseOf(v.Request), At: v.at(),
		Done: v.done()}
	for _, p := range places {
		if v.may(p.Role) || p.Own && len(v.is.Of(access.Depositor)) > 0 {
			f.Places = append(f.Places, p)
		}
	}
	if status == http.StatusOK {
		f.Every = is.every()
	}

	data, err := json.Marshal([]any{is, f.Every, v.who.Grants})
	if err != nil {
		panic(err) // a page shows what cannot be compared with what it showed before
	}
	sum := sha256.Sum256(data)
	f.Tag = `"` + hex.EncodeToString(sum[:12]) + `"`
	v.w.Header().Set("ETag", f.Tag)
	v.w.Header().Set("Vary", "HX-Request")
	part := "layout"
	if v.partial() && status == http.StatusOK {
		part = "part"
		if v.Header.Get("If-None-Match") == f.Tag {
			v.w.WriteHeader(http.StatusNotModified)
			return
		}
	}

	var out bytes.Buffer
	if err := templates[name].ExecuteTemplate(&out, part, f); err != nil {
		panic(err) // answered by guarded: no part of the page was sent
	}
	v.w.Header().Set("Content-Type", "text/html; charset=utf-8")
	write(v.w, v.Request, status, out.Bytes())
}

// at is the place that a page belongs to.
func (v *visit) at() string {
	path, page := below(v.URL.Path), ""
	switch path { // of a form it is that of the thing
	case "deed":
		page = deeds[cmp.Or(v.PostForm.Get("kind"), v.URL.Query().Get("kind"))].Page
	case "act":
		kind, _, _ := strings.Cut(v.PostForm.Get("target"), ":")
		page = homes[kind].page
	}
	path, _, _ = strings.Cut(cmp.Or(page, path), "?")
	first, _, _ := strings.Cut(path, "/")
	return cmp.Or(placeOf[first], first)
}

// placeOf are the places of pages whose address does not begin with them.
var placeOf = map[string]string{"event": "events", "replays": "consumers", "task": "archives",
	"item": "components", "settings": "operations", "correct": "objects", "zip": "objects",
	"profile": "collections", "selected": "jobs",
	"rebuilds": "operations", "job-counts": "jobs", "batch-counts": "batches",
	"formats": "collections"}
