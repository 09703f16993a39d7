package inprocess

import (
	"context"
	"encoding/json"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"archivist/pkg/events/event"
	"archivist/pkg/kernel/table/schema"
	"archivist/pkg/kernel/table/tabletest"
)

// Of the stream's event source, as infra has it.
const (
	streamBatch  = 100
	streamWindow = time.Second
	streamTries  = 6
)

// stream invokes the relay with the new event rows of the table, in their order. There is one
// shard, so all events are in one order. Records do not expire.
type stream struct {
	functions *functions
	relay     string
	window    time.Duration // in which records are collected for an invocation
	dead      *queue

	mu      sync.Mutex
	records []events.DynamoDBEventRecord
	written int // records so far
	// woken holds one wake-up, so that the table never waits for the stream.
	woken chan struct{}
}

func newStream(l *functions, window time.Duration, dead *queue) *stream {
	return &stream{
		functions: l,
		relay:     fnRelay,
		window:    window,
		dead:      dead,
		woken:     make(chan struct{}, 1),
	}
}

// add adds what was written to the table. It is called with the table locked, so it only
// appends. The items must not be changed.
func (s *stream) add(changes []tabletest.Change) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range changes {
		if c.Before == nil && c.After != nil && isEvent(c.After) {
			s.written++
			s.records = append(s.records, record(c.After, s.written, now))
		}
	}

	// A wake-up that is there already is enough: the reader takes all records.
	if len(s.records) > 0 {
		select {
		case s.woken <- struct{}{}:
		default:
		}
	}
}

// isEvent is the filter of the event source. It is infra's filter: a new row whose sort key
// begins as those of events do.
func isEvent(row tabletest.Item) bool {
	sk, _ := row[schema.SK].(*types.AttributeValueMemberS)
	return sk != nil && len(sk.Value) > len(event.Prefix) &&
		sk.Value[:len(event.Prefix)] == event.Prefix
}

// run invokes the relay until the end of ctx. One batch at a time, so that the records of a
// subject are never out of order.
func (s *stream) run(ctx context.Context) {
	for {
		select {
		case <-s.woken:
		case <-ctx.Done():
			return
		}
		sleep(ctx, s.window)
		for batch := s.next(); len(batch) > 0 && ctx.Err() == nil; batch = s.next() {
			s.deliver(ctx, batch, streamTries)
		}
	}
}

// next takes records for an invocation.
func (s *stream) next() []events.DynamoDBEventRecord {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := min(len(s.records), streamBatch)
	batch := s.records[:n:n]
	s.records = s.records[n:]
	return batch
}

// deliver invokes the relay with a batch. One that fails is halved and repeated; what fails
// for good is a dead letter, which says where the records were. Halves are delivered one
// after the other, in order, each with one try less (bisectBatchOnFunctionError). A batch of
// one record is repeated after a second.
func (s *stream) deliver(ctx context.Context, batch []events.DynamoDBEventRecord, tries int) {
	payload, err := json.Marshal(events.DynamoDBEvent{Records: batch})
	if err != nil {
		panic(err) // texts and numbers can always be encoded
	}

	a, err := s.functions.invoke(ctx, s.relay, payload)
	switch half := len(batch) / 2; {
	case err == nil && a.failed == nil, ctx.Err() != nil:
	case tries == 1:
		s.dead.send(`{"DDBStreamBatchInfo":{"batchSize":`+strconv.Itoa(len(batch))+`}}`, nil, 0)
	case half > 0:
		s.deliver(ctx, batch[:half], tries-1)
		s.deliver(ctx, batch[half:], tries-1)
	default:
		sleep(ctx, time.Second)
		s.deliver(ctx, batch, tries-1)
	}
}

// record is a new row as a function gets it.
func record(row tabletest.Item, n int, now time.Time) events.DynamoDBEventRecord {
	keys := tabletest.Item{schema.PK: row[schema.PK], schema.SK: row[schema.SK]}
	number := strconv.Itoa(n)
	return events.DynamoDBEventRecord{
		EventID:        number,
		EventName:      "INSERT",
		EventVersion:   "1.1",
		AWSRegion:      region,
		EventSource:    "aws:dynamodb",
		EventSourceArn: arn("dynamodb", "table/"+tableName+"/stream/process"),
		Change: events.DynamoDBStreamRecord{
			ApproximateCreationDateTime: events.SecondsEpochTime{Time: now},
			Keys:                        image(keys),
			NewImage:                    image(row),
			SequenceNumber:              number,
			StreamViewType:              string(types.StreamViewTypeNewAndOldImages),
		},
	}
}

// image are attributes as a function gets them.
func image(row tabletest.Item) map[string]events.DynamoDBAttributeValue {
	out := map[string]events.DynamoDBAttributeValue{}
	for name, v := range row {
		out[name] = value(v)
	}
	return out
}

// value is an attribute as a function gets it. Types that no row has become null.
func value(v types.AttributeValue) events.DynamoDBAttributeValue {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return events.NewStringAttribute(v.Value)
	case *types.AttributeValueMemberN:
		return events.NewNumberAttribute(v.Value)
	case *types.AttributeValueMemberBOOL:
		return events.NewBooleanAttribute(v.Value)
	case *types.AttributeValueMemberB:
		return events.NewBinaryAttribute(v.Value)
	case *types.AttributeValueMemberSS:
		return events.NewStringSetAttribute(v.Value)
	case *types.AttributeValueMemberM:
		return events.NewMapAttribute(image(v.Value))
	case *types.AttributeValueMemberL:
		list := make([]events.DynamoDBAttributeValue, len(v.Value))
		for i, x := range v.Value {
			list[i] = value(x)
		}
		return events.NewListAttribute(list)
	}
	return events.NewNullAttribute()
}
