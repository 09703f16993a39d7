package main

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2/awsapigateway"
	"github.com/aws/jsii-runtime-go"

	"archivist/pkg/api"
	"archivist/pkg/app/boot/authorizer"
)

// openPaths are those of the API's description. They need no token: a browser cannot send
// one with an address, and what they say is in the source for everybody.
var openPaths = []string{"docs", "openapi.json", "openapi.yaml"}

// newAuthorizer makes what lets nobody without a good token reach the API's function, nil if calls need none: on an
// emulator without an issuer, or that takes no authorizer. What it has answered for a token is used for five minutes,
// so that few calls wait for it. That is safe, since the API verifies each token again: one that was revoked or has
// expired gets no further.
func (a *App) newAuthorizer(s Settings, is Issuer) awsapigateway.IAuthorizer {
	if s.Local && (is.URL == "" || s.Open) {
		return nil
	}

	env := is.verifying()
	env[authorizer.EnvTable] = a.Data.Table.TableName()
	// Two requests to the issuer of five seconds each are within its time. It knows nothing else of the deployment.
	a.Authorizer = newFunction(a.Stack, "authorizer", FunctionProps{
		Settings: s,
		Data:     a.Data,
		Code:     "authorizer",
		Timeout:  15 * time.Second,
		Memory:   256,
		Bare:     true,
		Env:      env,
	})
	a.grantAuthorizer()
	props := &awsapigateway.TokenAuthorizerProps{
		Handler:         a.Authorizer,
		IdentitySource:  awsapigateway.IdentitySource_Header(jsii.String("Authorization")),
		ResultsCacheTtl: minutes(5),
	}
	return awsapigateway.NewTokenAuthorizer(a.Stack, jsii.String("Tokens"), props)
}

// methods are the options of every method but the open ones.
func methods(by awsapigateway.IAuthorizer) *awsapigateway.MethodOptions {
	if by == nil {
		return &awsapigateway.MethodOptions{AuthorizationType: awsapigateway.AuthorizationType_NONE}
	}
	return &awsapigateway.MethodOptions{
		AuthorizationType: awsapigateway.AuthorizationType_CUSTOM,
		Authorizer:        by,
	}
}

// routes sends every path to the function, with a token but for openPaths. The routes of the
// archive are the function's own: a new one needs no deployment of the gateway. The root itself
// leads browsers to the console.
func routes(rest awsapigateway.RestApi, s Settings, signIn bool) {
	s.preflights(rest.Root().AddProxy(nil))
	open := &awsapigateway.MethodOptions{AuthorizationType: awsapigateway.AuthorizationType_NONE}
	add := func(to awsapigateway.IResource) {
		to.AddMethod(jsii.String("GET"), nil, open)
		s.preflights(to)
	}
	for _, path := range openPaths {
		add(rest.Root().AddResource(jsii.String(path), nil))
	}
	consoleRoutes(rest)
	rest.Root().AddMethod(jsii.String("GET"), nil, open) // its preflights are there with those of the proxy
	add(rest.Root().GetResource(jsii.String("docs")).AddResource(jsii.String("{file}"), nil))
	for _, path := range s.morePaths(signIn) {
		part := rest.Root()
		for name := range strings.SplitSeq(path, "/") {
			next := part.GetResource(jsii.String(name))
			if next == nil {
				next = part.AddResource(jsii.String(name), nil)
			}
			part = next
		}
		add(part)
	}
}

// preflights sends those of a path to the function, which knows the origins that are allowed. They have no token, so
// they need a method of their own beside ANY, whose authorizer would refuse them ("CORS for REST APIs in API
// Gateway"). A mock integration could answer for one origin only, and fails where answers of any kind may be bytes.
func (s Settings) preflights(to awsapigateway.IResource) {
	if len(s.Origins) > 0 {
		to.AddMethod(jsii.String(http.MethodOptions), nil,
			&awsapigateway.MethodOptions{AuthorizationType: awsapigateway.AuthorizationType_NONE})
	}
}

// consolePaths are those of the console. They need no token: who visits it is said by the cookie of its session.
var consolePaths = []string{"console", "console/{path+}"}

// consoleMethods are those of its pages and of its forms.
var consoleMethods = []string{"GET", "POST"}

// consoleRoutes sends the paths of the console to the function.
func consoleRoutes(rest awsapigateway.RestApi) {
	open := &awsapigateway.MethodOptions{AuthorizationType: awsapigateway.AuthorizationType_NONE}
	first := rest.Root().AddResource(jsii.String("console"), nil)
	below := first.AddResource(jsii.String("{path+}"), nil)
	for _, method := range consoleMethods {
		first.AddMethod(jsii.String(method), nil, open)
		below.AddMethod(jsii.String(method), nil, open)
	}
}

// arkPaths are the paths by which ARKs resolve: in both of their forms, if the deployment says so.
func (s Settings) arkPaths() []string {
	if !s.Resolver {
		return nil
	}
	root := strings.TrimPrefix(api.ARKPath, "/")
	return []string{root + "/{naan}/{name+}", root + s.NAAN + "/{name+}"}
}

// morePaths are all further paths that need no token: those of ARKs, and where one signs in.
func (s Settings) morePaths(signIn bool) []string {
	paths := s.arkPaths()
	if signIn {
		paths = append(paths, "v1/sign-in")
	}
	return paths
}

// openRates bound how often openPaths are asked for: so they leave most of the stage's rate to those who have tokens.
// A page is five requests.
func openRates(s Settings, signIn bool) *map[string]*awsapigateway.MethodDeploymentOptions {
	rates := map[string]*awsapigateway.MethodDeploymentOptions{}
	for _, path := range slices.Concat(openPaths, []string{"", "docs/{file}"}, s.morePaths(signIn)) {
		rates["/"+path+"/GET"] = &awsapigateway.MethodDeploymentOptions{
			ThrottlingRateLimit: jsii.Number(10), ThrottlingBurstLimit: jsii.Number(50)}
	}
	if len(s.Origins) > 0 { // a page asks before each call, at most
		rates["/{proxy+}/"+http.MethodOptions] = &awsapigateway.MethodDeploymentOptions{
			ThrottlingRateLimit: jsii.Number(apiRate / 2), ThrottlingBurstLimit: jsii.Number(apiBurst / 2)}
	}
	for _, path := range consolePaths {
		for _, method := range consoleMethods {
			rates["/"+path+"/"+method] = &awsapigateway.MethodDeploymentOptions{
				ThrottlingRateLimit: jsii.Number(50), ThrottlingBurstLimit: jsii.Number(100)}
		}
	}
	return &rates
}

// problems makes the gateway's own answers problem documents, as those of the function. Clients then have one form of
// errors, whoever answers (RFC 9457). The detail is the gateway's message, as JSON, unless the problem has one of its
// own. Their headers are fixed, or echo one of the request: so scripts can read them if there is one origin, and
// otherwise no page is let in that is not meant.
func problems(rest awsapigateway.RestApi, s Settings) {
	for _, name := range slices.Sorted(maps.Keys(api.Gateway)) {
		p := api.Gateway[name]
		detail := "$context.error.messageString"
		if p.Detail != "" {
			detail = strconv.Quote(p.Detail)
		}
		body := fmt.Sprintf(`{"type":%q,"title":%q,"status":%d,"detail":%s}`, p.Type, p.Title,
			p.Status, detail)
		headers := map[string]*string{"Content-Type": jsii.String("'application/problem+json'")}
		if p.Status == http.StatusUnauthorized {
			headers["WWW-Authenticate"] = jsii.String("'Bearer'") // RFC 9110, section 11.6.1
		}
		if len(s.Origins) == 1 {
			headers["Access-Control-Allow-Origin"] = jsii.String("'" + s.Origins[0] + "'")
		}
		rest.AddGatewayResponse(jsii.String("Problem"+name), &awsapigateway.GatewayResponseOptions{
			Type:            awsapigateway.ResponseType_Of(jsii.String(name)),
			StatusCode:      jsii.String(strconv.Itoa(p.Status)),
			ResponseHeaders: &headers,
			Templates:       &map[string]*string{"application/json": jsii.String(body)}})
	}
}
