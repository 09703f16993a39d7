package signin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"archivist/localstack/issuer"
	"archivist/pkg/kernel/fault"
)

const (
	home = "http://127.0.0.1:4581"
	api  = "https://archive.example.org/prod"
)

// world is an issuer that is reached without a socket, and a clock.
type world struct {
	t      *testing.T
	server *issuer.Issuer
	mu     sync.Mutex // guards what follows
	now    time.Time
	asked  []string // hosts, paths and types of grants of all requests
	answer func(*http.Request) *http.Response
}

// RoundTrip answers a request: by answer, or by the issuer if that has none.
func (w *world) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
	}
	form, _ := url.ParseQuery(string(body))
	r.Body = io.NopCloser(strings.NewReader(string(body)))
	w.mu.Lock()
	w.asked = append(w.asked, r.URL.Host+r.URL.Path+" "+form.Get("grant_type"))
	answer := w.answer
	w.mu.Unlock()
	if answer != nil {
		if resp := answer(r); resp != nil {
			resp.Request = r
			return resp, nil
		}
	}
	if r.URL.Host != "127.0.0.1:4581" {
		return nil, errors.New("no such host")
	}
	r.Host = r.URL.Host
	out := httptest.NewRecorder()
	w.server.ServeHTTP(out, r)
	return out.Result(), nil
}

// clock is the time of both sides.
func (w *world) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

// pass lets some time pass.
func (w *world) pass(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

// count is how many requests were made with a type of grant.
func (w *world) count(grant string) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, a := range w.asked {
		if strings.HasSuffix(a, "/token "+grant) {
			n++
		}
	}
	return n
}

// says lets the token endpoint answer.
func (w *world) says(status int, body string, headers ...string) {
	w.answer = func(r *http.Request) *http.Response {
		if r.URL.Path != "/token" {
			return nil
		}
		out := httptest.NewRecorder()
		out.Header().Set("Content-Type", "application/json")
		for i := 0; i < len(headers); i += 2 {
			out.Header().Set(headers[i], headers[i+1])
		}
		out.WriteHeader(status)
		_, _ = out.WriteString(body)
		return out.Result()
	}
}

func begin(t *testing.T) (*world, *Issuer) {
	w := &world{t: t, now: time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)}
	var err error
	w.server, err = issuer.New(issuer.Settings{URL: home, Accounts: issuer.Default(), Now: w.clock})
	if err != nil {
		t.Fatal(err)
	}
	return w, &Issuer{URL: home, ClientID: issuer.ClientID, Scopes: issuer.Scopes(), HTTP: &http.Client{Transport: w},
		Now: w.clock}
}

// press posts a form to the issuer, as a browser does, and returns where it sends the browser.
func (w *world) press(path string, form url.Values) string {
	r := httptest.NewRequest(http.MethodPost, home+path, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	out := httptest.NewRecorder()
	w.server.ServeHTTP(out, r)
	return out.Header().Get("Location")
}

// visit opens a URL on loopback, and returns the status.
func (w *world) visit(at string) int {
	resp, err := http.Get(at)
	if err != nil {
		w.t.Error(err)
		return 0
	}
	defer resp.Body.Close()
	return resp.StatusCode
}

// person is a browser whose user presses a button; before are URLs that somebody else lets it open.
func (w *world) person(user, answer string, before ...func(back *url.URL) string) func(string) error {
	return func(at string) error {
		u, err := url.Parse(at)
		if err != nil {
			return err
		}
		form := u.Query()
		form.Set("user", user)
		form.Set("answer", answer)
		to, err := url.Parse(w.press("/authorize", form))
		if err != nil {
			return err
		}
		for _, other := range before {
			if got := w.visit(other(to)); got != http.StatusBadRequest {
				w.t.Errorf("the answer of another is taken: %d", got)
			}
		}
		if got := w.visit(to.String()); got != http.StatusOK {
			w.t.Errorf("the browser sees %d", got)
		}
		return nil
	}
}

// with is a URL with a parameter changed.
func with(name, value string) func(*url.URL) string {
	return func(u *url.URL) string {
		other := *u
		v := other.Query()
		v.Set(name, value)
		other.RawQuery = v.Encode()
		return other.String()
	}
}

// TestBrowser: a person signs in; answers that are not of this sign-in change nothing.
func TestBrowser(t *testing.T) {
	w, i := begin(t)
	elsewhere := func(u *url.URL) string { return strings.Replace(u.String(), "/callback", "/other", 1) }
	got, err := i.Browser(t.Context(), w.person("vera", "yes", with("state", "x"), with("state", ""),
		with("iss", "https://evil.example"), with("code", ""), elsewhere))
	if err != nil || got.Access == "" || got.Refresh == "" || !got.Expires.Equal(w.now.Add(5*time.Minute)) {
		t.Errorf("%+v %s, %v", got, got.Expires, err)
	}
	if _, err := i.Browser(t.Context(), w.person("vera", "no")); !fault.Is(err, fault.Denied) {
		t.Errorf("refused: %v", err)
	}
	// Somebody gives this sign-in the code of another one: its verifier is another one.
	_, err = i.Browser(t.Context(), func(at string) error {
		u, err := url.Parse(at)
		if err != nil {
			return err
		}
		form := u.Query()
		form.Set("user", "alma")
		form.Set("answer", "yes")
		form.Set("code_challenge", strings.Repeat("x", 43))
		w.visit(w.press("/authorize", form))
		return nil
	})
	if !errors.Is(err, ErrEnded) {
		t.Errorf("the code of another one: %v", err)
	}
	none := errors.New("no browser")
	if _, err := i.Browser(t.Context(), func(string) error { return none }); !errors.Is(err, none) {
		t.Errorf("no browser: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := i.Browser(ctx, func(string) error { cancel(); return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}

// TestDevice: a person signs in elsewhere. The issuer is asked less often when it says so, and when it is away.
func TestDevice(t *testing.T) {
	w, i := begin(t)
	var waits []time.Duration
	var shown Code
	show := func(c Code) error { shown = c; return nil }
	step := 0
	got, err := i.Device(t.Context(), show, func(_ context.Context, d time.Duration) error {
		waits = append(waits, d)
		step++
		w.answer = nil
		switch step {
		case 2: // too soon
			w.pass(time.Second)
			return nil
		case 3:
			w.says(http.StatusBadGateway, "<html>")
		case 4:
			w.press("/device", url.Values{"user_code": {shown.Code}, "user": {"otto"}, "answer": {"yes"}})
		}
		w.pass(d)
		return nil
	})
	want := "[5s 5s 10s 20s]"
	if err != nil || got.Access == "" || got.Refresh == "" || fmt.Sprint(waits) != want ||
		shown.URL != home+"/device" || shown.Both == "" {
		t.Errorf("%v %+v, %v", waits, shown, err)
	}
	_, err = i.Device(t.Context(), show, func(_ context.Context, d time.Duration) error {
		w.press("/device", url.Values{"user_code": {shown.Code}, "answer": {"no"}})
		w.pass(d)
		return nil
	})
	if !fault.Is(err, fault.Denied) || !strings.Contains(err.Error(), "refused") {
		t.Errorf("refused: %v", err)
	}
	_, err = i.Device(t.Context(), show, func(context.Context, time.Duration) error { w.pass(time.Minute); return nil })
	if !fault.Is(err, fault.Denied) || !strings.Contains(err.Error(), "start again") {
		t.Errorf("expired: %v", err)
	}
	_, err = i.Device(t.Context(), show, func(context.Context, time.Duration) error { return context.Canceled })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}

// session is a session of a user in a new store.
func (w *world) session(i *Issuer, user string) Store {
	w.t.Helper()
	got, err := i.Browser(w.t.Context(), w.person(user, "yes"))
	s := Store{Dir: filepath.Join(w.t.TempDir(), "sessions")}
	err = errors.Join(err, s.Locked(w.t.Context(), api, func() error {
		return s.Save(Session{API: api, Issuer: home, ClientID: i.ClientID, Tokens: got})
	}))
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// live is what a process has of a session.
func (w *world) live(s Store) *Live {
	return &Live{Store: s, API: api, HTTP: &http.Client{Transport: w}, Now: w.clock}
}

// TestLive: a token is used until a minute before its end; then one process refreshes it, and the others use that.
func TestLive(t *testing.T) {
	w, i := begin(t)
	s := w.session(i, "dora")
	one := w.live(s)
	first, err := one.Token(t.Context())
	w.pass(4*time.Minute - time.Second)
	again, err2 := one.Token(t.Context())
	if err != nil || err2 != nil || again != first || w.count("refresh_token") != 0 {
		t.Errorf("%v, %v; %d refreshed", err, err2, w.count("refresh_token"))
	}
	processes := []*Live{one, one, one}
	for range 10 { // they have the token that is about to end
		l := w.live(s)
		if token, err := l.Token(t.Context()); err != nil || token != first {
			t.Errorf("%v", err)
		}
		processes = append(processes, l)
	}
	w.pass(time.Second)
	var all sync.Map
	var running sync.WaitGroup
	for _, l := range processes {
		running.Go(func() {
			token, err := l.Token(t.Context())
			if err != nil {
				t.Error(err)
			}
			all.Store(token, true)
		})
	}
	running.Wait()
	n := 0
	all.Range(func(any, any) bool {
		n++
		return true
	})
	if _, old := all.Load(first); old || n != 1 || w.count("refresh_token") != 1 {
		t.Errorf("%d tokens, refreshed %d times", n, w.count("refresh_token"))
	}
	// The next refresh token works: the rotated one was kept.
	w.pass(time.Hour)
	if _, err := w.live(s).Token(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestIssuerAway: while the issuer does not answer, a token is used up; the session stays.
func TestIssuerAway(t *testing.T) {
	w, i := begin(t)
	s := w.session(i, "dora")
	l := w.live(s)
	w.says(http.StatusServiceUnavailable, "later")
	w.pass(4*time.Minute + 30*time.Second)
	if _, err := l.Token(t.Context()); err != nil {
		t.Errorf("valid for 30 s: %v", err)
	}
	w.pass(30 * time.Second)
	if _, err := l.Token(t.Context()); !fault.Is(err, fault.Unavailable) {
		t.Errorf("expired: %v", err)
	}
	w.answer = nil
	if _, err := l.Token(t.Context()); err != nil {
		t.Errorf("back: %v", err)
	}
}

// TestEnded: a session that the issuer has ended is said to be, and so is one that cannot be refreshed.
func TestEnded(t *testing.T) {
	w, i := begin(t)
	s := w.session(i, "dora")
	session, err := s.Load(api + "/")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(i.Revoke(t.Context(), session.Refresh), i.Revoke(t.Context(), "nonsense")); err != nil {
		t.Error(err)
	}
	w.pass(time.Hour)
	if _, err := w.live(s).Token(t.Context()); !errors.Is(err, ErrEnded) {
		t.Errorf("revoked: %v", err)
	}
	session.Refresh = ""
	if err := s.Save(session); err != nil {
		t.Fatal(err)
	}
	if _, err := w.live(s).Token(t.Context()); !errors.Is(err, ErrEnded) {
		t.Errorf("without a refresh token: %v", err)
	}
	if err := errors.Join(s.Remove(api), s.Remove(api)); err != nil {
		t.Error(err)
	}
	if _, err := w.live(s).Token(t.Context()); !fault.Is(err, fault.NotFound) {
		t.Errorf("no session: %v", err)
	}
}

// TestMachine: a program gets its token by its secret; a wrong one is said to be wrong, and not repeated.
func TestMachine(t *testing.T) {
	w, i := begin(t)
	m := issuer.Default().Machines[0]
	got, err := i.Machine(t.Context(), m.ID, m.Secret)
	if err != nil || got.Access == "" || got.Refresh != "" {
		t.Errorf("%v, %v", got, err)
	}
	_, err = i.Machine(t.Context(), m.ID, "the-wrong-secret")
	if !fault.Is(err, fault.Denied) || strings.Contains(err.Error(), "the-wrong-secret") ||
		w.count("client_credentials") != 2 {
		t.Errorf("%v", err)
	}
}

// TestFiles: sessions are only their owner's, also in a folder that was not; one that others could read is not used.
func TestFiles(t *testing.T) {
	w, i := begin(t)
	s := w.session(i, "dora")
	if err := os.Chmod(s.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	session, err := s.Load(api)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Locked(t.Context(), api, func() error { return s.Save(session) }); err != nil {
		t.Fatal(err)
	}
	err = filepath.Walk(s.Dir, func(path string, info os.FileInfo, err error) error {
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has the mode %s", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	if err := os.Chmod(s.path(api), 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Load(api); !fault.Is(err, fault.Denied) {
		t.Errorf("others can read it: %v", err)
	}
	if err := os.WriteFile(s.path(api), []byte(`{"accessToken": "SECRET`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(s.path(api), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Load(api); !fault.Is(err, fault.Denied) || strings.Contains(err.Error(), "SECRET") {
		t.Errorf("half a file: %v", err)
	}
	if _, err := s.Load("https://other.example"); !fault.Is(err, fault.NotFound) {
		t.Errorf("another API: %v", err)
	}
}

// TestSecrets: no format prints tokens, no error has them, and they go to no other host.
func TestSecrets(t *testing.T) {
	w, i := begin(t)
	s := Session{API: api, Tokens: Tokens{Access: "SECRET-A", Refresh: "SECRET-R"}}
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		if text := fmt.Sprintf(format+format+format, s, &s, s.Tokens); strings.Contains(text, "SECRET") {
			t.Errorf("%s: %s", format, text)
		}
	}
	for name, c := range map[string]struct {
		status int
		body   string
	}{
		"an error with a token": {400, `{"access_token": "SECRET-A", "refresh_token": "SECRET-A"}`},
		"a page":                {502, "SECRET-A"}, "no JSON": {200, "SECRET-A"},
		"another type": {200, `{"access_token": "SECRET-A", "token_type": "mac", "expires_in": 60}`},
	} {
		w.says(c.status, c.body)
		got, err := i.Refresh(t.Context(), "SECRET-R")
		if err == nil || strings.Contains(err.Error(), "SECRET") || got != (Tokens{}) {
			t.Errorf("%s: %v", name, err)
		}
	}
	w.says(http.StatusTemporaryRedirect, "", "Location", "https://evil.example/token")
	_, err := i.Refresh(t.Context(), "SECRET-R")
	_, err2 := i.Machine(t.Context(), "harvester", "SECRET-M")
	if err == nil || err2 == nil {
		t.Error("a redirect is an answer")
	}
	for _, a := range w.asked {
		if strings.HasPrefix(a, "evil.example") {
			t.Errorf("it was asked: %s", a)
		}
	}
	data, err := json.Marshal(s)
	if err != nil || !strings.Contains(string(data), "SECRET-R") {
		t.Errorf("the file has %s, %v", data, err)
	}
}
