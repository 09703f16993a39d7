package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// templateOf is a template with these settings and resources: ID=TYPE.
func templateOf(t *testing.T, settings map[string]string, resources ...string) template {
	t.Helper()
	all := map[string]any{}
	for _, r := range resources {
		id, kind, _ := strings.Cut(r, "=")
		all[id] = map[string]any{"Type": kind}
	}
	data, err := json.Marshal(map[string]any{
		"Metadata":  map[string]any{"ArchivistSettings": settings},
		"Resources": all,
	})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, stack := range stacks {
		if err := os.WriteFile(filepath.Join(dir, stack+".template.json"), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	read, err := written(dir)
	if err != nil {
		t.Fatal(err)
	}
	return read["Archivist"]
}

// TestRemovals: what a deployment would take away is named, by setting and by resource; what is added, or can be made
// again, is not.
func TestRemovals(t *testing.T) {
	old := templateOf(t, map[string]string{"naan": "13030", "table": "restored",
		"researchProjects": "jingles, quotations", "apiKeys": "hook=notifier:maps,anna=administrator",
		"revisionQueue": "true", "mailFrom": "a@example.org"},
		"Queue1=AWS::SQS::Queue", "Queue2=AWS::SQS::Queue", "Made=AWS::Lambda::Function")
	for _, c := range []struct {
		name string
		next template
		want []string
	}{
		{"the same", old, nil},
		{"more", templateOf(t, map[string]string{"naan": "13030", "table": "restored",
			"researchProjects": "quotations,more,jingles", "apiKeys": "anna=researcher:jingles,hook=notifier:maps",
			"revisionQueue": "true", "replicaBucket": "copy"},
			"Queue1=AWS::SQS::Queue", "Queue2=AWS::SQS::Queue", "Queue3=AWS::SQS::Queue"), nil},
		{"a setting is forgotten", templateOf(t, map[string]string{"naan": "13030", "table": "restored",
			"researchProjects": "quotations", "apiKeys": "anna=administrator"},
			"Queue1=AWS::SQS::Queue", "Queue2=AWS::S3::Bucket"),
			[]string{"revisionQueue: it was true, and would be not set", "researchProjects: jingles", "apiKeys: hook",
				"Archivist: the resource Queue2 (AWS::SQS::Queue)"}},
		{"another name", templateOf(t, map[string]string{"naan": "13031", "researchProjects": "jingles,quotations",
			"apiKeys": "hook=notifier:maps,anna=administrator", "revisionQueue": "true"},
			"Queue1=AWS::SQS::Queue", "Queue2=AWS::SQS::Queue"),
			[]string{"naan: it was 13030, and would be 13031", "table: it was restored, and would be not set"}},
	} {
		got := removals(map[string]template{"Archivist": old}, map[string]template{"Archivist": c.next})
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		err := refusal(got, "")
		if (err != nil) != (len(c.want) > 0) || refusal(got, codeOf(got)) != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if err == nil {
			continue
		}
		if !strings.Contains(err.Error(), "confirm="+codeOf(got)) || refusal(got[:1], codeOf(got)) == nil {
			t.Errorf("%s: the code of all confirms a part, or is not told: %v", c.name, err)
		}
	}
	if got := removals(nil, map[string]template{"Archivist": old}); len(got) > 0 {
		t.Errorf("the first deployment takes away %q", got)
	}
}

// TestArguments: the confirmation does not reach the CDK; all other arguments do, in their order.
func TestArguments(t *testing.T) {
	args := []string{"-c", "naan=1", "-c", "confirm=0a0b", "--profile", "archive", "--context=table=x", "--all"}
	rest, confirmed := withoutConfirm(args)
	want := []string{"-c", "naan=1", "--profile", "archive", "--context=table=x", "--all"}
	if !slices.Equal(rest, want) || confirmed != "0a0b" || profileOf(rest) != "archive" {
		t.Errorf("%q, %q, profile %q", rest, confirmed, profileOf(rest))
	}
	if _, confirmed := withoutConfirm([]string{"--context=confirm=1c"}); confirmed != "1c" {
		t.Errorf("%q", confirmed)
	}
}
