package eventsim

import (
	"context"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"archivist/pkg/events/consumer"
	"archivist/pkg/events/envelope"
	"archivist/pkg/kernel/table/tabletest"
	"archivist/test/adversary"
)

// mutant breaks one rule from outside, by a wrapper: the production code has no switches for
// it.
type mutant struct {
	name   string
	shown  uint64 // a seed that has shown it
	client func(*actor, adversary.Client) adversary.Client
	// handler wraps the targets of a process.
	handler func(consumer.Handler) consumer.Handler
	// log wraps what the consumers of a process read.
	log      func(*actor, consumer.Log) consumer.Log
	unticked bool // consumers that are behind are not woken by the clock

	revisions bool // the revisions of rows are not compared, so that the rule itself has to find it
}

// Known is the mutant's name, and a seed that has shown it.
func (m mutant) Known() (name string, shown uint64) { return m.name, m.shown }

var mutants = []mutant{
	{name: "the cursor moved before the handler", handler: early},
	{name: "the key order ignored", client: func(_ *actor, c adversary.Client) adversary.Client {
		return disordered{c}
	}},
	{name: "an event parked without its followers", client: changing(func(w *types.TransactWriteItem) bool {
		return !puts(w, "PARKED#") || text(w.Put.Item, "behind") == ""
	})},
	{name: "placement without the head's condition", client: unconditioned("SEQ#", "HEAD#"), revisions: true},
	{name: "unplaced events not swept", client: seeing("unplaced#", none)},
	{name: "versions placed in the wrong order", client: seeing("OBJECT#", reversed)},
	{name: "a log split without closing its partitions", client: changing(func(w *types.TransactWriteItem) bool {
		return w.Update == nil || text(w.Update.Key, "pk") != "LOGS"
	})},
	{name: "the cursor's revision not checked", client: unconditioned("CURSOR#"), revisions: true},
	{name: "parked keys not looked at", client: seeing("PARKED#", none)},
	{name: "parked events redriven in the wrong order", client: seeing("PARKED#", reversed)},
	{name: "a generation of the log begun before the one before it has ended", log: impatient},
	{name: "consumers that are behind not woken by the clock", unticked: true},
}

func none([]tabletest.Item) []tabletest.Item { return nil }

func reversed(rows []tabletest.Item) []tabletest.Item {
	slices.Reverse(rows)
	return rows
}

// puts reports whether a part of a transaction puts a row into a partition of that prefix.
func puts(w *types.TransactWriteItem, prefix string) bool {
	return w.Put != nil && strings.HasPrefix(text(w.Put.Item, "pk"), prefix)
}

func seeing(partition string, change func([]tabletest.Item) []tabletest.Item) func(*actor,
	adversary.Client) adversary.Client {
	return func(_ *actor, c adversary.Client) adversary.Client { return adversary.Seeing(c, partition, change) }
}

func changing(keep func(*types.TransactWriteItem) bool) func(*actor, adversary.Client) adversary.Client {
	return func(_ *actor, c adversary.Client) adversary.Client { return adversary.Changing(c, keep) }
}

// unconditioned puts rows whose sort keys begin like this without their conditions.
func unconditioned(prefixes ...string) func(*actor, adversary.Client) adversary.Client {
	return func(_ *actor, c adversary.Client) adversary.Client {
		return adversary.Unconditioned(c, func(row tabletest.Item) bool {
			return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(text(row, "sk"), p) })
		})
	}
}

// early answers at once, and handles the events when it is called again.
func early(h consumer.Handler) consumer.Handler {
	var before *consumer.Batch
	return consumer.HandlerFunc(func(ctx context.Context, b consumer.Batch) ([]consumer.Failure, error) {
		if before != nil {
			_, _ = h.Handle(ctx, *before)
		}
		before = &b
		return nil, nil
	})
}

// impatient does not show runs the partitions that are closed.
func impatient(a *actor, l consumer.Log) consumer.Log { return unclosed{l, a} }

type unclosed struct {
	consumer.Log
	a *actor
}

func (u unclosed) Partitions(ctx context.Context) ([]envelope.Partition, error) {
	all, err := u.Log.Partitions(ctx)
	if !u.a.ticks {
		all = slices.DeleteFunc(all, func(p envelope.Partition) bool { return p.Closed })
	}
	return all, err
}

// disordered lets processes read that the consumers have no order key.
type disordered struct{ adversary.Client }

func (s disordered) GetItem(ctx context.Context, in *dynamodb.GetItemInput,
	o ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	out, err := s.Client.GetItem(ctx, in, o...)
	if err == nil && len(out.Item) > 0 && text(in.Key, "pk") == "CONSUMERS" && text(in.Key, "sk") == ordered {
		definition := strings.Replace(text(out.Item, "definition_json"), `"order":"subject"`, `"order":"none"`, 1)
		out.Item["definition_json"] = &types.AttributeValueMemberS{Value: definition}
	}
	return out, err
}
