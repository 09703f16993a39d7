package notify

import (
	"fmt"
	"strings"

	"golang.org/x/net/idna"
)

// MaxAddress is the longest mail address in bytes (RFC 5321, section 4.5.3.1.3).
const MaxAddress = 254

// maxLocal is the longest part before the "@" in bytes (RFC 5321, section 4.5.3.1.1).
const maxLocal = 64

// atoms are the characters of an address before the "@", in addition to letters, digits
// and dots (RFC 5322, section 3.2.3).
const atoms = "!#$%&'*+-/=?^_`{|}~"

// domains maps and checks names of hosts.
var domains = idna.New(idna.MapForLookup(), idna.BidiRule(), idna.StrictDomainName(true),
	idna.VerifyDNSLength(true))

// CheckAddress returns an error if a mail address is invalid. It must be a bare address
// without a name. Its domain is ASCII or internationalized (IDNA), and the part before the
// "@" is ASCII, since SES delivers to no other.
func CheckAddress(address string) error {
	_, err := ascii(address)
	return err
}

// ascii is an address as mail servers read it: an internationalized domain in
// its ASCII form.
func ascii(address string) (string, error) {
	bad := func(what string) (string, error) {
		if len(address) > MaxAddress {
			address = address[:20] + "…"
		}
		return "", fmt.Errorf("%q: %s; expected a mail address, e.g. name@example.org", address, what)
	}

	if len(address) > MaxAddress {
		return bad(fmt.Sprintf("is longer than %d bytes", MaxAddress))
	}

	local, domain, found := strings.Cut(address, "@")
	if !found || local == "" || domain == "" {
		return bad("has nothing before or after an @")
	}

	if wrong := wrongLocal(local); wrong != "" {
		return bad(wrong)
	}

	host, err := domains.ToASCII(domain)
	if err != nil || !strings.Contains(host, ".") || strings.HasSuffix(host, ".") {
		return bad(fmt.Sprintf("has no valid domain: %q", domain))
	}

	// Punycode is longer than the name that it stands for.
	if len(local)+1+len(host) > MaxAddress {
		return bad(fmt.Sprintf("is longer than %d bytes in its ASCII form", MaxAddress))
	}
	return local + "@" + host, nil
}

// wrongLocal returns what is wrong with the part before the @, or "".
func wrongLocal(local string) string {
	switch {
	case len(local) > maxLocal:
		return fmt.Sprintf("has more than %d bytes before the @", maxLocal)
	// A dot-atom (RFC 5322, section 3.2.3).
	case strings.HasPrefix(local, ".") || strings.HasSuffix(local, ".") ||
		strings.Contains(local, ".."):
		return "has a dot in a wrong place before the @"
	}

	if i := strings.IndexFunc(local, notAtom); i >= 0 {
		return fmt.Sprintf("has %q before the @", []rune(local[i:])[0])
	}
	return ""
}

// notAtom reports whether a character cannot be before the @.
func notAtom(c rune) bool {
	letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
	return !letter && c != '.' && !strings.ContainsRune(atoms, c)
}
