package console

import (
	"html/template"
	"slices"
	"strconv"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/terminal"
)

// archives is the page of archives.
type archives struct {
	Items []v1.Archive
	None  string // why this deployment has none
}

// showArchives lists the archives.
func (c *Console) showArchives(v *visit) (view, error) {
	all, err := v.api.Archives(v.Context())
	a := archives{Items: all}
	if fault.Is(err, fault.Conflict) { // the deployment has no revision queue
		a.None, err = err.Error(), nil
	}
	return view{Title: "Archives", Body: a, Command: "archivist archive list",
		Said: terminal.Count(len(all), "archive") + "."}, err
}

// archive is the page of an archive.
type archive struct {
	v1.ArchiveStatus
	Revisions []v1.ArchiveRevision
	Earlier   string // the address of earlier revisions
	Names     []taskName
	Deeds     []deedOffer
	Events    []v1.Event
	Older     string
}

// taskName is a task by its name, with what can be done.
type taskName struct {
	Name     string
	Schedule *v1.ArchiveSchedule
	Run      string // the address of the form that runs it, below /console/; "" = it cannot
}

// showArchive shows an archive: how far it is planned, what runs, its schedules and revisions, and what can be done.
func (c *Console) showArchive(v *visit) (view, error) {
	name := v.PathValue("name")
	one, err := v.api.Archive(v.Context(), name)
	if err != nil {
		return view{}, err
	}
	a := archive{ArchiveStatus: one, Deeds: v.deedsOn("archive", []string{one.Mode}, name)}
	revisions, err := pageOf[v1.ArchiveRevision](v, parts("archives", name, "revisions"),
		v.field("cursor"))
	if err != nil {
		return view{}, err
	}
	a.Revisions, a.Earlier = revisions.Items, v.more("cursor", revisions.Cursor)
	if err := a.names(v); err != nil {
		return view{}, err
	}
	log, err := pageOf[v1.Event](v, parts("archives", name, "events"), v.field("events"))
	a.Events, a.Older = log.Items, v.more("events", log.Cursor)
	planning := slices.ContainsFunc(a.Revisions, func(r v1.ArchiveRevision) bool {
		return r.State == "planning" || r.State == "notified"
	})
	return view{Title: "Archive " + name, Body: a, Moving: len(one.RunningNow) > 0 || planning,
		Command: "archivist archive show " + quoted(name),
		Said: "The archive is " + one.Mode + ": " + terminal.Count(len(one.RunningNow),
			"task") + " run."}, err
}

// names adds the tasks of the newest planned revision, and those that have a schedule.
func (a *archive) names(v *visit) error {
	schedules := map[string]*v1.ArchiveSchedule{}
	var names []string
	for i, s := range a.Schedules {
		schedules[s.Task] = &a.Schedules[i]
		names = append(names, s.Task)
	}
	if a.Watermark > 0 {
		tasks, err := pageOf[v1.Task](v, parts("archives", a.Name, "tasks"), "")
		if err != nil {
			return err
		}
		for _, t := range tasks.Items {
			if t.Name != commit {
				names = append(names, t.Name)
			}
		}
	}
	slices.Sort(names)
	for _, n := range slices.Compact(names) {
		a.Names = append(a.Names, taskName{n, schedules[n], v.deedAt("archive", "run",
			[]string{a.Name, n})})
	}
	return nil
}

// commit is the name of the task that each revision has, and that nobody runs.
const commit = "COMMIT"

// revision is the page of a revision.
type revision struct {
	v1.RevisionPlan
	Archive string
	Picture template.HTML // of its tasks; "" = there is none
	Deeds   []deedOffer
	Events  []v1.Event
	Older   string
}

// showRevision shows a revision with its tasks, as a picture and as a list.
func (c *Console) showRevision(v *visit) (view, error) {
	name := v.PathValue("name")
	n, err := strconv.ParseInt(v.PathValue("n"), 10, 64)
	if err != nil || n < 1 {
		return view{}, fault.New(fault.NotFound, "there is no revision %s", cut(v.PathValue("n")))
	}
	plan, err := v.api.RevisionPlan(v.Context(), name, n, "")
	if err != nil {
		return view{}, err
	}
	r := revision{RevisionPlan: plan, Archive: name}
	failed, working := []string(nil), false
	for _, t := range plan.Plan {
		if t.State == "failed" {
			failed = []string{"failed"}
		}
		working = working || !v1.TaskEnded(t.State)
	}
	r.Deeds = v.deedsOn("revision", append(failed, plan.State), name, strconv.FormatInt(n, 10))
	if plan.Planned != "" && plan.State == "committed" {
		g, err := v.api.RevisionGraph(v.Context(), name, n)
		if err != nil {
			return view{}, err
		}
		r.Picture = pictureOf(whatWaits, "", g.Nodes, g.Links, func(id string) string {
			return baseOf(v.Request) + subjectPage("Task", id)
		})
	}
	path := parts("archives", name, "revisions", strconv.FormatInt(n, 10), "events")
	log, err := pageOf[v1.Event](v, path, v.field("events"))
	r.Events, r.Older = log.Items, v.more("events", log.Cursor)
	return view{Title: "Revision " + strconv.FormatInt(n, 10) + " of " + name, Body: r,
		Moving:  working || plan.State == "planning" || plan.State == "notified",
		Command: "archivist archive revision show " + quoted(name+"/"+strconv.FormatInt(n, 10)),
		Said:    number(plan.Ended) + " of " + number(plan.Tasks) + " tasks have ended."}, err
}
