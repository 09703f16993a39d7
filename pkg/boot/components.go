package boot

import "archivist/pkg/component"

// components keeps the components and their items.
func (s *System) components() *component.Store {
	return &component.Store{Table: s.queue.Table, Now: s.queue.Now, NewID: newID, Metric: s.metrics.Add}
}
