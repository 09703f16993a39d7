package main

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"archivist/pkg/app/boot"
)

// TestOriginsAreSet: without corsOrigins scripts of the console alone can send files to the work bucket. With it,
// preflights reach the function without a token on all paths but the console's, the function knows the origins, scripts
// can send files to the work bucket, and the gateway's own answers name an origin only if there is one.
func TestOriginsAreSet(t *testing.T) {
	const one, two = "https://repository.example.org", "http://localhost:3000"
	for _, origins := range [][]string{nil, {one}, {one, two}} {
		s := production
		s.Issuer = Issuer{URL: "https://login.example.org", Audience: "archivist", Client: "cli"}
		s.Resolver, s.Origins = true, origins
		all := synth(t, s)
		if whole := text(all); len(origins) == 0 {
			for _, name := range []string{"Access-Control", boot.EnvOrigins, "OPTIONS"} {
				if strings.Contains(whole, name) {
					t.Errorf("a template has %s without an origin", name)
				}
			}
			workIsShared(t, all, origins)
			continue
		}

		preflightsAreOpen(t, all)
		workIsShared(t, all, origins)
		for id, r := range of(all, "AWS::ApiGateway::GatewayResponse") {
			headers, _ := r.Properties["ResponseParameters"].(map[string]any)
			is := headers["gatewayresponse.header.Access-Control-Allow-Origin"]
			if len(origins) == 1 && is != "'"+one+"'" || len(origins) == 2 && is != nil {
				t.Errorf("%s: %v", id, is)
			}
		}
		for id, r := range of(all, "AWS::Lambda::Function") {
			env, _ := r.Properties["Environment"].(map[string]any)
			variables, _ := env["Variables"].(map[string]any)
			is, has := variables[boot.EnvOrigins]
			if strings.HasPrefix(id, "api") != has || has && is != strings.Join(origins, ",") {
				t.Errorf("%s: %v", id, is)
			}
		}
		if !strings.Contains(text(of(all, "AWS::ApiGateway::Stage")), `"HttpMethod":"OPTIONS",`+
			`"ResourcePath":"/~1{proxy+}","ThrottlingBurstLimit":50,"ThrottlingRateLimit":25`) {
			t.Errorf("preflights have no bound: %s", text(of(all, "AWS::ApiGateway::Stage")))
		}
	}
}

// preflightsAreOpen checks that each path but the console's has the method OPTIONS, of the function and without a
// token, and that all else needs what it needed before.
func preflightsAreOpen(t *testing.T, all map[string]resource) {
	t.Helper()
	has := map[string]string{}
	for id, m := range of(all, "AWS::ApiGateway::Method") {
		at := text(m.Properties["ResourceId"])
		method := fmt.Sprint(m.Properties["HttpMethod"])
		has[at] += " " + method
		if method == "ANY" && !demandsToken(all, m) {
			t.Errorf("%s needs no token", id)
		}
		if method != "OPTIONS" {
			continue
		}
		integration, _ := m.Properties["Integration"].(map[string]any)
		if m.Properties["AuthorizationType"] != "NONE" || m.Properties["AuthorizerId"] != nil ||
			integration["Type"] != "AWS_PROXY" || !strings.Contains(text(integration["Uri"]), `"api`) {
			t.Errorf("%s: %s", id, text(m.Properties))
		}
	}
	consoles := 0
	for at, methods := range has {
		of := strings.HasSuffix(methods, "POST") || strings.Contains(methods, "POST ")
		if of {
			consoles++
		}
		if of == strings.Contains(methods, "OPTIONS") {
			t.Errorf("%s has %s", at, methods)
		}
	}
	// The root, the rest, the document twice, its page, the files of that, where one signs in, and both forms of ARKs.
	if len(has) != 9+len(consolePaths) || consoles != len(consolePaths) {
		t.Errorf("there are %d paths with methods, %d of the console", len(has), consoles)
	}
}

// TestWrongOrigins: a setting that no browser sends as an origin, or that lets in whom nobody means, is refused.
func TestWrongOrigins(t *testing.T) {
	for value, says := range map[string]string{
		"*":                      "each origin is named",
		"null":                   "names nobody",
		"https://example.org/":   "no slash",
		"https://example.org/a":  "no path",
		"http://example.org":     "without TLS",
		"https://a.org,http://b": "without TLS",
		strings.Repeat("https://example.org,", 2) + "https://example.org": "twice",
	} {
		context := maps.Clone(enough)
		context["corsOrigins"] = value
		_, err := given(context)
		if s := fmt.Sprint(err); !strings.HasPrefix(s, "corsOrigins: ") || !strings.Contains(s, says) ||
			strings.Contains(s, "\n") {
			t.Errorf("%s: %v", value, err)
		}
	}
	context := maps.Clone(enough)
	context["corsOrigins"] = "https://repository.example.org, http://localhost:3000"
	if s, err := given(context); err != nil || len(s.Origins) != 2 || s.Origins[1] != "http://localhost:3000" {
		t.Errorf("%v, %v", s.Origins, err)
	}
}

// workIsShared: pages of the origins, and those of the console, can send files to the work bucket, and to no other one.
func workIsShared(t *testing.T, all map[string]resource, origins []string) {
	t.Helper()
	var from []any
	for _, o := range origins {
		from = append(from, o)
	}
	from = append(from, map[string]any{"Fn::Sub": "https://*.execute-api.${AWS::Region}.${AWS::URLSuffix}"})
	for id, r := range of(all, "AWS::S3::Bucket") {
		rules, _ := r.Properties["CorsConfiguration"].(map[string]any)
		want := fmt.Sprintf(`[{"AllowedHeaders":["content-type","x-amz-checksum-sha256"],"AllowedMethods":["PUT"],`+
			`"AllowedOrigins":%s,"ExposedHeaders":["ETag","x-amz-checksum-sha256"],"Id":"uploads-of-pages",`+
			`"MaxAge":7200}]`, text(from))
		work := strings.HasPrefix(id, "Work")
		if work != (rules != nil) || work && text(rules["CorsRules"]) != want {
			t.Errorf("%s: %s", id, text(rules))
		}
	}
}
