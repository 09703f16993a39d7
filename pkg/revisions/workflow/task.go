package workflow

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// maxBackoff is the longest backoff that a task can set.
const maxBackoff = time.Hour

// DefaultBackoff is how long the second attempt of a task waits that sets no backoff.
const DefaultBackoff = 30 * time.Second

// DefaultShell runs the scripts of tasks that set none.
const DefaultShell = "bash"

// IsImage reports whether a text is the name of a container image, as a task can have it: so a
// deployment's list of images cannot have one that no task can name.
func IsImage(name string) bool { return imageName.MatchString(name) }

// task reads a task; nil if it has no name. Each key is read by a function of its own; the node of
// its value is kept, for problems that are found out later.
func (s *source) task(n *node) *draft {
	d := &draft{source: s, keys: map[string]*node{}}
	t := &d.task
	// Each value that is read is kept with its place, for problems that are found out later.
	note := func(key string, read func(*node)) func(*node) {
		return func(v *node) {
			d.keys[key] = v
			read(v)
		}
	}

	known := map[string]func(*node){
		"name":    func(v *node) { d.at, t.Name = v, s.name("name", v) },
		"depends": func(v *node) { d.readDepends(v) },
		"cancels": func(v *node) { d.readCancels(v) },
		"follow":  func(v *node) { t.Follow = s.truth("follow", v) },
		"image": func(v *node) {
			t.Image = s.form("image", v, imageName,
				"a name such as registry/image:tag")
		},
		"command": func(v *node) { t.Command = s.text("command", v, MaxScript) },
		"script":  func(v *node) { t.Script = s.text("script", v, MaxScript) },
		"shell": func(v *node) {
			t.Shell = s.form("shell", v, shellName,
				"a program such as bash")
		},
		"env":     func(v *node) { t.Env = s.env(v) },
		"secrets": func(v *node) { t.Secrets = s.secrets(v) },
		"outputs": func(v *node) { t.Outputs = s.patterns("outputs", v) },
		"timeout": func(v *node) {
			t.Timeout = s.duration("timeout", v, time.Second,
				MaxTimeout)
		},
		"retries":       func(v *node) { t.Retries = s.retries(v) },
		"triggers":      func(v *node) { d.readTriggers(v) },
		"lock":          func(v *node) { t.Lock = s.name("lock", v) },
		"paths":         func(v *node) { t.Paths = s.patterns("paths", v) },
		"interruptible": func(v *node) { t.Uninterruptible = !s.truth("interruptible", v) },
		"allowFailure":  func(v *node) { t.AllowFailure = s.truth("allowFailure", v) },
		"manual":        func(v *node) { t.Manual = s.manual(v) },
		"inputs":        func(v *node) { d.readInputs(v) },
		"parameters":    func(v *node) { t.Parameters = s.parameters(v) },
		"was":           func(v *node) { t.Was = s.name("was", v) },
	}

	for key, read := range known { // the map keeps its keys: only values are replaced
		known[key] = note(key, read)
	}

	if !s.fields("a task", n, known) {
		return nil
	}

	// A name of a wrong form is a problem that was noted already.
	if d.at == nil {
		s.refuse(n, "a task without name")
	}

	if t.Name == "" {
		return nil
	}

	d.fill()
	d.alone()
	return d
}

// fill sets what is left out. COMMIT has only dependencies, whatever else is written, which alone
// refuses.
func (d *draft) fill() {
	t := &d.task
	if d.keys["triggers"] == nil {
		t.OnCommit, t.OnDemand = true, true
	}

	if d.keys["timeout"] == nil {
		t.Timeout = DefaultTimeout
	}

	if d.keys["retries"] == nil {
		t.Retries = Retries{Attempts: 1, Backoff: DefaultBackoff}
	}

	if t.Script != "" && t.Shell == "" {
		t.Shell = DefaultShell
	}

	if t.Name == Commit {
		d.task = Task{Name: Commit, Depends: t.Depends}
	}
}

// alone checks what follows from the task by itself: keys that do not go together, or have no
// meaning without others.
func (d *draft) alone() {
	t := &d.task
	if t.Name == Commit {
		for key, v := range d.keys {
			if key != "name" && key != "depends" {
				d.source.refuse(v, "%s: only depends can be set of %s", key, Commit)
			}
		}
		return
	}

	if d.keys["command"] != nil && d.keys["script"] != nil {
		d.refuse("script", "command and script: only one of them can be set")
	}

	if d.keys["shell"] != nil && d.keys["script"] == nil {
		d.refuse("shell", "shell is for a script, and there is none")
	}

	if t.Timeout > LambdaTimeout && t.Image == "" {
		d.refuse("timeout", "timeout: more than %s needs an image", brief(LambdaTimeout))
	}

	for _, name := range slices.Sorted(maps.Keys(t.Secrets)) {
		if _, both := t.Env[name]; both {
			d.refuse("secrets", "secrets: %s is in env, too", name)
		}
	}

	if t.Was == t.Name {
		d.refuse("was", "was: this is the name that the task has")
	}

	d.parametersAlone()
	d.manualAlone()
}

// env reads variables. Numbers, true and false are the text that is written: a variable is text in
// any case, so here nothing can be meant otherwise.
func (s *source) env(n *node) map[string]string {
	return pairs(s, "env", n, MaxEnv, func(name string, v *node) string { return s.variable(name, v, MaxEnvValue) })
}

// secrets reads names of secrets, by variable. Their values are read only by the runner.
func (s *source) secrets(n *node) map[string]string {
	return pairs(s, "secrets", n, MaxEnv, func(name string, v *node) string {
		return s.form(name, v, secretName, "archivist/tasks/ARCHIVE/ and a name of letters, digits and /_+=.@-")
	})
}

// SecretsOf begins the names of the secrets that tasks of an archive may name. Whoever may commit to an archive decides
// what its tasks read, so they read no other one's.
func SecretsOf(archive string) string { return "archivist/tasks/" + archive + "/" }

// Foreign are problems of a definition that is fine in itself, but not in this archive: secrets of another one.
func (d *Definition) Foreign(archive string) (all []Problem) {
	for _, t := range d.Tasks {
		for _, name := range slices.Sorted(maps.Keys(t.Secrets)) {
			if !strings.HasPrefix(t.Secrets[name], SecretsOf(archive)) {
				all = append(all, Problem{File: Folder, Message: fmt.Sprintf(
					"the task %s: secrets.%s: %q: tasks of this archive have only secrets below %s",
					t.Name, name, clip(t.Secrets[name]), SecretsOf(archive))})
			}
		}
	}
	return all
}

// retries reads the number of attempts, by itself or with what is waited before the second.
func (s *source) retries(n *node) Retries {
	r := Retries{Attempts: 1, Backoff: DefaultBackoff}
	attempts := func(v *node) { r.Attempts = s.integer("attempts", v, 1, MaxAttempts) }
	if n.kind != mapping {
		r.Attempts = s.integer("retries", n, 1, MaxAttempts)
		return r
	}

	s.fields("retries", n, map[string]func(*node){
		"attempts": attempts,
		"backoff":  func(v *node) { r.Backoff = s.duration("backoff", v, time.Second, maxBackoff) },
	})

	return r
}
