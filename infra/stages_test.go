package main

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/stage"
	"archivist/pkg/ingest/workspace"
	"archivist/pkg/objects/ocfl"
)

// stageTypes are the types whose steps a stage's function runs.
var stageTypes = map[string][]any{
	"unpack": {stage.Unpack{}}, "report": {stage.Report{}},
	"estimate": {stage.Estimate{}, stage.Stored{}}, "download": {stage.Download{}, stage.Stored{}},
	"process": {stage.Process{}, stage.Stored{}}, "store": {stage.Store{}, stage.Stored{}},
	"record": {stage.Record{}}, "notify": {stage.Notify{}},
}

// has reports whether a type has a field of another type, or of a name, in it.
func has(in, of reflect.Type, name string) bool {
	if in == of {
		return true
	}
	if in.Kind() != reflect.Struct {
		return false
	}
	for i := range in.NumField() {
		if f := in.Field(i); name != "" && f.Name == name || has(f.Type, of, name) {
			return true
		}
	}
	return false
}

// TestGrantsFollowFields: a stage's function is granted the storage bucket, the work
// bucket and secrets if its types have them in their fields, and only then.
func TestGrantsFollowFields(t *testing.T) {
	all := synth(t, production)
	buckets := map[string]string{}
	for id := range of(all, "AWS::S3::Bucket") {
		for _, name := range []string{"Storage", "Work"} {
			if strings.HasPrefix(id, name) {
				buckets[name] = id
			}
		}
	}
	if len(buckets) != 2 {
		t.Fatal(buckets)
	}
	for _, st := range ingest.Stages {
		granted := ""
		for _, g := range grants(t, all) {
			if strings.HasPrefix(g.policy, "run"+st.Name+"Service") {
				text, _ := json.Marshal([]any{g.actions, g.resource})
				granted += string(text)
			}
		}
		for what, row := range map[string]struct {
			is   reflect.Type
			name string
		}{
			buckets["Storage"]:              {is: reflect.TypeFor[ocfl.Root]()},
			buckets["Work"]:                 {is: reflect.TypeFor[workspace.Store]()},
			"secretsmanager:GetSecretValue": {name: "Secret"},
		} {
			needs := false
			for _, typ := range stageTypes[st.Name] {
				needs = needs || has(reflect.TypeOf(typ), row.is, row.name)
			}
			if strings.Contains(granted, what) != needs {
				t.Errorf("%s is granted %s: %v; its type has it: %v", st.Name, what, !needs, needs)
			}
		}
	}
}
