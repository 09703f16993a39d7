package main

import (
	"fmt"
	"strconv"
	"time"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/terminal"
)

// researchLeasesCmd lists leases.
type researchLeasesCmd struct {
	projectName
	limit
}

func (researchLeasesCmd) prints() any { return v1.ResearchLease{} }

// Run lists them.
func (c *researchLeasesCmd) Run(a *app) error {
	list, err := a.client.ResearchLeases(a.ctx, c.Project, c.more())
	if err != nil {
		return err
	}
	list = limited(a, c.limit, list)
	return a.print(list, func(p terminal.Page) { terminal.Table(p, list, leaseColumns...) })
}

var leaseColumns = []terminal.Column[v1.ResearchLease]{
	{Title: "lease", Text: func(l v1.ResearchLease) string { return l.ID }},
	{Title: "episode", Text: func(l v1.ResearchLease) string { return l.Episode }},
	{Title: "results", Text: func(l v1.ResearchLease) string {
		return fmt.Sprintf("%d of %d", l.Stored, len(l.Clips))
	}},
	{Title: "researcher", Text: func(l v1.ResearchLease) string { return l.Researcher }, Share: 1},
	{Title: "created", Text: func(l v1.ResearchLease) string { return minute(l.Created) },
		Raw: func(l v1.ResearchLease) string { return l.Created }},
	{Title: "until", Text: func(l v1.ResearchLease) string { return minute(l.Until) },
		Raw: func(l v1.ResearchLease) string { return l.Until }},
}

// researchRevokeCmd ends a lease.
type researchRevokeCmd struct {
	projectName
	Lease  string `arg:"" help:"Id of a lease."`
	Reason string `required:"" help:"Why. It is kept in the events." placeholder:"TEXT"`
}

func (researchRevokeCmd) prints() any { return v1.ResearchLease{} }

// Run ends it.
func (c *researchRevokeCmd) Run(a *app) error {
	l, err := a.client.RevokeLease(a.ctx, c.Project, c.Lease, c.Reason)
	if err != nil {
		return err
	}
	return a.print(l, func(p terminal.Page) {
		p.Fields("lease", l.ID, "episode", l.Episode, "researcher", l.Researcher, "results", strconv.Itoa(l.Stored),
			"ended", l.Ended, "why", l.Why)
	})
}

// researchResearchersCmd lists researchers.
type researchResearchersCmd struct{ projectName }

func (researchResearchersCmd) prints() any { return v1.Researcher{} }

// Run lists them.
func (c *researchResearchersCmd) Run(a *app) error {
	list, err := a.client.Researchers(a.ctx, c.Project)
	if err != nil {
		return err
	}
	list = limited(a, limit{}, list)
	return a.print(list, func(p terminal.Page) { terminal.Table(p, list, researcherColumns...) })
}

var researcherColumns = []terminal.Column[v1.Researcher]{
	{Title: "researcher", Text: func(r v1.Researcher) string { return r.Name }, Share: 1},
	{Title: "at once", Text: func(r v1.Researcher) string { return strconv.Itoa(r.Capacity) }},
	{Title: "host", Text: func(r v1.Researcher) string { return r.Host }, Share: 1},
	{Title: "software", Text: func(r v1.Researcher) string { return r.Software }, Share: 1},
	{Title: "since", Text: func(r v1.Researcher) string { return minute(r.Since) },
		Raw: func(r v1.Researcher) string { return r.Since }},
}

// researchResultsCmd lists results.
type researchResultsCmd struct {
	projectName
	Episode string `xor:"of" required:"" help:"Key of an episode: all of its results." placeholder:"KEY"`
	Clip    string `xor:"of" required:"" help:"Key of a clip: its results with hits or a problem." placeholder:"KEY"`
	limit
}

func (researchResultsCmd) prints() any { return v1.ResearchResult{} }

// Run lists them.
func (c *researchResultsCmd) Run(a *app) error {
	kind, key := v1.Episodes, c.Episode
	if c.Clip != "" {
		kind, key = v1.Clips, c.Clip
	}
	list, err := a.client.ResearchResults(a.ctx, c.Project, kind, key, c.more())
	if err != nil {
		return err
	}
	list = limited(a, c.limit, list)
	return a.print(list, func(p terminal.Page) { terminal.Table(p, list, resultColumns...) })
}

var resultColumns = []terminal.Column[v1.ResearchResult]{
	{Title: "episode", Text: func(r v1.ResearchResult) string { return r.Episode }},
	{Title: "clip", Text: func(r v1.ResearchResult) string { return r.Clip }},
	{Title: "hits", Text: func(r v1.ResearchResult) string { return strconv.Itoa(len(r.Hits)) }},
	{Title: "first at", Text: firstHit},
	{Title: "problem", Text: func(r v1.ResearchResult) string {
		if r.Problem == nil {
			return ""
		}
		return r.Problem.Reason
	}, Share: 1},
	{Title: "stored", Text: func(r v1.ResearchResult) string { return minute(r.At) },
		Raw: func(r v1.ResearchResult) string { return r.At }},
}

// firstHit is the time of the first hit in the episode.
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

// researchExplainCmd explains a pair.
type researchExplainCmd struct {
	projectName
	Episode string `arg:"" help:"Key of an episode."`
	Clip    string `arg:"" help:"Key of a clip."`
}

func (researchExplainCmd) prints() any { return v1.ResearchExplanation{} }

// Run explains.
func (c *researchExplainCmd) Run(a *app) error {
	x, err := a.client.ExplainPair(a.ctx, c.Project, c.Episode, c.Clip)
	if err != nil {
		return err
	}
	return a.print(x, func(p terminal.Page) {
		p.Fields("episode", x.Episode.Key+" "+x.Episode.Title, "clip", x.Clip.Key+" "+x.Clip.Title, "due", yesNo(x.Due),
			"why", x.Why)
		terminal.Table(p, x.Results, resultColumns...)
	})
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

// Run writes what is found as it comes, or sorted by time if the format is for one recording.
func (c *researchExportCmd) Run(a *app) error {
	sorted := c.Format == v1.OffsetsWebVTT || c.Format == v1.OffsetsAudacity
	if sorted && c.Episode == "" {
		return usage("the format %s is for one recording: add --episode KEY", c.Format)
	}
	var all []v1.ResearchOffset
	if c.Format == v1.OffsetsCSV {
		err := v1.WriteOffsets(a.out, c.Format, true, nil)
		if err != nil {
			return err
		}
	}
	out := encoder(a.out)
	err := a.client.ResearchOffsets(a.ctx, c.Project, c.Episode, func(o v1.ResearchOffset) error {
		switch {
		case sorted:
			all = append(all, o)
			return nil
		case c.Format == v1.OffsetsCSV:
			return v1.WriteOffsets(a.out, c.Format, false, []v1.ResearchOffset{o})
		}
		return out.Encode(o)
	})
	if err != nil || !sorted {
		return err
	}
	return v1.WriteOffsets(a.out, c.Format, true, all)
}
