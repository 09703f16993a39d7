package access

import "testing"

// TestCredentials: the token of either scheme is found, in any case and with any blanks; all else is none.
func TestCredentials(t *testing.T) {
	for header, want := range map[string]struct {
		token, name string
		ok          bool
	}{
		"Bearer abc":             {"abc", "", true},
		" bearer   a b ":         {"a b", "", true},
		"Bearer":                 {"", "", true},
		"Basic aG9vazphcmNfMTpf": {"arc_1:_", "hook", true},
		"BASIC Og==":             {"", "", true},
		"Basic aG9vaw==":         {},
		"Basic ?":                {},
		"Basic":                  {},
		"Digest abc":             {},
		"Bearerabc":              {},
		"":                       {},
	} {
		token, name, ok := Credentials(header)
		if token != want.token || name != want.name || ok != want.ok {
			t.Errorf("%q: %q, %q, %v", header, token, name, ok)
		}
	}
}
