package v1

import "context"

// FilterWords are what filters of events are made of, to complete one while it is written.
type FilterWords struct {
	// The types of subjects of which there are events.
	Subjects []FilterSubject `json:"subjects"`
	// What happens to subjects.
	Actions []string `json:"actions" example:"create,modify"`
	// The terms in braces.
	Terms []FilterTerm `json:"terms"`
	// The signs between them.
	Signs []FilterSign `json:"signs"`
}

// FilterSubject is a type of subjects.
type FilterSubject struct {
	// Its name. `All` stands for each.
	Name string `json:"name" example:"Object"`
	// Other names of it, which DSpace has.
	Also []string `json:"also,omitempty" example:"Item"`
	// What happens to such subjects.
	Actions []string `json:"actions" example:"create,modify"`
	// The types of their events.
	Types []string `json:"types" example:"object.create,object.modify"`
}

// FilterTerm is what a term compares.
type FilterTerm struct {
	// Its name.
	Name string `json:"name" example:"outcome"`
	// What it is.
	Means string `json:"means" example:"success or failure"`
	// Values that are known.
	Values []string `json:"values,omitempty" example:"success,failure"`
	// There are no other values.
	Only bool `json:"only,omitempty" example:"true"`
}

// FilterSign is a sign, and what it means at a place.
type FilterSign struct {
	// The sign.
	Text string `json:"text" example:"|"`
	// After what it can be.
	After string `json:"after" enum:"subject,action,brace,field,value,terms" example:"subject"`
	// What it means there.
	Means string `json:"means" example:"or another type"`
}

// FilterWords returns what filters of events are made of.
func (c *Client) FilterWords(ctx context.Context) (FilterWords, error) {
	return get[FilterWords](ctx, c, "/v1/filters")
}
