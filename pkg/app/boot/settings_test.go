package boot

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// described are the settings of the table in docs/deploy.md, each with what it says, without marks and links.
func described(t *testing.T) map[string]string {
	t.Helper()
	data, err := os.ReadFile("../../../docs/deploy.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(data), "## Settings")
	text, _, _ = strings.Cut(text, "\n## ")
	link := regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	all := map[string]string{}
	for line := range strings.Lines(text) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 {
			continue
		}
		for _, m := range regexp.MustCompile("`([A-Za-z]+)`").FindAllStringSubmatch(cells[1], -1) {
			all[m[1]] = strings.NewReplacer("`", "", "**", "").Replace(link.ReplaceAllString(cells[3], "$1"))
		}
	}
	return all
}

// TestShownSettings: each setting of the documents is shown, with what they say, and no other but the names of
// buckets.
func TestShownSettings(t *testing.T) {
	documents, seen := described(t), []string{}
	for _, k := range shown {
		says, is := documents[k.name]
		if !is && !strings.HasSuffix(k.name, "Bucket") {
			t.Errorf("%s is no setting of docs/deploy.md", k.name)
		}
		if is && !strings.Contains(says, k.says) {
			t.Errorf("%s: %q is not in %q", k.name, k.says, says)
		}
		if slices.Contains(seen, k.name) {
			t.Errorf("%s is shown twice", k.name)
		}
		seen = append(seen, k.name)
	}
	for name := range documents {
		if !slices.Contains(seen, name) {
			t.Errorf("the setting %s is not shown", name)
		}
	}
	if len(documents) < 40 {
		t.Errorf("found %d settings", len(documents))
	}
}

// TestSettingsOf: each has the value of the environment, or is said to be unknown; limits have their defaults. What
// could be a secret in a URL is removed.
func TestSettingsOf(t *testing.T) {
	limits := DefaultLimits
	limits.MaxInFlight = 7
	env := map[string]string{EnvNAAN: "99999", EnvResearchProjects: "jingles=https://q/1,songs=https://q/2",
		EnvRevisions: "revisions", EnvContact: "https://me:secret@example.org/?token=secret"}
	all := map[string]string{}
	for _, one := range settingsOf(func(name string) string { return env[name] }, limits).Items {
		all[one.Name] = one.Value
		if one.Name == "maxInFlight" && one.Default != "100" {
			t.Errorf("%+v", one)
		}
		if one.Unknown && one.Value != "" || one.Name == "tags" && !one.Unknown || one.Group == "" || one.Says == "" {
			t.Errorf("%+v", one)
		}
		if strings.Contains(one.Value, "secret") {
			t.Errorf("%+v", one)
		}
	}
	for name, want := range map[string]string{"naan": "99999", "maxInFlight": "7", "failedDays": "30",
		"researchProjects": "jingles,songs", "revisionQueue": "true", "mailFrom": ""} {
		if all[name] != want {
			t.Errorf("%s is %q, want %q", name, all[name], want)
		}
	}
}
