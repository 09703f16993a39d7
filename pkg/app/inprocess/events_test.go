package inprocess

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/events/consumer"
	"archivist/pkg/events/filter"
)

// TestEventsReachConsumers: the events of a preserved object reach the index, so that it is found, a function of a
// user, and a rule on the bus.
func TestEventsReachConsumers(t *testing.T) {
	w := begin(t, quick())
	var handled sync.Map // the ids of events: each may come more than once
	var last atomic.Int64
	arn := w.Register("words", func(_ context.Context, payload []byte) ([]byte, error) {
		var b consumer.Batch
		err := json.Unmarshal(payload, &b)
		for _, e := range b.Events {
			handled.Store(e.ID, nil)
			last.Store(max(e.Seq, last.Load()))
		}
		return []byte(`{"failed":[]}`), err
	})
	_, err := w.api.ApplyConsumer(t.Context(), v1.ConsumerDefinition{Name: "words", Filter: "Object+Create",
		Target: v1.ConsumerTarget{Lambda: arn}}, "a test")
	w.must(err)
	published := w.rule("Object+Create{parent=maps}")

	w.completed(w.two())
	w.until("the objects are found", func() bool {
		found, err := w.api.Search(t.Context(), "collection:maps", "", 10)
		w.must(err)
		return len(found.Items) == 2
	})
	w.until("the function has handled both", func() bool {
		ids := 0
		handled.Range(func(any, any) bool { ids++; return true })
		return ids == 2
	})
	w.until("its answers are taken for success", func() bool {
		at, err := w.api.Consumer(t.Context(), "words")
		w.must(err)
		i := slices.IndexFunc(at.Partitions, func(p v1.ConsumerPartition) bool { return p.Partition == "maps" })
		return i >= 0 && at.Partitions[i].Seq >= last.Load() && at.Parked == 0
	})
	for range 2 {
		if text := published(); !strings.Contains(text, `"detail-type":"object.create"`) {
			t.Errorf("published: %s", text)
		}
	}
}

// rule makes a rule on the bus of public events, and returns what receives the next event that it selects.
func (w *world) rule(selects string) (next func() string) {
	w.Helper()
	f, err := filter.Compile(selects)
	w.must(err)
	pattern, err := f.Pattern()
	w.must(err)
	queues, rules := sqs.NewFromConfig(w.Config()), eventbridge.NewFromConfig(w.Config())
	q, err := queues.CreateQueue(w.Context(), &sqs.CreateQueueInput{QueueName: aws.String("published")})
	w.must(err)
	name, bus := "theirs", w.Outputs()["bus"]
	_, err = rules.PutRule(w.Context(), &eventbridge.PutRuleInput{Name: &name, EventBusName: &bus,
		EventPattern: &pattern})
	w.must(err)
	_, err = rules.PutTargets(w.Context(), &eventbridge.PutTargetsInput{Rule: &name, EventBusName: &bus,
		Targets: []types.Target{{Id: &name, Arn: aws.String("arn:aws:sqs:us-east-1:000000000000:published")}}})
	w.must(err)
	return func() string {
		for {
			got, err := queues.ReceiveMessage(w.Context(), &sqs.ReceiveMessageInput{QueueUrl: q.QueueUrl,
				WaitTimeSeconds: 20})
			w.must(err)
			if len(got.Messages) == 1 {
				_, err = queues.DeleteMessage(w.Context(), &sqs.DeleteMessageInput{QueueUrl: q.QueueUrl,
					ReceiptHandle: got.Messages[0].ReceiptHandle})
				w.must(err)
				return *got.Messages[0].Body
			}
		}
	}
}
