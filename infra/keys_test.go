package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"archivist/pkg/api"
	"archivist/pkg/app/boot"
)

// TestKeySettings: keys are checked when deploying. A researcher is one of a project that there is.
func TestKeySettings(t *testing.T) {
	many := ""
	for i := range mostKeys + 1 {
		many += fmt.Sprintf("key-%d=administrator,", i)
	}
	for _, c := range []struct{ value, says string }{
		{"Ann=administrator", "lower-case letters"},
		{"ann", "expected administrator, researcher:PROJECT or notifier:ARCHIVE"},
		{"=administrator", "lower-case letters"},
		{"ann=viewer", "expected administrator, researcher:PROJECT or notifier:ARCHIVE"},
		{"ann=researcher", "expected administrator, researcher:PROJECT or notifier:ARCHIVE"},
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
	want := []Key{{"ann", api.Access{Role: api.Administrator}},
		{"bench-3", api.Access{Role: api.Researcher, Project: "demo"}}}
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
		for id := range strings.SplitSeq(ids, "+") {
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

// TestKeysFit: the environment of the API has room for the most keys and projects that the settings can name.
func TestKeysFit(t *testing.T) {
	s := heard()
	var projects, keys []string
	for i := range mostProjects {
		projects = append(projects, fmt.Sprintf("%s-%02d", strings.Repeat("p", mostNames/mostProjects-3), i))
	}
	s.readResearch(strings.Join(projects, ","), "")
	for i := range mostKeys {
		keys = append(keys, fmt.Sprintf("%s-%02d=researcher:%s", strings.Repeat("k", 37), i, projects[i%mostProjects]))
	}
	if wrong := s.readKeys(strings.Join(keys, ",")); wrong != nil {
		t.Fatal(wrong)
	}
	f := find(t, synth(t, s), "AWS::Lambda::Function", "api")
	var env struct{ Variables map[string]any }
	_ = json.Unmarshal([]byte(text(f.Properties["Environment"])), &env)
	size := 0
	for name, v := range env.Variables {
		size += len(name) + bytesOf(v)
	}
	if size > 4096 {
		t.Errorf("the environment has %d bytes", size)
	}
}

// bytesOf is about how long a value of a template is when it is known: the id of a key has 10 bytes; a region, at most
// 14; the name of a bucket, 63; the URL of a project's queue, 120, with a name of 40; that of another queue, or the
// ARN of a state machine, 100.
func bytesOf(v any) (n int) {
	switch x := v.(type) {
	case string:
		return len(x)
	case []any:
		for _, part := range x {
			n += bytesOf(part)
		}
		return n
	case map[string]any:
		ref, _ := x["Ref"].(string)
		switch {
		case strings.HasPrefix(ref, "ApiKey"):
			return 10
		case strings.HasPrefix(ref, "AWS::"):
			return 14
		case strings.HasPrefix(ref, "pendingwork"):
			return 120
		case x["Fn::ImportValue"] != nil:
			return 63
		case x["Fn::Join"] != nil:
			return bytesOf(x["Fn::Join"])
		}
	}
	return 100
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
