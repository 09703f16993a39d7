package v1

import (
	"context"
	"net/url"
)

// JobCounts are how many jobs are where, by collection. Completed jobs are not counted: the statistics have them.
type JobCounts struct {
	// The collections that have such jobs, by name.
	Collections []CollectionJobs `json:"collections"`
	// The batches that have such jobs, at most the 100 that have the most. Absent unless they are
	// asked for.
	Batches []BatchJobs `json:"batches,omitempty"`
	// How many other batches have such jobs. Absent if there are none.
	OtherBatches int `json:"otherBatches,omitempty" example:"12"`
	// All collections together: those of the caller, if that is a depositor.
	All []PlaceJobs `json:"all"`
	// The places of which only the first 1,000 jobs were counted, of all collections together.
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

// BatchJobs are the jobs of a batch.
type BatchJobs struct {
	// The batch.
	Batch string `json:"batch" example:"01M7ZBMEYHBB62YP6RY21T1GQ6"`
	// The collection of the batch.
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

// JobCounts returns how many jobs are where, by collection, and with batches by batch, too.
// collection names the only one that is counted; "" = all that the caller may see.
func (c *Client) JobCounts(ctx context.Context, collection string, batches bool) (JobCounts, error) {
	q := url.Values{}
	if collection != "" {
		q.Set("collection", collection)
	}
	if batches {
		q.Set("batches", "true")
	}
	path := "/v1/job-counts"
	if len(q) > 0 {
		path += "?" + q.Encode()
	}
	return get[JobCounts](ctx, c, path)
}
