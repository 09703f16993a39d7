package console

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/access"
	"archivist/pkg/kernel/fault"
)

// visit is one request of a browser for a page.
type visit struct {
	*http.Request
	cookies
	api  *v1.Client
	via  *inside
	who  v1.Caller
	is   access.Identity // of who, with the grants only
	now  time.Time
	open bool // calls need no token: a local stack without an issuer
	// session is what forms are bound to: the token, or on an open stack a random text.
	session string
}

// errSession: nobody is signed in, or the session has ended.
var errSession = errors.New("the session has ended")

// arrive finds out who visits: the API says who the token of the session stands for. An errSession: nobody is signed
// in.
func (c *Console) arrive(w http.ResponseWriter, r *http.Request) (*visit, error) {
	v := c.stranger(w, r)
	token := v.get(sessionCookie)
	v.api = c.client(v.via, token)
	var err error
	v.who, err = v.api.WhoAmI(r.Context())
	switch {
	case v.via.refused:
		return v, errSession
	case err != nil:
		return v, err
	}

	for _, text := range v.who.Grants {
		if g, err := access.Parse(text); err == nil { // a later release may have other roles
			v.is.Grants = append(v.is.Grants, g)
		}
	}
	v.open, v.session = token == "", token
	if v.open {
		v.session = v.get(formCookie)
	}
	return v, nil
}

// stranger is a visit of somebody who need not be known.
func (c *Console) stranger(w http.ResponseWriter, r *http.Request) *visit {
	return &visit{
		Request: r,
		cookies: cookies{w: w, r: r, local: c.Local},
		via:     &inside{to: c.API},
		now:     c.Now(),
	}
}

// client is a client of the API in this process, with a token; "" = none.
func (c *Console) client(via *inside, token string) *v1.Client {
	return &v1.Client{
		URL:       "http://console.invalid",
		UserAgent: "archivist-console",
		HTTP:      &http.Client{Transport: via},
		Bearer:    func(context.Context) (string, error) { return token, nil },
	}
}

// may reports whether the visitor has a role, or with "" any. The API decides; this only hides what it would refuse.
func (v *visit) may(r access.Role) bool { return r == "" || v.is.Is(r) }

// reads reports whether the visitor has anything to read here: what is theirs, or everything.
func (v *visit) reads() bool { return v.may(access.Viewer) || len(v.is.Of(access.Depositor)) > 0 }

// submits reports whether the visitor may submit something.
func (v *visit) submits() bool { return v.may(access.Operator) || len(v.is.Of(access.Depositor)) > 0 }

// collection is the collection that a list is of. A depositor of several has to choose one: the first is chosen until
// then.
func (v *visit) collection() string {
	given := v.URL.Query().Get("collection")
	if own := v.is.Of(access.Depositor); given == "" && len(own) > 0 && !v.may(access.Viewer) {
		return own[0]
	}
	return given
}

// field is a parameter of the address, without blanks around it.
func (v *visit) field(name string) string { return strings.TrimSpace(v.URL.Query().Get(name)) }

// partial reports whether only the part of the page is asked for that changes.
func (v *visit) partial() bool { return v.Header.Get("HX-Request") == "true" }

// form is the token of a new form. On an open stack, the first one makes the cookie that forms are bound to.
func (v *visit) form() string {
	if v.session == "" {
		v.session = newForm("a new browser")
		v.set(formCookie, v.session, 0)
	}
	return newForm(v.session)
}

// call makes a request of the API for which there is no method of the client. A repeated request with the same key, if
// it has one, does nothing more.
func call[T any](v *visit, method, path string, in any, key string) (out T, err error) {
	err = v.api.Call(v.Context(), method, path, in, &out, "Idempotency-Key", key)
	return out, err
}

// eventsOf reads a page of what happened to a batch or a job. older is the address of the next page, "" after the last.
func (v *visit) eventsOf(id string) (events []v1.Event, older string, err error) {
	page, err := v.api.EventPageOf(v.Context(), id, v.field("events"))
	if page.Cursor != "" {
		older = "?" + query("events", page.Cursor)
	}
	return page.Items, older, err
}

// follow asks the API for a path that redirects, e.g. to a signed address of the storage, and returns where to.
func (v *visit) follow(path string) (string, error) {
	err := v.api.Call(v.Context(), http.MethodGet, path, nil, nil)
	if err == nil && v.via.location == "" {
		err = fault.New(fault.Unavailable, "the API does not say where %s is", path)
	}
	return v.via.location, err
}

// lead leads the browser to where the API redirects to from a path, e.g. to a file in the storage.
func (v *visit) lead(path string) error {
	to, err := v.follow(path)
	if err != nil {
		return err
	}
	v.w.Header().Set("Location", to)
	v.w.WriteHeader(http.StatusFound)
	return nil
}

// allow lets the page load something from the origin of an address, beside what is from here: directive is one of the
// policy, e.g. img-src.
func (v *visit) allow(directive, address string) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || strings.ContainsAny(u.Host, " ;,") {
		return
	}
	h, before := v.w.Header(), directive+" 'self'"
	h.Set("Content-Security-Policy", strings.Replace(h.Get("Content-Security-Policy"), before,
		before+" "+u.Scheme+"://"+u.Host, 1))
}
