package api

import (
	"context"
	"time"

	"github.com/danielgtaylor/huma/v2"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/fault"
)

// verifyFor is how long one request verifies: a gateway waits only 29 seconds, and reading one more
// file takes some.
const verifyFor = 10 * time.Second

// VerifyInput says where a verification continues.
type VerifyInput struct {
	Cursor string `query:"cursor" maxLength:"300"`
}

// verifying registers the route that checks the archive of events.
func (a *API) verifying(h huma.API) {
	post(a, h, "/v1/events/verify", "verifyEvents", "Verify the archive of events", a.verifyEvents)
}

// verifyEvents checks the archive of events for verifyFor, from the cursor on. Findings are not errors.
// The response has the cursor of the next part, "" at the end.
func (a *API) verifyEvents(ctx context.Context,
	in *VerifyInput) (out v1.EventsVerified, err error) {
	if a.EventArchive == nil {
		return out, fault.New(fault.Invalid, "this deployment has no archive of events")
	}

	v, err := a.EventArchive.Verify(ctx, in.Cursor, a.Queue.Now().Add(verifyFor))
	out = v1.EventsVerified{Files: v.Files, Events: v.Events, Cursor: v.Cursor}
	for _, f := range v.Findings {
		out.Findings = append(out.Findings, v1.ArchiveFinding{
			Partition: f.Partition,
			File:      f.File,
			Problem:   f.Problem,
		})
	}
	return out, err
}
