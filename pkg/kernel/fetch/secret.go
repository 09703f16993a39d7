package fetch

import (
	"encoding/json"
	"strings"

	"archivist/pkg/kernel/fault"
)

// secret is what a secret of a source has.
type secret struct {
	Host     string `json:"host"`
	Username string `json:"username"`
	Password string `json:"password"`
	Token    string `json:"token"`
}

// decodeSecret returns an Invalid for a secret that authorises nothing, or that a header cannot carry.
func decodeSecret(text string) (s secret, err error) {
	const expected = `expected a JSON object with "host", and either "username" and "password" or "token"`
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if d.Decode(&s) != nil || d.More() { // what json says could have a part of the secret
		return s, fault.New(fault.Invalid, "the secret is not one of a source: %s", expected)
	}

	basic, bearer := s.Username != "" || s.Password != "", s.Token != ""
	switch {
	case s.Host == "" || basic == bearer:
		return s, fault.New(fault.Invalid, "the secret is not one of a source: %s", expected)
	case strings.Contains(s.Username, ":"):
		return s, fault.New(fault.Invalid,
			"the username of the secret has a colon, which Basic authentication "+
				"cannot carry (RFC 7617, section 2)")
	case strings.ContainsFunc(s.Token, func(c rune) bool { return c <= ' ' || c > '~' }):
		return s, fault.New(fault.Invalid,
			"the token of the secret has characters other than visible ASCII, which a "+
				"header cannot carry (RFC 6750, section 2.1)")
	}
	return s, nil
}
