package v1

import "context"

// JobCounts are how many jobs are where, by collection. Completed jobs are not counted: the statistics have them.
type JobCounts struct {
	// The collections that have such jobs, by name.
	Collections []CollectionJobs `json:"collections"`
	// All collections together.
	All []PlaceJobs `json:"all"`
	// The places of which only the first 1,000 jobs were counted.
	Cut []string `json:"cut,omitempty" example:"[\"pending\"]"`
	// How many rows of jobs cannot be read, and so are not counted. The doctor names them. Absent if there are none.
	Unreadable int `json:"unreadable,omitempty" example:"1"`
}

// CollectionJobs are the jobs of a collection.
type CollectionJobs struct {
	// The collection.
	Collection string `json:"collection" example:"maps"`
	// Its jobs at each place, always all places in the same order.
	Places []PlaceJobs `json:"places"`
}

// PlaceJobs are the jobs at a place.
type PlaceJobs struct {
	// Where they are: they wait to start, for work space, for what another job holds (parked), or until a time that
	// their source asked for (deferred); they run; they wait for a person; they have failed.
	Place string `json:"place" enum:"pending,provisioning,parked,deferred,running,held,failed"`
	// Their number.
	Jobs int `json:"jobs" example:"343"`
	// The work space that they need or have, in bytes, as far as it is known.
	Bytes int64 `json:"bytes" example:"73014444032"`
}

// JobCounts returns how many jobs are where, by collection.
func (c *Client) JobCounts(ctx context.Context) (JobCounts, error) {
	return get[JobCounts](ctx, c, "/v1/job-counts")
}
