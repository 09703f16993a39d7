package api

import (
	"context"
	"maps"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/research/feed"
)

// FeedInput names a feed of a research project, and what is done with it.
type FeedInput struct {
	ProjectInput
	Key  string `path:"key" maxLength:"40"`
	Body v1.ResearchLook
}

// researchFeeds registers the routes of feeds.
func (a *API) researchFeeds(h huma.API) {
	const path = researchProject + "/feeds"
	get(a, h, path, "listFeeds", "List the feeds of a research project",
		func(ctx context.Context, in *ProjectInput) (out v1.List[v1.ResearchFeedState], err error) {
			all, err := a.Feeds.Feeds(ctx, in.Project)
			out.Items = each(all, wireFeed)
			return out, err
		})
	huma.Register(h, huma.Operation{
		Method:        http.MethodPost,
		Path:          path + "/{key}/actions",
		OperationID:   "lookAtFeed",
		Summary:       "Look at a feed soon",
		DefaultStatus: http.StatusNoContent,
	},
		func(ctx context.Context, in *FeedInput) (*struct{}, error) {
			err := a.Feeds.Soon(ctx, in.Project, in.Key)
			if err != nil {
				return nil, a.problem(err)
			}
			return nil, nil
		})
}

// wireFeed is the wire form of a feed. Next is "" for one that is due now.
func wireFeed(s feed.State) v1.ResearchFeedState {
	out := v1.ResearchFeedState{
		ResearchFeed: s.Feed,
		Key:          s.Key,
		Next:         timestamp(s.Next),
		Looked:       timestamp(s.Looked),
		Read:         timestamp(s.Read),
		Changed:      timestamp(s.Changed),
		Looking:      s.LookingBy != "",
		Entries:      s.Entries,
		Left:         s.Left,
		Undated:      s.Undated,
		Moved:        s.Moved,
		Gone:         s.Gone,
		Failures:     s.Failures,
		Problem:      s.Problem,
	}

	if s.Next <= max(s.Looked, 1) { // it is due
		out.Next = ""
	}

	for _, x := range s.Skipped {
		out.Skipped = append(out.Skipped, v1.ResearchSkipped(x))
	}
	return out
}

var feedExample = v1.ResearchFeedState{
	ResearchFeed: v1.ResearchFeed{
		URL:          "https://example.org/feed.xml",
		Source:       "radio",
		Kind:         "episode",
		EveryMinutes: 60,
	},
	Key:     episodeKey,
	Next:    "2026-11-22T10:30:00Z",
	Looked:  "2026-11-22T09:30:00Z",
	Read:    "2026-11-22T09:30:00Z",
	Changed: "2026-11-21T07:30:00Z",
	Entries: 312,
	Skipped: []v1.ResearchSkipped{{
		Reason: "it has no recording: no enclosure that is audio",
		Count:  2,
		First:  "An announcement",
	}},
}

func init() {
	maps.Copy(operations, map[string]about{
		"listFeeds": {
			role:     viewer,
			tag:      "Research",
			refusals: []problemType{notFound},
			answer:   listOf(feedExample),
			description: "The podcast feeds of the definition, by source: when each is looked at, what it has, what " +
				"is not taken, and why the newest look failed.",
		},
		"lookAtFeed": {
			role:     operator,
			tag:      "Research",
			refusals: []problemType{notFound, conflict, changed},
			request:  v1.ResearchLook{Action: "look"},
			description: "The feed is looked at within a minute or two, whatever it waits for. It is a conflict if " +
				"it is being looked at.",
		},
	})
	parameters["lookAtFeed key"] = parameter{"The key of the feed.", episodeKey}
}
