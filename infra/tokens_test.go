package main

import (
	"fmt"
	"maps"
	"strings"
	"testing"
)

// TestIssuer: the API gets the settings of the issuer, no other function does, and what cannot be one is refused.
func TestIssuer(t *testing.T) {
	for _, c := range []struct{ url, audience, claim, says string }{
		{"", "", "", ""},
		{"https://login.example.org/pool", "archivist,cli", "groups", ""},
		{"https://login.example.org/pool", "archivist", "", ""},
		{"http://login.example.org", "archivist", "", "tokenIssuer: found"},
		{"https://login.example.org", "", "", "tokenAudience: found"},
		{"https://login.example.org", "a,,b", "", "tokenAudience: found"},
		{"https://login.example.org", "a", "b c", "tokenClaim: found"},
		{"", "a", "", "they need tokenIssuer"},
	} {
		context := maps.Clone(enough)
		context["tokenIssuer"], context["tokenAudience"], context["tokenClaim"] = c.url, c.audience,
			c.claim
		s, err := given(context)
		if (err == nil) != (c.says == "") || !strings.Contains(fmt.Sprint(err), c.says) &&
			c.says != "" {
			t.Errorf("%+v: %v", c, err)
		}
		if err != nil || c.url == "" || c.claim == "" {
			continue
		}
		has := 0
		for _, f := range of(synth(t, s), "AWS::Lambda::Function") {
			env := text(f.Properties["Environment"])
			if strings.Contains(env, `"ARCHIVIST_TOKEN_ISSUER":"https://login.example.org/pool"`) &&
				strings.Contains(env, `"ARCHIVIST_TOKEN_AUDIENCE":"archivist,cli"`) &&
				strings.Contains(env, `"ARCHIVIST_TOKEN_CLAIM":"groups"`) {
				has++
			}
		}
		if has != 1 {
			t.Errorf("%d functions know the issuer", has)
		}
	}
}
