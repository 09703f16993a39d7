package v1

import (
	"context"
	"net/http"

	"archivist/pkg/fault"
	"archivist/pkg/ingest"
)

// ActOnJob acts on a job. A repeated request with the same key, if it has one, does nothing
// more and has the same result.
func (c *Client) ActOnJob(ctx context.Context, job string, in Action, key string) (out JobActionResult, err error) {
	err = c.act(ctx, jobPath(job), in, key, &out)
	return out, err
}

// Act acts on a target of any kind. The key is as for ActOnJob.
func (c *Client) Act(ctx context.Context, on ingest.Target, in Action, key string) (out ActionResult, err error) {
	path := ""
	switch on.Kind {
	case ingest.TargetJob:
		path = jobPath(on.ID)
	case ingest.TargetBatch:
		path = batchPath(on.ID)
	case ingest.TargetCollection:
		path = collectionPath(on.ID)
	case ingest.TargetQueue, ingest.TargetStorage:
		path = "/v1/" + string(on.Kind)
	default:
		return out, fault.New(fault.Invalid, "target: there is no kind %q", on.Kind)
	}
	err = c.act(ctx, path, in, key, &out)
	return out, err
}

func (c *Client) act(ctx context.Context, path string, in Action, key string, out any) error {
	return c.Call(ctx, http.MethodPost, path+"/actions", in, out, "Idempotency-Key", key)
}
