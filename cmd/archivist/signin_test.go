package main

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"archivist/cmd/archivist/command/commandtest"
	"archivist/localstack"
	"archivist/localstack/issuer"
	"archivist/pkg/app/inprocess"
	"archivist/pkg/kernel/signin"
)

// Where the issuer and the API of the test are.
const (
	issuerAt = "http://127.0.0.1:4581"
	apiAt    = "http://127.0.0.1:4566"
)

// guarded is a deployment that demands tokens, its issuer, and a console: all in a bubble, with one clock.
type guarded struct {
	t       *testing.T
	issuer  *issuer.Issuer
	console *commandtest.Console
	log     bytes.Buffer
	mu      sync.Mutex // of log
}

// Write keeps what functions log.
func (g *guarded) Write(p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.log.Write(p)
}

// newGuarded starts a deployment. Whoever signs in by a code is the user.
func newGuarded(t *testing.T, user string) *guarded {
	t.Helper()
	g := &guarded{t: t}
	home := commandtest.EmptyHome(t)
	var err error
	g.issuer, err = issuer.New(issuer.Settings{URL: issuerAt, Accounts: issuer.Default(), Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	at := map[string]http.Handler{"127.0.0.1:4581": g.issuer}
	system, err := inprocess.Start(inprocess.Settings{Index: &inprocess.NoIndex{}, Web: &inprocess.Web{Hosts: at},
		Log: slog.New(slog.NewTextHandler(g, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Issuer: inprocess.Issuer{URL: issuerAt, Audience: issuer.Audience, Claims: issuer.Claims(),
			Client: issuer.ClientID, Scopes: issuer.Scopes()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		time.Sleep(time.Minute) // until no request can go on any more
		if err := system.Close(); err != nil {
			t.Error(err)
		}
	})

	g.console = with(t, apiAt)
	g.console.Env["HOME"] = home
	g.console.HTTP = &http.Client{Transport: &inprocess.Web{Hosts: map[string]http.Handler{
		"127.0.0.1:4581": g.issuer, "127.0.0.1:4566": system.API(), "archive.example.org": system.API()}}}
	g.console.OnWait = func() {
		code := regexp.MustCompile(`[B-Z]{4}-[B-Z]{4}`).FindString(g.console.Err.String())
		g.press(url.Values{"user_code": {code}, "user": {user}, "answer": {"yes"}})
		time.Sleep(g.console.Waits[len(g.console.Waits)-1])
	}
	return g
}

// press presses a button of the page for devices.
func (g *guarded) press(form url.Values) {
	r := httptest.NewRequest(http.MethodPost, issuerAt+"/device", strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	g.issuer.ServeHTTP(httptest.NewRecorder(), r)
}

// want runs a command line at the time of the bubble. Nothing that it says, and nothing that is logged, has a token.
func (g *guarded) want(line string, code int, says string) {
	g.t.Helper()
	g.console.Now = time.Now()
	g.console.Want(g.t, line, code, says)
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, text := range []string{g.console.Both.String(), g.log.String()} {
		if strings.Contains(text, "eyJ") || strings.Contains(text, issuer.Default().Machines[0].Secret) {
			g.t.Errorf("%s: there is a secret in:\n%s", line, text)
		}
	}
}

// session is what is kept here.
func (g *guarded) session() signin.Session {
	g.t.Helper()
	s, err := signin.Store{Dir: filepath.Join(g.console.Env["HOME"], ".config", "archivist", "sessions")}.Load(apiAt)
	if err != nil {
		g.t.Fatal(err)
	}
	return s
}

// TestSignIn: a person signs in by a code, works for hours and over rotations of the keys, and signs out. The actor
// of what happens is the subject of the token.
func TestSignIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuarded(t, "otto")
		g.want("queue", 9, "archivist login")
		g.want("whoami", 9, "archivist login")
		g.want("login --json subject,grants", 0, `"subject": "otto"`)
		g.want("whoami", 0, "operator")
		g.want("queue", 0, "running")
		first := g.session()
		// Somebody works while keys are replaced, more than once in the life of a token.
		for range 12 {
			if err := g.issuer.Rotate(); err != nil {
				t.Fatal(err)
			}
			g.want("whoami", 0, "otto")
			time.Sleep(2 * time.Minute)
			g.want("whoami --json expires", 0, time.Now().UTC().Format("2006-01-02T15"))
		}
		if g.session().Refresh == first.Refresh || g.session().Access == first.Access {
			t.Error("the session was not refreshed")
		}
		time.Sleep(2 * time.Hour)
		g.want("queue pause --reason maintenance", 0, "paused")
		g.want("queue holds", 0, "otto (\"Otto, an operator\")")

		last := g.session()
		g.want("logout", 0, "Signed out.")
		g.want("logout", 0, "Nobody is signed in.")
		g.want("whoami", 9, "archivist login")
		by := signin.Issuer{URL: issuerAt, ClientID: issuer.ClientID, HTTP: g.console.HTTP, Now: time.Now}
		if _, err := by.Refresh(t.Context(), last.Refresh); err == nil {
			t.Error("what was left behind is a session still")
		}
		files, err := os.ReadDir(filepath.Join(g.console.Env["HOME"], ".config", "archivist", "sessions"))
		if err != nil || len(files) != 1 { // the lock
			t.Errorf("%v, %v", files, err)
		}
	})
}

// TestStolenSession: when a copy of a session was used elsewhere, both end, and one is told to sign in again.
func TestStolenSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuarded(t, "vera")
		g.want("login --device", 0, "vera")
		by := signin.Issuer{URL: issuerAt, ClientID: issuer.ClientID, HTTP: g.console.HTTP, Now: time.Now}
		stolen, err := by.Refresh(t.Context(), g.session().Refresh)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		g.want("whoami", 9, "archivist login")
		if _, err := by.Refresh(t.Context(), stolen.Refresh); err == nil {
			t.Error("the thief goes on")
		}
		g.want("login", 0, "vera")
		g.want("whoami", 0, "vera")
	})
}

// TestProgram: a program signs in by its secret, goes before a session, and has its own roles only.
func TestProgram(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuarded(t, "alma")
		g.want("login", 0, "administrator")
		m := issuer.Default().Machines[0]
		g.console.Env["ARCHIVIST_CLIENT_ID"] = m.ID
		g.want("whoami", 2, "ARCHIVIST_CLIENT_SECRET belong together")
		g.console.Env["ARCHIVIST_CLIENT_SECRET"] = m.Secret
		g.want("whoami", 0, "harvester")
		g.want("whoami --json all", 0, "depositor:sample")
		g.want("batch list -c sample", 0, "")
		g.want("batch list -c other", 3, "")
		g.want("queue", 9, "depositor:sample")
		g.want("login", 2, "ARCHIVIST_CLIENT_ID goes before a session")
		g.want("config --json all", 0, `"tokenFrom": "ARCHIVIST_CLIENT_ID"`)
		g.console.Env["ARCHIVIST_TOKEN"] = g.session().Access
		g.want("whoami", 0, "alma")
		g.console.Env["ARCHIVIST_TOKEN"] = "nonsense"
		g.want("whoami", 9, "no token that is accepted")
		delete(g.console.Env, "ARCHIVIST_TOKEN")
		g.want("whoami --api http://archive.example.org", 2, "https only")
		g.console.Env["ARCHIVIST_CLIENT_SECRET"] = "another-secret-than-its-own"
		g.want("whoami", 9, "its secret is wrong")
		if strings.Contains(g.console.Both.String(), "another-secret") {
			t.Errorf("it is printed: %s", &g.console.Both)
		}
		delete(g.console.Env, "ARCHIVIST_CLIENT_ID")
		delete(g.console.Env, "ARCHIVIST_CLIENT_SECRET")
		g.want("whoami", 0, "alma")
		g.want("config --json all", 0, `"tokenFrom": "archivist login"`)
	})
}

// TestNoIssuer: a deployment that demands no token says that nobody signs in there.
func TestNoIssuer(t *testing.T) {
	home := commandtest.EmptyHome(t)
	system, err := inprocess.Start(inprocess.Settings{Index: &inprocess.NoIndex{}})
	if err != nil {
		t.Fatal(err)
	}
	defer system.Close()
	c := with(t, inprocess.APIURL)
	c.HTTP, c.Env["HOME"] = system.HTTP(), home
	c.Want(t, "login", 3, "has no issuer of tokens")
	c.Want(t, "whoami", 0, "administrator")
}

// TestStartedHere: in the folder of what make run has started, commands act as the program that it names, until
// somebody signs in, and again afterwards. Its secret goes to its own API only.
func TestStartedHere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuarded(t, "alma")
		m := issuer.Default().Machines[0]
		o := localstack.Outputs{APIURL: apiAt, ClientID: m.ID, ClientSecret: m.Secret}
		if err := o.Publish("."); err != nil {
			t.Fatal(err)
		}
		g.want("whoami", 9, "archivist login") // the environment names the API
		delete(g.console.Env, "ARCHIVIST_API")
		g.want("whoami", 0, "harvester")
		g.want("config --json all", 0, `"tokenFrom": "make run"`)
		g.want("login", 0, "alma")
		g.want("whoami", 0, "alma")
		g.want("logout", 0, "Signed out.")
		g.want("whoami", 0, "harvester")
		g.want("whoami --api "+apiAt, 9, "archivist login")
		if strings.Contains(g.console.Both.String(), m.Secret) {
			t.Errorf("it is printed: %s", &g.console.Both)
		}
	})
}
