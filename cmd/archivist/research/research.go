package research

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"archivist/cmd/archivist/command"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/terminal"
)

// researchListCmd lists projects.
type researchListCmd struct{}

func (researchListCmd) Prints() any { return v1.ResearchProject{} }

// Run lists all, by name: a deployment names its projects, so there are few.
func (researchListCmd) Run(a *command.App) error {
	return command.List(a, command.Limit{}, projectColumns...)(a.Client.ResearchProjects(a.Ctx))
}

// projectColumns show the analysis of each project, which decides what counts as researched, and whether it is
// paused.
var projectColumns = []terminal.Column[v1.ResearchProject]{
	{Title: "project", Text: func(r v1.ResearchProject) string { return r.Name }},
	{Title: "analysis", Text: func(r v1.ResearchProject) string {
		return r.Analysis.Name + "@" +
			r.Analysis.Version
	}},
	{Title: "clips at once",
		Text: func(r v1.ResearchProject) string { return strconv.Itoa(r.MaxClips) }},
	{Title: "feeds", Text: func(r v1.ResearchProject) string { return strconv.Itoa(len(r.Feeds)) }},
	{Title: "paused", Text: func(r v1.ResearchProject) string { return r.Paused }, Share: 1},
}

// researchShowCmd shows a definition, too.
type researchShowCmd struct{ projectName }

func (researchShowCmd) Prints() any { return v1.ResearchProject{} }

// Run shows one project.
func (c *researchShowCmd) Run(a *command.App) error {
	return command.Show(a, showProject)(a.Client.ResearchProject(a.Ctx, c.Project))
}

// showProject prints a definition with its feeds. The round counts the analyses that the project has had.
func showProject(p terminal.Page, r v1.ResearchProject) {
	p.Fields("project", r.Name, "description", r.Description, "analysis", r.Analysis.Name+"@"+
		r.Analysis.Version,
		"round", strconv.FormatInt(r.Round, 10), "clips at once", strconv.Itoa(r.MaxClips), "quorum",
		quorumText(r.Quorum), "review", reviewedText(r.Review),
		"paused", r.Paused)
	for _, f := range r.Feeds {
		p.Fields("feed", fmt.Sprintf("%s (%ss of %s, every %s)", f.URL, f.Kind, f.Source,
			terminal.Count(f.EveryMinutes, "minute")))
	}
}

// quorumText says how many researchers have to agree; "" if one is enough.
func quorumText(n int) string {
	if n < 2 {
		return ""
	}
	return fmt.Sprintf("%d researchers have to find the same", n)
}

// reviewedText says what a review is; "" if there is none.
func reviewedText(is bool) string {
	if !is {
		return ""
	}
	return "a person accepts or rejects each place"
}

// researchApplyCmd creates or changes a project by a file. The deployment decides which projects there can be.
type researchApplyCmd struct {
	File   string `arg:"" help:"YAML or JSON file that holds the definition; - reads the standard input."`
	Reason string `help:"Why. It is kept in the events." placeholder:"TEXT"`
}

func (researchApplyCmd) Prints() any { return v1.ResearchProject{} }

// Help has the smallest definition.
func (researchApplyCmd) Help() string {
	return `The smallest definition:

  name: jingles
  analysis: {name: correlation, version: "1"}

The setting researchProjects of the deployment names the projects that there can be. What is not in the file gets its
default again.`
}

// Run creates the project, or replaces its definition as a whole. Another name or version of the analysis makes
// all pairs due again; earlier results stay. It refuses a file with an unknown field: a misspelt name would be
// ignored silently.
func (c *researchApplyCmd) Run(a *command.App) error {
	var d v1.ResearchDefinition
	err := a.ReadDefinition(c.File, "a research project", &d)
	if err != nil {
		return err
	}

	if d.Name == "" {
		return fault.New(fault.Invalid,
			"%s is not the definition of a research project: it has no name", c.File)
	}

	return command.Show(a, showProject)(a.Client.ApplyResearch(a.Ctx, d, c.Reason))
}

// researchPauseCmd pauses a project: no more work is assigned, and what is assigned goes on.
type researchPauseCmd struct {
	projectName
	Reason string `required:"" help:"Why. It is kept in the events." placeholder:"TEXT"`
}

func (researchPauseCmd) Prints() any { return v1.ResearchProject{} }

// Run pauses it.
func (c *researchPauseCmd) Run(a *command.App) error {
	return actOn(a, c.Project, v1.ResearchAction{Action: "pause", Reason: c.Reason})
}

// researchResumeCmd ends the pause of a project, or that of a researcher whose problems others do not have.
type researchResumeCmd struct {
	projectName
	Researcher string `help:"Only this researcher, which was paused because of its problems." placeholder:"NAME"`
	Reason     string `required:"" help:"Why. It is kept in the events." placeholder:"TEXT"`
}

func (researchResumeCmd) Prints() any { return v1.ResearchProject{} }

// Run resumes it.
func (c *researchResumeCmd) Run(a *command.App) error {
	return actOn(a, c.Project, v1.ResearchAction{Action: "resume", Researcher: c.Researcher, Reason: c.Reason})
}

// actOn acts on a project, and shows it.
func actOn(a *command.App, project string, action v1.ResearchAction) error {
	return command.Show(a, showProject)(a.Client.ActOnResearch(a.Ctx, project, action))
}

// researchStatusCmd shows how far a project is.
type researchStatusCmd struct {
	projectName
	command.Followed
}

func (researchStatusCmd) Prints() any { return v1.ResearchStatus{} }

// Help says when it has ended.
func (researchStatusCmd) Help() string {
	return `With --watch it ends when all pairs are researched. New recordings make that longer.`
}

// Run shows the numbers once, or until nothing is left to be researched.
func (c *researchStatusCmd) Run(a *command.App) error {
	if c.Watch {
		return a.Watch(func() (command.Snapshot, error) {
			s, err := a.Client.ResearchStatus(a.Ctx, c.Project)
			return statusSnapshot(s), err
		})
	}

	return command.Show(a, showResearch)(a.Client.ResearchStatus(a.Ctx, c.Project))
}

// statusSnapshot is the status in one line. It is over when all pairs are researched, and are not being counted
// again.
func statusSnapshot(s v1.ResearchStatus) command.Snapshot {
	n := s.Coverage
	text := fmt.Sprintf("%d of %s, %d leased, %s, %d in the last hour", n.Researched,
		terminal.Count(int(n.Pairs), "pair"), n.Leased, terminal.Count(s.Researchers, "researcher"),
		s.LastHour)

	if n.Differing > 0 {
		text += ", " + terminal.Count(int(n.Differing), "difference") + " to decide on"
	}

	if s.Unreviewed > 0 {
		text += ", " + terminal.Count(int(s.Unreviewed), "place") + " to review"
	}

	if s.Recounting {
		text += ", counting again"
	}
	return command.Snapshot{
		Things: []any{s},
		Text:   text,
		State:  s.Paused,
		Done:   n.Researched,
		Of:     n.Pairs,
		Bar:    true,
		Over:   n.Pairs > 0 && n.Researched == n.Pairs && !s.Recounting,
	}
}

// showResearch prints how far a project is: pairs, episodes and clips by state, the rate and the time that is
// left, who is at work, and what needs a person.
func showResearch(p terminal.Page, s v1.ResearchStatus) {
	oldest, left, counting := "", "", ""
	if l := s.OldestLease; l != nil {
		oldest = fmt.Sprintf("%s since %s%s", l.ID, l.Created, by(l.Researcher))
	}

	if s.RemainingSeconds > 0 {
		// At the rate of the last hour.
		left = (time.Duration(s.RemainingSeconds) * time.Second).String()
	}

	if s.Recounting {
		counting = "pairs are being counted again; the numbers may be out of date"
	}

	p.Fields("project", s.Project, "analysis", s.Analysis, "paused", s.Paused,
		"pairs", pairsText(s),
		"recount", counting,
		"episodes", fmt.Sprintf("%d ready, %d closed, %d away", s.Episodes.Ready, s.Episodes.Closed,
			s.Episodes.Away),
		"clips", fmt.Sprintf("%d live, %d away", s.Clips.Live, s.Clips.Away),
		"researchers", fmt.Sprintf("%d, for %d work items at once", s.Researchers, s.Capacity),
		"waiting", terminal.Count(s.Waiting, "work item"), "leases", strconv.Itoa(s.Leases),
		"oldest lease", oldest,
		"results", strconv.FormatInt(s.Results, 10), "to review", unreviewedText(s.Unreviewed),
		"time left", left)

	for _, d := range s.Differences {
		p.Fields("differs", fmt.Sprintf("%s %s: %s", d.Episode, d.Clip, opinionsText(d)))
	}

	for _, r := range s.Pauses {
		p.Fields("researcher",
			fmt.Sprintf("%s is paused until %s: %s", r.Researcher, command.Minute(r.Until), r.Reason))
	}

	terminal.Table(p, s.Trouble, troubleColumns...)
}

// pairsText says how many pairs are in each state; those that only a project with a quorum has are
// left out if there are none.
func pairsText(s v1.ResearchStatus) string {
	n := s.Coverage
	text := fmt.Sprintf("%d: %d researched, %d in the last hour, ", n.Pairs, n.Researched,
		s.LastHour)
	if n.Differing > 0 {
		text += fmt.Sprintf("%d differ, ", n.Differing)
	}
	text += fmt.Sprintf("%d leased, ", n.Leased)
	if n.Waiting > 0 {
		text += fmt.Sprintf("%d wait for another researcher, ", n.Waiting)
	}
	return text + fmt.Sprintf("%d open", n.Open)
}

// unreviewedText says how many places wait for a person; "" for none.
func unreviewedText(n int64) string {
	if n == 0 {
		return ""
	}
	return terminal.Count(int(n), "place")
}

// by is who has a lease; "" if nobody has accepted it yet.
func by(name string) string {
	if name == "" {
		return ""
	}
	return " by " + name
}

// troubleColumns are episodes and clips that are set aside or deferred, and until when.
var troubleColumns = []terminal.Column[v1.ResearchTrouble]{
	{Title: "kind", Text: func(t v1.ResearchTrouble) string { return t.Kind }},
	{Title: "key", Text: func(t v1.ResearchTrouble) string { return t.Media.Key }},
	{Title: "state", Text: func(t v1.ResearchTrouble) string { return t.Media.State }},
	{Title: "reason", Text: func(t v1.ResearchTrouble) string { return t.Media.Reason }, Share: 1},
	{
		Title: "until",
		Text:  func(t v1.ResearchTrouble) string { return command.Minute(t.Media.Until) },
		Raw:   func(t v1.ResearchTrouble) string { return t.Media.Until },
	},
}

// researchHistoryCmd lists what happened to the project or to a part of it: a recording, or a lease.
type researchHistoryCmd struct {
	projectName
	Part string `arg:"" optional:"" help:"episodes/KEY, clips/KEY or leases/ID. Without it, the project itself."`
	command.Limit
}

func (researchHistoryCmd) Prints() any { return v1.Event{} }

// Run lists events, oldest first. A part of another form is refused here: it is a part of the path of the
// request.
func (c *researchHistoryCmd) Run(a *command.App) error {
	name, key, some := strings.Cut(c.Part, "/")
	known := name == v1.Episodes || name == v1.Clips || name == "leases"
	if c.Part != "" && (!some || !known || key == "" || strings.Contains(key, "/")) {
		return command.Usage("%s: expected episodes/KEY, clips/KEY or leases/ID", c.Part)
	}

	return command.List(a, c.Limit, command.ChangeColumns...)(
		a.Client.ResearchEvents(a.Ctx, c.Project, c.Part, c.More()))
}
