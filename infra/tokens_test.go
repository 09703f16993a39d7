package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// demandsToken reports whether a method asks the authorizer of tokens first.
func demandsToken(all map[string]resource, m resource) bool {
	for id, a := range of(all, "AWS::ApiGateway::Authorizer") {
		if refers(m.Properties["AuthorizerId"], id) {
			return m.Properties["AuthorizationType"] == "CUSTOM" && a.Properties["Type"] == "TOKEN" &&
				a.Properties["IdentitySource"] == "method.request.header.Authorization" &&
				number(a.Properties["AuthorizerResultTtlInSeconds"]) <= 300
		}
	}
	return false
}

// TestKeysHaveEnded: there are no keys of the API any more, and who still asks for some is told what there is instead.
func TestKeysHaveEnded(t *testing.T) {
	all := synth(t, heard())
	for _, kind := range []string{"ApiKey", "UsagePlan", "UsagePlanKey"} {
		if n := len(of(all, "AWS::ApiGateway::"+kind)); n > 0 {
			t.Errorf("%d resources %s", n, kind)
		}
	}
	context := maps.Clone(enough)
	context["apiKeys"] = "ann=administrator"
	if _, err := given(context); err == nil || !strings.Contains(err.Error(), "archivist token create") {
		t.Error(err)
	}
}

// TestAuthorizer: it reads rows of tokens, and nothing else; only the gateway of the API may call it. Locally there is
// none without an issuer, and then calls need no token.
func TestAuthorizer(t *testing.T) {
	all := synth(t, production)
	own := 0
	for _, g := range grants(t, all) {
		if !strings.HasPrefix(g.policy, "authorizerService") {
			continue
		}
		own++
		if !slices.Equal(g.actions, []string{"dynamodb:GetItem"}) ||
			g.condition != `{"ForAllValues:StringLike":{"dynamodb:LeadingKeys":["TOKEN#*"]}}` {
			t.Errorf("%+v", g)
		}
	}
	calls := 0
	for _, p := range of(all, "AWS::Lambda::Permission") {
		for id := range of(all, "AWS::Lambda::Function") {
			if !strings.HasPrefix(id, "authorizer") || !refers(p.Properties["FunctionName"], id) {
				continue
			}
			calls++
			if p.Properties["Principal"] != "apigateway.amazonaws.com" ||
				!strings.Contains(text(p.Properties["SourceArn"]), "/authorizers/") {
				t.Errorf("%v", p.Properties)
			}
		}
	}
	if own != 1 || calls != 1 {
		t.Errorf("%d statements, %d permissions", own, calls)
	}

	s := heard()
	s.Local = true
	for _, is := range []Issuer{{}, {URL: "http://127.0.0.1:4581", Audience: "archivist"}} {
		s.Issuer = is
		all, demanding := synth(t, s), 0
		for _, m := range of(all, "AWS::ApiGateway::Method") {
			if demandsToken(all, m) {
				demanding++
			}
		}
		if (demanding > 0) != (is.URL != "") || len(of(all, "AWS::ApiGateway::Authorizer")) != min(1, demanding) ||
			len(of(all, "AWS::Cognito::UserPool")) > 0 {
			t.Errorf("with the issuer %q %d methods demand a token", is.URL, demanding)
		}
	}
}

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
			if !demandsToken(with, m) {
				open++
			}
		}
		if open != len(openPaths)+2+ofConsoles || !strings.Contains(text(of(with, "AWS::ApiGateway::Stage")),
			`"ResourcePath":"/~1v1~1sign-in","ThrottlingBurstLimit":50`) {
			t.Errorf("%d methods need no token; where one signs in is not open, or has no bound", open)
		}
		if has != 2 { // the API and its authorizer
			t.Errorf("%d functions know the issuer", has)
		}
	}
}
