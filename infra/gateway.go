package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2/awsapigateway"
	"github.com/aws/jsii-runtime-go"

	"archivist/pkg/api"
)

// openPaths are those of the API's description. They need no key: a browser cannot send
// one with an address, and what they say is in the source for everybody.
var openPaths = []string{"docs", "openapi.json", "openapi.yaml"}

// routes sends every path to the function, with a key but for openPaths. The routes of the
// archive are the function's own: a new one needs no deployment of the gateway.
func routes(rest awsapigateway.RestApi, s Settings) {
	rest.Root().AddProxy(nil)
	open := &awsapigateway.MethodOptions{ApiKeyRequired: jsii.Bool(false)}
	for _, path := range openPaths {
		rest.Root().AddResource(jsii.String(path), nil).AddMethod(jsii.String("GET"), nil, open)
	}
	files := rest.Root().GetResource(jsii.String("docs")).AddResource(jsii.String("{file}"), nil)
	files.AddMethod(jsii.String("GET"), nil, open)
	for _, path := range s.morePaths() {
		part := rest.Root()
		for name := range strings.SplitSeq(path, "/") {
			next := part.GetResource(jsii.String(name))
			if next == nil {
				next = part.AddResource(jsii.String(name), nil)
			}
			part = next
		}
		part.AddMethod(jsii.String("GET"), nil, open)
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

// morePaths are all further paths that need no key: those of ARKs, and where one signs in.
func (s Settings) morePaths() []string {
	paths := s.arkPaths()
	if s.Issuer.Client != "" {
		paths = append(paths, "v1/sign-in")
	}
	return paths
}

// openRates bound how often openPaths are asked for: the usage plan's rates are those of
// its keys. A page is five requests.
func openRates(s Settings) *map[string]*awsapigateway.MethodDeploymentOptions {
	rates := map[string]*awsapigateway.MethodDeploymentOptions{}
	for _, path := range slices.Concat(openPaths, []string{"docs/{file}"}, s.morePaths()) {
		rates["/"+path+"/GET"] = &awsapigateway.MethodDeploymentOptions{
			ThrottlingRateLimit: jsii.Number(10), ThrottlingBurstLimit: jsii.Number(50)}
	}
	return &rates
}

// problems makes the gateway's own answers problem documents, as those of the function.
// Clients then have one form of errors, whoever answers (RFC 9457). The detail is the
// gateway's message, as JSON.
func problems(rest awsapigateway.RestApi) {
	for _, name := range slices.Sorted(maps.Keys(api.Gateway)) {
		p := api.Gateway[name]
		body := fmt.Sprintf(`{"type":%q,"title":%q,"status":%d,"detail":$context.error.messageString}`, p.Type,
			p.Title, p.Status)
		rest.AddGatewayResponse(jsii.String("Problem"+name), &awsapigateway.GatewayResponseOptions{
			Type:            awsapigateway.ResponseType_Of(jsii.String(name)),
			StatusCode:      jsii.String(strconv.Itoa(p.Status)),
			ResponseHeaders: &map[string]*string{"Content-Type": jsii.String("'application/problem+json'")},
			Templates:       &map[string]*string{"application/json": jsii.String(body)}})
	}
}
