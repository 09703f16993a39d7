package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"archivist/pkg/kernel/access"
	"archivist/pkg/kernel/signin"
)

// one is the only resource of a type.
func one(t *testing.T, all map[string]resource, kind string) (id string, r resource) {
	t.Helper()
	found := of(all, kind)
	if len(found) != 1 {
		t.Fatalf("%d resources %s", len(found), kind)
	}
	for id, r = range found {
	}
	return id, r
}

// TestUsers: a deployment without an issuer of its own has a user pool, which is protected and kept, and whose users
// only administrators of the account make. The command line has a client without a secret, which comes back to fixed
// ports, and the API takes the tokens of that client and of machines.
func TestUsers(t *testing.T) {
	s := heard()
	s.MachineRoles = []access.Grant{{Role: access.Depositor, Of: "maps"}}
	all := synth(t, s)
	pool, users := one(t, all, "AWS::Cognito::UserPool")
	says := text(users.Properties)
	for _, want := range []string{`"AdminCreateUserConfig":{"AllowAdminCreateUserOnly":true}`,
		`"DeletionProtection":"ACTIVE"`, `"EnabledMfas":["SOFTWARE_TOKEN_MFA"]`, `"MfaConfiguration":"OPTIONAL"`,
		`"MinimumLength":14`, `"AccountRecoverySetting":{"RecoveryMechanisms":[{"Name":"verified_email","Priority":1}]}`} {
		if !strings.Contains(says, want) {
			t.Errorf("the pool has not %s: %s", want, says)
		}
	}
	if users.DeletionPolicy != "Retain" || strings.Contains(says, "SmsConfiguration") {
		t.Errorf("%s: %s", users.DeletionPolicy, says)
	}

	client, cli := clientOf(t, all, false)
	p := cli.Properties
	if p["GenerateSecret"] != false || text(p["AllowedOAuthFlows"]) != `["code"]` ||
		text(p["AllowedOAuthScopes"]) != `["openid","profile"]` ||
		text(p["CallbackURLs"]) != text(signin.Redirects()) ||
		p["EnableTokenRevocation"] != true || p["PreventUserExistenceErrors"] != "ENABLED" ||
		strings.Contains(text(p["ExplicitAuthFlows"]), "PASSWORD") ||
		strings.Contains(text(p["ExplicitAuthFlows"]), "SRP") {
		t.Errorf("%s", text(p))
	}

	var groups, scopes []string
	for _, g := range of(all, "AWS::Cognito::UserPoolGroup") {
		groups = append(groups, fmt.Sprint(g.Properties["GroupName"]))
	}
	slices.Sort(groups)
	_, server := one(t, all, "AWS::Cognito::UserPoolResourceServer")
	for _, scope := range list(server.Properties["Scopes"]) {
		scopes = append(scopes, fmt.Sprint(scope["ScopeName"]))
	}
	if !slices.Equal(groups, []string{"administrator", "operator", "viewer"}) ||
		!slices.Equal(scopes, []string{"administrator", "operator", "viewer", "depositor:maps"}) ||
		server.Properties["Identifier"] != access.ResourceServer {
		t.Errorf("the groups %v, the scopes %v of %v", groups, scopes, server.Properties["Identifier"])
	}
	_, domain := one(t, all, "AWS::Cognito::UserPoolDomain")
	if !strings.Contains(text(domain.Properties["Domain"]), `"archivist-"`) ||
		!strings.Contains(text(domain.Properties["Domain"]), "AWS::StackId") {
		t.Errorf("%v", domain.Properties)
	}

	for _, name := range []string{"api", "authorizer"} {
		env := text(find(t, all, "AWS::Lambda::Function", name).Properties["Environment"])
		if !strings.Contains(env, pool) || !strings.Contains(env, client) || !strings.Contains(env, `",archivist`) ||
			!strings.Contains(env, `"ARCHIVIST_TOKEN_CLAIM":"cognito:groups,scope"`) {
			t.Errorf("%s does not know the pool: %s", name, env)
		}
	}
	if env := text(find(t, all, "AWS::Lambda::Function", "api").Properties["Environment"]); !strings.Contains(env,
		`"ARCHIVIST_TOKEN_SCOPES":"openid profile"`) {
		t.Errorf("people do not sign in: %s", env)
	}

	s.MachineRoles, s.Issuer = nil, Issuer{URL: "https://login.example.org", Audience: "archivist"}
	if n := len(of(synth(t, s), "AWS::Cognito::UserPool")); n != 0 {
		t.Error("there is a user pool beside another issuer")
	}
}

// clientOf is the client of the console or of the command line.
func clientOf(t *testing.T, all map[string]resource, console bool) (id string, r resource) {
	t.Helper()
	clients := of(all, "AWS::Cognito::UserPoolClient")
	for id, r = range clients {
		if (r.Properties["LogoutURLs"] != nil) == console && len(clients) == 2 {
			return id, r
		}
	}
	t.Fatalf("the clients are %s", text(clients))
	return "", resource{}
}

// TestConsoleClient: without further settings people sign in to the console of a deployment. Its client knows the
// address of the API, which is made with the functions, and the function of the API knows the client. The authorizer
// does not: the console's tokens are for the console.
func TestConsoleClient(t *testing.T) {
	all := synth(t, heard())
	client, console := clientOf(t, all, true)
	p := console.Properties
	rest, _ := one(t, all, "AWS::ApiGateway::RestApi")
	address := func(path string) string {
		return `[{"Fn::Join":["",["https://",{"Ref":"` + rest + `"},".execute-api.",{"Ref":"AWS::Region"},".",` +
			`{"Ref":"AWS::URLSuffix"},"/prod/console/` + path + `"]]}]`
	}
	if text(p["CallbackURLs"]) != address("callback") || text(p["LogoutURLs"]) != address("signed-out") ||
		text(p["AllowedOAuthFlows"]) != `["code"]` || p["GenerateSecret"] != false ||
		text(p["AccessTokenValidity"]) != "240" || len(console.DependsOn) > 0 {
		t.Errorf("%s", text(console))
	}
	for name, knows := range map[string]bool{"api": true, "authorizer": false} {
		env := text(find(t, all, "AWS::Lambda::Function", name).Properties["Environment"])
		if strings.Contains(env, `"ARCHIVIST_CONSOLE_CLIENT":{"Ref":"`+client+`"}`) != knows ||
			strings.Count(env, client) > 0 != knows {
			t.Errorf("%s: %s", name, env)
		}
	}
	env := text(find(t, all, "AWS::Lambda::Function", "api").Properties["Environment"])
	if !strings.Contains(env, `",archivist,",{"Ref":"`+client+`"}`) {
		t.Errorf("the API does not take its tokens: %s", env)
	}
}

// TestUserSettings: what Cognito would refuse in the middle of a deployment is refused before.
func TestUserSettings(t *testing.T) {
	for _, c := range []struct{ domain, roles, issuer, says string }{
		{"archive-sign-in", "depositor:maps, notifier:songs", "", ""},
		{"-a", "", "", "signInDomain: found"},
		{"my-aws-archive", "", "", "signInDomain: found"},
		{"", "depositor", "", "machineRoles: found"},
		{"", "viewer", "", "machineRoles: found viewer, which is there already"},
		{"", "depositor:a,depositor:a", "", "machineRoles: found depositor:a, which is there already"},
		{"", "depositor:a,", "", "machineRoles: found"},
		{"archive", "", "https://login.example.org", "on AWS without tokenIssuer"},
	} {
		context := maps.Clone(enough)
		context["signInDomain"], context["machineRoles"] = c.domain, c.roles
		if c.issuer != "" {
			context["tokenIssuer"], context["tokenAudience"] = c.issuer, "archivist"
		}
		s, err := given(context)
		if (err == nil) != (c.says == "") || !strings.Contains(fmt.Sprint(err), c.says) && c.says != "" {
			t.Errorf("%+v: %v", c, err)
		}
		if err == nil && len(s.MachineRoles) != 2 {
			t.Errorf("%+v", s.MachineRoles)
		}
	}
	var many strings.Builder
	for n := range mostMachineRoles + 1 {
		fmt.Fprintf(&many, "depositor:c%d,", n)
	}
	context := maps.Clone(enough)
	context["machineRoles"] = strings.TrimSuffix(many.String(), ",")
	if _, err := given(context); err == nil || !strings.Contains(err.Error(), "can have 90") {
		t.Error(err)
	}
}
