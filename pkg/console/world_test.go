package console_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"archivist/localstack/issuer"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/app/inprocess"
	"archivist/pkg/console/consoletest"
	"archivist/pkg/formats/checkm"
)

// Where everything is. The issuer accepts a console on this machine only.
const (
	consoleHost = "127.0.0.1:4566"
	home        = "http://" + consoleHost + "/console/"
	start       = "http://" + consoleHost + "/console"
	issuerHost  = "127.0.0.1:4581"
	sourceHost  = "source.example.org"
)

// world is a system with the console, and if it is not open an issuer.
type world struct {
	*testing.T
	*inprocess.System
	web   *inprocess.Web
	files map[string]string // of the depositor's server
	api   *v1.Client        // of an administrator
	users map[string]*browser

	followed map[string]bool      // the links that were followed: a user, a blank and a path
	sound    *v1.ResearchWaveform // of the recordings that are researched; nil: it is not known
}

// begin starts a system. open: nobody signs in.
func begin(t *testing.T, open bool) *world { return beginWith(t, open, func(*inprocess.Settings) {}) }

// beginWith starts a system with other settings.
func beginWith(t *testing.T, open bool, change func(*inprocess.Settings)) *world {
	t.Helper()
	w := &world{T: t, files: map[string]string{}, users: map[string]*browser{},
		followed: map[string]bool{},
		web:      &inprocess.Web{Hosts: map[string]http.Handler{}}}
	w.web.Hosts[sourceHost] = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		text, there := w.files[r.URL.Path]
		if !there {
			http.NotFound(rw, r)
			return
		}
		http.ServeContent(rw, r, "", time.Time{}, strings.NewReader(text))
	})
	settings := inprocess.Settings{Timing: "quick", Each: 200 * time.Millisecond, Window: 10 * time.Millisecond,
		Dir: t.TempDir(), Web: w.web}
	if !open {
		accounts := issuer.Default()
		accounts.Users = append(accounts.Users,
			issuer.User{Subject: "lena", Name: "Lena, a depositor of letters", Groups: []string{"depositor:letters"}},
			issuer.User{Subject: "duo", Name: "Duo, a depositor of two", Groups: []string{"depositor:letters",
				"depositor:sample"}},
			issuer.User{Subject: "rita", Name: "Rita, a researcher", Groups: []string{"researcher:jingles"}},
			issuer.User{Subject: "nils", Name: "Nils, a notifier", Groups: []string{"notifier:book"}})
		by, err := issuer.New(issuer.Settings{URL: "http://" + issuerHost, Accounts: accounts, Now: time.Now})
		w.must(err)
		w.web.Hosts[issuerHost] = by
		settings.Issuer = inprocess.Issuer{URL: "http://" + issuerHost, Audience: issuer.Audience,
			Claims: issuer.Claims(), Client: issuer.ClientID, Scopes: issuer.Scopes()}
	}
	change(&settings)
	var err error
	w.System, err = inprocess.Start(settings)
	w.must(err)
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	w.web.Hosts[consoleHost] = w.API()
	w.web.Hosts["s3.process.invalid"] = http.HandlerFunc(w.storage)
	w.api = &v1.Client{URL: "http://" + consoleHost, HTTP: &http.Client{Transport: w.web}}
	return w
}

// storage passes a request to the buckets.
func (w *world) storage(rw http.ResponseWriter, r *http.Request) {
	in := r.Clone(r.Context())
	in.RequestURI, in.URL.Scheme, in.URL.Host = "", "http", r.Host
	resp, err := w.HTTP().Do(in)
	w.must(err)
	defer resp.Body.Close()
	maps.Copy(rw.Header(), resp.Header)
	rw.WriteHeader(resp.StatusCode)
	_, _ = io.Copy(rw, resp.Body)
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// until looks until f is true.
func (w *world) until(what string, f func() bool) {
	w.Helper()
	for end := time.Now().Add(3 * time.Minute); !f(); {
		if time.Now().After(end) {
			w.Fatalf("%s: not within 3 minutes", what)
		}
		select {
		case <-w.Context().Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// submit submits a payload, and waits until a job of it is in a state.
func (w *world) submit(in v1.BatchRequest, state string) v1.Job {
	w.Helper()
	out, err := w.api.Submit(w.Context(), in, "")
	w.must(err)
	var job v1.Job
	w.until("a job is "+state, func() bool {
		all, err := w.api.Jobs(w.Context(), v1.Filter{Batch: out.ID})
		w.must(err)
		i := slices.IndexFunc(all, func(j v1.Job) bool { return j.State == state })
		if i >= 0 {
			job = all[i]
		}
		return i >= 0
	})
	return job
}

// reported waits until the batch of a job has ended.
func (w *world) reported(job v1.Job) {
	w.Helper()
	w.until("the batch is reported", func() bool {
		b, err := w.api.Batch(w.Context(), job.Batch)
		w.must(err)
		return v1.Ended(b.State)
	})
}

// file is a submission of a file; one that is not there fails.
func (w *world) file(collection, name, text string) v1.BatchRequest {
	if text != "" {
		w.files["/"+name] = text
	}
	return v1.BatchRequest{Collection: collection, Metadata: &v1.Metadata{What: "The file " + name},
		Payload: v1.Payload{URL: "http://" + sourceHost + "/" + name, Type: "file"}}
}

// many is a submission of n objects.
func (w *world) many(n int) v1.BatchRequest {
	var rows []checkm.Row
	for i := range n {
		name := fmt.Sprintf("/%05d.txt", i)
		w.files[name] = name
		rows = append(rows, checkm.Row{URL: "http://" + sourceHost + name, Name: name[1:],
			Title: "A title of some length for the object " + name, Local: []string{"local-" + name}})
	}
	var b strings.Builder
	w.must(checkm.WriteBatch(&b, "http://uc3.cdlib.org/registry/ingest/manifest/mrt-single-file-batch-manifest", rows))
	w.files["/many.checkm"] = b.String()
	return v1.BatchRequest{Collection: "sample", Submitter: "Map Library",
		Payload: v1.Payload{URL: "http://" + sourceHost + "/many.checkm", Type: "single-file-batch-manifest"}}
}

// browser is a browser with its cookies.
type browser struct {
	*world
	http.Client
	packed int // bytes of the last answer as they were sent
}

// browser opens one.
func (w *world) browser() *browser {
	jar, err := cookiejar.New(nil)
	w.must(err)
	return &browser{world: w, Client: http.Client{Transport: w.web, Jar: jar}}
}

// as is a browser in which a user has signed in.
func (w *world) as(user string) *browser {
	w.Helper()
	b := w.browser()
	resp, text := b.get("")
	if resp.Request.URL.Host != issuerHost {
		w.Fatalf("not at the issuer: %s\n%s", resp.Request.URL, text)
	}
	resp, text = b.choose(text, user)
	if resp.StatusCode != 200 || resp.Request.URL.String() != start {
		w.Fatalf("%s is not signed in: %s %d\n%s", user, resp.Request.URL, resp.StatusCode, text)
	}
	return b
}

// choose chooses a user on the page of the issuer.
func (b *browser) choose(page, user string) (*http.Response, string) {
	b.Helper()
	form := formAt(b.T, page, "/authorize")
	form.Set("user", user)
	form.Set("answer", "yes")
	return b.send("http://"+issuerHost+"/authorize", form)
}

// get opens a page by its path below /console/.
func (b *browser) get(path string, headers ...string) (*http.Response, string) {
	b.Helper()
	return b.do(http.MethodGet, home+path, nil, headers...)
}

// post sends a form.
func (b *browser) post(path string, form url.Values, headers ...string) (*http.Response, string) {
	b.Helper()
	return b.do(http.MethodPost, home+path, form, headers...)
}

func (b *browser) send(at string, form url.Values) (*http.Response, string) {
	b.Helper()
	return b.do(http.MethodPost, at, form)
}

// do makes a request, and follows redirects.
func (b *browser) do(method, at string, form url.Values, headers ...string) (*http.Response, string) {
	b.Helper()
	r, err := http.NewRequestWithContext(b.Context(), method, at, strings.NewReader(form.Encode()))
	b.must(err)
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	r.Header.Set("Accept-Encoding", "gzip")
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := b.Client.Do(r)
	b.must(err)
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	b.must(err)
	b.packed = len(data)
	if resp.Header.Get("Content-Encoding") == "gzip" && method != http.MethodHead {
		z, err := gzip.NewReader(bytes.NewReader(data))
		b.must(err)
		data, err = io.ReadAll(z)
		b.must(err)
	}
	return resp, string(data)
}

// still is the browser without following redirects.
func (b *browser) still() *browser {
	c := *b
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &c
}

// A page as a browser reads it.
var (
	parsed = consoletest.Parse
	attr   = consoletest.Attr
	formAt = consoletest.Form
)
