// Package console serves the pages in which people see the whole archive, act on it and understand it.
//
//	c := &console.Console{API: routes, Web: http.DefaultTransport, Now: time.Now, Log: log}
//	mux.Handle("/console/", c.Handler())
//
// It is a client of the API in the same process, with the token of the visitor's session: what one may see and do,
// which values are valid, and what is said of an error are decided there and nowhere else. It reads no row, and keeps
// nothing.
//
// A page is a function that asks the API and returns a view, and a template of the same name. All pages are complete
// without a script; htmx replaces the part that changes. Each change is a form that is sent by POST with a token of the
// session, which is also the key of the request, and is answered by a redirect to a page.
//
// The parts, from the top: console.go has the routes; signin.go the session's begin and end; home.go, batches.go,
// jobs.go, queue.go, operations.go and search.go the pages; act.go and acts.go what can be done; problem.go what is
// shown otherwise; refusal.go what is said of a form;
// frame.go what is around a page; live.go how often it is asked for; visit.go who visits;
// site.go what the console is; session.go, inside.go, address.go, answer.go, asset.go and text.go what these stand on.
package console

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"archivist/pkg/kernel/fault"
)

// pages are the pages by their paths below /console/: each with its template, and what it shows.
var pages = []struct {
	path, template string
	show           func(*Console, *visit) (view, error)
}{
	{"{$}", "home", (*Console).showHome},
	{"batches", "batches", (*Console).showBatches},
	{"batch-counts", "batchcounts", (*Console).showBatchCounts},
	{"batches/{id}", "batch", (*Console).showBatch},
	{"jobs", "jobs", (*Console).showJobs},
	{"jobs/{id}", "job", (*Console).showJob},
	{"job-counts", "jobcounts", (*Console).showJobCounts},
	{"objects", "objects", (*Console).showObjects},
	{"objects/{naan}/{name}", "object", (*Console).showObject},
	{"objects/{naan}/{name}/correct", "correct", (*Console).showCorrect},
	{"collections", "collections", (*Console).showCollections},
	{"collections/{id}", "collection", (*Console).showCollection},
	{"formats", "formats", (*Console).showFormats},
	{"submit", "submit", (*Console).showSubmit},
	{"queue", "queue", (*Console).showQueue},
	{"operations", "operations", (*Console).showOperations},
	{"operations/new", "bulk", (*Console).showBulk},
	{"operations/{id}", "operation", (*Console).showOperation},
	{"acts", "acts", (*Console).showActs},
	{"rebuilds", "rebuilds", (*Console).showRebuilds},
	{"settings", "settings", (*Console).showSettings},
	{"search", "search", (*Console).showSearch},
	{"deed", "deed", (*Console).showDeed},
	{"doctor", "doctor", (*Console).showDoctor},
	{"doctor/{id}", "examination", (*Console).showExamination},
	{"research", "projects", (*Console).showProjects},
	{"research/{project}", "project", (*Console).showProject},
	{"research/{project}/feeds", "feeds", (*Console).showFeeds},
	{"research/{project}/matrix", "matrix", (*Console).showMatrix},
	{"research/{project}/episodes/{key}", "recording", (*Console).showEpisode},
	{"research/{project}/clips/{key}", "recording", (*Console).showClip},
	{"components", "components", (*Console).showComponents},
	{"components/{name}", "component", (*Console).showComponent},
	{"components/{name}/runs/{run}", "run", (*Console).showRun},
	{"item", "item", (*Console).showItem},
	{"archives", "archives", (*Console).showArchives},
	{"archives/{name}", "archive", (*Console).showArchive},
	{"archives/{name}/revisions/{n}", "revision", (*Console).showRevision},
	{"task", "task", (*Console).showTask},
	{"events", "events", (*Console).showEvents},
	{"event", "event", (*Console).showEvent},
	{"consumers", "consumers", (*Console).showConsumers},
	{"consumers/{name}", "consumer", (*Console).showConsumer},
	{"replays/{id}", "replay", (*Console).showReplay},
}

// downloads lead to files of the storage, or have a document.
var downloads = map[string]func(*Console, *visit) error{
	"batches/{id}/report":             (*Console).report,
	"formats.csv":                     (*Console).formatsCSV,
	"filter.json":                     (*Console).filterWords,
	"objects/{naan}/{name}/content":   (*Console).content,
	"objects/{naan}/{name}/thumbnail": (*Console).thumbnail,
	"objects/{naan}/{name}/manifest":  (*Console).manifest,
	"objects/{naan}/{name}/premis":    (*Console).premis,
	"objects/{naan}/{name}/zip":       (*Console).zip,
	"task/output":                     (*Console).taskOutput,

	"research/{project}/episodes/{key}/labels": (*Console).labels,
	"research/{project}/offsets":               (*Console).offsets,
}

// forms are what can be sent, by their paths below /console/. key is that of the request.
var forms = map[string]func(c *Console, v *visit, key string) error{
	"act":        (*Console).actOn,
	"selected":   (*Console).actOnSelected,
	"submit":     (*Console).submit,
	"profile":    (*Console).saveProfile,
	"operations": (*Console).startBulk,
	"deed":       (*Console).actDeed,
	"zip":        (*Console).makeZip,
	"correct":    (*Console).correct,
	"sign-out": func(c *Console, v *visit, _ string) error {
		c.signOut(v)
		return nil
	},
}

// calls are what the script of the page Submit asks for, by their paths below /console/.
var calls = map[string]func(c *Console, v *visit, in sending) (any, error){
	"uploads":             (*Console).openUpload,
	"uploads/{id}/files":  (*Console).sendFiles,
	"uploads/{id}/stored": (*Console).storedFiles,
}

// largestForm bounds what a form can be, in bytes: a manifest of 200,000 characters, each of which may be sent as nine.
const largestForm = 2 << 20

// Paths are the paths of all pages below /console/, as patterns of net/http.
func Paths() (all []string) {
	for _, p := range pages {
		all = append(all, p.path)
	}
	return all
}

// Files are the paths of all that answers with a file, or leads to one in the storage, as Paths are.
func Files() (all []string) {
	for path := range downloads {
		all = append(all, path)
	}
	for path := range histories {
		all = append(all, path+historyFile)
	}
	slices.Sort(all)
	return all
}

// Forms are the paths of all forms that can be sent, below /console/.
func Forms() []string { return slices.Sorted(maps.Keys(forms)) }

// Serves reports whether a request is for the console: a path below /console, or the address of the API itself as a
// browser asks for it.
func Serves(r *http.Request) bool {
	return r.URL.Path == "/console" || strings.HasPrefix(r.URL.Path, "/console/") ||
		r.URL.Path == "/" && (r.Method == http.MethodGet || r.Method == http.MethodHead) &&
			strings.Contains(r.Header.Get("Accept"), "text/html")
}

// Handler serves what Serves says.
func (c *Console) Handler() http.Handler {
	mux := http.NewServeMux()
	for _, p := range pages {
		page := c.visited(func(v *visit) error {
			is, err := p.show(c, v)
			if err == nil {
				c.show(v, cmp.Or(is.Status, http.StatusOK), p.template, is)
			}
			return err
		})
		mux.HandleFunc("GET /console/"+p.path, page)
		if p.path == "{$}" { // not every gateway passes on a path that ends with a slash
			mux.HandleFunc("GET /console", page)
		}
	}
	for path, download := range downloads {
		mux.HandleFunc("GET /console/"+path, c.visited(func(v *visit) error {
			return download(c, v)
		}))
	}
	for path, after := range histories {
		mux.HandleFunc("GET /console/"+path+historyFile, c.visited(func(v *visit) error {
			return c.historyJSON(v, after)
		}))
	}
	for path, act := range forms {
		mux.HandleFunc("POST /console/"+path, c.visited(func(v *visit) error {
			key, ok := formKey(v.session, v.PostForm.Get("form"))
			if !ok {
				c.unproven(v)
				return nil
			}
			return act(c, v, key)
		}))
	}

	for path, answer := range calls {
		mux.HandleFunc("POST /console/"+path, c.called(answer))
	}

	mux.HandleFunc("GET /console/sign-in", c.unknown(c.signIn))
	mux.HandleFunc("GET /console/callback", c.unknown(c.comeBack))
	mux.HandleFunc("GET /console/signed-out", c.unknown(func(v *visit) error {
		c.showSignedOut(v)
		return nil
	}))
	mux.HandleFunc("GET /console/assets/{name...}", func(w http.ResponseWriter, r *http.Request) {
		if !asset(w, r) {
			c.missing(c.stranger(w, r))
		}
	})
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", base(r)+"/console")
		w.WriteHeader(http.StatusSeeOther)
	})
	mux.HandleFunc("/", c.unknown(func(v *visit) error {
		c.missing(v)
		return nil
	}))
	return c.guarded(mux)
}

// guarded is the outermost handler: it sets headers, refuses what other sites send, and answers a panic.
func (c *Console) guarded(mux *http.ServeMux) http.Handler {
	var sameOrigin http.CrossOriginProtection
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		protect(w.Header())
		defer func() {
			if p := recover(); p != nil {
				c.Log.Error("a page failed by a panic", "path", r.URL.Path, "panic", fmt.Sprint(p),
					"stack", string(debug.Stack()))
				w.WriteHeader(http.StatusInternalServerError)
				_, _ = w.Write([]byte("The page could not be made. The log has the cause.\n"))
			}
		}()
		if err := sameOrigin.Check(r); err != nil {
			c.foreign(c.stranger(w, r))
			return
		}
		// The mux would redirect to a path that is clean, without that of the gateway.
		if p := r.URL.Path; strings.Contains(p, "//") || strings.Contains(p, "/.") || unnamed(r.URL) {
			c.missing(c.stranger(w, r))
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// unnamed reports whether a part of a path is the name of nothing: no id has a slash, or a character
// that cannot be seen.
func unnamed(u *url.URL) bool {
	return !utf8.ValidString(u.Path) || strings.ContainsFunc(u.Path, unicode.IsControl) ||
		strings.Contains(strings.ToLower(u.EscapedPath()), "%2f")
}

// unknown serves visitors who need not be known.
func (c *Console) unknown(f func(*visit) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		v := c.stranger(w, r)
		c.answered(v, f(v))
	}
}

// visited serves visitors who are known. The form that was sent is read.
func (c *Console) visited(f func(*visit) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, largestForm)
		if err := r.ParseForm(); err != nil {
			c.answered(c.stranger(w, r), fault.New(fault.Invalid,
				"the form cannot be read: it is malformed, or "+
					"larger than 2 MiB"))
			return
		}
		v, err := c.arrive(w, r)
		if err == nil {
			err = f(v)
		}
		if err != nil && v.via.refused {
			err = errSession
		}
		c.answered(v, err)
	}
}

// answered shows the page of an error, if there is one.
func (c *Console) answered(v *visit, err error) {
	if err != nil && !errors.Is(err, errAnswered) {
		c.fail(v, err)
	}
}
