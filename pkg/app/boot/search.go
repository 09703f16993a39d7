package boot

import (
	"cmp"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"

	"archivist/pkg/kernel/bucket"
	"archivist/pkg/views/browse"
	"archivist/pkg/views/formatcounts"
	"archivist/pkg/views/search"
	"archivist/pkg/views/search/opensearch"
)

// The environment of functions that search or index objects.
const (
	envDerived = "ARCHIVIST_DERIVED_BUCKET"
	// EnvSearch is the URL of an OpenSearch domain; "" = the index is in the bucket above.
	EnvSearch = "ARCHIVIST_SEARCH_DOMAIN"
)

// domain is the index of the OpenSearch domain that the environment names, nil if it names
// none. Requests are signed for the region that the URL names.
func (s *System) domain(cfg aws.Config) search.Index {
	url := strings.TrimSuffix(s.env(EnvSearch), "/")
	if url == "" {
		return nil
	}
	return &opensearch.Index{
		URL:         url,
		Name:        opensearch.Objects,
		Region:      cmp.Or(opensearch.RegionOf(url), cfg.Region),
		Credentials: cfg.Credentials,
		HTTP:        http.DefaultClient,
		Now:         s.queue.Now,
	}
}

// OpenIndex makes the index that is kept in a bucket. The main of a function that uses it gives
// it to the system: the library that it needs makes a zip 2.6 MB larger, and other functions do
// without it.
type OpenIndex func(search.Parts) search.Index

// index is the search index of this deployment.
func (s *System) index(open OpenIndex) search.Index {
	if s.remote != nil {
		return s.remote
	}

	derived := s.stages.Root.Bucket
	derived.Name = s.env(envDerived)
	return open(search.Parts{
		Table:  s.queue.Table,
		Bucket: derived,
		Leases: s.scheduler.Leases,
		Now:    s.queue.Now,
	})
}

// browse keeps the lists of objects.
func (s *System) browse() browse.Store { return browse.Store{Table: s.queue.Table, NewID: newID} }

// formatCounts counts files by format.
func (s *System) formatCounts(derived bucket.Bucket) formatcounts.Store {
	source := formatcounts.Source{Inventory: s.stages.Inventory, Root: s.stages.Root,
		Derived: derived}
	return formatcounts.Store{Table: s.queue.Table, NewID: newID, Read: source.Read}
}

// searching is the handler of the consumer that keeps the index. It reads what it indexes
// from the inventory and the storage root, not from the events.
func (s *System) searching(open OpenIndex) search.Consumer {
	source := search.Source{Inventory: s.stages.Inventory, Root: s.stages.Root}
	return search.Consumer{
		Index:  s.index(open),
		Read:   source.Read,
		Exists: s.stages.Inventory.Exists,
	}
}
