package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"archivist/pkg/app/boot"
)

// TestRunnerReachesItsFolder: what archives contain is run by a function that can reach nothing but its log, and knows
// no table. For each run it gets credentials of a role that can reach the folder of runs in the work bucket and the
// secrets of tasks, and nothing else; only its router may take that.
func TestRunnerReachesItsFolder(t *testing.T) {
	s := production
	s.Revisions = true
	all := synth(t, s)
	for _, g := range grants(t, all) {
		if strings.HasPrefix(g.policy, "taskrunner") {
			t.Errorf("the runner itself may %v", g.actions)
		}
		if slices.Contains(g.actions, "sts:AssumeRole") && !strings.HasPrefix(g.policy, "taskrouter") {
			t.Errorf("%s may take roles", g.policy)
		}
	}
	if trust := text(find(t, all, "AWS::IAM::Role", "task").Properties["AssumeRolePolicyDocument"]); !strings.Contains(
		trust, "taskrouterServiceRole") || strings.Count(trust, "Principal") != 1 {
		t.Errorf("the role of runs can be taken by %s", trust)
	}
	policy := find(t, all, "AWS::IAM::Policy", "taskDefaultPolicy")
	doc, _ := policy.Properties["PolicyDocument"].(map[string]any)
	statements, _ := doc["Statement"].([]any)
	var actions []string
	for _, st := range statements {
		one, _ := st.(map[string]any)
		resource := text(one["Resource"])
		for _, action := range strings.Split(strings.Trim(strings.ReplaceAll(text(one["Action"]), `"`, ""), "[]"), ",") {
			actions = append(actions, action)
			if strings.HasPrefix(action, "s3:") && action != "s3:ListBucket" && !strings.Contains(resource, "/runs/*") {
				t.Errorf("%s on %s", action, resource)
			}
		}
	}
	slices.Sort(actions)
	want := []string{"s3:AbortMultipartUpload", "s3:GetObject", "s3:ListBucket", "s3:PutObject",
		"secretsmanager:GetSecretValue"}
	if !slices.Equal(slices.Compact(actions), want) {
		t.Errorf("the runner may %v", actions)
	}
	env, _ := json.Marshal(find(t, all, "AWS::Lambda::Function", "taskrunner").Properties["Environment"])
	for _, name := range []string{boot.EnvTable, boot.EnvStorage} {
		if strings.Contains(string(env), name) {
			t.Errorf("the runner knows %s", name)
		}
	}
}

// TestRunsAreToldToEnd: the API may tell a run to end, and sign requests for the files of uploads. It may write nothing
// else into the work bucket, and elsewhere only zip files of versions.
func TestRunsAreToldToEnd(t *testing.T) {
	s := production
	s.Revisions = true
	var on []string
	for _, g := range grants(t, synth(t, s)) {
		resource, _ := json.Marshal(g.resource)
		if strings.HasPrefix(g.policy, "apiService") && slices.Contains(g.actions, "s3:PutObject") {
			on = append(on, string(resource))
		}
	}
	slices.Sort(on)
	if len(on) != 3 || !strings.Contains(on[0], "/zips/*") || !strings.Contains(on[1], "/runs/*/cancel") ||
		!strings.Contains(on[2], "/uploads/*") {
		t.Errorf("the API may write %q", on)
	}
}

// TestVersionsAreNotified: the function of the consumers wakes the revision queue if there is one, and only then.
func TestVersionsAreNotified(t *testing.T) {
	for _, on := range []bool{true, false} {
		s := production
		s.Revisions = on
		all := synth(t, s)
		env, _ := json.Marshal(find(t, all, "AWS::Lambda::Function", "consumer").Properties["Environment"])
		may := false
		for _, g := range grants(t, all) {
			resource, _ := json.Marshal(g.resource)
			if strings.HasPrefix(g.policy, "consumerService") && slices.Contains(g.actions, "lambda:InvokeFunction") {
				may = may || strings.Contains(string(resource), `"revisions`)
			}
		}
		if knows := strings.Contains(string(env), boot.EnvRevisions); knows != on || may != on {
			t.Errorf("with the setting %v the consumers know it: %v, and may invoke it: %v", on, knows, may)
		}
	}
}

// TestTaskPrograms: on AWS the runner has the layer of programs, unless the settings leave it out,
// and is of the architecture of both the layer and containers. Emulators have neither.
func TestTaskPrograms(t *testing.T) {
	for _, c := range []struct{ local, none, layer bool }{{layer: true}, {none: true}, {local: true}} {
		s := production
		s.Revisions, s.Local, s.NoPrograms = true, c.local, c.none
		all := synth(t, s)
		layers := of(all, "AWS::Lambda::LayerVersion")
		runner := find(t, all, "AWS::Lambda::Function", "taskrunner").Properties
		if has := runner["Layers"] != nil; has != c.layer || len(layers) > 0 != c.layer {
			t.Errorf("%+v: the runner has %v, the template %d layers", c, runner["Layers"], len(layers))
		}
		if !c.local && !strings.Contains(text(runner["Architectures"]), "x86_64") {
			t.Errorf("%+v: the runner is of %v", c, runner["Architectures"])
		}
		for _, l := range layers {
			if got := text(l.Properties["CompatibleArchitectures"]); got != `["x86_64"]` {
				t.Error(got)
			}
		}
	}
}

// TestRunnerPerArchive: on AWS the runner keeps archives apart, and only its router may call it: a call that names no
// tenant would be refused. Emulators know no tenants.
func TestRunnerPerArchive(t *testing.T) {
	for _, local := range []bool{false, true} {
		s := production
		s.Revisions, s.Local = true, local
		all := synth(t, s)
		tenancy := text(find(t, all, "AWS::Lambda::Function", "taskrunner").Properties["TenancyConfig"])
		env := text(find(t, all, "AWS::Lambda::Function", "taskrouter").Properties["Environment"])
		if apart := strings.Contains(tenancy, "PER_TENANT"); apart == local ||
			strings.Contains(env, boot.EnvTenants) == local {
			t.Errorf("local: %v: tenants %s, the router has %s", local, tenancy, env)
		}
		var callers []string
		for _, g := range grants(t, all) {
			if slices.Contains(g.actions, "lambda:InvokeFunction") && strings.Contains(text(g.resource), "taskrunner") {
				callers = append(callers, g.policy)
			}
		}
		if len(callers) != 1 || !strings.HasPrefix(callers[0], "taskrouter") {
			t.Errorf("local: %v: the runner may be called by %v", local, callers)
		}
	}
}
