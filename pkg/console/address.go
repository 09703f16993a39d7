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

// redirect leads the browser to an address below /console/, with GET; "" is the first page.
func redirect(v *visit, to string) {
	// Not http.Redirect: it would make the address absolute, without the path of the gateway.
	v.w.Header().Set("Location", baseOf(v.Request)+cmp.Or(to, start))
	v.w.WriteHeader(http.StatusSeeOther)
}

// within is an address below /console/ that somebody gave, or "" if it is none: an absolute one, one of another host,
// or one that leads out of the console.
func within(to string) string {
	u, err := url.Parse(to)
	if err != nil || u.Scheme != "" || u.Host != "" || u.Opaque != "" || u.User != nil ||
		strings.HasPrefix(to, "/") || strings.ContainsAny(to, "\\\r\n\t") || strings.Contains(u.Path, "\\") ||
		path.Clean("/"+u.Path) != "/"+strings.TrimSuffix(u.Path, "/") || len(to) > 2000 {
		return ""
	}
	return to
}
