package workflow

import (
	"maps"
	"slices"
	"strings"

	"archivist/pkg/kernel/nearest"
)

// elsewhere are names that other systems (GitHub Actions, GitLab CI and the like) use for keys of a
// task.
var elsewhere = map[string]string{
	"needs": "depends", "dependencies": "depends", "run": "script", "cmd": "command",
	"on":          "triggers",
	"environment": "env", "retry": "retries", "schedule": "triggers", "cron": "triggers",
	"artifacts": "outputs", "allow_failure": "allowFailure", "continue-on-error": "allowFailure", "when": "manual",
	"container": "image", "replaces": "cancels", "supersedes": "cancels",
}

// suggestKey is what a key may have been meant to be, as the end of a message.
func suggestKey(key string, known map[string]func(*node)) string {
	names := slices.Sorted(maps.Keys(known))
	near := nearest.To(clip(key), names)
	if near == "" {
		near = elsewhere[nearest.To(clip(key), slices.Sorted(maps.Keys(elsewhere)))]
	}
	if slices.Contains(names, near) {
		return "; did you mean " + near + "?"
	}
	return "; expected " + strings.Join(names, ", ")
}

// suggestTask is the name of a task that may have been meant, as the end of a message.
func suggestTask(name string, names []string) string {
	near := nearest.To(clip(name), names)
	if near == "" {
		return ""
	}
	return "; did you mean " + near + "?"
}
