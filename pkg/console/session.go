package console

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"
	"time"
)

// The cookies. On AWS their names begin with __Host-: then no other host can set them. A local stack has no TLS.
const (
	sessionCookie = "archivist"         // the access token of the issuer
	formCookie    = "archivist-form"    // where nobody signs in: what forms are bound to
	startCookie   = "archivist-sign-in" // a sign-in that has begun
	doneCookie    = "archivist-done"    // what was just done, for one page
)

// The limits of a session. A browser keeps a cookie of at most 4,096 bytes, with its name and attributes.
const (
	longestSession = 12 * time.Hour
	largestToken   = 3800
	longestDone    = time.Minute // until the page is opened that says what was done
)

// cookies reads and sets the cookies of a browser.
type cookies struct {
	w     http.ResponseWriter
	r     *http.Request
	local bool
}

func (c cookies) name(of string) string {
	if c.local {
		return of
	}
	return "__Host-" + of
}

// get is the value of a cookie, "" if there is none, or more than one.
func (c cookies) get(of string) string {
	all := c.r.CookiesNamed(c.name(of))
	if len(all) != 1 {
		return ""
	}
	return all[0].Value
}

// set sets a cookie for some time; 0: until the browser ends.
func (c cookies) set(of, value string, life time.Duration) {
	http.SetCookie(c.w, &http.Cookie{Name: c.name(of), Value: value, Path: "/", MaxAge: int(life.Seconds()),
		HttpOnly: true, Secure: !c.local, SameSite: http.SameSiteLaxMode})
}

// clear removes a cookie.
func (c cookies) clear(of string) {
	http.SetCookie(c.w, &http.Cookie{Name: c.name(of), Path: "/", MaxAge: -1, HttpOnly: true, Secure: !c.local,
		SameSite: http.SameSiteLaxMode})
}

// newForm is the token of a new form: a random name, and what proves that the form was made for this session. The name
// is also the key of the request, so a form that is sent twice acts once. No two tokens of a session have a part in
// common that could be guessed from the size of compressed pages.
func newForm(session string) string {
	name := rand.Text()
	return name + "." + proof(session, name)
}

// formKey is the name in the token of a form. ok is false if it was not made for this session.
func formKey(session, token string) (key string, ok bool) {
	name, mac, _ := strings.Cut(token, ".")
	return name, session != "" && name != "" && hmac.Equal([]byte(mac), []byte(proof(session, name)))
}

// proof is the authentication code of a name with a session.
func proof(session, name string) string {
	h := hmac.New(sha256.New, []byte(session))
	h.Write([]byte("a form of the console: " + name))
	return hex.EncodeToString(h.Sum(nil)[:16])
}
