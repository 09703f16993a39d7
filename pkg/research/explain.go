package research

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"archivist/pkg/kernel/explain"
	"archivist/pkg/kernel/fault"
)

// resume is how a person ends the pause of a project.
func resume(project string) explain.Step {
	return explain.Step{What: "Resume the project", Command: "archivist research resume " + project + " --reason TEXT"}
}

// revoke is how a person ends a lease.
func (l *Lease) revoke() explain.Step {
	return explain.Step{What: "If its researcher does not go on, end the lease",
		Command: fmt.Sprintf("archivist research revoke %s %s --reason TEXT", l.Project, l.ID)}
}

// kinds are what episodes and clips are in explanations.
var kinds = map[Kind]string{Episode: explain.Episode, Clip: explain.Clip}

// ExplainMedia says whether an episode has pairs that are due, or whether a clip is looked for, and why not. A NotFound
// means that there is no such project, episode or clip.
func (s *Store) ExplainMedia(ctx context.Context, kind Kind, project, key string) (explain.Explanation, error) {
	k, err := s.Get(ctx, kind, project, key)
	if err != nil {
		return explain.Explanation{}, err
	}

	p := explain.Part{Link: explain.Link{Kind: kinds[kind], ID: project + "/" + key, State: string(k.State)}}
	switch {
	case !k.live():
		explainAway(&p, kind, project, key, &k.Media)
	case kind == Clip:
		p.Waits, p.Why = explain.Nothing, "it is looked for in all episodes"
	case k.Full != "":
		p.Waits, p.Why = explain.Limit, k.Full
	case k.Pairs == 0:
		p.Waits, p.Why = explain.Nothing, "there is no clip to look for"
	case k.State == Ready:
		p.Waits = explain.Turn
		p.Why = fmt.Sprintf("%d of its %d pairs are due", k.Pairs-k.Researched-k.Leased, k.Pairs)
	case k.Differing > 0:
		p.Waits, p.Why = explain.Person, fmt.Sprintf("the results of %d pairs differ", k.Differing)
		p.Do = []explain.Step{{What: "See which", Command: "archivist research differences " + project}}
	case k.Leased > 0:
		p.Waits, p.Why = explain.Worker, fmt.Sprintf("its last %d pairs are under leases", k.Leased)
	case k.Researched < k.Pairs: // e.g. clips have come since it was looked at
		p.Waits = explain.Turn
		p.Why = fmt.Sprintf("%d of its %d pairs are open; a pass looks at it again within minutes",
			k.Pairs-k.Researched, k.Pairs)
	default:
		p.Waits, p.Why = explain.Nothing, fmt.Sprintf("all of its %d pairs are researched", k.Pairs)
	}

	p.Add("title", k.Title)
	if kind == Episode {
		p.Add("pairs researched", fmt.Sprintf("%d of %d", k.Researched, k.Pairs))
	}
	return explain.Only(p), nil
}

// ExplainLease says who works on a lease, and until when. A NotFound means that there is no such lease, or that it
// ended some weeks ago.
func (s *Store) ExplainLease(ctx context.Context, id string) (explain.Explanation, error) {
	l, err := s.Lease(ctx, id)
	if err != nil {
		return explain.Explanation{}, err
	}

	p := explain.Part{Link: explain.Link{Kind: explain.Lease, ID: id, State: "open", Waits: explain.Researcher,
		Why: "No researcher has accepted it yet."}, Since: l.Created, Until: l.Until, Do: []explain.Step{l.revoke()}}
	switch {
	case l.Ended > 0:
		p.State, p.Waits, p.Do = "ended", explain.Nothing, nil
		p.Why = fmt.Sprintf("It has ended at %s: %s. %d results came of it.", timeText(l.Ended), l.Why, l.Stored)
		p.Until = 0
	case l.Until <= s.now():
		p.Waits, p.Why = explain.Turn, "Its time is over; the next pass of the assigner ends it."
	case l.Accepted > 0:
		p.State, p.Waits, p.Since = "accepted", explain.Worker, l.Accepted
		p.Why = fmt.Sprintf("%s works on it: %d of %d clips have a result.", l.Researcher, l.Stored, len(l.Clips))
	}
	p.Add("project", l.Project)
	p.Add("episode", l.Episode)
	p.Add("researcher", l.Researcher)
	return explain.Only(p), nil
}

// ExplainProject says whether a project assigns work, and what it lacks. A NotFound means that there is no such
// project.
func (s *Store) ExplainProject(ctx context.Context, name string) (explain.Explanation, error) {
	st, err := s.Status(ctx, name)
	if err != nil {
		return explain.Explanation{}, err
	}

	p := explain.Part{Link: explain.Link{Kind: explain.Project, ID: name, State: "active", Waits: explain.Nothing,
		Why: "all pairs are researched"}}
	switch {
	case st.Paused != "":
		p.State, p.Waits, p.Why, p.Do = "paused", explain.Hold, "it is paused: "+st.Paused, []explain.Step{resume(name)}
	case st.Pairs == 0:
		p.Why = "it has no pairs yet: an episode and a clip make one"
	case st.Open > 0 && st.Researchers == 0:
		p.Waits, p.Why = explain.Researcher, fmt.Sprintf("%d pairs are due, but no researcher is present", st.Open)
	case st.Open > 0:
		p.Waits, p.Why = explain.Turn, fmt.Sprintf("%d pairs are due; %d are under leases", st.Open, st.Leased)
	case st.Leased > 0:
		p.Waits, p.Why = explain.Worker, fmt.Sprintf("its last %d pairs are under leases", st.Leased)
	case len(st.Differing) > 0:
		p.Waits, p.Why = explain.Person, "the results of some pairs differ"
		p.Do = []explain.Step{{What: "See which", Command: "archivist research differences " + name}}
	}
	p.Add("pairs researched", fmt.Sprintf("%d of %d", st.Researched, st.Pairs))
	p.Add("researchers present", strconv.Itoa(st.Researchers))
	return explain.Only(p), nil
}

// ExplainResearcher says whether a researcher is present, and whether it gets work. A NotFound means that there is no
// such project, or that the researcher is neither present nor paused.
func (s *Store) ExplainResearcher(ctx context.Context, project, name string) (explain.Explanation, error) {
	if _, err := s.Project(ctx, project); err != nil {
		return explain.Explanation{}, err
	}

	present, err := s.Researchers(ctx, project)
	if err != nil {
		return explain.Explanation{}, err
	}

	pauses, err := s.Pauses(ctx, project)
	if err != nil {
		return explain.Explanation{}, err
	}

	p := explain.Part{Link: explain.Link{Kind: explain.Member, ID: project + "/" + name}}
	i := slices.IndexFunc(present, func(r Researcher) bool { return r.Name == name })
	j := slices.IndexFunc(pauses, func(r Pause) bool { return r.Researcher == name })
	switch {
	case j >= 0:
		p.State, p.Waits, p.Until = "paused", explain.Hold, pauses[j].Until
		p.Why = "it gets no work items, because of its problems, which nobody else had; the last: " + pauses[j].Reason
		p.Do = []explain.Step{{What: "End its pause", Command: fmt.Sprintf(
			"archivist research resume %s --researcher %s --reason TEXT", project, name)}}
	case i >= 0:
		p.State, p.Waits, p.Since, p.Until = "present", explain.Nothing, present[i].Since, present[i].Until
		p.Why = fmt.Sprintf("it is present, and takes %d work items at once", present[i].Capacity)
	default:
		return explain.Explanation{}, fault.New(fault.NotFound, "there is no researcher %s in the project %s: it is "+
			"neither present nor paused", name, project)
	}

	if i >= 0 {
		p.Add("host", present[i].Host)
		p.Add("software", present[i].Software)
	}
	return explain.Only(p), nil
}
