package research

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"archivist/cmd/archivist/command"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/terminal"
)

// researchLeasesCmd lists leases.
type researchLeasesCmd struct {
	projectName
	command.Limit
}

func (researchLeasesCmd) Prints() any { return v1.ResearchLease{} }

// Run lists the oldest first: one that hangs is at the top.
func (c *researchLeasesCmd) Run(a *command.App) error {
	return command.List(a, c.Limit, leaseColumns...)(a.Client.ResearchLeases(a.Ctx, c.Project, c.More()))
}

// leaseColumns show how far each lease is, who has it, and when it ends if no result extends it.
var leaseColumns = []terminal.Column[v1.ResearchLease]{
	{Title: "lease", Text: func(l v1.ResearchLease) string { return l.ID }},
	{Title: "episode", Text: func(l v1.ResearchLease) string { return l.Episode }},
	{Title: "results", Text: func(l v1.ResearchLease) string {
		return fmt.Sprintf("%d of %d", l.Stored, len(l.Clips))
	}},
	{Title: "researcher", Text: func(l v1.ResearchLease) string { return l.Researcher }, Share: 1},
	{
		Title: "created",
		Text:  func(l v1.ResearchLease) string { return command.Minute(l.Created) },
		Raw:   func(l v1.ResearchLease) string { return l.Created },
	},
	{
		Title: "until",
		Text:  func(l v1.ResearchLease) string { return command.Minute(l.Until) },
		Raw:   func(l v1.ResearchLease) string { return l.Until },
	},
}

// researchRevokeCmd ends a lease, of a researcher that hangs: it would otherwise end by itself, but later.
type researchRevokeCmd struct {
	projectName
	Lease  string `arg:"" help:"Id of a lease."`
	Reason string `required:"" help:"Why. It is kept in the events." placeholder:"TEXT"`
}

func (researchRevokeCmd) Prints() any { return v1.ResearchLease{} }

// Run ends it. Its pairs without a result are assigned again; what its researcher still reports is stored
// nevertheless.
func (c *researchRevokeCmd) Run(a *command.App) error {
	l, err := a.Client.RevokeLease(a.Ctx, c.Project, c.Lease, c.Reason)
	if err != nil {
		return err
	}
	return a.Print(l, func(p terminal.Page) {
		p.Fields("lease", l.ID, "episode", l.Episode, "researcher", l.Researcher, "results",
			strconv.Itoa(l.Stored),
			"ended", l.Ended, "why", l.Why)
	})
}

// researchResearchersCmd lists researchers.
type researchResearchersCmd struct{ projectName }

func (researchResearchersCmd) Prints() any { return v1.Researcher{} }

// Run lists them.
func (c *researchResearchersCmd) Run(a *command.App) error {
	return command.List(a, command.Limit{}, researcherColumns...)(a.Client.Researchers(a.Ctx, c.Project))
}

// researcherColumns show who is at work: how much each takes at once, on which host and with which software.
var researcherColumns = []terminal.Column[v1.Researcher]{
	{Title: "researcher", Text: func(r v1.Researcher) string { return r.Name }, Share: 1},
	{Title: "at once", Text: func(r v1.Researcher) string { return strconv.Itoa(r.Capacity) }},
	{Title: "host", Text: func(r v1.Researcher) string { return r.Host }, Share: 1},
	{Title: "software", Text: func(r v1.Researcher) string { return r.Software }, Share: 1},
	{
		Title: "since",
		Text:  func(r v1.Researcher) string { return command.Minute(r.Since) },
		Raw:   func(r v1.Researcher) string { return r.Since },
	},
}

// researchResultsCmd lists results.
type researchResultsCmd struct {
	projectName
	Episode string `xor:"of" required:"" help:"Key of an episode: all of its results." placeholder:"KEY"`
	Clip    string `xor:"of" required:"" help:"Key of a clip: its results with hits or a problem." placeholder:"KEY"`
	command.Limit
}

func (researchResultsCmd) Prints() any { return v1.ResearchResult{} }

// Run lists all results of an episode, or those of a clip that say something: a clip has one for each episode,
// nearly all without a hit.
func (c *researchResultsCmd) Run(a *command.App) error {
	// Exactly one of the two is given: kong sees to it (xor, required).
	kind, key := v1.Episodes, c.Episode
	if c.Clip != "" {
		kind, key = v1.Clips, c.Clip
	}
	return command.List(a, c.Limit, resultColumns...)(a.Client.ResearchResults(a.Ctx, c.Project, kind, key, c.More()))
}

// resultColumns have the number of hits and the first of them; `research export` has all.
var resultColumns = []terminal.Column[v1.ResearchResult]{
	{Title: "episode", Text: func(r v1.ResearchResult) string { return r.Episode }},
	{Title: "clip", Text: func(r v1.ResearchResult) string { return r.Clip }},
	{Title: "hits", Text: func(r v1.ResearchResult) string { return strconv.Itoa(len(r.Hits)) }},
	{Title: "first at", Text: firstHit},
	{
		Title: "problem",
		Text: func(r v1.ResearchResult) string {
			if r.Problem == nil {
				return ""
			}
			return r.Problem.Reason
		},
		Share: 1,
	},
	{
		Title: "stored",
		Text:  func(r v1.ResearchResult) string { return command.Minute(r.At) },
		Raw:   func(r v1.ResearchResult) string { return r.At },
	},
	{Title: "decision", Text: reviewText},
}

// firstHit is the time of the first hit in the episode, from its beginning; "" for none. It does not rely on
// their order.
func firstHit(r v1.ResearchResult) string {
	if len(r.Hits) == 0 {
		return ""
	}
	first := r.Hits[0].Offset
	for _, h := range r.Hits {
		first = min(first, h.Offset)
	}
	return time.Duration(first).Round(time.Millisecond).String()
}

// researchDifferencesCmd lists pairs that a person has to decide on.
type researchDifferencesCmd struct {
	projectName
	command.Limit
}

func (researchDifferencesCmd) Prints() any { return v1.ResearchDifference{} }

// Run lists them by episode and clip.
func (c *researchDifferencesCmd) Run(a *command.App) error {
	list, err := a.Client.ResearchDifferences(a.Ctx, c.Project, c.More())
	if err != nil {
		return err
	}
	list = command.Limited(a, c.Limit, list)
	return a.Print(list, func(p terminal.Page) {
		for _, d := range list {
			p.Fields("episode", d.Episode, "clip", d.Clip, "since", command.Minute(d.Since), "damage", d.Damage)
			terminal.Table(p, d.Results, opinionColumns...)
		}
	})
}

// opinionColumns show who has found what, with the lease by which a person chooses it.
var opinionColumns = []terminal.Column[v1.ResearchResult]{
	{Title: "researcher", Text: func(r v1.ResearchResult) string { return r.Researcher }, Share: 1},
	{Title: "hits", Text: func(r v1.ResearchResult) string { return strconv.Itoa(len(r.Hits)) }},
	{Title: "first at", Text: firstHit},
	{Title: "lease", Text: func(r v1.ResearchResult) string { return r.Lease }},
}

// opinionsText says what each researcher has found.
func opinionsText(d v1.ResearchDifference) string {
	var all []string
	for _, r := range d.Results {
		text := fmt.Sprintf("%s: %d hits", r.Researcher, len(r.Hits))
		if first := firstHit(r); first != "" {
			text += " from " + first
		}
		all = append(all, text+", lease "+r.Lease)
	}
	return strings.Join(all, "; ")
}

// researchDecideCmd decides about a pair.
type researchDecideCmd struct {
	projectName
	Episode string `arg:"" help:"Key of an episode."`
	Clip    string `arg:"" help:"Key of a clip."`
	Lease   string `xor:"how" required:"" help:"The lease whose result counts." placeholder:"ID"`
	Another bool   `xor:"how" required:"" help:"Ask one more researcher."`
	Reason  string `required:"" help:"Why. It is kept in the events." placeholder:"TEXT"`
}

func (researchDecideCmd) Prints() any { return v1.Explanation{} }

// Run decides, and shows what has become of the pair.
func (c *researchDecideCmd) Run(a *command.App) error {
	return command.Show(a, command.ShowExplanation)(
		a.Client.DecidePair(a.Ctx, c.Project, v1.ResearchDecision{Episode: c.Episode, Clip: c.Clip,
			Lease: c.Lease, Another: c.Another, Reason: c.Reason}))
}

// researchExportCmd exports offsets.
type researchExportCmd struct {
	projectName
	Episode string `help:"Only this episode. The formats webvtt and audacity need it." placeholder:"KEY"`
	Format  string `enum:"json,csv,webvtt,audacity" default:"csv" help:"${enum}."`
}

// Help says what the formats are for.
func (researchExportCmd) Help() string {
	return `csv has a line for each place, json an object in each line. webvtt is a track for players of the recording,
audacity a label track for its editor: both are sorted by time, and have the titles of the clips as text.`
}

// Run writes what is found as it comes, or sorted by time if the format is for one recording: only then is it
// held in memory.
func (c *researchExportCmd) Run(a *command.App) error {
	// These formats are for one recording, and players want their cues in the order of time.
	sorted := c.Format == v1.OffsetsWebVTT || c.Format == v1.OffsetsAudacity
	if sorted && c.Episode == "" {
		return command.Usage("the format %s is for one recording: add --episode KEY", c.Format)
	}

	var all []v1.ResearchOffset
	// The names of the columns, also if nothing is found.
	if c.Format == v1.OffsetsCSV {
		err := v1.WriteOffsets(a.Out, c.Format, true, nil)
		if err != nil {
			return err
		}
	}

	out := command.NewEncoder(a.Out)
	waiting, err := a.Client.ResearchOffsets(a.Ctx, c.Project, c.Episode,
		func(o v1.ResearchOffset) error {
			switch {
			case sorted:
				all = append(all, o)
				return nil
			case c.Format == v1.OffsetsCSV:
				return v1.WriteOffsets(a.Out, c.Format, false, []v1.ResearchOffset{o})
			}
			return out.Encode(o)
		})
	if err == nil && sorted {
		err = v1.WriteOffsets(a.Out, c.Format, true, all)
	}
	if err == nil && waiting > 0 {
		a.Warn("%s left out, because a person has to accept or reject them: archivist research reviews %s",
			terminal.Count(waiting, "place"), c.Project)
	}
	return err
}
