package cors

import (
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"archivist/pkg/kernel/fault"
)

// Most is how many origins there can be. They are in the environment of a function, and in the rules of a bucket.
const Most = 20

// host is what a browser sends as one, own are the hosts of this computer.
var (
	host = regexp.MustCompile(`^([a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9])?\.)*[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
	own  = []string{"localhost", "127.0.0.1"}
)

// Origins reads origins, separated by commas, each as a browser sends it in the header Origin: https://HOST or
// https://HOST:PORT, and for pages of this computer http://localhost:PORT or http://127.0.0.1:PORT. "" has none. An
// Invalid says what is wrong with the first that is.
func Origins(text string) (all []string, err error) {
	if text == "" {
		return nil, nil
	}

	for origin := range strings.SplitSeq(text, ",") {
		origin = strings.TrimSpace(origin)
		if why := check(origin); why != "" {
			return nil, fault.New(fault.Invalid, "found %q; %s", origin, why)
		}
		if slices.Contains(all, origin) {
			return nil, fault.New(fault.Invalid, "%q is there twice", origin)
		}
		all = append(all, origin)
	}
	if len(all) > Most {
		return nil, fault.New(fault.Invalid,
			"found %d origins; at most %d are accepted", len(all), Most)
	}
	return all, nil
}

// check says why no page has an origin, or why it is not accepted; "" if it is.
func check(origin string) string {
	switch {
	case strings.Contains(origin, "*"):
		return "each origin is named as a whole: by a pattern, pages could read the archive that nobody meant"
	case origin == "null":
		return "this is the origin of pages of any sandbox and of local files, so it names nobody"
	}

	u, err := url.Parse(origin)
	switch {
	case err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "":
		return "expected https://HOST or https://HOST:PORT; for tests also http://localhost:PORT or " +
			"http://127.0.0.1:PORT"
	case origin != u.Scheme+"://"+u.Host:
		return "an origin has no slash at its end, no path, no query and no user, and is in lower case; leave out " +
			"what is not https://HOST:PORT"
	}
	return checkHost(u)
}

// standard are the ports that browsers leave out, by their schemes.
var standard = map[string]string{"https": "443", "http": "80"}

// checkHost is what check says of a host with its port.
func checkHost(u *url.URL) string {
	switch {
	case u.Scheme == "http" && (!slices.Contains(own, u.Hostname()) || u.Port() == ""):
		return "without TLS, only pages of this computer are accepted: http://localhost:PORT or http://127.0.0.1:PORT"
	case u.Port() == standard[u.Scheme]:
		return "browsers leave out the port that belongs to the scheme: leave out :" + u.Port()
	case len(u.Hostname()) > 253 || !host.MatchString(u.Hostname()):
		return "the host is a name in lower case, or an IPv4 address, as browsers send it; other letters than " +
			"ASCII as xn--…"
	case !portFits(u):
		return "the port is a number from 1 to 65535, without a zero before it"
	}
	return ""
}

// portFits reports whether a port is as a browser sends it, or is not there.
func portFits(u *url.URL) bool {
	n, err := strconv.Atoi(u.Port())
	return u.Host == u.Hostname() || err == nil && n > 0 && n <= 65535 && strconv.Itoa(n) == u.Port()
}
