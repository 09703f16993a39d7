package doctor

import (
	"context"
	"maps"
	"slices"
	"strings"

	"archivist/pkg/events/event"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/kernel/table"
	"archivist/pkg/research"
)

// researchKinds are the kinds of rows of research. Their rules are in package research
// (Examine), beside the code that writes them.
var researchKinds = []kind{
	{pk: "RESEARCHPROJECT", sk: "RESEARCHPROJECT", check: checkResearched(event.ResearchProject)},
	{pk: "EPISODE", sk: "EPISODE", check: checkResearched(event.Episode)},
	{pk: "CLIP", sk: "CLIP", check: checkResearched(event.Clip)},
	{
		pk:      "RESEARCHLEASE",
		sk:      "RESEARCHLEASE",
		expires: true,
		check:   checkResearched(event.ResearchLease),
	},
	{pk: "CLIPS", check: checkResearch},
	{pk: "RESEARCHLINE", sk: "ready#", check: checkResearch},
	{pk: "RESEARCHLINE", sk: "closed#", check: checkResearch},
	{pk: "RESEARCHLINE", sk: "further#", check: checkResearch},
	{pk: "RESEARCHLINE", sk: "pending#", check: checkResearch},
	{pk: "RESEARCHLINE", sk: "due#", check: checkResearchDue},
	{pk: "RESEARCHCOUNTS", sk: "places#", check: checkResearch},
	{pk: "RESEARCHCOUNTS", sk: "round#", check: checkResearch},
	{pk: "RESEARCHWALK", sk: "WALK", check: checkResearch},
	{pk: "RESEARCHWALK", sk: "SAMPLES", check: checkResearch},
	{pk: "RESEARCHOPINIONS", sk: "by#", check: checkResearch},
	{pk: "RESEARCHOPINIONS", sk: "pair#", check: checkResearch},
	{pk: "RESEARCHFEEDS"},
	{pk: "RESEARCHERS", expires: true},
	{pk: "RESEARCHTAKEN", expires: true},
	{pk: "RESEARCHCONDUCT", expires: true},
	{pk: "RESULTS", check: checkResult},
}

// checkResearched checks a project, an episode, a clip or a lease, and its history. Their
// events name no state.
func checkResearched(of event.Type) func(context.Context, *rowCheck) error {
	return func(ctx context.Context, x *rowCheck) error {
		var row struct {
			table.Head
			Number int64 `dynamo:"version"`
		}

		if !x.decode(&row) {
			return nil
		}

		_, id, _ := strings.Cut(x.PK, "#")
		x.subject = strings.ToLower(strings.TrimPrefix(of.String(), "Research")) + ":" + id
		err := x.history(ctx, subjectOf(of, id), row.Number, "")
		if err != nil {
			return err
		}
		return checkResearch(ctx, x)
	}
}

// checkResearch checks a row by the rules of research.
func checkResearch(ctx context.Context, x *rowCheck) error {
	wrong, err := x.research.Examine(ctx, x.Raw)
	for _, w := range wrong {
		x.add(researchFinding(w), researchCommand(w), w.Repair, "%s", w.What)
	}
	return err
}

func researchFinding(w research.Wrong) string { return "research-" + string(w.Rule) }

// researchCommand is what a person does about what cannot be repaired.
func researchCommand(w research.Wrong) string {
	switch {
	case w.Repair != nil:
		return ""
	case w.Rule == research.RuleHeld:
		return "revoke the leases; their pairs without results are then assigned again"
	}
	return restoreRow
}

// checkResearchDue checks that the archivist of pending work ends what is over. The due time
// is in the sort key of the line's row.
func checkResearchDue(ctx context.Context, x *rowCheck) error {
	if due := research.Due(x.Key); x.late(due, "") {
		x.add("overdue", "look at the function pending-work: it runs each minute", nil,
			"it is due since %d", due)
	}
	return checkResearch(ctx, x)
}

// checkResult checks the first result of an episode that a page reads. The rule looks at all
// results of the episode with one read, so one of the rows is enough.
func checkResult(ctx context.Context, x *rowCheck) error {
	if x.before.PK == x.PK {
		return nil
	}
	return checkResearch(ctx, x)
}

// beginCounts begins to count the rows of research projects, and the events of the statistics, at the beginning of
// a run. Of projects it has the revisions of the rows of counts before the first row is read: if they are others at
// the end, something was counted meanwhile, and nothing is compared.
func (p *page) beginCounts(ctx context.Context) (err error) {
	if p.cursor.At != "" || p.cursor.Research != nil {
		return nil
	}

	p.cursor.Research, err = p.research.BeginRecount(ctx)
	if err != nil {
		return err
	}
	p.cursor.Statistics, err = p.statistics().BeginRecount(ctx)
	return err
}

// compareResearch compares the counts of research projects with their rows, at the end of all
// rows. The counts of the run are then dropped from the cursor, so that the next phase does
// not have them.
func (p *page) compareResearch(ctx context.Context) error {
	var problems []problem
	for _, name := range slices.Sorted(maps.Keys(p.cursor.Research)) {
		wrong, err := p.research.Compare(ctx, name, p.cursor.Research[name])
		if err != nil {
			return err
		}

		for _, w := range wrong {
			problems = append(problems, problem{Finding: queue.Finding{
				Invariant: researchFinding(w),
				Subject:   "project:" + name,
				Evidence:  w.What,
				Command:   researchCommand(w),
			}, repair: w.Repair})
		}
	}

	p.cursor.Research = nil
	return p.report(ctx, problems)
}
