package api

import (
	"cmp"
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"golang.org/x/sync/errgroup"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/events/event"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/research"
	"archivist/pkg/research/curation"
)

// ProjectInput names a research project.
type ProjectInput struct {
	Project string `path:"project" maxLength:"40"`
}

// ProjectCursor names a research project and a page of one of its lists.
type ProjectCursor struct {
	ProjectInput
	Cursor string `query:"cursor" maxLength:"4000"`
}

// PutProject is a request to create or replace the definition of a research project.
type PutProject struct {
	ProjectInput
	Acting
	Reason string `query:"reason" maxLength:"500"`
	Body   v1.ResearchDefinition
}

// ProjectAction is a request to act on a research project.
type ProjectAction struct {
	ProjectInput
	Acting
	Body v1.ResearchAction
}

// PutRecords is a request to add records of episodes or clips.
type PutRecords struct {
	ProjectInput
	Caller
	Body v1.ResearchRecords
}

// MediaInput selects episodes or clips.
type MediaInput struct {
	ProjectCursor
	State string `query:"state" maxLength:"20"`
}

// KeyInput names an episode or a clip.
type KeyInput struct {
	ProjectInput
	Key string `path:"key" maxLength:"40"`
}

// KeyCursor names an episode or a clip and a page of one of its lists.
type KeyCursor struct {
	KeyInput
	Cursor string `query:"cursor" maxLength:"4000"`
}

// RetryRequest is a request to research an episode or a clip again.
type RetryRequest struct {
	KeyInput
	Asking
	Body v1.ResearchRetry
}

// maxCuration is the size of a request with a hundred records. Other requests have the framework's
// limit of 1 MiB.
const maxCuration = 2 << 20

// researchProject is the path of a research project, below which are the routes of all that it has.
const researchProject = "/v1/research/{project}"

// research registers the routes of projects, and those of their episodes and clips.
func (a *API) research(h huma.API) {
	const project = researchProject
	get(a, h, "/v1/research", "listResearchProjects", "List the research projects", a.listProjects)
	get(a, h, project, "getResearchProject", "Get a research project",
		func(ctx context.Context, in *ProjectInput) (v1.ResearchProject, error) {
			return a.project(ctx, in.Project)
		})

	put(a, h, project, "putResearchProject", "Create or change a research project", a.putProject)
	post(a, h, project+"/actions", "actOnResearchProject", "Pause or resume a research project",
		a.actOnProject)
	get(a, h, project+"/events", "listResearchProjectEvents",
		"List the events of a research project",
		func(ctx context.Context, in *ProjectCursor) (v1.List[v1.Event], error) {
			return a.events(event.ResearchProject)(ctx,
				&IDCursor{ID: in.Project, Cursor: in.Cursor})
		})

	a.researchMedia(h, project+"/episodes", "Episode", "an episode", research.Episode,
		event.Episode)
	a.researchMedia(h, project+"/clips", "Clip", "a clip", research.Clip, event.Clip)
}

// researchMedia registers the routes of episodes or clips. Both have the same routes; name is what the
// ids of the operations have, one is it in a sentence, and of the type of their events.
func (a *API) researchMedia(h huma.API, path, name, one string, kind research.Kind, of event.Type) {
	many := strings.ToLower(name) + "s"
	register(a, h, huma.Operation{
		Method:       http.MethodPut,
		Path:         path,
		OperationID:  "put" + name + "s",
		Summary:      "Add records of " + many,
		MaxBodyBytes: maxCuration,
	},
		func(ctx context.Context, in *PutRecords) (v1.List[v1.ResearchRecorded], error) {
			return a.curate(ctx, in, kind)
		})

	get(a, h, path, "list"+name+"s", "List "+many,
		func(ctx context.Context, in *MediaInput) (out v1.List[v1.ResearchMedia], err error) {
			page, next, err := a.Research.List(ctx, kind, in.Project, research.State(in.State),
				in.Cursor)
			out.Items, out.Cursor = each(page, wireMedia), next
			return out, err
		})

	get(a, h, path+"/{key}", "get"+name, "Get "+one,
		func(ctx context.Context, in *KeyInput) (v1.ResearchMedia, error) {
			return a.media(ctx, kind, in)
		})

	post(a, h, path+"/{key}/actions", "retry"+name, "Research "+one+" again",
		func(ctx context.Context, in *RetryRequest) (v1.ResearchMedia, error) {
			by, err := in.by(in.Body.Reason)
			if err != nil {
				return v1.ResearchMedia{}, err
			}

			if err := a.Research.Retry(ctx, kind, in.Project, in.Key, by); err != nil {
				return v1.ResearchMedia{}, err
			}
			return a.media(ctx, kind, &in.KeyInput)
		})

	get(a, h, path+"/{key}/events", "list"+name+"Events", "List the events of "+one,
		func(ctx context.Context, in *KeyCursor) (v1.List[v1.Event], error) {
			return a.events(of)(ctx, &IDCursor{ID: in.Project + "/" + in.Key, Cursor: in.Cursor})
		})

	get(a, h, path+"/{key}/results", "list"+name+"Results", "List the results of "+one,
		func(ctx context.Context, in *KeyCursor) (v1.List[v1.ResearchResult], error) {
			return a.results(ctx, kind, in)
		})
}

// listProjects lists the projects of the deployment that are configured; there are few enough for one
// page.
func (a *API) listProjects(ctx context.Context,
	_ *struct{}) (out v1.List[v1.ResearchProject], err error) {
	all, err := a.Research.All(ctx)
	out.Items = each(all, wireProject)
	return out, err
}

// wireProject is the wire form of a project.
func wireProject(p research.ProjectState) v1.ResearchProject {
	return v1.ResearchProject{
		ResearchDefinition: v1.ResearchDefinition(p.Project),
		Round:              p.Generation,
		Paused:             p.Paused,
	}
}

// project is a project, a NotFound if there is none of that name.
func (a *API) project(ctx context.Context, name string) (v1.ResearchProject, error) {
	p, err := a.Research.Project(ctx, name)
	return wireProject(p), err
}

// putProject creates or replaces a definition. The name in the body may be left out; if it is there, it
// has to be that of the path.
func (a *API) putProject(ctx context.Context, in *PutProject) (out v1.ResearchProject, err error) {
	if in.Body.Name != "" && in.Body.Name != in.Project {
		return out, fault.New(fault.Invalid, "name: %q; the path names %q", in.Body.Name,
			in.Project)
	}

	in.Body.Name = in.Project
	by, err := in.by(in.Reason)
	if err != nil {
		return out, err
	}

	if err := a.Research.Apply(ctx, research.Project(in.Body), by); err != nil {
		return out, err
	}
	return a.project(ctx, in.Project)
}

// actOnProject pauses a project or resumes it; the schema allows no other action.
func (a *API) actOnProject(ctx context.Context,
	in *ProjectAction) (out v1.ResearchProject, err error) {
	by, err := in.by(in.Body.Reason)
	if err != nil {
		return out, err
	}

	do, name := a.Research.Pause, in.Body.Researcher
	switch {
	case in.Body.Action == "resume" && name != "":
		do = func(ctx context.Context, project string, by research.By) error {
			return a.Research.ResumeResearcher(ctx, project, name, by)
		}
	case in.Body.Action == "resume":
		do = a.Research.Resume
	case name != "":
		return out, fault.New(fault.Invalid, "researcher: the action pause has no such field")
	}

	err = do(ctx, in.Project, by)
	if err != nil {
		return out, err
	}
	return a.project(ctx, in.Project)
}

// episodesAtOnce is how many records of episodes are kept at once. Clips share their project's row, so they
// are kept one after the other.
const episodesAtOnce = 8

// curate keeps records, and answers each by itself. The answers are in the order of the records. An
// error of one is that of the request, although others may be kept; the same request again is right,
// since a record that says nothing new changes nothing.
func (a *API) curate(ctx context.Context, in *PutRecords,
	kind research.Kind) (out v1.List[v1.ResearchRecorded],
	err error) {
	by, err := in.by("")
	if err != nil {
		return out, err
	}

	if _, err := a.Research.Project(ctx, in.Project); err != nil {
		return out, err
	}

	out.Items = make([]v1.ResearchRecorded, len(in.Body.Records))
	var group errgroup.Group
	group.SetLimit(1)
	if kind == research.Episode {
		group.SetLimit(episodesAtOnce)
	}

	for i, r := range in.Body.Records {
		group.Go(func() (err error) {
			out.Items[i], err = a.curateOne(ctx, in.Project, kind, r, by)
			return err
		})
	}
	return out, group.Wait()
}

// curateOne keeps a record. What is wrong with it is in the result, so that it does not refuse the
// others; so is that it can be sent again later. Any other error refuses the request.
func (a *API) curateOne(ctx context.Context, project string, kind research.Kind,
	r v1.ResearchRecord,
	by research.By) (v1.ResearchRecorded, error) {
	key, err := a.keep(ctx, project, kind, r, by)
	switch {
	case fault.Is(err, fault.Invalid):
		field, _, _ := strings.Cut(err.Error(), " ")
		return v1.ResearchRecorded{Problem: err.Error(), Field: fieldOf(field)}, nil
	case fault.Is(err, fault.Unavailable):
		a.Log.Warn("a record was not kept", "project", project, "error", err)
		return v1.ResearchRecorded{Problem: notNow, Retry: true}, nil
	}
	return v1.ResearchRecorded{Key: key}, err
}

// keep keeps a record, and returns the key of its episode or clip. An Invalid begins with the name of
// the field that is wrong (fieldOf).
func (a *API) keep(ctx context.Context, project string, kind research.Kind, r v1.ResearchRecord,
	by research.By) (key string, err error) {
	c := research.Curated{
		Project:   project,
		Kind:      kind,
		Source:    r.Source,
		ID:        r.ID,
		Title:     r.Title,
		URL:       r.URL,
		Size:      r.Size,
		SHA256:    r.SHA256,
		Withdrawn: r.Withdrawn,
		Priority:  r.Priority,
	}

	c.Curated, err = curated("curated", r.Curated, a.Research.Now())
	if err != nil {
		return "", err
	}

	c.Initial, err = curated("initial", r.Initial, time.UnixMilli(0))
	if err != nil {
		return "", err
	}
	return a.Research.Curate(ctx, c, by)
}

// recordFields are the fields of a record.
var recordFields = []string{"source", "id", "title", "url", "size", "sha256", "priority", "curated",
	"initial"}

// fieldOf is the field that a message begins with. It is "" if the message begins with none.
func fieldOf(word string) string {
	for _, name := range recordFields {
		if strings.TrimSuffix(word, ":") == name {
			return name
		}
	}
	return ""
}

// curated is a date of a record, in milliseconds since 1970. absent is what a record without the date
// means. An Invalid names the field.
func curated(field, text string, absent time.Time) (int64, error) {
	if text == "" {
		return absent.UnixMilli(), nil
	}
	at, err := curation.ParseTime(text)
	if err != nil {
		return 0, fault.New(fault.Invalid, "%s: %w", field, err)
	}
	return int64(at), nil
}

// media is an episode or a clip, a NotFound if there is none with that key.
func (a *API) media(ctx context.Context, kind research.Kind,
	in *KeyInput) (v1.ResearchMedia, error) {
	k, err := a.Research.Get(ctx, kind, in.Project, in.Key)
	return wireMedia(k), err
}

// wireMedia is the wire form of an episode or a clip. Reason is why it is not researched: it is set
// aside, full, or deferred until Until because of its problem. Coverage is there only for what takes
// part in research.
func wireMedia(k research.Known) v1.ResearchMedia {
	out := v1.ResearchMedia{
		Key:      k.Key,
		Source:   k.Source,
		ID:       k.ID,
		Title:    k.Title,
		URL:      k.URL,
		Size:     k.Size,
		SHA256:   k.SHA256,
		Priority: k.Priority,
		Initial:  timestamp(k.Initial),
		Latest:   timestamp(k.Latest),
		State:    string(k.State),
		Reason:   cmp.Or(k.Quarantined, k.Full),
		Until:    timestamp(k.Deferred),
		Waveform: k.Waveform,
		Missing:  k.Lost,
	}

	if k.State == research.Deferred {
		out.Reason = k.Problem
	}

	if k.Pairs > 0 && (k.State == research.Ready || k.State == research.Closed) {
		out.Coverage = &v1.ResearchCoverage{
			Pairs:      k.Pairs,
			Researched: k.Researched,
			Leased:     k.Leased,
			Waiting:    k.Waiting,
			Differing:  k.Differing,
			Open:       k.Open,
		}
	}
	return out
}

// results lists the results of an episode or a clip, a page at a time. A first page without results
// asks whether there is such a thing.
func (a *API) results(ctx context.Context, kind research.Kind,
	in *KeyCursor) (out v1.List[v1.ResearchResult],
	err error) {
	read := a.Research.Results
	if kind == research.Clip {
		read = a.Research.ResultsOfClip
	}
	page, next, err := read(ctx, in.Project, in.Key, in.Cursor)
	out.Items, out.Cursor = each(page, wireResult), next
	if err != nil || len(page) > 0 || in.Cursor != "" {
		return out, err
	}

	_, err = a.Research.Get(ctx, kind, in.Project, in.Key) // a NotFound if there is none
	return out, err
}

// wireResult is the wire form of a stored result: the report as it was sent, and when it was stored.
func wireResult(r research.Result) v1.ResearchResult {
	return v1.ResearchResult{ResearchReport: v1.ResearchReport(r.Report), At: timestamp(r.At),
		Reviews: r.Reviews, Pair: r.Pair}
}
