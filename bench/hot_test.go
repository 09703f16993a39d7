package bench

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/guregu/dynamo/v2/dynamodbiface"

	"archivist/pkg/components/component"
	"archivist/pkg/components/preservation"
	"archivist/pkg/events/consumer"
	"archivist/pkg/events/eventlog"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/stage/stagetest"
	"archivist/pkg/kernel/table/schema"
	"archivist/pkg/views/browse"
	"archivist/pkg/views/history"
	"archivist/pkg/views/statistics"
)

// heat counts the write units of each partition of the table and of its indexes, and how many transactions name
// each row: two of these at one moment conflict.
type heat struct {
	dynamodbiface.DynamoDBAPI
	mu    sync.Mutex
	units map[string]float64
	named map[string]float64
	at    map[string]map[string]types.AttributeValue // the rows as they were written, to see what an index loses
}

func (h *heat) wrote(key, row map[string]types.AttributeValue, per float64, conflicts bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	pk, sk := text(key["pk"]), text(key["sk"])
	n := 1.0
	if row != nil {
		n = kb(size(row))
	}
	h.units[pk] += per * n
	if conflicts {
		h.named[pk+" "+sk]++
	}

	if row == nil {
		return
	}
	before := h.at[pk+" "+sk]
	for _, ix := range schema.Indexes {
		was, is := text(before[ix.PK]), text(row[ix.PK])
		moved := was != is || text(before[ix.SK]) != text(row[ix.SK])
		if is != "" {
			h.units["index "+ix.Name+": "+is]++
		}
		if was != "" && moved {
			h.units["index "+ix.Name+": "+was]++
		}
	}
	h.at[pk+" "+sk] = row
}

func text(v types.AttributeValue) string {
	if s, is := v.(*types.AttributeValueMemberS); is {
		return s.Value
	}
	return ""
}

func (h *heat) PutItem(ctx context.Context, in *dynamodb.PutItemInput,
	o ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	h.wrote(in.Item, in.Item, 1, false)
	return h.DynamoDBAPI.PutItem(ctx, in, o...)
}

func (h *heat) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput,
	o ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	h.wrote(in.Key, nil, 1, false)
	return h.DynamoDBAPI.UpdateItem(ctx, in, o...)
}

func (h *heat) DeleteItem(ctx context.Context, in *dynamodb.DeleteItemInput,
	o ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error) {
	h.wrote(in.Key, nil, 1, false)
	return h.DynamoDBAPI.DeleteItem(ctx, in, o...)
}

func (h *heat) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput,
	o ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	for _, w := range in.TransactItems {
		switch {
		case w.Put != nil:
			h.wrote(w.Put.Item, w.Put.Item, 2, true)
		case w.Update != nil:
			h.wrote(w.Update.Key, nil, 2, true)
		case w.Delete != nil:
			h.wrote(w.Delete.Key, nil, 2, true)
		case w.ConditionCheck != nil:
			h.wrote(w.ConditionCheck.Key, nil, 2, true)
		}
	}
	return h.DynamoDBAPI.TransactWriteItems(ctx, in, o...)
}

// objectsPerSecond is the rate for which partitions are judged, and partitionUnits what one can write in a second.
// (Source: "Service, account, and table quotas in Amazon DynamoDB".)
const (
	objectsPerSecond = 200
	partitionUnits   = 1000
)

// hot are the partitions that could not take that rate, with what an object may cost them; bench/RESULTS.md says why.
var hot = map[string]float64{
	"LOG#bench": 30, "index list: jobs#bench": 16, "SLOT": 8,
	"LEASE#clock": 10, "index work: mail": 6, "index list: batches#bench": 6,
}

// own matches what is of one object or job: only what all of them write to can be hot.
var own = regexp.MustCompile(`01M7|ark:|object \d`)

// TestHotPartitions: when objects are ingested, each by a batch of its own, what ships writes to no partition so much
// that it could not take 200 objects a second, but to those that are named.
func TestHotPartitions(t *testing.T) {
	const jobs = 120
	w := stagetest.NewWorld(t)
	h := &heat{DynamoDBAPI: w.Rows, units: map[string]float64{}, named: map[string]float64{},
		at: map[string]map[string]types.AttributeValue{}}
	w.Client.DynamoDBAPI = h
	q := w.Machine.Queue
	ships := shipping(t, w)
	add := func(from, to int) {
		t.Helper()
		for n := from; n < to; n++ {
			name := fmt.Sprintf("object %04d", n*7919%1000)
			in := ingest.Batch{Collection: "bench", Mode: "add", LocalIDs: []string{name},
				Metadata: ingest.Metadata{What: name, Who: "Somebody", When: "1851"},
				Payload:  ingest.Payload{URL: w.Source.URL + "/" + name, Type: ingest.TypeFile, Filename: "a.txt"}}
			if _, err := q.Submit(t.Context(), in, "", nil, "me"); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Machine.Run(t.Context(), 40); err != nil {
			t.Fatal(err)
		}
		// The sweep gives places to events that have waited.
		q.Now = func() time.Time { return time.Now().Add(time.Duration(to) * time.Hour) }
		ships()
	}
	add(0, 1)
	clear(h.units)
	clear(h.named)
	add(1, jobs+1)

	lists := h.units["BROWSE#title"] / jobs
	if lists != 2 {
		t.Errorf("%.2f write units an object in the list by title: were all ingested, and all events handled?", lists)
	}
	h.show(t, "write units", h.units, jobs)
	h.show(t, "transactions", h.named, jobs)
	for name, n := range h.units {
		per := n / jobs
		most, known := hot[name]
		if !own.MatchString(name) && (known && per > most || !known && per*objectsPerSecond > partitionUnits) {
			t.Errorf("%s: %.2f write units an object", name, per)
		}
	}
}

// show prints what an object costs the partitions, or the rows, that objects share.
func (h *heat) show(t *testing.T, what string, all map[string]float64, jobs float64) {
	for _, name := range slices.SortedFunc(maps.Keys(all), func(a, b string) int {
		return cmp.Or(cmp.Compare(all[b], all[a]), cmp.Compare(a, b))
	}) {
		if per := all[name] / jobs; per >= 0.5 && !own.MatchString(name) {
			t.Logf("%-40s %5.2f %s an object, %5.0f a second", name, per, what, per*objectsPerSecond)
		}
	}
}

// shipping installs the consumers that keep rows, and the components, and returns what lets them handle all events.
func shipping(t *testing.T, w *stagetest.World) func() {
	t.Helper()
	q := w.Machine.Queue
	definitions := preservation.Definitions(preservation.Options{FixityDays: 90, Replica: true})
	components := &component.Store{Table: q.Table, Now: time.Now, NewID: q.NewID,
		Wake: func(context.Context, string) error { return nil }}
	for _, d := range definitions {
		components.Functions = append(components.Functions, d.Name)
	}
	if err := preservation.Install(t.Context(), components, definitions); err != nil {
		t.Fatal(err)
	}
	for more := true; more; { // items are decided by the newest definitions from now on
		var err error
		if more, err = components.Backfill(t.Context(), time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	handlers := map[string]consumer.Handler{
		history.Name:           history.Recorder{Table: q.Table, NewID: q.NewID},
		statistics.Name:        statistics.Counter{Table: q.Table, NewID: q.NewID},
		browse.Name:            browse.Store{Table: q.Table, NewID: q.NewID},
		component.FollowerName: component.Follower{Store: components},
	}
	log := &eventlog.Log{Table: q.Table, Now: func() time.Time { return q.Now() }, NewID: q.NewID}
	store := &consumer.Store{Table: q.Table, Log: log, Now: log.Now, NewID: q.NewID, Handlers: consumer.Names(handlers)}
	run := consumer.Runtime{Store: store, Handlers: handlers}
	for _, d := range []consumer.Definition{history.Definition, statistics.Definition, browse.Definition(),
		component.FollowerDefinition} {
		if _, err := store.Apply(t.Context(), d, consumer.By{Actor: "bench"}); err != nil {
			t.Fatal(err)
		}
	}
	return func() {
		t.Helper()
		until := log.Now().Add(time.Hour)
		if _, err := log.Sweep(t.Context(), until); err != nil {
			t.Fatal(err)
		}
		parts, err := log.Partitions(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for name := range handlers {
			for _, p := range parts {
				if !strings.Contains(p.Name, "bench") && p.Name != "site" {
					continue
				}
				if _, err := run.Run(t.Context(), name, p.Name, until); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}
