package api

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/events/event"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/research"
)

// OffsetsInput selects offsets.
type OffsetsInput struct {
	ProjectCursor
	Episode string `query:"episode" maxLength:"40"`
	Format  string `query:"format" enum:"json,csv,webvtt,audacity" default:"json"`
}

// LeaseInput names a lease.
type LeaseInput struct {
	ProjectInput
	Lease string `path:"lease" maxLength:"64"`
}

// LeaseCursor names a lease and a page of its events.
type LeaseCursor struct {
	LeaseInput
	Cursor string `query:"cursor" maxLength:"4000"`
}

// PairDecision is a request to decide about a pair.
type PairDecision struct {
	ProjectInput
	Asking
	Body v1.ResearchDecision
}

// PairReview is a request to accept or reject places of a pair.
type PairReview struct {
	ProjectInput
	Acting
	Body v1.ResearchReview
}

// Revocation is a request to end a lease.
type Revocation struct {
	LeaseInput
	Asking
	Body v1.ResearchRevocation
}

// researchViews registers the routes that show what research does: status, leases, researchers and
// results. One of them acts: it ends a lease.
func (a *API) researchViews(h huma.API) {
	const path = researchProject
	get(a, h, path+"/status", "getResearchStatus", "Get how far a research project is",
		a.researchStatus)
	a.matrix(h, path+"/matrix")
	a.differences(h, path+"/differences")
	a.reviews(h, path+"/reviews")
	get(a, h, path+"/leases", "listLeases", "List the leases that have not ended",
		func(ctx context.Context, in *ProjectCursor) (out v1.List[v1.ResearchLease], err error) {
			page, next, err := a.Research.LiveLeases(ctx, in.Project, in.Cursor)
			out.Items, out.Cursor = each(page, wireLease), next
			return out, err
		})

	get(a, h, path+"/leases/{lease}", "getLease", "Get a lease", a.lease)
	get(a, h, path+"/leases/{lease}/events", "listLeaseEvents", "List the events of a lease",
		func(ctx context.Context, in *LeaseCursor) (v1.List[v1.Event], error) {
			return a.events(event.ResearchLease)(ctx, &IDCursor{ID: in.Lease, Cursor: in.Cursor})
		})

	post(a, h, path+"/leases/{lease}/actions", "revokeLease", "End a lease",
		func(ctx context.Context, in *Revocation) (out v1.ResearchLease, err error) {
			_, err = a.lease(ctx, &in.LeaseInput)
			if err != nil {
				return out, err
			}

			by, err := in.by(in.Body.Reason)
			if err != nil {
				return out, err
			}

			if err := a.Research.Revoke(ctx, in.Lease, by); err != nil {
				return out, err
			}
			return a.lease(ctx, &in.LeaseInput)
		})

	get(a, h, path+"/researchers", "listResearchers", "List the researchers that are present",
		a.listResearchers)
	a.offsets(h, path+"/offsets")
}

// MatrixInput selects a part of the pairs of a research project.
type MatrixInput struct {
	ProjectCursor
	Clip int `query:"clip" minimum:"0" maximum:"1000000"`
}

// matrix registers the route of pairs.
func (a *API) matrix(h huma.API, path string) {
	get(a, h, path, "getResearchMatrix", "Get what is known of the pairs of a research project",
		func(ctx context.Context, in *MatrixInput) (out v1.ResearchMatrix, err error) {
			m, err := a.Research.Matrix(ctx, in.Project, in.Cursor, in.Clip)
			return v1.ResearchMatrix{Clips: each(m.Clips, wireMedia), Clip: m.Clip, Begin: m.Begin,
				Total: m.Total,
				More:  m.More, Cursor: m.Next, Rows: each(m.Rows,
					func(r research.MatrixRow) v1.ResearchMatrixRow {
						return v1.ResearchMatrixRow{Episode: wireMedia(r.Known), Pairs: r.Pairs,
							Unreviewed: r.Unreviewed}
					})}, err
		})
}

// differences registers the routes of pairs whose results differ.
func (a *API) differences(h huma.API, path string) {
	get(a, h, path, "listDifferences", "List the pairs whose results differ",
		func(ctx context.Context, in *ProjectCursor) (out v1.List[v1.ResearchDifference], err error) {
			page, next, err := a.Research.Differences(ctx, in.Project, in.Cursor)
			out.Items, out.Cursor = each(page, wireDifference), next
			return out, err
		})

	post(a, h, path+"/actions", "decidePair", "Decide about a pair whose results differ",
		func(ctx context.Context, in *PairDecision) (out v1.Explanation, err error) {
			by, err := in.by(in.Body.Reason)
			if err != nil {
				return out, err
			}

			err = a.Research.Decide(ctx, in.Project, in.Body.Episode, in.Body.Clip,
				research.Decision{Lease: in.Body.Lease, Another: in.Body.Another}, by)
			if err != nil {
				return out, err
			}
			x, err := a.Research.ExplainPair(ctx, in.Project, in.Body.Episode, in.Body.Clip)
			return wireExplanation(x), err
		})
}

// reviews registers the routes of places that wait for a person.
func (a *API) reviews(h huma.API, path string) {
	get(a, h, path, "listReviews", "List the pairs with places that wait for a person",
		func(ctx context.Context, in *ProjectCursor) (out v1.List[v1.ResearchUnreviewed],
			err error) {
			page, next, err := a.Research.Reviews(ctx, in.Project, in.Cursor)
			out.Items, out.Cursor = each(page, wireUnreviewed), next
			return out, err
		})

	post(a, h, path+"/actions", "reviewPair", "Accept or reject places of a pair",
		func(ctx context.Context, in *PairReview) (out v1.Explanation, err error) {
			by, err := in.by(in.Body.Reason)
			if err != nil {
				return out, err
			}

			b := in.Body
			err = a.Research.Review(ctx, in.Project, b.Episode, b.Clip,
				research.Review{Lease: b.Lease,
					Hit: b.Hit, Accept: b.Action == "accept", Change: b.Change}, by)
			if err != nil {
				return out, err
			}
			x, err := a.Research.ExplainPair(ctx, in.Project, b.Episode, b.Clip)
			return wireExplanation(x), err
		})
}

// wireUnreviewed is the wire form of a pair with places that wait for a person.
func wireUnreviewed(u research.Unreviewed) v1.ResearchUnreviewed {
	return v1.ResearchUnreviewed{Since: timestamp(u.Since), Waiting: u.Waiting,
		Damage: u.Damage, ResearchResult: wireResult(u.Result)}
}

// wireDifference is the wire form of a pair whose results differ.
func wireDifference(d research.Difference) v1.ResearchDifference {
	return v1.ResearchDifference{
		Episode: d.Episode,
		Clip:    d.Clip,
		Since:   timestamp(d.Since),
		Results: each(d.Results, wireResult),
		Damage:  d.Damage,
	}
}

// lease is a lease of the project that is named. A lease of another project is a NotFound, as one that
// there is not: a key of one project learns nothing of others.
func (a *API) lease(ctx context.Context, in *LeaseInput) (v1.ResearchLease, error) {
	l, err := a.Research.Lease(ctx, in.Lease)
	if err != nil {
		return wireLease(l), err
	}

	if l.Project != in.Project {
		return wireLease(l), fault.New(fault.NotFound, "there is no lease %s in the project %s",
			in.Lease, in.Project)
	}
	return wireLease(l), nil
}

// wireLease is the wire form of a lease. QueueEnd is the end of its message in the queue of pending
// work.
func wireLease(l research.Lease) v1.ResearchLease {
	return v1.ResearchLease{
		ID:         l.ID,
		Project:    l.Project,
		Episode:    l.Episode,
		Clips:      l.Clips,
		Analysis:   l.Analysis,
		Created:    timestamp(l.Created),
		Until:      timestamp(l.Until),
		QueueEnd:   timestamp(l.QueueEnd),
		Accepted:   timestamp(l.Accepted),
		Researcher: l.Researcher,
		Stored:     l.Stored,
		Last:       timestamp(l.Last),
		Ended:      timestamp(l.Ended),
		Why:        l.Why,
	}
}

// researchStatus is how far a project is, with the oldest lease and what is set aside.
func (a *API) researchStatus(ctx context.Context,
	in *ProjectInput) (out v1.ResearchStatus, err error) {
	s, err := a.Research.Status(ctx, in.Project)
	if err != nil {
		return out, err
	}

	out = v1.ResearchStatus{
		Project:  s.Name,
		Analysis: s.Analysis.String(),
		Paused:   s.Paused,
		Episodes: v1.ResearchEpisodes{Ready: s.Ready, Closed: s.Closed, Away: s.Away},
		Clips:    v1.ResearchClips{Live: s.Clips, Away: s.ClipsAway},
		Coverage: v1.ResearchCoverage{
			Pairs:      s.Pairs,
			Researched: s.Researched,
			Leased:     s.Leased,
			Waiting:    s.Partial,
			Differing:  s.Differ,
			Open:       s.Open,
		},
		Leases:           s.Leases,
		Waiting:          s.Waiting,
		Researchers:      s.Researchers,
		Capacity:         s.Capacity,
		Unreviewed:       s.Unreviewed,
		Results:          s.Results,
		LastHour:         s.LastHour,
		RemainingSeconds: int64(s.Remaining.Seconds()),
		Recounting:       s.Recounting,
		More:             s.More,
		MoreDifferences:  s.MoreDiffer,
		Trouble:          []v1.ResearchTrouble{},
	}

	for _, p := range s.Pauses {
		out.Pauses = append(out.Pauses, v1.ResearchPause{
			Researcher: p.Researcher,
			Until:      timestamp(p.Until),
			Reason:     p.Reason,
		})
	}

	for _, d := range s.Differing {
		out.Differences = append(out.Differences, wireDifference(d))
	}

	if s.OldestLease != nil {
		oldest := wireLease(*s.OldestLease)
		out.OldestLease = &oldest
	}

	for _, t := range s.Troubled {
		out.Trouble = append(out.Trouble,
			v1.ResearchTrouble{Kind: string(t.Kind), Media: wireMedia(t)})
	}
	return out, nil
}

// listResearchers lists the researchers that are present. A project that does not exist is a NotFound.
func (a *API) listResearchers(ctx context.Context,
	in *ProjectInput) (out v1.List[v1.Researcher], err error) {
	_, err = a.Research.Project(ctx, in.Project)
	if err != nil {
		return out, err
	}

	present, err := a.Research.Researchers(ctx, in.Project)
	out.Items = each(present, func(r research.Researcher) v1.Researcher {
		return v1.Researcher{
			Name:     r.Name,
			Capacity: r.Capacity,
			Host:     r.Host,
			Software: r.Software,
			Since:    timestamp(r.Since),
			Until:    timestamp(r.Until),
		}
	})
	return out, err
}

// asText is a response in the format that was asked for.
type asText struct {
	ContentType string `header:"Content-Type"`
	Link        string `header:"Link" doc:"The next page, relative to the request. The last page has none."`
	Waiting     int    `header:"Places-Waiting" doc:"Places that are left out because they wait for a person."`
	Body        []byte
}

// offsets registers the export of offsets.
func (a *API) offsets(h huma.API, path string) {
	list := h.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[v1.ResearchOffsets](),
		true, "")
	text := &huma.MediaType{Schema: &huma.Schema{Type: "string",
		Description: "The offsets in the format"}}
	huma.Register(h, huma.Operation{
		Method:      http.MethodGet,
		Path:        path,
		OperationID: "listOffsets",
		Summary:     "Export where clips occur",
		Responses: map[string]*huma.Response{"200": {Description: "OK",
			Content: map[string]*huma.MediaType{
				"application/json": {Schema: list}, "text/csv": text, "text/vtt": text,
				"text/plain": text}}},
	},
		func(ctx context.Context, in *OffsetsInput) (*asText, error) {
			out, err := a.export(ctx, in)
			if err != nil {
				return nil, a.problem(err)
			}
			return out, nil
		})
}

// mostExported bounds the offsets of an episode that are written at once, sorted by time.
const mostExported = 30_000

// export writes a page of offsets, or all of an episode in a format that is sorted by time. The formats
// that are sorted by time need all offsets at once, so they are for one episode, of mostExported at
// most. Others are written a page at a time; only the first page of a CSV has the names of the columns,
// so that pages can be joined.
func (a *API) export(ctx context.Context, in *OffsetsInput) (*asText, error) {
	sorted := in.Format == v1.OffsetsWebVTT || in.Format == v1.OffsetsAudacity
	if sorted && in.Episode == "" {
		return nil, fault.New(fault.Invalid,
			"format: %s is for one recording; name an episode, or export as csv or "+
				"json", in.Format)
	}

	page, err := a.Research.Offsets(ctx, in.Project, in.Episode, in.Cursor)
	if err != nil {
		return nil, err
	}

	for sorted && page.Next != "" {
		more, err := a.Research.Offsets(ctx, in.Project, in.Episode, page.Next)
		if err != nil {
			return nil, err
		}

		page.All, page.Waiting, page.Next = append(page.All, more.All...),
			page.Waiting+more.Waiting, more.Next
		if len(page.All) > mostExported {
			return nil, fault.New(fault.Invalid,
				"format: the episode has more than %d offsets; export them as csv or json",
				mostExported)
		}
	}

	all := v1.ResearchOffsets{Waiting: page.Waiting,
		List: v1.List[v1.ResearchOffset]{Items: each(page.All, wireOffset), Cursor: page.Next}}
	out := &asText{ContentType: v1.OffsetsMedia[in.Format], Waiting: page.Waiting}
	if page.Next != "" {
		out.Link = "<?" +
			url.Values{"episode": {in.Episode}, "format": {in.Format},
				"cursor": {page.Next}}.Encode() +
			`>; rel="next"`
	}

	if in.Format == "json" {
		out.ContentType = "application/json"
		out.Body, err = json.Marshal(all)
		return out, err
	}

	var text bytes.Buffer
	err = v1.WriteOffsets(&text, in.Format, in.Cursor == "", all.Items)
	out.Body = text.Bytes()
	return out, err
}

func wireOffset(f research.Found) v1.ResearchOffset {
	return v1.ResearchOffset{
		Episode:     f.Episode,
		Clip:        f.Clip,
		Title:       f.ClipTitle,
		At:          timestamp(f.At),
		ResearchHit: f.Hit,
	}
}
