package workflow

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"archivist/pkg/kernel/definition"
)

// Limits of values whose names other packages do not need.
const (
	maxText      = 500 // bytes of a name, a pattern, or a duration
	maxSchedules = 10  // of a task
	maxBackoff   = time.Hour
)

// DefaultBackoff is how long the second attempt of a task waits that sets no backoff.
const DefaultBackoff = 30 * time.Second

// DefaultShell runs the scripts of tasks that set none.
const DefaultShell = "bash"

// Forms of texts.
var (
	envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,99}$`)

	// secretName is that of a secret of an archive in Secrets Manager (source: its API, CreateSecret): see SecretsOf.
	secretName = regexp.MustCompile(`^archivist/tasks/[a-z][a-z0-9-]{0,39}/[A-Za-z0-9/_+=.@-]{1,400}$`)

	// imageName is that of a repository of images, with a registry, a tag or a digest.
	imageName = regexp.MustCompile(`^[a-z0-9]([a-zA-Z0-9._:/-]*[a-zA-Z0-9])?(@sha256:[0-9a-f]{64})?$`)
	shellName = regexp.MustCompile(`^[A-Za-z0-9/][A-Za-z0-9._/+-]{0,99}$`)
	decimal   = regexp.MustCompile(`^(0|-?[1-9][0-9]{0,9})$`)
)

// IsImage reports whether a text is the name of a container image, as a task can have it: so a
// deployment's list of images cannot have one that no task can name.
func IsImage(name string) bool { return imageName.MatchString(name) }

// reservedEnv begins the variables that the system sets.
const reservedEnv = "ARCHIVIST_"

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

// name reads a name of a task or a lock. "" and a problem if it has another form.
func (s *source) name(key string, n *node) string {
	return s.form(key, n, TaskName,
		"up to 60 letters, digits, dots, hyphens and underscores, the first a letter or "+
			"a digit")
}

// form reads a text of a form; "" and a problem if it has another. expected says what the form is,
// to people.
func (s *source) form(key string, n *node, form *regexp.Regexp, expected string) string {
	v := s.text(key, n, 1024)
	if v != "" && !form.MatchString(v) {
		s.refuse(n, "%s: %q: expected %s", key, clip(v), expected)
		return ""
	}
	return v
}

// pairs reads a mapping of variables, with a function for each value; nil if there is none. Names
// are those that every shell accepts; those that begin with reservedEnv are set by the runner, and
// cannot be.
func pairs[T any](s *source, key string, n *node, most int, value func(name string, v *node) T) map[string]T {
	if n.kind != mapping {
		s.refuse(n, "%s: expected %s, not %s", key, mapping, n.said())
		return nil
	}

	if len(n.keys) > most {
		s.refuse(n, "%s: %d variables; at most %d are accepted", key, len(n.keys), most)
		return nil
	}

	all := map[string]T{}
	for i, name := range n.keys {
		_, twice := all[name.text]
		switch {
		case twice:
			s.refuse(name, "%s: %s is set twice", key, name.text)
		case !envName.MatchString(name.text):
			s.refuse(name,
				"%s: %q is no name of a variable: letters, digits and underscores, the first no digit",
				key, clip(name.text))
		case strings.HasPrefix(name.text, reservedEnv):
			s.refuse(name, "%s: %s: variables that begin with %s are set by the system", key,
				clip(name.text), reservedEnv)
		default:
			all[name.text] = value(key+"."+name.text, n.values[i])
		}
	}

	if len(all) == 0 {
		return nil
	}
	return all
}

// env reads variables. Numbers, true and false are the text that is written: a variable is text in
// any case, so here nothing can be meant otherwise.
func (s *source) env(n *node) map[string]string {
	return pairs(s, "env", n, MaxEnv, func(name string, v *node) string { return s.variable(name, v, MaxEnvValue) })
}

// variable reads the value of a variable, of at most most bytes.
func (s *source) variable(name string, v *node, most int) string {
	if !v.scalar() || v.kind == empty {
		s.refuse(v, "%s: expected text, not %s", name, v.kind)
		return ""
	}
	return s.fits(name, v, most)
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

// integer reads a whole number between two, both included. Forms such as 0x10, 1_000 or 010 are
// refused: YAML's versions do not agree on what they are.
func (s *source) integer(key string, n *node, least, most int) int {
	v, err := strconv.Atoi(n.text)
	if n.kind != integer || !decimal.MatchString(n.text) || err != nil || v < least || v > most {
		s.refuse(n, "%s: %s: expected a whole number from %d to %d", key, n.said(), least, most)
		return least
	}
	return v
}

// duration reads a text such as 90s or 1h30m, or a whole number of seconds, between two, both
// included. Parts of a second are refused: no timer here is that exact.
func (s *source) duration(key string, n *node, least, most time.Duration) time.Duration {
	const expected = "expected a duration such as 90s, 5m or 1h30m, or a whole number of seconds"
	var v time.Duration
	var err error
	switch {
	// A number is of seconds, so that a value without a unit is never of nanoseconds.
	case n.kind == integer && decimal.MatchString(n.text):
		v, err = time.ParseDuration(n.text + "s")
	case n.kind == text:
		v, err = time.ParseDuration(n.text)
	default:
		s.refuse(n, "%s: %s: %s", key, n.said(), expected)
		return least
	}

	switch {
	case err != nil:
		s.refuse(n, "%s: %s: %s", key, n.said(), expected)
	case v < least || v > most:
		s.refuse(n, "%s: %s: expected from %s to %s", key, n.said(), brief(least), brief(most))
	case v%time.Second != 0:
		s.refuse(n, "%s: %s: expected whole seconds", key, n.said())
	default:
		return v
	}
	return least
}

// brief is a duration without the units that are zero.
func brief(d time.Duration) string {
	s := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(s, zero) {
			s = strings.TrimSuffix(s, zero[1:]) // 5m0s becomes 5m, and 1h0m becomes 1h
		}
	}
	return s
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

// patterns reads patterns of paths, in their order, since the last one that matches decides. Only
// exclusions would match nothing, which cannot be meant.
func (s *source) patterns(key string, n *node) []string {
	var all []string
	positive := false
	for _, v := range s.entries(key, n, MaxPaths) {
		p := s.text(key, v, maxText)
		if p == "" {
			continue
		}
		err := checkPattern(p)
		if err != nil {
			s.refuse(v, "%s: %q: %s", key, clip(p), err)
		}
		positive = positive || !strings.HasPrefix(p, "!")
		all = append(all, p)
	}

	if len(all) > 0 && !positive {
		s.refuse(n, `%s: only exclusions, which match nothing; begin with "**"`, key)
	}
	return all
}

// Triggers of tasks.
const (
	onCommit   = "commit"
	onDemand   = "manual"
	onSchedule = "schedule"
)

// readTriggers reads what starts the task: a list of words and schedules, or a mapping. A task that
// nothing would start is a problem.
func (d *draft) readTriggers(n *node) {
	t, s := &d.task, d.source
	before := len(s.problems)
	known := map[string]func(*node){
		onCommit:   func(v *node) { t.OnCommit = s.truth(onCommit, v) },
		onDemand:   func(v *node) { t.OnDemand = s.truth(onDemand, v) },
		onSchedule: func(v *node) { d.readSchedules(v) },
	}

	if n.kind == mapping {
		s.fields("triggers", n, known)
	} else {
		for _, v := range s.entries("triggers", n, maxSchedules+2) {
			d.readTrigger(v, known)
		}
	}

	// Said only if nothing else is wrong with the triggers: one that could not be read may have
	// been meant.
	if !t.OnCommit && !t.OnDemand && d.keys[onSchedule] == nil && len(s.problems) == before {
		s.refuse(n, "triggers: nothing would start the task")
	}
}

// readTrigger reads one entry of a list of triggers.
func (d *draft) readTrigger(n *node, known map[string]func(*node)) {
	switch {
	case n.kind == mapping:
		d.source.fields("triggers", n, known)
	case n.kind == text && n.text == onCommit:
		d.task.OnCommit = true
	case n.kind == text && n.text == onDemand:
		d.task.OnDemand = true
	case n.kind == text && n.text == onSchedule:
		d.source.refuse(n, `triggers: schedule needs times: "schedule: {cron: 30 2 * * *}"`)
	default:
		d.source.refuse(n, "triggers: %s: expected commit, manual or schedule", n.said())
	}
}

// readSchedules reads a schedule or a list of them.
func (d *draft) readSchedules(n *node) {
	d.keys[onSchedule] = n
	for _, v := range d.source.entries(onSchedule, n, maxSchedules) {
		if len(d.task.Schedules) == maxSchedules {
			d.source.refuse(v, "schedule: more than %d of a task", maxSchedules)
			return
		}
		d.task.Schedules = append(d.task.Schedules, d.source.schedule(v))
	}
}

// schedule reads one schedule. The zone is checked first, with a time that there is: so a wrong
// zone is not taken for a wrong cron. Times that never come, such as February 30, and forms with
// more or fewer than five fields are refused.
func (s *source) schedule(n *node) Schedule {
	out := Schedule{Zone: "UTC", Overlap: Skip}
	var cron, zone *node
	if !s.fields(onSchedule, n, map[string]func(*node){
		"cron": func(v *node) { cron, out.Cron = v, s.text("cron", v, maxText) },
		"zone": func(v *node) { zone, out.Zone = v, s.text("zone", v, maxText) },
		"overlap": func(v *node) {
			out.Overlap = Overlap(s.choice("overlap", v, string(Skip), string(Queue),
				string(Replace)))
		},
	}) {
		return out
	}

	if cron == nil {
		s.refuse(n, "schedule: cron is missing")
		return out
	}

	if _, err := definition.ParseSchedule("0 0 1 1 *", out.Zone); err != nil {
		if out.Zone != "" {
			s.refuse(zone, "zone: %q: expected a name such as Europe/Berlin", clip(out.Zone))
		}
		return out
	}

	_, err := definition.ParseSchedule(out.Cron, out.Zone)
	if out.Cron != "" &&
		(err != nil || len(strings.Fields(out.Cron)) != 5 || strings.Contains(out.Cron, "(")) {
		s.refuse(cron, "cron: %q: expected five fields (minute, hour, day of the month, month, day of the week) of a "+
			`time that there is, such as "30 2 * * *"`, clip(out.Cron))
	}
	return out
}

// choice reads one of some words; the first and a problem if it is none of them.
func (s *source) choice(key string, n *node, of ...string) string {
	if n.kind == text && slices.Contains(of, n.text) {
		return n.text
	}
	s.refuse(n, "%s: %s: expected %s", key, n.said(), strings.Join(of, ", "))
	return of[0]
}
