package issuer

import (
	"crypto/rand"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// challenges are those of S256: a digest in base64url.
var challenges = regexp.MustCompile(`^[A-Za-z0-9_-]{43}$`)

// parameters are those of a request that the form of the page has again.
var parameters = []string{"client_id", "redirect_uri", "response_type", "code_challenge",
	"code_challenge_method", "scope", "state", "nonce"}

// asked is a request for authorization.
type asked struct {
	url.Values
	scopes []string
}

// askWho shows the page on which a person says who they are.
func (i *Issuer) askWho(w http.ResponseWriter, r *http.Request) {
	a, ok := i.asked(w, r, r.URL.Query())
	if !ok {
		return
	}
	hidden := map[string]string{}
	for _, name := range parameters {
		hidden[name] = a.Get(name)
	}
	show(w, http.StatusOK, page{Title: "Sign in", Action: "/authorize", Hidden: hidden,
		Users: i.settings.Accounts.Users,
		Text:  who(a.Get("redirect_uri")) + " asks to act for you. Who are you?"})
}

// authorize gives out a code, if the person agrees. The request is checked again: it comes from
// the page, and anybody can make a page.
func (i *Issuer) authorize(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		refusePage(w, "The form cannot be read.")
		return
	}
	a, ok := i.asked(w, r, r.PostForm)
	if !ok {
		return
	}

	user := i.settings.Accounts.user(a.Get("user"))
	switch {
	case a.Get("answer") != "yes":
		i.redirect(w, r, a, url.Values{"error": {"access_denied"}})
		return
	case user == nil:
		refusePage(w, "There is no such user.")
		return
	}

	now, name := i.settings.Now(), rand.Text()
	i.mu.Lock()
	i.codes.put(name, &code{
		client:    a.Get("client_id"),
		redirect:  a.Get("redirect_uri"),
		challenge: a.Get("code_challenge"),
		scopes:    a.scopes,
		nonce:     a.Get("nonce"),
		user:      user,
		signedIn:  now,
	}, now, codeLife)
	i.mu.Unlock()
	i.redirect(w, r, a, url.Values{"code": {name}})
}

// asked checks a request. What is wrong with the client, or where it is to be told, is told to the
// person; all else to the client (RFC 6749, section 4.1.2.1). ok is false if it was answered.
func (i *Issuer) asked(w http.ResponseWriter, r *http.Request, v url.Values) (a asked, ok bool) {
	a = asked{v, strings.Fields(v.Get("scope"))}
	twice := false
	for _, values := range v {
		twice = twice || len(values) > 1
	}

	refused := ""
	switch {
	case twice:
		refusePage(w, "A parameter of the request is there twice.")
		return a, false
	case a.Get("client_id") != ClientID:
		refusePage(w, "The request is of a client that is not known here.")
		return a, false
	case !redirects(a.Get("redirect_uri")):
		refusePage(w, "The request names a place to return to that is not that of its client.")
		return a, false
	case a.Get("response_type") != "code":
		refused = "unsupported_response_type"
	case a.Get("code_challenge_method") != "S256" || !challenges.MatchString(a.Get("code_challenge")):
		refused = "invalid_request"
	case !allowed(a.scopes):
		refused = "invalid_scope"
	default:
		return a, true
	}
	i.redirect(w, r, a, url.Values{"error": {refused}})
	return a, false
}

// allowed reports whether a person can ask for scopes.
func allowed(scopes []string) bool {
	return !slices.ContainsFunc(scopes, func(s string) bool { return !slices.Contains(Scopes(), s) })
}

// who is what asks, by where it is told the answer.
func who(to string) string {
	if u, err := url.Parse(to); err == nil && strings.HasSuffix(u.Path, consolePath) {
		return "The console"
	}
	return "The command line"
}

// redirects reports whether a URL is that of the command line, or of a console on this machine: exactly, but for the
// port, and what a gateway has before the path of the console.
func redirects(text string) bool {
	u, err := url.Parse(text)
	if err != nil || u.Port() == "" {
		return false
	}
	host, _, err := net.SplitHostPort(u.Host)
	u.Host = host
	local := host == "127.0.0.1" || host == "localhost" || strings.HasSuffix(host, ".localhost") // RFC 6761
	console := local && strings.HasSuffix(u.Path, consolePath) && u.String() == "http://"+host+u.Path
	mine := u.String() == redirect || console
	return err == nil && mine && strings.HasPrefix(text, "http://"+host+":")
}

// redirect tells the client, by the browser.
func (i *Issuer) redirect(w http.ResponseWriter, r *http.Request, a asked, v url.Values) {
	v.Set("iss", i.settings.URL)
	if state := a.Get("state"); state != "" {
		v.Set("state", state)
	}
	http.Redirect(w, r, a.Get("redirect_uri")+"?"+v.Encode(), http.StatusSeeOther)
}
