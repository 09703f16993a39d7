package v1

import (
	"context"
	"net/http"
)

// ResearchFeedState is a feed of a research project, and what is known of it.
type ResearchFeedState struct {
	ResearchFeed
	// The key of the feed in its project.
	Key string `json:"key" example:"mfrggzdfmztwq2lknnwg23tp"`
	// When it is looked at again. Absent: with the next minute.
	Next string `json:"next,omitempty" format:"date-time" example:"2026-11-22T10:30:00Z"`
	// When the newest look began.
	Looked string `json:"looked,omitempty" format:"date-time" example:"2026-11-22T09:30:00Z"`
	// When the newest look began that succeeded.
	Read string `json:"read,omitempty" format:"date-time" example:"2026-11-22T09:30:00Z"`
	// When the newest look began that stored something.
	Changed string `json:"changed,omitempty" format:"date-time" example:"2026-11-21T07:30:00Z"`
	// Whether it is being looked at.
	Looking bool `json:"looking,omitempty"`
	// The number of its entries with a recording, when it was read last.
	Entries int `json:"entries" example:"312"`
	// The number of its entries that the next look stores.
	Left int `json:"left" example:"0"`
	// The number of its entries without a date. That of the first look is theirs.
	Undated int `json:"undated" example:"0"`
	// Its entries that are not taken, by reason.
	Skipped []ResearchSkipped `json:"skipped,omitempty"`
	// Where the feed is now permanently, as its server says. Change the definition.
	Moved string `json:"moved,omitempty" example:"https://example.org/podcast.xml"`
	// Whether its server says that it has ended (410).
	Gone bool `json:"gone,omitempty"`
	// The number of looks that failed since the last that succeeded.
	Failures int `json:"failures" example:"0"`
	// Why the newest look failed.
	Problem string `json:"problem,omitempty" example:"https://example.org/feed.xml answered 404 Not Found"`
}

// ResearchSkipped says how many entries of a feed are not taken for one reason.
type ResearchSkipped struct {
	// The reason.
	Reason string `json:"reason" example:"it has no recording: no enclosure that is audio"`
	// The number of entries.
	Count int `json:"count" example:"2"`
	// The title or the id of one of them.
	First string `json:"first" example:"An announcement"`
}

// ResearchLook is a request to look at a feed soon.
type ResearchLook struct {
	// Look is the only action.
	Action string `json:"action" enum:"look" example:"look"`
}

// ResearchFeeds lists the feeds of a project.
func (c *Client) ResearchFeeds(ctx context.Context, project string) ([]ResearchFeedState, error) {
	return list[ResearchFeedState](ctx, c, at("research", project, "feeds"), 0)
}

// LookAtFeed makes a feed due, whatever it waits for.
func (c *Client) LookAtFeed(ctx context.Context, project, key string) error {
	return c.Call(ctx, http.MethodPost, at("research", project, "feeds", key, "actions"),
		ResearchLook{"look"}, nil)
}
