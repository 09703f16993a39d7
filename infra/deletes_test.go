package main

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
)

// allowance is a statement, of whatever resource of a template, that allows something.
type allowance struct {
	id, resource string
	actions      []string
}

// allowances are all such statements: of policies, roles, buckets and what else has them.
func allowances(t *testing.T, all map[string]resource) (out []allowance) {
	t.Helper()
	var walk func(id string, v any)
	walk = func(id string, v any) {
		switch v := v.(type) {
		case []any:
			for _, e := range v {
				walk(id, e)
			}
		case map[string]any:
			if v["Effect"] == "Allow" {
				out = append(out, allowance{id, text(v["Resource"]), texts(t, v["Action"])})
			}
			for _, e := range v {
				walk(id, e)
			}
		}
	}
	for id, r := range all {
		walk(id, r.Properties)
	}
	if len(out) < 50 {
		t.Fatalf("found %d statements", len(out))
	}
	return out
}

// texts are the actions of a statement. One without, such as with NotAction, would allow what nobody has named.
func texts(t *testing.T, v any) (all []string) {
	t.Helper()
	if one, is := v.(string); is {
		return []string{one}
	}
	if err := json.Unmarshal([]byte(text(v)), &all); err != nil || len(all) == 0 {
		t.Errorf("a statement allows %s", text(v))
	}
	return all
}

// onBuckets are the actions on S3 that anybody is granted. None of them deletes a version of an object, changes a
// bucket, its policy, its versioning or its lifecycle, or ends a lock of an object.
var onBuckets = []string{"s3:GetObject", "s3:PutObject", "s3:AbortMultipartUpload", "s3:ListBucket", "s3:DeleteObject",
	"s3:ListBucketMultipartUploads", "s3:ListMultipartUploadParts"}

// deleters may delete files of objects, which leaves their versions: what for is in docs/operations.md.
var deleters = map[string][]string{
	"Storage07F31EBC": {"admin", "runstore"},
	":s3:::copies/*":  {"component"},
}

// TestNothingDeletesVersions: no role may delete a version of a stored file, and few may delete a file. So a legal hold
// and a retention need nobody who respects them.
func TestNothingDeletesVersions(t *testing.T) {
	s, _ := everything()
	all, found := synth(t, s), map[string][]string{}
	for _, a := range allowances(t, all) {
		for _, action := range a.actions {
			if on := strings.HasPrefix(action, "s3:") || strings.Contains(action, "*"); on &&
				!slices.Contains(onBuckets, action) {
				t.Errorf("%s is granted %s on %s", a.id, action, a.resource)
			}
		}
		for bucket := range deleters {
			if slices.Contains(a.actions, "s3:DeleteObject") && strings.Contains(a.resource, bucket) {
				who, _, _ := strings.Cut(a.id, "Service")
				found[bucket] = append(found[bucket], who)
			}
		}
	}
	for _, who := range found {
		slices.Sort(who)
	}
	if !maps.EqualFunc(found, deleters, slices.Equal) {
		t.Errorf("files of objects may be deleted by %v; expected %v. Who is new is described in docs/operations.md",
			found, deleters)
	}
}

// TestVersionsStay: no rule of a bucket removes a version of what is stored, and a policy denies it to everybody, also
// to who is granted it elsewhere.
func TestVersionsStay(t *testing.T) {
	s, _ := everything()
	all := synth(t, s)
	for _, bucket := range []string{"Storage07F31EBC", "EventsD32975C2"} {
		lifecycle, _ := all[bucket].Properties["LifecycleConfiguration"].(map[string]any)
		rules := list(lifecycle["Rules"])
		if len(rules) != 1 {
			t.Errorf("%s has the rules %s", bucket, text(rules))
		}
		for _, rule := range rules {
			keys := slices.Sorted(maps.Keys(rule))
			if !slices.Equal(keys, []string{"AbortIncompleteMultipartUpload", "Id", "Status"}) {
				t.Errorf("a rule of %s does more than aborting uploads: %s", bucket, text(rule))
			}
		}
		denied := 0
		for _, p := range of(all, "AWS::S3::BucketPolicy") {
			doc, _ := p.Properties["PolicyDocument"].(map[string]any)
			for _, s := range list(doc["Statement"]) {
				if refers(p.Properties["Bucket"], bucket) && s["Effect"] == "Deny" && s["Condition"] == nil &&
					s["Action"] == "s3:DeleteObjectVersion" && text(s["Principal"]) == `{"AWS":"*"}` &&
					strings.Contains(text(s["Resource"]), `"/*"`) {
					denied++
				}
			}
		}
		if denied != 1 {
			t.Errorf("versions of what %s holds can be deleted", bucket)
		}
	}
	for id, r := range all {
		if strings.HasPrefix(r.Type, "Custom::S3") {
			t.Errorf("%s is a %s, which may empty a bucket", id, r.Type)
		}
	}
}
