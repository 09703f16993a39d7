package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/collection"
	"archivist/pkg/revisions/workflow"
)

// grant is one statement of a role's policy in a template.
type grant struct {
	policy    string
	actions   []string
	resource  any
	condition string
}

func (g grant) writesRows() bool {
	return slices.ContainsFunc(g.actions, func(a string) bool {
		name, is := strings.CutPrefix(a, "dynamodb:")
		return is && !slices.Contains([]string{"GetItem", "BatchGetItem", "ConditionCheckItem", "Query"}, name)
	})
}

// grants are all statements of the policies in a template.
func grants(t *testing.T, all map[string]resource) (out []grant) {
	t.Helper()
	for id, r := range of(all, "AWS::IAM::Policy") {
		doc, _ := r.Properties["PolicyDocument"].(map[string]any)
		statements, _ := doc["Statement"].([]any)
		for _, st := range statements {
			s, _ := st.(map[string]any)
			if s["Effect"] == "Deny" {
				continue
			}

			g := grant{policy: id, resource: s["Resource"]}
			names, several := s["Action"].([]any)
			if !several {
				names = []any{s["Action"]}
			}
			for _, a := range names {
				g.actions = append(g.actions, a.(string))
			}
			if c := s["Condition"]; c != nil {
				b, _ := json.Marshal(c)
				g.condition = string(b)
			}
			out = append(out, g)
		}
	}
	if len(out) < 50 {
		t.Fatalf("found %d statements", len(out))
	}
	return out
}

// TestLeastPrivilege: grants name exact actions and, but for what has no resources,
// exact resources.
func TestLeastPrivilege(t *testing.T) {
	noResources := []string{"cloudwatch:PutMetricData", "dynamodb:ListStreams",
		"dynamodb:ListTables", "xray:PutTraceSegments", "xray:PutTelemetryRecords", "xray:GetSamplingRules",
		"xray:GetSamplingTargets"}
	for _, g := range grants(t, synth(t, production)) {
		for _, name := range g.actions {
			if strings.ContainsAny(name, "*?") {
				t.Errorf("%s grants %s", g.policy, name)
			}
			if g.resource == "*" && !slices.Contains(noResources, name) {
				t.Errorf("%s grants %s on every resource", g.policy, name)
			}
		}
	}
}

// TestStagesWriteTheirRows: each stage changes rows of the kinds that it is given, and
// those that read what strangers wrote no object, profile or lease. That the kinds are
// those of the calls is for the end-to-end tests.
func TestStagesWriteTheirRows(t *testing.T) {
	all := grants(t, synth(t, production))
	for _, st := range ingest.Stages {
		found := 0
		for _, g := range all {
			if !strings.HasPrefix(g.policy, "run"+st.Name+"Service") || !g.writesRows() {
				continue
			}
			found++
			keys, _ := json.Marshal(stageRows[st.Name])
			want := `{"ForAllValues:StringLike":{"dynamodb:LeadingKeys":` + string(keys) + `}}`
			if g.condition != want {
				t.Errorf("%s changes rows if %s; expected %s", st.Name, g.condition, want)
			}
		}
		if found != 1 {
			t.Errorf("%s has %d statements by which it changes rows", st.Name, found)
		}
	}
	for _, name := range []string{"unpack", "estimate", "download", "process"} {
		for _, kind := range []string{"OBJECT#", "COLLECTION#", "KEY#", "LEASE#"} {
			if slices.ContainsFunc(stageRows[name],
				func(k string) bool { return strings.HasPrefix(kind, strings.TrimSuffix(k, "*")) }) {
				t.Errorf("%s may change rows of %s", name, kind)
			}
		}
	}
}

// TestWhoAsksTheStorage: each function that finds out whether the version of a job is committed
// may read what the job had prepared.
func TestWhoAsksTheStorage(t *testing.T) {
	all := grants(t, synth(t, production))
	for _, name := range []string{"schedulerService", "apiService", "adminService"} {
		if !slices.ContainsFunc(all, func(g grant) bool {
			on, _ := json.Marshal(g.resource)
			return strings.HasPrefix(g.policy, name) && slices.Contains(g.actions, "s3:GetObject") &&
				strings.Contains(string(on), "/jobs/*")
		}) {
			t.Errorf("%s may not read the work files of jobs", name)
		}
	}
}

// TestTLSOnly: every bucket, queue and topic refuses plain http, but on an emulator.
func TestTLSOnly(t *testing.T) {
	local := production
	local.Local = true
	for _, c := range []struct {
		s    Settings
		want bool
	}{{production, true}, {local, false}} {
		all := synth(t, c.s)
		policies := ""
		for _, kind := range []string{"AWS::S3::BucketPolicy", "AWS::SQS::QueuePolicy", "AWS::SNS::TopicPolicy"} {
			for _, p := range of(all, kind) {
				if b, _ := json.Marshal(p.Properties); strings.Contains(string(b), "aws:SecureTransport") {
					policies += string(b)
				}
			}
		}
		for _, kind := range []string{"AWS::S3::Bucket", "AWS::SQS::Queue", "AWS::SNS::Topic"} {
			for id := range of(all, kind) {
				if got := strings.Contains(policies, id); got != c.want {
					t.Errorf("local %v: that %s refuses plain http is %v", c.s.Local, id, got)
				}
			}
		}
	}
}

// TestCallbackSecretsAreNotThoseOfTasks: the stage that signs callbacks may not read what tasks of archives may name.
func TestCallbackSecretsAreNotThoseOfTasks(t *testing.T) {
	if of := workflow.SecretsOf("maps"); of != collection.TaskSecretPrefix+"maps/" {
		t.Errorf("tasks of maps may name %s", of)
	}
	denied := ""
	for id, r := range of(synth(t, production), "AWS::IAM::Policy") {
		doc, _ := r.Properties["PolicyDocument"].(map[string]any)
		for _, st := range list(doc["Statement"]) {
			if st["Effect"] == "Deny" {
				denied += id + " " + text(st)
			}
		}
	}
	if !strings.HasPrefix(denied, "runnotify") || !strings.Contains(denied, "secretsmanager:GetSecretValue") ||
		!strings.Contains(denied, ":secret:archivist/tasks/*") ||
		!strings.Contains(denied, ":secret:archivist/sources/*") {
		t.Errorf("denied: %s", denied)
	}
}

// TestSourceBuckets: the stages that fetch may read the buckets of the setting, and only these may.
func TestSourceBuckets(t *testing.T) {
	s, _ := everything()
	var who []string
	for id, r := range of(synth(t, s), "AWS::IAM::Policy") {
		doc, _ := r.Properties["PolicyDocument"].(map[string]any)
		for _, st := range list(doc["Statement"]) {
			if strings.Contains(text(st), ":s3:::digitisation/*") {
				name, _, _ := strings.Cut(id, "Service")
				who = append(who, name+" "+text(st["Action"]))
			}
		}
	}
	slices.Sort(who)
	want := []string{`rundownload "s3:GetObject"`, `runestimate "s3:GetObject"`, `rununpack "s3:GetObject"`}
	if !slices.Equal(who, want) {
		t.Errorf("%q may read the bucket; want %q", who, want)
	}
}
