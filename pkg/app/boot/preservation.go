package boot

import (
	"context"
	"io"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"archivist/pkg/components/preservation"
	"archivist/pkg/kernel/bucket"
	"archivist/pkg/objects/fixity"
	"archivist/pkg/objects/formats"
	"archivist/pkg/objects/replica"
)

// The environment of functions that copy objects to a second storage root.
const (
	EnvReplica       = "ARCHIVIST_REPLICA_BUCKET" // "" = objects are not copied
	EnvReplicaRegion = "ARCHIVIST_REPLICA_REGION" // "" = that of the function
)

// preservation does the work of the components that ship. Limits of calls are constants,
// those of a day are settings.
func (s *System) preservation() preservation.Services {
	t, now, root := s.queue.Table, s.queue.Now, s.stages.Root
	derived := root.Bucket
	derived.Name = s.env(envDerived)
	check := &fixity.Checker{
		Table: t,
		NewID: newID,
		Now:   now,
		At:    fixity.InStorage,
		Root:  root,
		Limits: fixity.Limits{
			Call: fixity.DefaultLimits.Call,
			Day:  int64(s.limits.FixityGiB) << 30,
		},
	}

	return preservation.Services{
		Fixity: check,
		Formats: &formats.Maker{
			Store: formats.Store{Table: t, Derived: derived},
			NewID: newID,
			Now:   now,
			Root:  root,
		},
		Open:      func() (formats.Identify, string, error) { return s.signatures() },
		Replica:   s.replica(),
		Queue:     s.queue,
		Metric:    s.componentMetric,
		Now:       now,
		DelayDays: s.limits.DelayDays,
	}
}

// identifyReceived identifies received files. The signatures are loaded once, when the first file comes: most stages
// receive none.
func (s *System) identifyReceived() formats.Identify {
	load := sync.OnceValues(func() (formats.Identify, error) {
		identify, _, err := s.signatures()
		return identify, err
	})
	return func(ctx context.Context, name string, content io.ReaderAt, size int64) ([]formats.Match, error) {
		identify, err := load()
		if err != nil {
			return nil, err
		}
		return identify(ctx, name, content, size)
	}
}

// signatures loads the signatures of formats, which only the functions of stages and of components have.
func (s *System) signatures() (formats.Identify, string, error) {
	if s.open == nil {
		return nil, "", preservation.ErrNoSignatures
	}
	return s.open()
}

// replica copies objects to the second bucket, nil if there is none. The bucket may be in
// another region, for which a client of its own is made with the same credentials.
func (s *System) replica() *replica.Replica {
	name := s.env(EnvReplica)
	if name == "" {
		return nil
	}

	root := s.stages.Root
	region := s.env(EnvReplicaRegion)
	client := s3.New(root.Bucket.Client.Options(), func(o *s3.Options) {
		if region != "" {
			o.Region = region
		}
	})
	return &replica.Replica{
		Table:     s.queue.Table,
		NewID:     newID,
		Now:       s.queue.Now,
		Inventory: s.stages.Inventory,
		Root:      root,
		To:        bucket.Bucket{Client: client, Name: name, Limits: bucket.DefaultLimits},
	}
}

// shippedComponents are the definitions of the components that ship.
func (s *System) shippedComponents() preservation.Options {
	return preservation.Options{FixityDays: s.limits.FixityDays, Replica: s.env(EnvReplica) != ""}
}
