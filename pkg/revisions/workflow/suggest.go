package workflow

import (
	"maps"
	"slices"
	"strings"
)

// elsewhere are names that other systems (GitHub Actions, GitLab CI and the like) use for keys of a
// task.
var elsewhere = map[string]string{
	"needs": "depends", "dependencies": "depends", "run": "script", "cmd": "command",
	"on":          "triggers",
	"environment": "env", "retry": "retries", "schedule": "triggers", "cron": "triggers",
	"artifacts": "outputs",
	"container": "image", "replaces": "cancels", "supersedes": "cancels",
}

// suggestKey is what a key may have been meant to be, as the end of a message.
func suggestKey(key string, known map[string]func(*node)) string {
	names := slices.Sorted(maps.Keys(known))
	near := nearest(key, names)
	if near == "" {
		near = elsewhere[nearest(key, slices.Sorted(maps.Keys(elsewhere)))]
	}
	if slices.Contains(names, near) {
		return "; did you mean " + near + "?"
	}
	return "; expected " + strings.Join(names, ", ")
}

// suggestTask is the name of a task that may have been meant, as the end of a message.
func suggestTask(name string, names []string) string {
	near := nearest(name, names)
	if near == "" {
		return ""
	}
	return "; did you mean " + near + "?"
}

// nearest is the first of the names that differ from a text in the fewest characters, and in at
// most a third of them; "" if there is none. Case does not count.
func nearest(from string, names []string) string {
	best, least := "", max(1, min(len(from), 60)/3)+1
	for _, name := range names {
		if n := distance(strings.ToLower(clip(from)), strings.ToLower(name)); n < least {
			best, least = name, n
		}
	}
	return best
}

// distance is the number of bytes to insert, remove or replace (source: Levenshtein). It keeps one
// row of the table; texts are short, since they are clipped.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}

	for i := range len(a) {
		left := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := left
			if a[i] != b[j] {
				cost++
			}
			left = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
