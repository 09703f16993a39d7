package collection

import (
	"regexp"
	"slices"
	"strings"

	"archivist/pkg/kernel/fault"
)

// Sources says where the content of a collection may come from. Patterns of hosts are those of fetch.Matches.
type Sources struct {
	Allow []string `dynamo:"allowed_hosts,omitempty" json:"allow,omitempty"` // none: all that Deny does not name
	Deny  []string `dynamo:"denied_hosts,omitempty" json:"deny,omitempty"`

	// Credentials are the secrets of hosts. A request to a host has its secret, and no other one.
	Credentials []Credential `dynamo:"credentials,omitempty" json:"credentials,omitempty"`

	// Buckets are those whose objects s3 URLs may name.
	Buckets []string `dynamo:"buckets,omitempty" json:"buckets,omitempty"`
}

// Credential is the secret of one host.
type Credential struct {
	Host   string `dynamo:"host" json:"host"`          // without a wildcard
	Secret string `dynamo:"secret_name" json:"secret"` // its name in Secrets Manager; see fetch.Authorization
}

// MaxSources is how many entries each list of a profile's sources may have.
const MaxSources = 50

// host is a host name (RFC 1123, section 2.1), an IPv4 address, or an IPv6 address in brackets, perhaps with a port.
var host = regexp.MustCompile(`^(?i)(` + label + `(\.` + label + `)*|\[[0-9a-f:.]+\])(:[0-9]{1,5})?$`)

const label = `[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?`

// check returns an Invalid that names the first entry that no request can match, or that the deployment cannot serve.
// readable are the buckets that it may read.
func (s *Sources) check(readable []string) error {
	if s == nil {
		return nil
	}

	for name, n := range map[string]int{"allow": len(s.Allow), "deny": len(s.Deny), "credentials": len(s.Credentials),
		"buckets": len(s.Buckets)} {
		if n > MaxSources {
			return fault.New(fault.Invalid,
				"sources.%s: %d entries; at most %d are accepted", name, n, MaxSources)
		}
	}

	if err := checkHosts("sources.allow", s.Allow, true); err != nil {
		return err
	}
	if err := checkHosts("sources.deny", s.Deny, true); err != nil {
		return err
	}
	if err := s.checkCredentials(); err != nil {
		return err
	}

	for _, name := range s.Buckets {
		if !slices.Contains(readable, name) {
			return fault.New(fault.Invalid,
				"sources.buckets: %q: this deployment may not read this bucket; add it to "+
					"the setting sourceBuckets", name)
		}
	}
	return nil
}

func checkHosts(field string, all []string, wildcard bool) error {
	for _, pattern := range all {
		name, below := strings.CutPrefix(pattern, "*.")
		if below && !wildcard || len(pattern) > 253 || !host.MatchString(name) {
			expected := "a host, with or without a port"
			if wildcard {
				expected += ", or *. and a domain for all hosts below it"
			}
			return fault.New(fault.Invalid, "%s: %q: expected %s", field, pattern, expected)
		}
	}
	return nil
}

// checkCredentials refuses a second secret of a host, of which nobody could say which one is sent.
func (s *Sources) checkCredentials() error {
	hosts := map[string]bool{}
	for _, c := range s.Credentials {
		if err := checkHosts("sources.credentials", []string{c.Host}, false); err != nil {
			return err
		}

		if name, is := strings.CutPrefix(c.Secret, SourceSecretPrefix); !is || name == "" {
			return fault.New(fault.Invalid,
				"sources.credentials: %q: expected the name of a secret in Secrets "+
					"Manager that begins with %q", c.Secret, SourceSecretPrefix)
		}

		if h := strings.ToLower(c.Host); hosts[h] {
			return fault.New(fault.Invalid,
				"sources.credentials: %q has two secrets; keep one", c.Host)
		} else {
			hosts[h] = true
		}
	}
	return nil
}
