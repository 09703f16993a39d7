// Package stagetest makes the stages for tests on twins of S3 and DynamoDB.
package stagetest

import (
	"context"
	"math/rand/v2"
	"net/netip"

	"archivist/pkg/bucket"
	"archivist/pkg/bucket/buckettest"
	"archivist/pkg/collection"
	"archivist/pkg/fetch"
	"archivist/pkg/identity"
	"archivist/pkg/ingest"
	"archivist/pkg/inventory"
	"archivist/pkg/ocfl"
	"archivist/pkg/queue"
	"archivist/pkg/queue/queuetest"
	"archivist/pkg/stage"
	"archivist/pkg/workspace"
)

// New makes the stages of a machine on the twin of S3 at a URL. The machine then runs them.
func New(m *queuetest.Machine, url string) *stage.Stages {
	q, client := m.Queue, buckettest.Client(url)
	work := bucket.Bucket{Client: client, Name: "work", Limits: bucket.DefaultLimits}
	s := &stage.Stages{Queue: q, Inventory: inventory.Store{Table: q.Table},
		Collections: collection.Store{Table: q.Table, NewID: q.NewID}, Work: workspace.Store{Bucket: work},
		Root: ocfl.Root{Bucket: bucket.Bucket{Client: client, Name: "storage", Limits: bucket.DefaultLimits},
			Work: work},
		Fetch: fetch.New(fetch.Guard{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}, rand.Float64),
		Now:   q.Now, Draw: identity.Draw, NAAN: "99999", Shoulder: "fk4", Parallel: 4}
	s.Serve(q)
	q.Compose = func(ctx context.Context, b *ingest.Batch, m ingest.Mail) ([]string, queue.Send, error) {
		return s.Mail().Compose(ctx, b, m)
	}
	m.Step = func(st ingest.Stage) queue.Step { return s.Steps()[st.Name] }
	return s
}
