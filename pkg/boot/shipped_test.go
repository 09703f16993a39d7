package boot

import (
	"slices"
	"testing"

	"archivist/pkg/consumer"
	"archivist/pkg/queue"
	"archivist/pkg/search"
	"archivist/pkg/stage"
	"archivist/pkg/table/tabletest"
)

// TestShipped: each consumer that ships has a handler of its name, each handler has a consumer, and
// the definitions are accepted.
func TestShipped(t *testing.T) {
	s := &System{env: func(string) string { return "" }, queue: &queue.Queue{Table: tabletest.Open(t)},
		stages: &stage.Stages{}, scheduler: &queue.Scheduler{}}
	handlers := s.handlers(func(search.Parts) search.Index { return nil })
	names := consumer.Names(handlers)
	for _, d := range shipped() {
		i := slices.Index(names, d.Target.Handler)
		if d.Name != d.Target.Handler || i < 0 || handlers[d.Name] == nil {
			t.Errorf("%s has no handler of its name: %v", d.Name, d.Target)
			continue
		}
		names = slices.Delete(names, i, i+1)
		if err := d.Check(); err != nil {
			t.Errorf("%s: %v", d.Name, err)
		}
	}
	if len(names) > 0 {
		t.Errorf("handlers of no consumer: %v", names)
	}
}
