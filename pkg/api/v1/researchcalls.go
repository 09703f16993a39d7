package v1

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	"archivist/pkg/kernel/fault"
)

// Kinds of what is researched, as parts of paths.
const (
	Episodes = "episodes"
	Clips    = "clips"
)

func researchPath(project string) string { return "/v1/research/" + url.PathEscape(project) }

// ResearchProjects lists the research projects by name.
func (c *Client) ResearchProjects(ctx context.Context) ([]ResearchProject, error) {
	return list[ResearchProject](ctx, c, "/v1/research", Filter{})
}

// ResearchProject returns a research project.
func (c *Client) ResearchProject(ctx context.Context, project string) (ResearchProject, error) {
	return get[ResearchProject](ctx, c, researchPath(project))
}

// ApplyResearch creates or replaces the definition of a research project.
func (c *Client) ApplyResearch(ctx context.Context, d ResearchDefinition,
	reason string) (out ResearchProject,
	err error) {
	err = c.Call(ctx, http.MethodPut, researchPath(d.Name)+query("reason", reason), d, &out)
	return out, err
}

// ActOnResearch pauses or resumes a research project.
func (c *Client) ActOnResearch(ctx context.Context, project string,
	in ResearchAction) (out ResearchProject,
	err error) {
	err = c.Call(ctx, http.MethodPost, researchPath(project)+"/actions", in, &out)
	return out, err
}

// ResearchStatus says how far a project is.
func (c *Client) ResearchStatus(ctx context.Context, project string) (ResearchStatus, error) {
	return get[ResearchStatus](ctx, c, researchPath(project)+"/status")
}

// Curate adds 1 to 100 records of episodes or clips. The answer has an entry for each.
func (c *Client) Curate(ctx context.Context, project, kind string,
	records []ResearchRecord) ([]ResearchRecorded, error) {
	var out List[ResearchRecorded]
	err := c.Call(ctx, http.MethodPut, researchPath(project)+"/"+kind, ResearchRecords{records},
		&out)
	return out.Items, err
}

// ResearchMedia lists episodes or clips: those in a state, or all, up to a limit.
func (c *Client) ResearchMedia(ctx context.Context, project, kind, state string,
	limit int) ([]ResearchMedia, error) {
	return pages[ResearchMedia](ctx, c, researchPath(project)+"/"+kind, limit, "state", state)
}

// ResearchMediaOf returns an episode or a clip.
func (c *Client) ResearchMediaOf(ctx context.Context, project, kind,
	key string) (ResearchMedia, error) {
	return get[ResearchMedia](ctx, c, researchPath(project)+"/"+kind+"/"+url.PathEscape(key))
}

// RetryResearch makes an episode or clip researchable again that was set aside or deferred.
func (c *Client) RetryResearch(ctx context.Context, project, kind, key,
	reason string) (out ResearchMedia, err error) {
	path := researchPath(project) + "/" + kind + "/" + url.PathEscape(key) + "/actions"
	err = c.Call(ctx, http.MethodPost, path, ResearchRetry{"retry", reason}, &out)
	return out, err
}

// ResearchResults lists the results of an episode, or those of a clip that have hits or a problem.
func (c *Client) ResearchResults(ctx context.Context, project, kind, key string,
	limit int) ([]ResearchResult, error) {
	return pages[ResearchResult](ctx, c, researchPath(project)+"/"+kind+"/"+url.PathEscape(key)+
		"/results", limit)
}

// ResearchLeases lists the leases that have not ended, the oldest first.
func (c *Client) ResearchLeases(ctx context.Context, project string,
	limit int) ([]ResearchLease, error) {
	return pages[ResearchLease](ctx, c, researchPath(project)+"/leases", limit)
}

// ResearchLease returns a lease.
func (c *Client) ResearchLease(ctx context.Context, project, lease string) (ResearchLease, error) {
	return get[ResearchLease](ctx, c, researchPath(project)+"/leases/"+url.PathEscape(lease))
}

// RevokeLease ends a lease.
func (c *Client) RevokeLease(ctx context.Context, project, lease,
	reason string) (out ResearchLease, err error) {
	path := researchPath(project) + "/leases/" + url.PathEscape(lease) + "/actions"
	err = c.Call(ctx, http.MethodPost, path, ResearchRevocation{"revoke", reason}, &out)
	return out, err
}

// Researchers lists the researchers that are present.
func (c *Client) Researchers(ctx context.Context, project string) ([]Researcher, error) {
	return list[Researcher](ctx, c, researchPath(project)+"/researchers", Filter{})
}

// ResearchDifferences lists the pairs whose results differ.
func (c *Client) ResearchDifferences(ctx context.Context, project string, limit int) ([]ResearchDifference, error) {
	return pages[ResearchDifference](ctx, c, researchPath(project)+"/differences", limit)
}

// DecidePair ends the wait of a pair for a person, or for another researcher.
func (c *Client) DecidePair(ctx context.Context, project string, d ResearchDecision) (out Explanation,
	err error) {
	d.Action = "decide"
	err = c.Call(ctx, http.MethodPost, researchPath(project)+"/differences/actions", d, &out)
	return out, err
}

// ResearchOffsets calls each with each place where a clip occurs, by the present analysis: in an episode, or
// in all if episode is "".
func (c *Client) ResearchOffsets(ctx context.Context, project, episode string,
	each func(ResearchOffset) error) error {
	for cursor := ""; ; {
		page, err := get[List[ResearchOffset]](ctx, c, researchPath(project)+"/offsets"+
			query("episode", episode,
				"cursor", cursor))
		if err != nil {
			return err
		}

		for _, o := range page.Items {
			err = each(o)
			if err != nil {
				return err
			}
		}

		if page.Cursor == "" {
			return nil
		}

		cursor = page.Cursor
	}
}

// ResearchEvents lists what happened to a part of a project, oldest first: to "", the project itself, or to
// e.g. "episodes/KEY", "clips/KEY" or "leases/ID".
func (c *Client) ResearchEvents(ctx context.Context, project, part string,
	limit int) ([]Event, error) {
	path := researchPath(project)
	if part != "" {
		path += "/" + part
	}
	return pages[Event](ctx, c, path+"/events", limit)
}

// Hello says that a researcher is present.
func (c *Client) Hello(ctx context.Context, project string,
	in ResearchHello) (out ResearchWelcome, err error) {
	err = c.Call(ctx, http.MethodPost, researchPath(project)+"/hello", in, &out)
	return out, err
}

// Bye says that a researcher leaves.
func (c *Client) Bye(ctx context.Context, project, researcher string) error {
	return c.Call(ctx, http.MethodPost, researchPath(project)+"/bye", ResearchBye{researcher}, nil)
}

// NextWork gives a researcher the next work item, nil if none waits. The same request again gives the same.
func (c *Client) NextWork(ctx context.Context, project string,
	in ResearchNext) (*ResearchWork, error) {
	path := researchPath(project) + "/next"
	resp, err := c.do(ctx, http.MethodPost, path, in, nil)
	if err != nil {
		return nil, err
	}

	defer resp.Body.Close()
	if resp.StatusCode == http.StatusNoContent {
		return nil, nil
	}

	var out ResearchWork
	err = json.NewDecoder(resp.Body).Decode(&out)
	if err != nil {
		return nil, fault.New(fault.Unavailable, "the response of %s is not JSON: %w", path, err)
	}
	return &out, nil
}

// AcceptWork accepts a work item that was received from the queue. It returns a Conflict or a NotFound if it
// is no longer valid: then its message is to be deleted. The same request again gives the same work item.
func (c *Client) AcceptWork(ctx context.Context, project string,
	in ResearchAccept) (out ResearchWork, err error) {
	err = c.Call(ctx, http.MethodPost, researchPath(project)+"/accept", in, &out)
	return out, err
}

// ReportWork reports 1 to 10 results. The same report may be sent again.
func (c *Client) ReportWork(ctx context.Context, project string, reports ...ResearchReport) error {
	return c.Call(ctx, http.MethodPost, researchPath(project)+"/reports",
		ResearchReports{reports}, nil)
}
