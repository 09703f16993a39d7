package boot

import "archivist/pkg/revision"

// archives keeps archives, their revisions and tasks, as far as the API needs them. It opens none.
func (s *System) archives() *revision.Store {
	return &revision.Store{Table: s.queue.Table, Leases: s.scheduler.Leases, Now: s.queue.Now, NewID: newID,
		Secret: newID, Times: revision.Default, Metric: s.metrics.Add, Log: s.log}
}
