package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"archivist/pkg/app/boot"
	"archivist/pkg/kernel/access"
)

// TestKeySettings: keys are checked when deploying. A researcher is one of a project that there is.
func TestKeySettings(t *testing.T) {
	many := ""
	for i := range mostKeys + 1 {
		many += fmt.Sprintf("key-%d=administrator,", i)
	}
	for _, c := range []struct{ value, says string }{
		{"Ann=administrator", "lower-case letters"},
		{"ann", "expected administrator, operator, viewer, depositor:COLLECTION"},
		{"=administrator", "lower-case letters"},
		{"ann=viewers", "expected administrator, operator, viewer, depositor:COLLECTION"},
		{"ann=researcher", "expected administrator, operator, viewer, depositor:COLLECTION"},
		{"ann=researcher:other", "not among researchProjects"},
		{"ann=administrator,ann=researcher:demo", "twice"},
		{many, "a deployment can have 20"},
	} {
		context := maps.Clone(enough)
		context["researchProjects"], context["apiKeys"] = "demo", c.value
		_, err := given(context)
		if s := fmt.Sprint(err); !strings.Contains(s, "apiKeys: ") || !strings.Contains(s, c.says) ||
			strings.Contains(s, "\n") {
			t.Errorf("apiKeys=%s: %v", c.value, err)
		}
	}
	context := maps.Clone(enough)
	context["researchProjects"], context["apiKeys"] = "demo", "ann=administrator, bench-3=researcher:demo"
	s, err := given(context)
	want := []Key{{"ann", access.Grant{Role: access.Administrator}},
		{"bench-3", access.Grant{Role: access.Researcher, Of: "demo"}}}
	if err != nil || !slices.Equal(s.Keys, want) {
		t.Errorf("%+v, %v", s.Keys, err)
	}
}

// allowed are what the keys of a template allow, by their logical ids, as the API reads it.
func allowed(t *testing.T, all map[string]resource) map[string]string {
	t.Helper()
	var env struct{ Variables map[string]any }
	_ = json.Unmarshal([]byte(text(find(t, all, "AWS::Lambda::Function", "api").Properties["Environment"])), &env)
	parts, _ := env.Variables[boot.EnvKeys].(map[string]any)
	join, _ := parts["Fn::Join"].([]any)
	if len(join) != 2 || join[0] != "" {
		t.Fatalf("the API knows the keys %v", env.Variables[boot.EnvKeys])
	}
	var pairs string
	for _, p := range join[1].([]any) {
		if ref, is := p.(map[string]any); is {
			p = ref["Ref"]
		}
		pairs += p.(string)
	}
	out := map[string]string{}
	for pair := range strings.SplitSeq(pairs, ",") {
		access, ids, _ := strings.Cut(pair, "=")
		for one := range strings.SplitSeq(ids, "+") {
			id, name, _ := strings.Cut(one, "/")
			if about := text(all[id].Properties["Description"]); !strings.Contains(about, name) || name == "" {
				t.Errorf("the key %s (%s) has the name %q", id, about, name)
			}
			out[id] = access
		}
	}
	return out
}

// TestKeysHaveRoles: each key of the usage plan has the role of the settings, and no other key has one. The first key
// has the logical id under which deployments know it. No key refers to a stage: the function refers to the keys.
func TestKeysHaveRoles(t *testing.T) {
	const first = "ApiKey679C99C7"
	s := researched()
	if wrong := s.readKeys("ann=administrator,bench-3=researcher:demo"); wrong != nil {
		t.Fatal(wrong)
	}
	all := synth(t, s)
	allows := allowed(t, all)
	planned := 0
	for _, k := range of(all, "AWS::ApiGateway::UsagePlanKey") {
		planned++
		key, _ := k.Properties["KeyId"].(map[string]any)
		if allows[fmt.Sprint(key["Ref"])] == "" {
			t.Errorf("%v has no role", key)
		}
	}
	for id, k := range of(all, "AWS::ApiGateway::ApiKey") {
		about := fmt.Sprint(k.Properties["Description"])
		if k.Properties["Enabled"] != true || k.Properties["StageKeys"] != nil || k.Properties["Value"] != nil ||
			!strings.HasSuffix(about, ": "+allows[id]) {
			t.Errorf("%s: %v allows %q", id, k.Properties, allows[id])
		}
	}
	roles := slices.Sorted(maps.Values(allows))
	if planned != 3 || !slices.Equal(roles, []string{"administrator", "administrator", "researcher:demo"}) {
		t.Errorf("%d keys: %v", planned, roles)
	}
	if only := allowed(t, synth(t, heard())); len(only) != 1 || only[first] != "administrator" {
		t.Errorf("without settings: %v", only)
	}
	for id, f := range of(all, "AWS::Lambda::Function") {
		knows := strings.Contains(text(f.Properties["Environment"]), boot.EnvKeys)
		if knows != strings.HasPrefix(id, "api") {
			t.Errorf("%s knows the keys: %v", id, knows)
		}
	}
}

// TestEnvironmentsFit: the environment of the API has room for many keys and projects; with the most and longest names,
// a deployment is refused, and the settings are named that can be made shorter.
func TestEnvironmentsFit(t *testing.T) {
	for _, c := range []struct {
		keys, long int
		fits       bool
	}{{20, 10, true}, {10, 40, true}, {20, 40, false}} {
		s := heard()
		var projects, keys []string
		for i := range mostProjects {
			projects = append(projects, fmt.Sprintf("%s-%02d", strings.Repeat("p", c.long/2), i))
		}
		s.readResearch(strings.Join(projects, ","), "")
		for i := range c.keys {
			name := fmt.Sprintf("%s-%02d", strings.Repeat("k", c.long-3), i)
			keys = append(keys, name+"=researcher:"+projects[i%mostProjects])
		}
		if wrong := s.readKeys(strings.Join(keys, ",")); wrong != nil {
			t.Fatal(wrong)
		}
		data, err := json.Marshal(map[string]any{"Resources": synth(t, s)})
		if err != nil {
			t.Fatal(err)
		}
		err = tooLarge(data)
		if (err == nil) != c.fits || err != nil && !strings.Contains(err.Error(), "apiKeys") {
			t.Errorf("%d keys of %d characters: %v", c.keys, c.long, err)
		}
	}
}

// TestKeysLocally: a local stack without keys in its settings needs none; with them, every call does.
func TestKeysLocally(t *testing.T) {
	s := heard()
	s.Local = true
	for _, keys := range []string{"", "ann=administrator"} {
		s.readKeys(keys)
		all := synth(t, s)
		needs := 0
		for _, m := range of(all, "AWS::ApiGateway::Method") {
			if m.Properties["ApiKeyRequired"] == true {
				needs++
			}
		}
		knows := strings.Contains(text(find(t, all, "AWS::Lambda::Function", "api").Properties), boot.EnvKeys)
		made := len(of(all, "AWS::ApiGateway::ApiKey"))
		if (needs > 0) != (keys != "") || knows != (keys != "") || made != 2*len(s.Keys) {
			t.Errorf("with %q: %d methods need one of %d keys; the API knows them: %v", keys, needs, made, knows)
		}
	}
}
