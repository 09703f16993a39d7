package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsapigateway"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscognito"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"archivist/pkg/app/boot"
	"archivist/pkg/app/boot/authorizer"
	"archivist/pkg/kernel/access"
	"archivist/pkg/kernel/signin"
)

// domainPrefix is what Cognito takes as the prefix of a domain, which has none of its reserved words.
var (
	domainPrefix  = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
	reservedWords = regexp.MustCompile(`aws|amazon|cognito`)
)

// mostMachineRoles leaves room for those that are always there: a resource server has at most 100 scopes.
const mostMachineRoles = 90

// everybodysRoles are those that are limited to nothing. A deployment has a group and a scope for each.
var everybodysRoles = []access.Role{access.Administrator, access.Operator, access.Viewer}

// readUsers reads the settings of the user pool. keys are of earlier releases.
func (s *Settings) readUsers(domain, roles, keys string) (wrong []error) {
	if keys != "" {
		wrong = append(wrong, errors.New(keysHaveEnded))
	}
	s.SignInDomain = domain
	if domain != "" && (!domainPrefix.MatchString(domain) || reservedWords.MatchString(domain)) {
		wrong = append(wrong, fmt.Errorf("signInDomain: found %q; expected 1 to 63 lower-case "+
			"letters, digits and hyphens, without aws, amazon or cognito", domain))
	}
	if roles != "" {
		wrong = append(wrong, s.readMachineRoles(roles)...)
	}
	if domain+roles != "" && (s.Issuer.URL != "" || s.Local) {
		wrong = append(wrong, fmt.Errorf("signInDomain, machineRoles: they are those of the user "+
			"pool, which there is on AWS without tokenIssuer"))
	}
	return wrong
}

// readMachineRoles reads the roles of machines that are limited to something.
func (s *Settings) readMachineRoles(roles string) (wrong []error) {
	for text := range strings.SplitSeq(roles, ",") {
		g, err := access.Parse(strings.TrimSpace(text))
		switch {
		case err != nil:
			wrong = append(wrong, fmt.Errorf("machineRoles: %w", err))
		case slices.Contains(everybodysRoles, g.Role) || slices.Contains(s.MachineRoles, g):
			wrong = append(wrong, fmt.Errorf("machineRoles: found %s, which is there already", g))
		default:
			s.MachineRoles = append(s.MachineRoles, g)
		}
	}
	if len(s.MachineRoles) > mostMachineRoles {
		wrong = append(wrong, fmt.Errorf("machineRoles: found %d; a user pool can have %d",
			len(s.MachineRoles), mostMachineRoles))
	}
	return wrong
}

// newUsers makes the issuer of a deployment that names none: a user pool of Amazon Cognito, with the client of the
// command line. Both are nil where there is another issuer, and on an emulator. Users are made by administrators of
// the account only. They stay when the stack is deleted.
func newUsers(scope constructs.Construct, s Settings) (awscognito.UserPool, *Issuer) {
	if s.Issuer.URL != "" || s.Local {
		return nil, nil
	}

	pool := awscognito.NewUserPool(scope, jsii.String("Users"), &awscognito.UserPoolProps{
		SelfSignUpEnabled: jsii.Bool(false),
		SignInAliases: &awscognito.SignInAliases{
			Username: jsii.Bool(true),
			Email:    jsii.Bool(true),
		},
		StandardAttributes: &awscognito.StandardAttributes{Email: &awscognito.StandardAttribute{
			Required: jsii.Bool(true),
			Mutable:  jsii.Bool(true),
		}},
		PasswordPolicy: &awscognito.PasswordPolicy{
			MinLength:            jsii.Number(14),
			RequireLowercase:     jsii.Bool(true),
			RequireUppercase:     jsii.Bool(true),
			RequireDigits:        jsii.Bool(true),
			RequireSymbols:       jsii.Bool(true),
			TempPasswordValidity: awscdk.Duration_Days(jsii.Number(7)),
		},
		Mfa: awscognito.Mfa_OPTIONAL,
		MfaSecondFactor: &awscognito.MfaSecondFactor{
			Otp: jsii.Bool(true),
			Sms: jsii.Bool(false),
		},
		AccountRecovery:    awscognito.AccountRecovery_EMAIL_ONLY,
		FeaturePlan:        awscognito.FeaturePlan_LITE, // has all that is used, and costs least
		DeletionProtection: jsii.Bool(true),
		RemovalPolicy:      awscdk.RemovalPolicy_RETAIN,
	})

	addRoles(scope, pool, s)
	pool.AddDomain(jsii.String("SignIn"), &awscognito.UserPoolDomainOptions{
		CognitoDomain: &awscognito.CognitoDomainOptions{DomainPrefix: s.domain()}})

	client := newCommandLine(pool)
	awscdk.NewCfnOutput(scope, jsii.String("userPoolId"),
		&awscdk.CfnOutputProps{Value: pool.UserPoolId()})
	// Cognito knows no scope offline_access, and always gives a refresh token.
	return pool, &Issuer{
		URL:      *pool.UserPoolProviderUrl(),
		Audience: *client.UserPoolClientId() + "," + access.ResourceServer,
		Claim:    access.DefaultClaim + ",scope",
		Client:   *client.UserPoolClientId(),
		Scopes:   "openid profile",
	}
}

// domain is the prefix of the domain where people sign in. One that is made is unique in the region: it has a part of
// the id of the stack, which is a UUID.
func (s Settings) domain() *string {
	if s.SignInDomain != "" {
		return jsii.String(s.SignInDomain)
	}
	part := func(n float64, separator string, of *string) *string {
		return awscdk.Fn_Select(jsii.Number(n), awscdk.Fn_Split(jsii.String(separator), of, nil))
	}
	return jsii.String("archivist-" + *part(0, "-", part(2, "/", awscdk.Aws_STACK_ID())))
}

// addRoles makes the groups of people and the scopes of machines that give roles. Groups of depositors, researchers and
// notifiers are made as they are needed; a scope has to be known before a client can have it.
func addRoles(scope constructs.Construct, pool awscognito.UserPool, s Settings) {
	var scopes []awscognito.ResourceServerScope
	add := func(g access.Grant) {
		props := &awscognito.ResourceServerScopeProps{
			ScopeName:        jsii.String(g.String()),
			ScopeDescription: jsii.String("The role " + g.String()),
		}
		scopes = append(scopes, awscognito.NewResourceServerScope(props))
	}
	for n, role := range everybodysRoles {
		props := &awscognito.CfnUserPoolGroupProps{
			UserPoolId: pool.UserPoolId(),
			GroupName:  jsii.String(string(role)),
			Precedence: jsii.Number(n + 1),
		}
		awscognito.NewCfnUserPoolGroup(scope, jsii.String("Group-"+string(role)), props)
		add(access.Grant{Role: role})
	}
	for _, g := range s.MachineRoles {
		add(g)
	}
	pool.AddResourceServer(jsii.String("Api"), &awscognito.UserPoolResourceServerOptions{
		Identifier: jsii.String(access.ResourceServer), Scopes: &scopes})
}

// newCommandLine makes the client as which the command line signs people in. Cognito compares redirect URIs with their
// ports, so these are fixed.
func newCommandLine(pool awscognito.UserPool) awscognito.UserPoolClient {
	o := ofPeople(signin.Redirects()...)
	o.AccessTokenValidity = awscdk.Duration_Minutes(jsii.Number(15))
	o.RefreshTokenValidity = awscdk.Duration_Days(jsii.Number(30))
	return pool.AddClient(jsii.String("CommandLine"), o)
}

// ofPeople are the options of a client as which people sign in. It has no secret, and no way to sign in but the page of
// Cognito, which leads back to one of some URIs.
func ofPeople(back ...string) *awscognito.UserPoolClientOptions {
	return &awscognito.UserPoolClientOptions{
		GenerateSecret: jsii.Bool(false),
		AuthFlows:      &awscognito.AuthFlow{},
		OAuth: &awscognito.OAuthSettings{
			Flows: &awscognito.OAuthFlows{AuthorizationCodeGrant: jsii.Bool(true)},
			Scopes: &[]awscognito.OAuthScope{awscognito.OAuthScope_OPENID(),
				awscognito.OAuthScope_PROFILE()},
			CallbackUrls: jsii.Strings(back...),
		},
		EnableTokenRevocation:      jsii.Bool(true),
		PreventUserExistenceErrors: jsii.Bool(true),
		SupportedIdentityProviders: &[]awscognito.UserPoolClientIdentityProvider{
			awscognito.UserPoolClientIdentityProvider_COGNITO()},
	}
}

// consoleSession is how long somebody is signed in to the console, in hours, and so how long who leaves a group keeps
// its role there: the console has no refresh token, and a pool asks for the password again.
const consoleSession = 4

// newConsole makes the client as which the console signs people in. It is in the stack of the API, whose address it
// needs, and the function of the API knows it. Nothing of that is a circle: the address has the id of the API alone,
// which depends on no function, so it is not rest.Url(), which depends on the stage, and so on all of them.
func (a *App) newConsole(rest awsapigateway.RestApi, is Issuer) {
	if a.Data.Users == nil {
		return
	}
	at := "https://" + *rest.RestApiId() + ".execute-api." + *a.Stack.Region() + "." + *a.Stack.UrlSuffix() +
		"/" + apiStage + "/console/"
	o := ofPeople(at + "callback")
	o.OAuth.LogoutUrls = jsii.Strings(at + "signed-out")
	o.AccessTokenValidity = awscdk.Duration_Hours(jsii.Number(consoleSession))
	o.RefreshTokenValidity = awscdk.Duration_Hours(jsii.Number(consoleSession))
	// The pool as it is known here: a client of the pool itself would be in its stack.
	pool := awscognito.UserPool_FromUserPoolId(a.Stack, jsii.String("Users"), a.Data.Users.UserPoolId())
	client := pool.AddClient(jsii.String("Console"), o)
	a.API.AddEnvironment(jsii.String(boot.EnvConsoleClient), client.UserPoolClientId(), nil)
	a.API.AddEnvironment(jsii.String(authorizer.EnvAudience),
		jsii.String(is.Audience+","+*client.UserPoolClientId()), nil)
}
