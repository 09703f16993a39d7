package fetch

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"archivist/pkg/kernel/fault"
)

// unreadable replaces a URL that cannot be parsed: any part of it may be secret.
const unreadable = "(a URL that cannot be read)"

// Redact removes from a URL what must not be logged or stored: credentials, the query and
// the fragment, values of path parameters (;token=…), and parts of the path that are
// recognizable as secrets (token=…, a JSON Web Token). A path that is itself a secret, as
// in a sharing link, looks like any other path and remains.
func Redact(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Opaque != "" {
		return unreadable
	}

	u.User, u.Fragment, u.RawFragment = nil, "", ""
	if u.RawQuery != "" {
		u.RawQuery = "redacted"
	}

	path := u.EscapedPath()
	clean := webToken.ReplaceAllString(parameter.ReplaceAllString(path, "${1}redacted"), "redacted")
	if clean == path {
		return u.String()
	}

	if u.Path, err = url.PathUnescape(clean); err != nil {
		return unreadable
	}

	u.RawPath = clean
	return u.String()
}

var (
	parameter = parameters("")
	// webToken is a JSON Web Token (RFC 7519): its header is a JSON object in base64.
	webToken = regexp.MustCompile(`eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*\.?[A-Za-z0-9_-]*`)
	// inText are the parts of URLs in a text that may be secret.
	inText = []struct {
		part *regexp.Regexp
		by   string
	}{
		{regexp.MustCompile(`//[^/\s"']*@`), "//"},
		{regexp.MustCompile(`\?[^\s"']+`), "?redacted"},
		{parameters(`\s"'?`), "${1}redacted"},
		{webToken, "redacted"},
	}
)

// parameters matches a name and its value in a path: the name of a parameter (RFC 3986,
// section 3.3), or a name that means a secret. A value has no character of not.
func parameters(not string) *regexp.Regexp {
	return regexp.MustCompile(`(?i)((?:;|%3B)[^/;=` + not + `]*(?:=|%3D)|` +
		`/(?:[a-z_-]*(?:token|secret|password|signature|apikey|api_key|api-key)|sig|pwd|auth|session|sessionid)` +
		`(?:=|%3D))[^/;` + not + `]+`)
}

// RedactText removes possible secrets from the URLs in a text.
func RedactText(text string) string {
	for _, secret := range inText {
		text = secret.part.ReplaceAllString(text, secret.by)
	}
	return text
}

// message is the text of an error of a request to raw: without the URL that net/http
// puts into it, and without the Location of a redirect that could not be parsed.
func message(raw string, err error) string {
	var status *StatusError
	if errors.As(err, &status) {
		return status.Error()
	}

	last := raw // the last requested URL: after redirects it differs
	var u *url.Error
	for errors.As(err, &u) {
		last, err = u.URL, u.Err
	}

	var refused *RefusedError
	if errors.As(err, &refused) {
		return Redact(raw) + ": " + refusal(Host(raw), Host(last), refused)
	}
	return Redact(raw) + ": " + strings.TrimSpace(RedactText(err.Error()))
}

// refusal describes what was refused at a host, perhaps after a redirect.
func refusal(asked, last string, e *RefusedError) string {
	address := e.Address.String()
	named := !strings.Contains(last, address)
	switch {
	case e.Scheme != "":
		return "redirects to " + e.Error()
	case e.Why != "" && asked != last:
		return "redirects to " + last + ": " + e.Error()
	case e.Why != "":
		return e.Error()
	case asked != last && named:
		return "redirects to " + last + ", whose address is " + e.Error()
	case asked != last:
		return "redirects to " + last + strings.TrimPrefix(e.Error(), address)
	case named:
		return "the address of the host is " + e.Error()
	}
	return "the host is " + e.Error()
}

// Site is the scheme and the host of a URL.
func Site(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return unreadable
	}
	return u.Scheme + "://" + u.Host
}

// Host is the host of a URL.
func Host(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	return u.Host
}

// refusedBy is the error of an access with what net/http put around it taken off: that has the URL with its secrets.
func refusedBy(err error) error {
	var u *url.Error
	if errors.As(err, &u) && fault.Of(u.Err) != "" {
		return fmt.Errorf("%s: %w", Redact(u.URL), u.Err)
	}
	return err
}
