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
	// The places of which only the first 1,000 jobs were counted, of all collections together; in a
	// quick count those of which not all were.
	Cut []string `json:"cut,omitempty" example:"[\"pending\"]"`
	// How many rows of jobs cannot be read, and so are not counted. The doctor names them. Absent if there are none.
	Unreadable int `json:"unreadable,omitempty" example:"1"`
}

// CollectionJobs are the jobs of a collection.
type CollectionJobs struct {
	// The collection.
	Collection string `json:"collection" example:"maps"`
	// Its jobs at each place, always all places in the same order; a quick count has no place
	// `deferred`.
	Places []PlaceJobs `json:"places"`
}

// BatchJobs are the jobs of a batch.
type BatchJobs struct {
	// The batch.
	Batch string `json:"batch" example:"01M7ZBMEYHBB62YP6RY21T1GQ6"`
	// The collection of the batch.
	Collection string `json:"collection" example:"maps"`
	// Its jobs at each place, as of a collection.
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

// CountOf is what is counted by JobCounts, and how.
type CountOf struct {
	Collection string // the only one that is counted; "" = all that the caller may see
	Batches    bool   // by batch, too
	Quick      bool   // without those that are deferred: that takes half of the calls
}

// JobCounts returns how many jobs are where, by collection.
func (c *Client) JobCounts(ctx context.Context, of CountOf) (JobCounts, error) {
	q := url.Values{}
	if of.Collection != "" {
		q.Set("collection", of.Collection)
	}
	if of.Batches {
		q.Set("batches", "true")
	}
	if of.Quick {
		q.Set("quick", "true")
	}
	path := "/v1/job-counts"
	if len(q) > 0 {
		path += "?" + q.Encode()
	}
	return get[JobCounts](ctx, c, path)
}

// BatchCounts are how many batches are in the states in which they wait, work, or need a person.
type BatchCounts struct {
	// The states, always the same, in the order of the path of a batch. Batches that are completed or
	// deleted, and those that report once more, are not counted.
	States []StateBatches `json:"states"`
}

// StateBatches are the batches in a state.
type StateBatches struct {
	// The state.
	State string `json:"state"`
	// Their number, at most 100.
	Batches int `json:"batches" example:"7"`
	// Whether there are more than these. Absent if there are not.
	More bool `json:"more,omitempty"`
}

// BatchCounts returns how many batches are in each state: of a collection, or of all.
func (c *Client) BatchCounts(ctx context.Context, collection string) (BatchCounts, error) {
	path := "/v1/batch-counts"
	if collection != "" {
		path += "?" + url.Values{"collection": {collection}}.Encode()
	}
	return get[BatchCounts](ctx, c, path)
}
