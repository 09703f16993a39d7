package v1

import (
	"context"
	"net/http"
	"strconv"
)

// Kinds of what is researched, as parts of paths.
const (
	Episodes = "episodes"
	Clips    = "clips"
)

// ResearchProjects lists the research projects by name.
func (c *Client) ResearchProjects(ctx context.Context) ([]ResearchProject, error) {
	return list[ResearchProject](ctx, c, "/v1/research", 0)
}

// ResearchProject returns a research project.
func (c *Client) ResearchProject(ctx context.Context, project string) (ResearchProject, error) {
	return get[ResearchProject](ctx, c, at("research", project))
}

// ApplyResearch creates or replaces the definition of a research project.
func (c *Client) ApplyResearch(ctx context.Context, d ResearchDefinition,
	reason string) (ResearchProject, error) {
	return put[ResearchProject](ctx, c, at("research", d.Name)+query("reason", reason), d)
}

// ActOnResearch pauses or resumes a research project.
func (c *Client) ActOnResearch(ctx context.Context, project string,
	in ResearchAction) (ResearchProject, error) {
	return post[ResearchProject](ctx, c, at("research", project, "actions"), in)
}

// ResearchStatus says how far a project is.
func (c *Client) ResearchStatus(ctx context.Context, project string) (ResearchStatus, error) {
	return get[ResearchStatus](ctx, c, at("research", project, "status"))
}

// Curate adds 1 to 100 records of episodes or clips. The answer has an entry for each.
func (c *Client) Curate(ctx context.Context, project, kind string,
	records []ResearchRecord) ([]ResearchRecorded, error) {
	out, err := put[List[ResearchRecorded]](ctx, c, at("research", project, kind),
		ResearchRecords{records})
	return out.Items, err
}

// ResearchMedia lists episodes or clips: those in a state, or all, up to a limit.
func (c *Client) ResearchMedia(ctx context.Context, project, kind, state string,
	limit int) ([]ResearchMedia, error) {
	return list[ResearchMedia](ctx, c, at("research", project, kind), limit, "state", state)
}

// ResearchMediaOf returns an episode or a clip.
func (c *Client) ResearchMediaOf(ctx context.Context, project, kind,
	key string) (ResearchMedia, error) {
	return get[ResearchMedia](ctx, c, at("research", project, kind, key))
}

// RetryResearch makes an episode or clip researchable again that was set aside or deferred.
func (c *Client) RetryResearch(ctx context.Context, project, kind, key,
	reason string) (ResearchMedia, error) {
	return post[ResearchMedia](ctx, c, at("research", project, kind, key, "actions"),
		ResearchRetry{"retry", reason})
}

// ResearchResults lists the results of an episode, or those of a clip that have hits or a problem.
func (c *Client) ResearchResults(ctx context.Context, project, kind, key string,
	limit int) ([]ResearchResult, error) {
	return list[ResearchResult](ctx, c, at("research", project, kind, key, "results"), limit)
}

// ResearchLeases lists the leases that have not ended, the oldest first.
func (c *Client) ResearchLeases(ctx context.Context, project string,
	limit int) ([]ResearchLease, error) {
	return list[ResearchLease](ctx, c, at("research", project, "leases"), limit)
}

// ResearchLease returns a lease.
func (c *Client) ResearchLease(ctx context.Context, project, lease string) (ResearchLease, error) {
	return get[ResearchLease](ctx, c, at("research", project, "leases", lease))
}

// RevokeLease ends a lease.
func (c *Client) RevokeLease(ctx context.Context, project, lease,
	reason string) (ResearchLease, error) {
	return post[ResearchLease](ctx, c, at("research", project, "leases", lease, "actions"),
		ResearchRevocation{"revoke", reason})
}

// Researchers lists the researchers that are present.
func (c *Client) Researchers(ctx context.Context, project string) ([]Researcher, error) {
	return list[Researcher](ctx, c, at("research", project, "researchers"), 0)
}

// ResearchDifferences lists the pairs whose results differ.
func (c *Client) ResearchDifferences(ctx context.Context, project string, limit int) ([]ResearchDifference, error) {
	return list[ResearchDifference](ctx, c, at("research", project, "differences"), limit)
}

// ResearchMatrix returns a part of the pairs of a project: the episodes at a cursor ("" begins),
// and the clips from a number on.
func (c *Client) ResearchMatrix(ctx context.Context, project, cursor string,
	clip int) (ResearchMatrix, error) {
	return get[ResearchMatrix](ctx, c, at("research", project, "matrix")+
		query("cursor", cursor, "clip", strconv.Itoa(clip)))
}

// DecidePair ends the wait of a pair for a person, or for another researcher.
func (c *Client) DecidePair(ctx context.Context, project string,
	d ResearchDecision) (Explanation, error) {
	d.Action = "decide"
	return post[Explanation](ctx, c, at("research", project, "differences", "actions"), d)
}

// ResearchReviews lists the pairs with places that wait for a person.
func (c *Client) ResearchReviews(ctx context.Context, project string,
	limit int) ([]ResearchUnreviewed, error) {
	return list[ResearchUnreviewed](ctx, c, at("research", project, "reviews"), limit)
}

// ReviewPair accepts or rejects places of a pair. The same request again changes nothing.
func (c *Client) ReviewPair(ctx context.Context, project string, r ResearchReview) (Explanation,
	error) {
	return post[Explanation](ctx, c, at("research", project, "reviews", "actions"), r)
}

// ResearchOffsets calls each with each place where a clip occurs, by the present analysis: in an episode, or
// in all if episode is "". waiting is how many are left out because they wait for a person.
func (c *Client) ResearchOffsets(ctx context.Context, project, episode string,
	each func(ResearchOffset) error) (waiting int, err error) {
	for cursor := ""; ; {
		page, err := get[ResearchOffsets](ctx, c, at("research", project, "offsets")+
			query("cursor", cursor, "episode", episode))
		if err != nil {
			return waiting, err
		}
		waiting += page.Waiting
		for _, o := range page.Items {
			if err := each(o); err != nil {
				return waiting, err
			}
		}
		cursor = page.Cursor
		if cursor == "" {
			return waiting, nil
		}
	}
}

// ResearchEvents lists what happened to a part of a project, oldest first: to "", the project itself, or to
// e.g. "episodes/KEY", "clips/KEY" or "leases/ID".
func (c *Client) ResearchEvents(ctx context.Context, project, part string,
	limit int) ([]Event, error) {
	path := at("research", project)
	if part != "" {
		path += "/" + part
	}
	return list[Event](ctx, c, path+"/events", limit)
}

// Hello says that a researcher is present.
func (c *Client) Hello(ctx context.Context, project string,
	in ResearchHello) (ResearchWelcome, error) {
	return post[ResearchWelcome](ctx, c, at("research", project, "hello"), in)
}

// Bye says that a researcher leaves.
func (c *Client) Bye(ctx context.Context, project, researcher string) error {
	return c.Call(ctx, http.MethodPost, at("research", project, "bye"),
		ResearchBye{researcher}, nil)
}

// NextWork gives a researcher the next work item, nil if none waits. The same request again gives the same.
func (c *Client) NextWork(ctx context.Context, project string,
	in ResearchNext) (*ResearchWork, error) {
	return post[*ResearchWork](ctx, c, at("research", project, "next"), in)
}

// AcceptWork accepts a work item that was received from the queue. It returns a Conflict or a NotFound if it
// is no longer valid: then its message is to be deleted. The same request again gives the same work item.
func (c *Client) AcceptWork(ctx context.Context, project string,
	in ResearchAccept) (ResearchWork, error) {
	return post[ResearchWork](ctx, c, at("research", project, "accept"), in)
}

// ReportWork reports 1 to 10 results. The same report may be sent again.
func (c *Client) ReportWork(ctx context.Context, project string, reports ...ResearchReport) error {
	return c.Call(ctx, http.MethodPost, at("research", project, "reports"),
		ResearchReports{reports}, nil)
}
