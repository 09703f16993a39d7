package console

import (
	"cmp"
	"net/http"
	"net/url"
	"path"
	"strings"
)

// query is the query of an address, of names and values. Empty values are left out.
func query(pairs ...string) string {
	q := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			q.Add(pairs[i], pairs[i+1])
		}
	}
	return q.Encode()
}

// start is the first page, relative to /console/: without a slash at its end, which not every gateway passes on.
const start = "../console"

// redirect leads the browser to an address below /console/, with GET; "" is the first page. What
// its parameter did says was done is not sent in it: see leave.
func redirect(v *visit, to string) {
	to = v.leave(to)
	// Not http.Redirect: it would make the address absolute, without the path of the gateway.
	v.w.Header().Set("Location", baseOf(v.Request)+cmp.Or(to, start))
	v.w.WriteHeader(http.StatusSeeOther)
}

// telling is an address below /console/ with what was done, for redirect.
func telling(to, done string) string {
	join := "?"
	if strings.Contains(to, "?") {
		join = "&"
	}
	return to + join + query("did", done)
}

// leave takes what was done out of an address, and leaves it to the page there in a cookie: a link
// that anybody can write must not claim that something was done.
func (v *visit) leave(to string) string {
	u, err := url.Parse(to)
	if err != nil || !u.Query().Has("did") {
		return to
	}
	q := u.Query()
	done := q.Get("did")
	q.Del("did")
	u.RawQuery = q.Encode()
	v.set(doneCookie, done+":"+sumOf(address(u.Path, q)), longestDone)
	return u.String()
}

// done is what was just done, in a sentence, if this is the page to which that led. It says it
// once: the next time that the page is opened, it may not be true any more.
func (v *visit) done() string {
	what, of, _ := strings.Cut(v.get(doneCookie), ":")
	if v.Method != http.MethodGet || v.partial() || of != sumOf(v.here()) {
		return ""
	}
	v.clear(doneCookie)
	return cmp.Or(did[what], doneOf(what))
}

// here is the address of the page below /console/, with its query.
func (v *visit) here() string { return address(below(v.URL.Path), v.URL.Query()) }

// address is a path below /console/ with a query.
func address(path string, q url.Values) string {
	if len(q) == 0 {
		return path
	}
	return path + "?" + q.Encode()
}

// within is an address below /console/ that somebody gave, or "" if it is none: an absolute one, one of another host,
// or one that leads out of the console. What it says was done is left out: see leave.
func within(to string) string {
	u, err := url.Parse(to)
	if err != nil || u.Scheme != "" || u.Host != "" || u.Opaque != "" || u.User != nil ||
		strings.HasPrefix(to, "/") || strings.ContainsAny(to, "\\\r\n\t") || strings.Contains(u.Path, "\\") ||
		path.Clean("/"+u.Path) != "/"+strings.TrimSuffix(u.Path, "/") || len(to) > 2000 {
		return ""
	}
	q := u.Query()
	if !q.Has("did") {
		return to
	}
	q.Del("did")
	u.RawQuery = q.Encode()
	return u.String()
}
