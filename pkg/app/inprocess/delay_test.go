package inprocess

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/events/consumer"
)

// TestConsumersHearWithinSeconds: in a bubble, with the times of production, a consumer is called within seconds after
// an object was stored: not at the next minute. The index of the search is such a consumer.
func TestConsumersHearWithinSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late := make(chan time.Duration, 10)
		w := begin(t, Settings{Targets: []string{ARN("words")}})
		w.Register("words", func(_ context.Context, payload []byte) ([]byte, error) {
			var b consumer.Batch
			err := json.Unmarshal(payload, &b)
			for _, e := range b.Events {
				late <- time.Since(time.UnixMilli(e.Time))
			}
			return []byte(`{"failed":[]}`), err
		})
		_, err := w.api.ApplyConsumer(t.Context(), v1.ConsumerDefinition{Name: "words", Filter: "Object+Create",
			Target: v1.ConsumerTarget{Lambda: ARN("words")}}, "a test")
		w.must(err)
		w.completed(w.two())
		for range 2 {
			if d := <-late; d > 5*time.Second {
				t.Errorf("it was called %s after the object was stored", d)
			}
		}
	})
}
