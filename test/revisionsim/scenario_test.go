package revisionsim

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/revisions/archive"
	"archivist/pkg/revisions/workflow"
	"archivist/test/adversary"
)

// scenario is what happens in the run of a seed. It is drawn once, from the seed alone.
type scenario struct {
	rounds   int // of each actor, with faults
	archives int
	most     int           // revisions of an archive that people commit
	rate     int           // percentage of calls with a fault
	skew     time.Duration // at most, of each actor's clock
	latency  time.Duration // of a call, at most; mostly calls take no time
	cutOff   bool          // a function is ended at its time-out, as in Lambda
	lag      bool          // the list of archives that are to be looked at is behind
	fails    int           // percentage of runs that fail
	commits  int           // percentage of runs that commit
	people   bool          // people act often
	forced   bool          // revisions are replaced
	running  int           // instances at once, 0: as usual
	slow     bool          // transactions often take minutes, so that passes lose their leases

	throttling adversary.Throttling
}

// partitions can be throttled.
var partitions = []string{"TASKLINE#", "TASK#", "TASKLIVE#", "TASKTIMED#", "TASKCANCEL#", "TASKLOCK#", "TASKNAMES#",
	"ARCHIVE#", "REVISION#", "LEASE#"}

func draw(rng *rand.Rand) scenario {
	one := func(n int) bool { return rng.IntN(n) == 0 }
	s := scenario{rounds: 6, archives: 1, most: 3 + rng.IntN(3), rate: 5}
	if one(4) {
		s.archives = 2
	}
	if one(6) {
		s.rounds = 10
	}
	s.rate = []int{0, 3, 5, 5, 10, 18}[rng.IntN(6)]
	if one(3) {
		s.skew = 2 * time.Second
	}
	if one(6) {
		s.latency = time.Second
	}
	s.cutOff, s.lag, s.people, s.forced = one(3), one(4), one(3), one(8)
	s.fails = []int{0, 25, 50}[rng.IntN(3)]
	s.commits = []int{0, 0, 15}[rng.IntN(3)]
	if one(4) {
		s.running = 1 + rng.IntN(2)
	}
	s.slow = one(4)
	if one(10) {
		s.throttling = adversary.Throttling{Of: partitions[rng.IntN(len(partitions))], From: 60 + rng.IntN(300),
			For: 60}
	}
	return s
}

// spec is a definition as the reference knows it. The text that the queue reads is written from it.
type spec struct {
	invalid bool
	tasks   []*task
	commit  []string // tasks of earlier revisions for whose ends COMMIT waits
}

// task is one task of a spec.
type task struct {
	name                 string
	waits                []wait
	cancels              []string
	follow, fixed        bool
	lock, paths, was     string
	attempts             int
	schedule, overlap    string
	timeout, backoff     int // seconds
	manual, onlySchedule bool
	steps
}

// wait is a dependency of a task.
type wait struct {
	task        string
	prev, exact bool
	on          string // "": as usual
	allowed     bool   // the other task may fail
}

// needs is the condition of a dependency.
func (d wait) needs() string {
	switch {
	case d.on != "":
		return d.on
	case d.prev:
		return "ended"
	case d.allowed:
		return "finished"
	}
	return "succeeded"
}

func (s *spec) task(name string) *task {
	for _, t := range s.tasks {
		if t.name == name {
			return t
		}
	}
	return nil
}

// names of tasks. Their order is that of dependencies within a revision.
var names = []string{"a", "b", "c", "d"}

// invent draws a definition. before is that of the revision before, nil for none.
func invent(rng *rand.Rand, before *spec) *spec {
	one := func(n int) bool { return rng.IntN(n) == 0 }
	if before != nil && !before.invalid && !one(3) {
		return before // most revisions leave the definition as it is
	}
	if one(12) {
		return &spec{invalid: true}
	}
	s := &spec{}
	for _, name := range names {
		if len(s.tasks) == 0 && name == "b" || one(2) {
			s.tasks = append(s.tasks, &task{name: name, attempts: 1, timeout: 60 * (1 + rng.IntN(3)), backoff: 30,
				onlySchedule: one(12)})
		}
	}
	for i := range s.tasks {
		s.describe(rng, i)
	}
	s.drawSteps()
	for _, t := range s.tasks {
		if one(14) && t.planned() {
			s.commit = append(s.commit, t.name)
		}
	}
	if one(2) && before != nil && !before.invalid {
		s.rename(rng, before)
	}
	return s
}

// describe draws what a task does.
func (s *spec) describe(rng *rand.Rand, i int) {
	one := func(n int) bool { return rng.IntN(n) == 0 }
	t := s.tasks[i]
	if t.onlySchedule || one(12) {
		t.schedule, t.overlap = "*/7 * * * *", []string{"skip", "queue", "replace"}[rng.IntN(3)]
	}
	t.manual = !t.onlySchedule
	if !one(3) {
		t.cancels = append(t.cancels, t.name)
	}
	if other := s.tasks[rng.IntN(len(s.tasks))]; one(6) && other != t {
		t.cancels = append(t.cancels, other.name)
	}
	for _, other := range s.tasks[:i] {
		if one(3) && other.planned() {
			t.waits = append(t.waits, wait{task: other.name, on: []string{"", "", "ended", "failed"}[rng.IntN(4)]})
			t.follow = one(2)
		}
	}
	for _, other := range s.tasks {
		if one(5) && other.planned() && !slices.Contains(t.cancels, other.name) {
			on := []string{"", "", "", "succeeded", "failed"}[rng.IntN(5)]
			t.waits = append(t.waits, wait{task: other.name, prev: true, exact: one(3), on: on})
		}
	}
	t.fixed = one(5)
	if one(3) {
		t.lock = "disk"
	}
	if one(5) {
		t.paths = "src/**"
	}
	if one(3) {
		t.attempts = 2 + rng.IntN(2)
	}
}

// planned reports whether each revision plans the task.
func (t *task) planned() bool { return !t.onlySchedule }

// rename gives the names of tasks that are gone to others as their former names.
func (s *spec) rename(rng *rand.Rand, before *spec) {
	for _, old := range before.tasks {
		if s.task(old.name) == nil {
			s.tasks[rng.IntN(len(s.tasks))].was = old.name
		}
	}
}

// text is the definition as a file.
func (s *spec) text() string {
	if s.invalid {
		return "- {name: a, command: x, depends: [b]}\n- {name: b, command: x, depends: [a]}\n"
	}
	var b strings.Builder
	for _, t := range s.tasks {
		fmt.Fprintf(&b, "- name: %s\n  command: x\n  timeout: %d\n", t.name, t.timeout)
		fmt.Fprintf(&b, "  retries: {attempts: %d, backoff: %d}\n", t.attempts, t.backoff)
		for i, d := range t.waits {
			if i == 0 {
				b.WriteString("  depends:\n")
			}
			fmt.Fprintf(&b, "    - %s\n", d.text())
		}
		if len(t.cancels) > 0 {
			fmt.Fprintf(&b, "  cancels: [%s]\n", strings.Join(t.cancels, ", "))
		}
		for _, line := range []struct {
			is   bool
			text string
		}{{t.follow, "follow: true"}, {t.fixed, "interruptible: false"}, {t.lock != "", "lock: " + t.lock},
			{t.paths != "", "paths: [" + t.paths + "]"}, {t.was != "", "was: " + t.was}} {
			if line.is {
				fmt.Fprintf(&b, "  %s\n", line.text)
			}
		}
		b.WriteString(t.steps.text())
		if t.schedule != "" {
			fmt.Fprintf(&b, "  triggers: {commit: %t, manual: %t, schedule: {cron: \"%s\", overlap: %s}}\n",
				t.planned(), t.manual, t.schedule, t.overlap)
		}
	}
	if len(s.commit) > 0 {
		fmt.Fprintf(&b, "- name: COMMIT\n  depends: [PREV:%s]\n", strings.Join(s.commit, ", PREV:"))
	}
	if len(s.tasks) == 0 {
		b.WriteString("[]\n")
	}
	return b.String()
}

// text is the dependency as it is written.
func (d wait) text() string {
	name := d.task
	if d.prev {
		name = "PREV:" + name
	}
	more := ""
	if d.on != "" {
		more += ", on: " + d.on
	}
	if d.exact {
		more += ", scope: exact"
	}
	if more == "" {
		return name
	}
	return fmt.Sprintf(`{task: "%s"%s}`, name, more)
}

// commit is a revision of an archive in memory.
type commit struct {
	id      string // of the transaction
	spec    *spec
	changed []string
	token   string
}

// repository is an archive in memory.
type repository struct {
	commits []*commit
	broken  int // requests that are not answered
	byTask  int // commits that tasks have made
	longest int // before it was shortened
}

// add adds a revision, and returns its number.
func (r *repository) add(w *world, rng *rand.Rand, token string) int64 {
	c := &commit{id: "tx" + w.NewID(), token: token}
	var before *spec
	if n := len(r.commits); n > 0 {
		before = r.commits[n-1].spec
	}
	c.spec = invent(rng, before)
	c.changed = []string{[]string{"src/main.go", "readme.txt"}[rng.IntN(2)]}
	r.commits = append(r.commits, c)
	w.check.commits[c.id] = c
	return int64(len(r.commits))
}

// replace puts other revisions in the place of those from n on.
func (r *repository) replace(w *world, rng *rand.Rand, n int64) {
	count := int64(len(r.commits)) - n + 1
	r.commits = append([]*commit{}, r.commits[:n-1]...)
	for range count {
		r.add(w, rng, "")
	}
}

// snapshot is an archive as it was when it was opened.
type snapshot struct {
	a       *actor
	name    string
	commits []*commit
}

// unavailable is an error of an archive as its readers give it.
func unavailable(err error) error {
	if err == nil || fault.Of(err) != "" {
		return err
	}
	return fault.New(fault.Unavailable, "sim: the archive: %w", err)
}

func (s *snapshot) at(what string, n int64) (c *commit, err error) {
	err = s.a.Do(fmt.Sprintf("archive %s %s/%d", what, s.name, n), func() error {
		if n < 1 || n > int64(len(s.commits)) {
			return fault.New(fault.NotFound, "sim: there is no revision %d", n)
		}
		c = s.commits[n-1]
		return nil
	})
	return c, unavailable(err)
}

// Head is the newest revision.
func (s *snapshot) Head(context.Context) (int64, error) {
	err := s.a.Do("archive head "+s.name, func() error { return nil })
	return int64(len(s.commits)), unavailable(err)
}

// Revision describes a revision.
func (s *snapshot) Revision(_ context.Context, n int64) (archive.Revision, error) {
	c, err := s.at("revision", n)
	if err != nil {
		return archive.Revision{}, err
	}
	return archive.Revision{Number: n, Transaction: c.id, Token: c.token, Time: time.Unix(1, 0)}, nil
}

// Workflows are the definitions of a revision.
func (s *snapshot) Workflows(_ context.Context, n int64) ([]workflow.File, error) {
	c, err := s.at("workflows", n)
	if err != nil {
		return nil, err
	}
	f := workflow.File{Path: workflow.Folder + "/all.yaml", Data: []byte(c.spec.text())}
	_, problems := workflow.Parse([]workflow.File{f})
	if len(problems) > 0 != c.spec.invalid {
		s.a.w.check.fail("the definition of %s/%d: %+v\n%s", s.name, n, problems, f.Data)
	}
	return []workflow.File{f}, nil
}

// Changed are the paths that differ between two revisions.
func (s *snapshot) Changed(_ context.Context, base, n int64) ([]string, error) {
	paths := map[string]bool{}
	for i := base + 1; i <= n; i++ {
		c, err := s.at("changed", i)
		if err != nil {
			return nil, err
		}
		for _, p := range c.changed {
			paths[p] = true
		}
	}
	return slices.Sorted(maps.Keys(paths)), nil
}

// Checkout writes nothing: no task runs.
func (s *snapshot) Checkout(context.Context, int64, string) error { return nil }
