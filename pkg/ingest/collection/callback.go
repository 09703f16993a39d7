package collection

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"archivist/pkg/ingest"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/fetch"
)

// checkCallback returns an Invalid unless callbacks can be sent: to https; that of the profile signed with a secret.
func (s Store) checkCallback(c Callback) error {
	if !slices.Contains([]Mode{"", Required, BestEffort}, c.Mode) {
		return fault.New(fault.Invalid,
			"callback.mode: %q: expected required or best-effort", c.Mode)
	}

	if n := len(c.Hosts); n > MaxCallbackHosts {
		return fault.New(fault.Invalid,
			"callback.hosts: %d entries; at most %d are accepted", n, MaxCallbackHosts)
	}
	if err := checkHosts("callback.hosts", c.Hosts, false); err != nil {
		return err
	}

	switch {
	case !c.Given() && c.Secret+string(c.Mode) != "":
		return fault.New(fault.Invalid,
			"callback.url: there is none; give the URL to call, or in callback.hosts the "+
				"hosts that submissions may name, or both")
	case c.URL != "" && s.parse(c.URL) == nil:
		return fault.New(fault.Invalid, "callback.url: %q: expected an https URL", c.URL)
	case c.URL == "" && c.Secret == "":
		return nil // nothing is signed
	}
	return checkSecret(c.Secret)
}

// checkSecret returns an Invalid unless callbacks may be signed with the secret of this name.
func checkSecret(name string) error {
	if key, ours := strings.CutPrefix(name, SecretPrefix); !ours || key == "" {
		return fault.New(fault.Invalid,
			"callback.secret: %q: expected the name of a secret in Secrets Manager that "+
				"begins with %q; the secret is the key that signs the request", name, SecretPrefix)
	}

	for prefix, of := range map[string]string{TaskSecretPrefix: "tasks of archives", SourceSecretPrefix: "sources",
		EZIDSecret: "EZID"} {
		if strings.HasPrefix(name, prefix) {
			return fault.New(fault.Invalid,
				"callback.secret: %q: the secrets whose names begin with %s are those of "+
					"%s; use another name below %s", name, prefix, of, SecretPrefix)
		}
	}
	return nil
}

// parse parses the URL of a callback; nil unless it is an https URL, or one that Plain allows.
func (s Store) parse(raw string) *url.URL {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || u.Scheme != "https" && (u.Scheme != "http" || !s.Plain) {
		return nil
	}
	return u
}

// CheckCallback returns an Invalid if a submission to a collection with this profile cannot have this callback. It
// does not repeat what may be secret in the URL.
func (s Store) CheckCallback(collection string, p Profile, raw string) error {
	u := s.parse(raw)
	switch {
	case len(raw) > ingest.MaxCallback:
		return fault.New(fault.Invalid,
			"callback: found %d bytes; expected at most %d", len(raw), ingest.MaxCallback)
	case u == nil || strings.ContainsFunc(raw, ingest.Unstorable):
		return fault.New(fault.Invalid,
			"callback: found %q; expected an https URL", fetch.Redact(raw))
	case u.User != nil:
		return fault.New(fault.Invalid,
			"callback: the URL has a user or a password; leave them out: who calls is "+
				"known by the signature")
	case strings.Contains(raw, "#"):
		return fault.New(fault.Invalid,
			"callback: the URL has a fragment (#), which is never sent; leave it out")
	}

	if port := u.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return fault.New(fault.Invalid,
				"callback: the port %s of the URL is not one of 1 to 65535", port)
		}
	}

	if why := p.Callback.Refuses(collection, raw); why != "" {
		return fault.New(fault.Invalid, "callback: %s", why)
	}
	return nil
}
