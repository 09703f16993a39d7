package notify

import (
	"net/mail"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestCheckAddress(t *testing.T) {
	for _, good := range []string{"me@example.org", "first.last+tag@sub.example.org", "o'brien@example.org",
		"me@bücher.example", "me@例え.jp", "x@xn--bcher-kva.example",
		strings.Repeat("a", 64) + "@example.org"} {
		if err := CheckAddress(good); err != nil {
			t.Error(err)
		}
	}
	for _, bad := range []string{"", "me", "me@", "@example.org", "me at example.org", "Me <me@example.org>",
		"<me@example.org>", "me@example.org, you@example.org",
		"me@example.org ", " me@example.org", "me@you@example.org", ".me@example.org", "me.@example.org",
		"m..e@example.org", "mé@example.org", "me@localhost",
		"me@exa mple.org", "me@.example.org", "me@example.org.", "me@example.", "me@example..org", "me@.example.org",
		"me@[192.0.2.1]", "me@exa_mple.org", "me@example.org\r\nBcc: you@example.org",
		"\"me\"@example.org", "me(x)@example.org", "m\x00e@example.org", strings.Repeat("a", 65) + "@example.org",
		"me@" + strings.Repeat("a", 64) + ".org",
		"me@" + strings.Repeat("abc.", 63) + "org", "me@" + strings.Repeat("ü", 60) + "." + strings.Repeat("ü",
			60) + ".org"} {
		if CheckAddress(bad) == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
	if to, err := ascii("me@Bücher.example"); err != nil || to != "me@xn--bcher-kva.example" {
		t.Errorf("%s, %v", to, err)
	}
}

// TestAddressesAreParsed: every accepted address is read as the same address by another
// parser.
func TestAddressesAreParsed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		local := rapid.StringOfN(rapid.RuneFrom([]rune("aZ09.+-_'@ <>\"é\n")), 1, 70, -1).Draw(t, "local")
		domain := rapid.StringOfN(rapid.RuneFrom([]rune("aZ09.-_ü例\r[")), 1, 70, -1).Draw(t, "domain")
		to, err := ascii(local + "@" + domain)
		if err != nil {
			return
		}
		parsed, err := mail.ParseAddress(to)
		if err != nil || parsed.Address != to || parsed.Name != "" || len(to) > MaxAddress {
			t.Fatalf("%q became %q, which is read as %v, %v", local+"@"+domain, to, parsed, err)
		}
	})
}
