package researchsim

import (
	"fmt"
	"slices"

	"archivist/pkg/research"
)

// thing is an episode or clip as the reference knows it: all that curators have said, and what went wrong.
type thing struct {
	said     []research.Curated
	aside    bool
	deferred int64 // until then
	failures []failure
}

// failure is who could not research a thing, and when.
type failure struct {
	at       int64
	by       string
	rejected bool
}

// loan is a lease as the reference knows it.
type loan struct {
	id, episode, analysis    string
	clips                    []string
	created, until, queueEnd int64
	accepted, ended          bool
	stored, announced        int
}

// reference is the requirement, written without rows, indexes and counts: it keeps all, and looks through all
// for each question.
type reference struct {
	now        func() int64
	times      research.Times
	analysis   string
	max        int
	paused     bool
	episodes   map[string]*thing
	clips      map[string]*thing
	researched map[[3]string]bool // analysis, episode, clip
	stored     map[string]bool    // results
	loans      []*loan
	presence   map[string]research.Researcher
}

func (r *reference) of(kind research.Kind) map[string]*thing {
	if kind == research.Clip {
		return r.clips
	}
	return r.episodes
}

// curate takes over what a curator says.
func (r *reference) curate(c research.Curated) {
	all := r.of(c.Kind)
	t := all[c.Key()]
	if t == nil {
		all[c.Key()] = &thing{said: []research.Curated{c}}
		return
	}
	was := folded(t.said)
	t.said = append(t.said, c)
	is := folded(t.said)
	if was.URL != is.URL || was.SHA256 != is.SHA256 {
		t.pardon()
	}
}

func (t *thing) pardon() { t.aside, t.deferred, t.failures = false, 0, nil }

// fail is the rule of problems: it is left alone for 10 minutes, and four times as long each time, a day at most. It is
// quarantined once two have rejected it, or three failures within a day are not all of one.
func (t *thing) fail(kind, by string, now int64) {
	if t.aside || t.deferred > now {
		return
	}
	t.failures = append(t.failures, failure{now, by, kind == research.Rejected})
	n, others, refusers := 0, map[string]bool{}, map[string]bool{}
	for _, f := range t.failures {
		if f.at > now-24*3600*1000 {
			n++
			others[f.by] = true
			if f.rejected {
				refusers[f.by] = true
			}
		}
	}
	if len(refusers) > 1 || n > 2 && len(others) > 1 {
		t.aside, t.deferred = true, 0
		return
	}
	t.deferred = now + int64([]int{10, 40, 160, 640, 1440, 1440, 1440}[n-1])*60_000
}

// can reports whether it can be researched.
func (r *reference) can(t *thing) bool {
	return !folded(t.said).Withdrawn && !t.aside && t.deferred <= r.now()
}

func (r *reference) live(l *loan) bool { return !l.ended && r.now() < l.until }

// sorted are the keys of those for which keep holds, in the order of the requirement.
func sorted(all map[string]*thing, keep func(key string, t *thing) bool) (keys []string) {
	for key, t := range all {
		if keep(key, t) {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, func(a, b string) int { return before(folded(all[a].said), folded(all[b].said), a, b) })
	return keys
}

// unresearched are the clips for which research with an episode is not complete.
func (r *reference) unresearched(episode string) []string {
	return sorted(r.clips, func(key string, t *thing) bool {
		return r.can(t) && !r.researched[[3]string{r.analysis, episode, key}]
	})
}

// unleased are those of them without an active lease.
func (r *reference) unleased(episode string) []string {
	return slices.DeleteFunc(r.unresearched(episode), func(clip string) bool {
		return slices.ContainsFunc(r.loans, func(l *loan) bool {
			return r.live(l) && l.analysis == r.analysis && l.episode == episode && slices.Contains(l.clips, clip)
		})
	})
}

// choose follows "Selecting Work" step by step.
func (r *reference) choose() (episode string, clips []string) {
	remaining := sorted(r.episodes, func(key string, t *thing) bool {
		return r.can(t) && len(r.unresearched(key)) > 0 && len(r.unleased(key)) > 0
	})
	if len(remaining) == 0 {
		return "", nil
	}
	clips = r.unleased(remaining[0])
	return remaining[0], clips[:min(len(clips), r.max)]
}

// pass follows "Checking Capacity", and returns the work items that are to be made.
func (r *reference) pass() (made []*loan) {
	for !r.paused {
		researchers, items := 0, 0
		for _, p := range r.presence {
			if r.now() < p.Until {
				researchers += p.Capacity
			}
		}
		for _, l := range r.loans {
			if r.live(l) && !l.accepted && r.now() < l.queueEnd {
				items++
			}
		}
		switch {
		case researchers == 0 && items > 0:
			return made
		case researchers > 0 && researchers-items < 0:
			return made
		}
		episode, clips := r.choose()
		if episode == "" {
			return made
		}
		l := &loan{episode: episode, clips: clips, analysis: r.analysis, created: r.now(),
			until: r.now() + r.times.Lease.Milliseconds(), queueEnd: r.now() + r.times.Queue.Milliseconds(),
			announced: -1}
		r.loans = append(r.loans, l)
		made = append(made, l)
	}
	return made
}

// loan is the lease of an id, nil if there is none.
func (r *reference) loan(id string) *loan {
	for _, l := range r.loans {
		if l.id == id {
			return l
		}
	}
	return nil
}

// record follows the "Work Completion Process".
func (r *reference) record(p research.Report) {
	problem, now := p.Problem, r.now()
	if p.Sequence > 0 && r.isStored(p) {
		return
	}
	switch {
	case p.Sequence == 0 || p.Analysis != r.analysis:
	case problem == nil:
		r.researched[[3]string{p.Analysis, p.Episode, p.Clip}] = true
	case problem.Of == string(research.Clip):
		r.clips[p.Clip].fail(problem.Kind, p.Researcher, now)
	default:
		r.episodes[p.Episode].fail(problem.Kind, p.Researcher, now)
	}
	l := r.loan(p.Lease)
	if l == nil || !r.live(l) || !l.accepted { // it is nobody's: then it is left as it is
		return
	}
	if p.Sequence > 0 {
		l.stored++
	}
	if p.Final && l.announced < 0 {
		l.announced = p.Count
	}
	if l.announced >= 0 && l.stored >= l.announced {
		l.ended = true
		return
	}
	l.until = max(l.until, min(now+r.times.Extension.Milliseconds(), l.created+r.times.Most.Milliseconds()))
}

// isStored reports whether a result was stored before, and stores it.
func (r *reference) isStored(p research.Report) bool {
	key := fmt.Sprint(p.Analysis, p.Clip, p.Lease, p.Sequence)
	was := r.stored[key]
	r.stored[key] = true
	return was
}
