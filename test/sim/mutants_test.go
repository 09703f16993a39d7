package sim

import (
	"context"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/kernel/table/tabletest"
	"archivist/test/adversary"
)

// mutant breaks one rule from outside, by a wrapper: the production code has no switches for
// it.
type mutant struct {
	name   string
	shown  uint64 // a seed that has shown it
	client func(*actor, adversary.Client) adversary.Client
	step   func(a *actor, m queue.Message, s queue.Step) queue.Step
}

// Known is the mutant's name, and a seed that has shown it.
func (m mutant) Known() (name string, shown uint64) { return m.name, m.shown }

var mutants = []mutant{
	{name: "the rev condition removed", client: without("rev =")},
	{name: "an insert overwrites an existing row", client: without("attribute_not_exists(")},
	{name: "the scheduler's fence not checked", shown: 8, client: without("fence =")},
	{name: "a lease taken while another worker holds it", client: without("until_ms")},
	{name: "jobs of a cancelled batch start", client: without("attribute_not_exists(cancelled)")},
	{name: "a transaction committed row by row", client: func(_ *actor, c adversary.Client) adversary.Client {
		return adversary.Pieces(c)
	}},
	{name: "a count written outside the transaction", client: func(_ *actor, c adversary.Client) adversary.Client {
		return outside{c}
	}},
	{name: "no sweep", client: seeing("due#", func([]tabletest.Item) []tabletest.Item { return nil })},
	{name: "success answered for a stage that the job has not left", step: func(a *actor, m queue.Message,
		s queue.Step) queue.Step {
		return func(ctx context.Context, claim *queue.Claim) (ingest.Result, error) {
			_ = a.Answer(ctx, m.Token, ingest.Success, "")
			return s(ctx, claim)
		}
	}},
	{name: "space rows ignored", client: seeing("SPACE", func([]tabletest.Item) []tabletest.Item { return nil })},
	{name: "space granted as 0", client: changing(func(_ *actor, w *types.TransactWriteItem) bool {
		if adversary.Put(w, "SPACE") {
			delete(w.Put.Item, "bytes")
		}
		return true
	})},
	{name: "reserved space never corrected", client: changing(func(_ *actor, w *types.TransactWriteItem) bool {
		return w.Update == nil || text(w.Update.Key, "pk") != "SPACE"
	})},
	{name: "a job stays listed where it was", client: changing(func(_ *actor, w *types.TransactWriteItem) bool {
		return w.Delete == nil || !strings.HasPrefix(text(w.Delete.Key, "pk"), "NAMED#")
	})},
	{name: "the end of the last job does not close the batch",
		client: changing(func(a *actor, w *types.TransactWriteItem) bool {
			if c := w.ConditionCheck; c != nil && strings.HasPrefix(a.Name, "worker") && text(c.Key, "sk") == "COUNT" {
				c.Key["sk"] = &types.AttributeValueMemberS{Value: "none"} // the condition cannot hold
			}
			return true
		})},
	{name: "the line for a lock ignored", client: seeing("LOCK#",
		func(rows []tabletest.Item) []tabletest.Item {
			return slices.DeleteFunc(rows, func(it tabletest.Item) bool { return text(it, "sk") != "LOCK" })
		})},
	// parked, pending, provisioning
	{name: "the gates in the wrong order", client: seeing("p", func(rows []tabletest.Item) []tabletest.Item {
		slices.Reverse(rows)
		return rows
	})},
	{name: "the wait that a source asks for cut short", client: changing(hurried)},
	{name: "shares ignored", client: seeing("SLOT", func(rows []tabletest.Item) []tabletest.Item {
		for _, it := range rows {
			it["coll"] = &types.AttributeValueMemberS{Value: "another"}
		}
		return rows
	})},
	{name: "a hold ignored by the gates", client: seeing("HOLD", func([]tabletest.Item) []tabletest.Item {
		return nil
	})},
	{name: "a release during a hold", client: func(a *actor, c adversary.Client) adversary.Client {
		return unseen{c, a}
	}},
	{name: "a hold does not revoke the scheduler's lease", shown: 290,
		client: func(_ *actor, c adversary.Client) adversary.Client {
			return withoutLease{c}
		}},
	{name: "a report that misses a late job", shown: 2012, client: func(a *actor, c adversary.Client) adversary.Client {
		return stale{c, a}
	}},
	{name: "a cancellation that lets unpacking continue", shown: 395,
		client: func(a *actor, c adversary.Client) adversary.Client {
			return unended{c, a}
		}},
	{name: "a deletion without counts", client: changing(func(a *actor, w *types.TransactWriteItem) bool {
		return a.does.Name != ingest.ActDelete || w.Update == nil || text(w.Update.Key, "sk") != "COUNT"
	})},
	{name: "the receipt of an item not checked", shown: 352,
		client: changing(func(_ *actor, w *types.TransactWriteItem) bool {
			if p := w.Put; p != nil && strings.HasPrefix(text(p.Item, "pk"), "ACT#") {
				p.ConditionExpression, p.ExpressionAttributeNames, p.ExpressionAttributeValues = nil, nil, nil
			}
			return true
		})},
}

// withoutLease leaves the scheduler's lease out of transactions that place or lift a hold.
type withoutLease struct{ adversary.Client }

func (s withoutLease) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput,
	o ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	places := func(w types.TransactWriteItem) bool {
		return adversary.Put(&w, "HOLD") || w.Delete != nil && text(w.Delete.Key, "pk") == "HOLD"
	}
	if slices.ContainsFunc(in.TransactItems, places) {
		in.TransactItems = slices.DeleteFunc(in.TransactItems, func(w types.TransactWriteItem) bool {
			return w.Put != nil && strings.HasPrefix(text(w.Put.Item, "pk"), "LEASE#")
		})
	}
	return s.Client.TransactWriteItems(ctx, in, o...)
}

// unseen hides the rows of holds from the release of a job or batch, and drops conditions on
// them.
type unseen struct {
	adversary.Client
	a *actor
}

func (s unseen) releases() bool {
	kind := s.a.does.Target.Kind
	return s.a.does.Name == ingest.ActRelease && (kind == ingest.TargetJob || kind == ingest.TargetBatch)
}

func (s unseen) GetItem(ctx context.Context, in *dynamodb.GetItemInput,
	o ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	out, err := s.Client.GetItem(ctx, in, o...)
	if err == nil && text(in.Key, "pk") == "HOLD" && s.releases() {
		out.Item = nil
	}
	return out, err
}

func (s unseen) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput,
	o ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	in.TransactItems = slices.DeleteFunc(in.TransactItems, func(w types.TransactWriteItem) bool {
		return w.ConditionCheck != nil && text(w.ConditionCheck.Key, "pk") == "HOLD" && s.releases()
	})
	return s.Client.TransactWriteItems(ctx, in, o...)
}

// stale gives reports the rows of jobs as an earlier report has read them.
type stale struct {
	adversary.Client
	a *actor
}

func (s stale) GetItem(ctx context.Context, in *dynamodb.GetItemInput,
	o ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	out, err := s.Client.GetItem(ctx, in, o...)
	if err != nil || !s.a.reports || text(in.Key, "sk") != "JOB" {
		return out, err
	}
	s.a.w.mu.Lock()
	defer s.a.w.mu.Unlock()
	key := text(in.Key, "pk")
	if s.a.w.reported[key] == nil {
		s.a.w.reported[key] = out.Item
	}
	out.Item = s.a.w.reported[key]
	return out, nil
}

// unended keeps a batch that is cancelled in its state, if it is being unpacked.
type unended struct {
	adversary.Client
	a *actor
}

func (s unended) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput,
	o ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	for _, w := range in.TransactItems {
		if s.a.does.Name != ingest.ActCancel || w.Put == nil || text(w.Put.Item, "sk") != "BATCH" {
			continue
		}
		row := s.a.w.check.batchItem(text(w.Put.Item, "pk"))
		if text(row, "batch_state") != string(ingest.BatchPending) || number(row, "unpacked") == 0 {
			continue
		}
		for _, name := range []string{"batch_state", "sealed", "expected", "exec_no", "due_ms", "entered", "incomplete",
			"place", "ranking"} {
			delete(w.Put.Item, name)
			if v := row[name]; v != nil {
				w.Put.Item[name] = v
			}
		}
	}
	return s.Client.TransactWriteItems(ctx, in, o...)
}

// hurried writes a job whose source asks to wait as if the source had not asked.
func hurried(_ *actor, w *types.TransactWriteItem) bool {
	if w.Put == nil || text(w.Put.Item, "sk") != "JOB" || number(w.Put.Item, "due_ms") == 0 {
		return true
	}
	if parked, _ := w.Put.Item["parked"].(*types.AttributeValueMemberBOOL); parked != nil && parked.Value {
		w.Put.Item["due_ms"] = &types.AttributeValueMemberN{Value: "1"}
		id := strings.TrimPrefix(text(w.Put.Item, "pk"), "JOB#")
		w.Put.Item["ranking"] = &types.AttributeValueMemberS{Value: ingest.DueSK(1) + "#" + id}
	}
	return true
}

func seeing(partition string, change func([]tabletest.Item) []tabletest.Item) func(*actor,
	adversary.Client) adversary.Client {
	return func(_ *actor, c adversary.Client) adversary.Client { return adversary.Seeing(c, partition, change) }
}

func changing(keep func(*actor, *types.TransactWriteItem) bool) func(*actor, adversary.Client) adversary.Client {
	return func(a *actor, c adversary.Client) adversary.Client {
		return adversary.Changing(c, func(w *types.TransactWriteItem) bool { return keep(a, w) })
	}
}

func without(condition string) func(*actor, adversary.Client) adversary.Client {
	return func(_ *actor, c adversary.Client) adversary.Client { return adversary.Without(c, condition) }
}

// outside writes the counts after the transaction that they belong to.
type outside struct{ adversary.Client }

func (s outside) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput,
	o ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	var inside, counts []types.TransactWriteItem
	for _, w := range in.TransactItems {
		if w.Update != nil && strings.Contains(*w.Update.UpdateExpression, "n_") {
			counts = append(counts, w)
		} else {
			inside = append(inside, w)
		}
	}
	out, err := s.Client.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: inside}, o...)
	if err != nil || len(counts) == 0 {
		return out, err
	}
	return s.Client.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: counts}, o...)
}
