package v1

import "context"

// Settings are what a deployment runs with: its release and its settings, as its API knows them.
type Settings struct {
	// The release of the software.
	Version string `json:"version" example:"v1.4.0"`
	// The commit of which it was built. Absent if the build has not recorded it.
	Revision string `json:"revision,omitempty" example:"9fb35686aa0ea640"`
	// The release of Go with which it was built.
	Go string `json:"go" example:"go1.26.0"`
	// Whether it is a local stack, which has no AWS behind it.
	Local bool `json:"local" example:"false"`
	// All settings, grouped, always in the same order.
	Items []Setting `json:"items"`
}

// Setting is a setting of a deployment, or the name of one of its resources.
type Setting struct {
	// What it is of.
	Group string `json:"group" enum:"arks,queue,preservation,mail,access,events,research,revisions,sources,resources"`
	// Its name, as the deployment takes it; that of an output of the deployment, if it is of a resource.
	Name string `json:"name" example:"maxInFlight"`
	// What it is. Absent if it is not set, or not known.
	Value string `json:"value,omitempty" example:"100"`
	// The unit of the value. Absent if it has none.
	Unit string `json:"unit,omitempty" example:"days"`
	// What it is without a choice. Absent if that is nothing.
	Default string `json:"default,omitempty" example:"100"`
	// Whether the API cannot know it: it is of resources that the API does not use. The templates of the deployment
	// have it.
	Unknown bool `json:"unknown,omitempty" example:"false"`
	// What it means, in a line.
	Says string `json:"says" example:"jobs that run at once (slots)"`
}

// Settings returns what the deployment runs with.
func (c *Client) Settings(ctx context.Context) (Settings, error) {
	return get[Settings](ctx, c, "/v1/settings")
}
