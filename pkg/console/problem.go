package console

import (
	"cmp"
	"errors"
	"net/http"
	"strings"

	"archivist/pkg/kernel/fault"
)

// titles and advice are those of the kinds of errors.
var (
	titles = map[fault.Kind]string{
		fault.Invalid:     "That is not possible",
		fault.NotFound:    "There is no such thing",
		fault.Conflict:    "Its state does not allow that",
		fault.Held:        "It has to wait",
		fault.Stale:       "It was changed meanwhile",
		fault.Unavailable: "That does not work now",
		fault.Denied:      "You may not do that",
	}
	advice = map[fault.Kind]string{
		fault.Invalid:     "Go back, and correct what is named.",
		fault.NotFound:    "Check the address, or search for it.",
		fault.Conflict:    "Look at how it is now, and decide again.",
		fault.Held:        "Look at what it waits for.",
		fault.Stale:       "Look at how it is now, and try again.",
		fault.Unavailable: "Try again in a minute. If it stays so, tell an operator.",
		fault.Denied:      "If you need it, ask an administrator of the archive.",
	}
)

// ofPages is the advice on errors of pages that were opened: no form was sent.
var ofPages = map[fault.Kind]string{
	fault.Invalid:  "Check the address, or search for what you look for.",
	fault.Conflict: "If you need it, ask those who run the archive.",
}

// fail answers with the page of an error. What has no kind is a defect: its text is for the log only.
func (c *Console) fail(v *visit, err error) {
	kind := fault.Of(err)
	t := trouble{Status: fault.At(err).Status, What: plain(err.Error()), Do: advice[kind]}
	heading := titles[kind]
	if v.Method != http.MethodPost {
		t.Do = cmp.Or(ofPages[kind], t.Do)
	}
	if kind != fault.NotFound {
		t.Thing = v.thing()
	}
	switch {
	case errors.Is(err, errSession):
		c.ended(v)
		return
	case v.Method != http.MethodPost && ofPath.MatchString(err.Error()): // no thing has such an id
		c.missing(v)
		return
	case sentBefore(err):
		heading, t.What, t.Do = "The form was sent already", plain(err.Error()), "Look at what was done."
		t.Again, t.To = v.fields(), below(v.URL.Path)
		t.Thing = cmp.Or(madeBefore(err), t.Thing)
	case heading == "":
		c.Log.Error("a page failed", "path", v.URL.Path, "error", err)
		heading, t.What = "An error of the archive", "The page could not be made."
		t.Do = "Try again. If it stays so, tell an operator: the log has the cause."
	}
	c.show(v, t.Status, "problem", view{Title: heading, Body: t})
}

// thing is the page of what the form that was sent is about, below /console/; "" if that is not
// known.
func (v *visit) thing() string {
	kind, id, _ := strings.Cut(v.PostForm.Get("target"), ":")
	if home, known := homes[kind]; known {
		return asked{ID: id}.place(home.page)
	}
	d, err := doingOf(v.PostForm)
	if err != nil {
		return ""
	}
	return d.Page
}

// missing answers a path without a page.
func (c *Console) missing(v *visit) {
	c.show(v, http.StatusNotFound, "problem", view{Title: "There is no such page", Body: trouble{
		Status: http.StatusNotFound, What: "Nothing is at this address.", Do: advice[fault.NotFound]}})
}

// ended answers a request without a session, or whose session has ended. A page is come back to after the sign-in. What
// was written into a form is not lost: it is shown, and can be sent again.
func (c *Console) ended(v *visit) {
	if v.Method == http.MethodGet && !v.partial() {
		to := v.URL.EscapedPath()
		if v.URL.RawQuery != "" {
			to += "?" + v.URL.RawQuery
		}
		at := "sign-in?" + query("to", below(to))
		if v.Header.Get("Sec-Fetch-Site") != "same-origin" {
			redirect(v, at)
			return
		}
		// It may come from a form of a page, e.g. a search. The policy keeps a form from leading to another site, also
		// by redirects: the browser would stay where it is, and say nothing.
		v.w.Header().Set("Refresh", "0; url="+baseOf(v.Request)+at)
		c.show(v, http.StatusUnauthorized, "problem", leadingView(below(to)))
		return
	}
	c.show(v, http.StatusUnauthorized, "problem", endedView(v))
}

// foreign answers a form of another site.
func (c *Console) foreign(v *visit) {
	c.show(v, http.StatusForbidden, "problem", view{Title: "The form is of another site",
		Body: trouble{Status: http.StatusForbidden,
			What: "The form was sent by another site; nothing was changed.",
			Do:   "If you want it, open the page here, and send it from there."}})
}

// unproven answers a form that was not made for this session: after another sign-in, or by another site. It acts only
// if the person sends it again, from here.
func (c *Console) unproven(v *visit) {
	c.show(v, http.StatusForbidden, "problem", view{Title: "The form is not of this session", Body: trouble{
		Status: http.StatusForbidden, What: "Nothing was changed: the form was made before you signed in, or by " +
			"another site.", Do: "Check what it says. If you want it, send it again.", Again: v.fields(),
		To: below(v.URL.Path)}})
}
