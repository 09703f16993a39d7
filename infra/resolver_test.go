package main

import (
	"fmt"
	"strings"
	"testing"
)

// TestResolver: with the setting, ARKs resolve without a token, in both of their forms, at a bounded rate; without it
// they do not.
func TestResolver(t *testing.T) {
	for _, public := range []bool{true, false} {
		s := heard()
		s.Resolver = public
		all, open := synth(t, s), 0
		for _, r := range of(all, "AWS::ApiGateway::Method") {
			if !demandsToken(all, r) {
				open++
			}
		}
		var parts []string
		for _, r := range of(all, "AWS::ApiGateway::Resource") {
			parts = append(parts, fmt.Sprint(r.Properties["PathPart"]))
		}
		has := strings.Join(parts, " ")
		if wanted := len(openPaths) + 2 + ofConsoles; public && open != wanted+2 || !public && open != wanted ||
			strings.Contains(has, "ark:") != public || public && !strings.Contains(has, "ark:"+s.NAAN) {
			t.Errorf("public %v: %d methods need no token; paths %s", public, open, has)
		}
		for id, stage := range of(all, "AWS::ApiGateway::Stage") {
			for _, path := range s.arkPaths() {
				rate := `"ResourcePath":"/~1` + strings.ReplaceAll(path, "/", "~1") + `","ThrottlingBurstLimit":50`
				if settings := text(stage.Properties["MethodSettings"]); !strings.Contains(settings, rate) {
					t.Errorf("%s: %s has no bounded rate: %s", id, path, settings)
				}
			}
		}
		env := 0
		for _, f := range of(all, "AWS::Lambda::Function") {
			if strings.Contains(text(f.Properties["Environment"]), `"ARCHIVIST_ARK_RESOLVER":"public"`) {
				env++
			}
		}
		if public && env != 1 || !public && env != 0 {
			t.Errorf("public %v: %d functions know of it", public, env)
		}
	}
}
