package boot

import (
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"

	"archivist/pkg/components/component"
	"archivist/pkg/events/consumer"
	"archivist/pkg/events/eventarchive"
	publisher "archivist/pkg/events/eventbridge"
	"archivist/pkg/ingest/ezid"
	"archivist/pkg/revisions/revision"
	"archivist/pkg/views/acts"
	"archivist/pkg/views/browse"
	"archivist/pkg/views/derivatives"
	"archivist/pkg/views/formatcounts"
	"archivist/pkg/views/history"
	"archivist/pkg/views/inventorycache"
	"archivist/pkg/views/manifest"
	"archivist/pkg/views/search"
	"archivist/pkg/views/statistics"
)

// shipped are the consumers that ship with the system, with these settings. A new one is an
// entry here, and its handler one below. A consumer that is taken out of it stays as it was
// installed, until it is deleted.
func (s *System) shipped() []consumer.Definition {
	all := []consumer.Definition{history.Definition, statistics.Definition, publisher.Definition,
		search.Definition(), browse.Definition(), eventarchive.Definition, manifest.Definition,
		derivatives.Definition,
		inventorycache.Definition, acts.Definition, formatcounts.Definition(),
		component.FollowerDefinition}
	if s.revisionQueue() {
		all = append(all, revision.VersionsDefinition)
	}
	if s.registry != nil {
		all = append(all, ezid.Definition)
	}
	return all
}

// handlers are those of the consumers that ship, by name. Each can also be the target of
// other consumers.
func (s *System) handlers(searcher search.Consumer) map[string]consumer.Handler {
	t := s.queue.Table
	derived := s.stages.Root.Bucket
	derived.Name = s.env(envDerived)
	all := map[string]consumer.Handler{
		history.Name:    history.Recorder{Table: t, NewID: newID},
		acts.Name:       acts.Recorder{Table: t, NewID: newID},
		statistics.Name: statistics.Counter{Table: t, NewID: newID},
		publisher.Name: publisher.Publisher{Client: eventbridge.NewFromConfig(s.cfg),
			Bus: s.env(EnvBus)},
		search.Name:       searcher,
		browse.Name:       s.browse(),
		formatcounts.Name: s.formatCounts(derived),
		eventarchive.Name: eventarchive.Archiver{To: s.events.ArchiveTo},
		inventorycache.Name: inventorycache.Cache{
			Root:    s.stages.Root,
			Derived: derived,
			Least:   inventorycache.Least,
		},
		manifest.Name: manifest.Updater{Root: s.stages.Root, Derived: derived, API: s.stages.API},
		derivatives.Name: &derivatives.Maker{
			Table:     t,
			NewID:     newID,
			Now:       s.queue.Now,
			Inventory: s.stages.Inventory,
			Root:      s.stages.Root,
			Derived:   derived,
			Limits:    derivatives.DefaultLimits,
			Budget:    s.queue.Rules.Timing.Events().Call,
		},
	}

	all[component.FollowerName] = component.Follower{Store: s.components()}
	if s.revisionQueue() {
		all[revision.VersionsName] = revision.Versions{Store: s.revisionRows()}
	}
	if s.registry != nil {
		all[ezid.Name] = s.registry
	}

	// Without the build tag crash this changes nothing.
	for name, h := range all {
		all[name] = s.crashes.Handler(h)
	}
	return all
}
