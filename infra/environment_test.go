package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// TestEnvironmentsFit: the environment of the API has room for the most projects; what every function may call is
// bounded by its environment, and a deployment beyond that is refused with the settings that can be made shorter.
func TestEnvironmentsFit(t *testing.T) {
	for _, c := range []struct {
		targets int
		fits    bool
	}{{10, true}, {60, false}} {
		s := heard()
		var projects, targets []string
		for i := range mostProjects {
			projects = append(projects, fmt.Sprintf("%s-%02d", strings.Repeat("p", 20), i))
		}
		for i := range c.targets {
			targets = append(targets, fmt.Sprintf("arn:aws:lambda:us-east-1:111122223333:function:%s%02d",
				strings.Repeat("f", 20), i))
		}
		if wrong := s.readResearch(strings.Join(projects, ","), ""); wrong != nil {
			t.Fatal(wrong)
		}
		if wrong := s.readTargets(strings.Join(targets, ",")); wrong != nil {
			t.Fatal(wrong)
		}
		data, err := json.Marshal(map[string]any{"Resources": synth(t, s)})
		if err != nil {
			t.Fatal(err)
		}
		err = tooLarge(data)
		if (err == nil) != c.fits || err != nil && !strings.Contains(err.Error(), "consumerTargets") {
			t.Errorf("%d targets: %v", c.targets, err)
		}
	}
}
