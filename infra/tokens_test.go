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
		s.Issuer.Client, s.Issuer.Scopes = "cli", "openid email"
		with := synth(t, s)
		if env := text(of(with, "AWS::Lambda::Function")); !strings.Contains(env, `"ARCHIVIST_TOKEN_CLIENT":"cli"`) ||
			!strings.Contains(env, `"ARCHIVIST_TOKEN_SCOPES":"openid email"`) {
			t.Error("the API does not know the client of the command line")
		}
		open := 0
		for _, m := range of(with, "AWS::ApiGateway::Method") {
			if m.Properties["ApiKeyRequired"] != true {
				open++
			}
		}
		if open != len(openPaths)+2 || !strings.Contains(text(of(with, "AWS::ApiGateway::Stage")),
			`"ResourcePath":"/~1v1~1sign-in","ThrottlingBurstLimit":50`) {
			t.Errorf("%d methods need no key; where one signs in is not open, or has no bound", open)
		}
		if has != 1 {
			t.Errorf("%d functions know the issuer", has)
		}
	}
}
