// Package stagetest makes the stages for tests on twins of S3 and DynamoDB.
package stagetest

import (
	"context"
	"math/rand/v2"
	"net/netip"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/collection"
	"archivist/pkg/ingest/identity"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/ingest/queue/queuetest"
	"archivist/pkg/ingest/stage"
	"archivist/pkg/ingest/workspace"
	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/bucket/buckettest"
	"archivist/pkg/kernel/fetch"
	"archivist/pkg/objects/inventory"
	"archivist/pkg/objects/ocfl"
)

// New makes the stages of a machine on the twin of S3 at a URL. The machine then runs them. Sources
// may be on this machine, too.
func New(m *queuetest.Machine, url string) *stage.Stages {
	q, client := m.Queue, buckettest.Client(url)
	work := bucket.Bucket{Client: client, Name: "work", Limits: bucket.DefaultLimits}
	s := &stage.Stages{
		Queue:       q,
		Inventory:   inventory.Store{Table: q.Table},
		Collections: collection.Store{Table: q.Table, NewID: q.NewID},
		Work:        workspace.Store{Bucket: work},
		Root: ocfl.Root{Bucket: bucket.Bucket{
			Client: client,
			Name:   "storage",
			Limits: bucket.DefaultLimits,
		},
			Work: work, Recorded: inventory.Store{Table: q.Table}.Recorded},
		Fetch:    fetch.New(fetch.Guard{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}, rand.Float64),
		Now:      q.Now,
		Draw:     identity.Draw,
		NAAN:     "99999",
		Shoulder: "fk4",
		Parallel: 4,
	}

	s.Serve(q)
	q.Compose = func(ctx context.Context, b *ingest.Batch, m ingest.Mail) ([]string, queue.Send, error) {
		return s.Mail().Compose(ctx, b, m)
	}

	m.Step = func(st ingest.Stage) queue.Step { return s.Steps()[st.Name] }
	return s
}
