package archive

import (
	"cmp"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"archivist/pkg/formats/ark"
	"archivist/pkg/kernel/definition"
	"archivist/pkg/kernel/fault"
)

// MaxURL bounds a URL in bytes: it is part of a row, and of messages.
const MaxURL = 1000

// MaxBranch bounds the name of a branch in bytes: it is the name of a file in a repository.
const MaxBranch = 200

// secretName is the form of names in AWS Secrets Manager (CreateSecret, Name), without its
// automatic suffix.
var secretName = regexp.MustCompile(`^[A-Za-z0-9/_+=.@-]{1,512}$`)

// bucketName is the form of names of buckets ("Bucket naming rules" of Amazon S3).
var bucketName = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)

// Check refuses what no archive can be read from: its error is a fault.Invalid that begins with the
// name of the field. local allows file:// URLs, and secrets that are sent without encryption: on
// one's own machine only.
//
// Which addresses a host may have is checked with each connection, also behind redirects (see
// fetch.Guard): a name can lead to another address later.
func (l Location) Check(local bool) error {
	switch l.Kind {
	case Object:
		return l.checkObject()
	case Git:
		if err := l.none("ark", l.ARK); err != nil {
			return err
		}
		if err := checkBranch(l.Branch); err != nil {
			return err
		}
	case Subversion:
		if err := l.none("ark", l.ARK); err != nil {
			return err
		}
		if err := l.none("branch", l.Branch); err != nil {
			return err
		}
	default:
		return invalid("kind", "found %q; expected %s, %s or %s", definition.Clip(l.Kind, 60),
			Object, Git, Subversion)
	}

	u, err := l.checkURL(local)
	if err != nil {
		return err
	}
	return l.checkSecret(u, local)
}

// invalid is an Invalid that begins with the name of a field, as the API shows it.
func invalid(field, format string, args ...any) error {
	return fault.New(fault.Invalid, field+": "+format, args...)
}

// none refuses a field that the kind of archive does not have.
func (l Location) none(field, value string) error {
	if value == "" {
		return nil
	}
	return invalid(field, "an archive of the kind %s has none", l.Kind)
}

// checkObject checks that of an object only the ARK is given, in the form in which it is a key.
func (l Location) checkObject() error {
	for _, f := range [][2]string{{"url", l.URL}, {"branch", l.Branch}, {"secret", l.Secret}} {
		if err := l.none(f[0], f[1]); err != nil {
			return err
		}
	}

	parsed, err := ark.Parse(l.ARK)
	if err != nil {
		return invalid("ark", "%w", err)
	}

	if parsed.String() != l.ARK {
		return invalid("ark", "found %q; expected it in the form %s", l.ARK, parsed)
	}
	return nil
}

// schemes are those of URLs, by the kind of archive.
var schemes = map[string][]string{Git: {"https", "http", "s3"}, Subversion: {"https", "http"}}

// checkURL checks the URL of a repository, and returns it. What could be a secret in it
// (credentials, a query) is refused: locations are shown, logged and part of events.
func (l Location) checkURL(local bool) (*url.URL, error) {
	if len(l.URL) > MaxURL {
		return nil, invalid("url", "found %d bytes; expected at most %d", len(l.URL), MaxURL)
	}

	u, err := url.Parse(l.URL)
	if err != nil || strings.ContainsFunc(l.URL, unicode.IsControl) {
		// It may have secrets: not repeated.
		return nil, invalid("url", "it cannot be read as a URL")
	}

	allowed := schemes[l.Kind]
	if local && l.Kind == Git {
		allowed = append(allowed[:len(allowed):len(allowed)], "file")
	}

	if !slices.Contains(allowed, u.Scheme) {
		return nil, invalid("url", "expected a URL that begins with %s://",
			strings.Join(allowed, ":// or "))
	}

	switch {
	case u.User != nil:
		return nil, invalid("url",
			"it has credentials; put them into a secret as user:password, and name it in secret")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return nil, invalid("url",
			"it has a query or a fragment, which the URL of a repository does not have")
	case l.Kind == Git && strings.HasPrefix(u.Scheme, "http") && strings.ContainsAny(u.Path, "%?#"):
		return nil, invalid("url",
			"its path has one of the characters %%, ? and #, with which Git repositories "+
				"cannot be read by HTTP")
	case u.Opaque != "":
		return nil, invalid("url", "expected %s:// before the host", u.Scheme)
	}
	return u, checkPlace(u)
}

// checkPlace checks what is behind the scheme.
func checkPlace(u *url.URL) error {
	switch {
	case u.Scheme == "file" && (u.Host != "" || !strings.HasPrefix(u.Path, "/")):
		return invalid("url", "a file:// URL needs an absolute path, e.g. file:///srv/maps.git")
	case u.Scheme == "s3" && !bucketName.MatchString(u.Host):
		return invalid("url", "found the bucket %q; expected s3://bucket/prefix", u.Host)
	case u.Scheme != "file" && u.Hostname() == "":
		return invalid("url", "it has no host")
	case strings.ContainsFunc(u.Path, unicode.IsControl):
		return invalid("url", "its path has a control character")
	}

	port, err := strconv.Atoi(cmp.Or(u.Port(), "80"))
	if err != nil || port < 1 || port > 65535 {
		return invalid("url", "found the port %s; expected 1 to 65535", u.Port())
	}
	return nil
}

// transactions are the forms of what says which revision it is, by the kind of archive.
var transactions = map[string]struct {
	form     *regexp.Regexp
	expected string
}{
	Git: {regexp.MustCompile(`^[0-9a-f]{40}$`),
		"the whole hash of the commit, in lower case"},
	Subversion: {regexp.MustCompile(`^[^@]+@[^@]*$`),
		"the UUID of the repository, @ and the property svn:date"},
}

// CheckTransaction refuses what says which revision it is, but can be said of no revision of the
// archive: the archive would be stopped because of it. "" is not known.
func (l Location) CheckTransaction(text string) error {
	t, has := transactions[l.Kind]
	if text == "" || !has || t.form.MatchString(text) {
		return nil
	}
	return invalid("transaction", "found %q; expected %s", definition.Clip(text, 60), t.expected)
}

// checkSecret checks the name of a secret, and that what it contains is not sent where it could be
// read on the way, or to what has no use for it.
func (l Location) checkSecret(u *url.URL, local bool) error {
	switch {
	case l.Secret == "":
		return nil
	case !secretName.MatchString(l.Secret):
		return invalid("secret",
			"expected the name of a secret: letters, digits and /_+=.@-, at most 512")
	case u.Scheme == "http" && !local:
		return invalid("secret",
			"the URL begins with http://, so that it could be read on the way; use https://")
	case u.Scheme != "https" && u.Scheme != "http":
		return invalid(
			"secret", "an archive at %s:// is not read with a user and a password", u.Scheme)
	}
	return nil
}

// checkBranch refuses what Git refuses as the name of a branch (git check-ref-format).
func checkBranch(name string) error {
	switch {
	case name == "":
		return invalid("branch", "it is missing; its first parents are the revisions")
	case len(name) > MaxBranch:
		return invalid("branch", "found %d bytes; expected at most %d", len(name), MaxBranch)
	case strings.HasPrefix(name, "refs/"):
		return invalid("branch", "found %q; expected its name without refs/heads/", name)
	case !utf8.ValidString(name) || strings.ContainsFunc(name, refused) ||
		badBranch.MatchString(name):
		return invalid("branch", "found %q; expected the name of a branch", name)
	}
	return nil
}

func refused(c rune) bool { return c <= ' ' || c == 0x7f || strings.ContainsRune(`~^:?*[\`, c) }

// badBranch matches what the name of a branch must not have: a part that is empty, begins with a
// dot or ends in .lock, a dot at the end, a hyphen at the beginning, two dots, and @{.
var badBranch = regexp.MustCompile(`^[-/]|//|/$|(^|/)\.|\.\.|\.$|\.lock(/|$)|@\{|^@$`)
