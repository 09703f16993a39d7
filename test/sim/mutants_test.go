package sim

import (
	"context"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/guregu/dynamo/v2/dynamodbiface"

	"archivist/pkg/ingest"
	"archivist/pkg/queue"
	"archivist/pkg/table/tabletest"
)

// mutant breaks one rule from outside, by a wrapper: the production code has no switches for
// it.
type mutant struct {
	name   string
	client func(*actor, dynamodbiface.DynamoDBAPI) dynamodbiface.DynamoDBAPI
	step   func(a *actor, m queue.Message, s queue.Step) queue.Step
}

var mutants = []mutant{
	{name: "the rev condition removed", client: without("rev =")},
	{name: "an insert overwrites an existing row", client: without("attribute_not_exists(")},
	{name: "the scheduler's fence not checked", client: without("fence =")},
	{name: "a lease taken while another worker holds it", client: without("until_ms")},
	{name: "a transaction committed row by row", client: func(_ *actor,
		c dynamodbiface.DynamoDBAPI) dynamodbiface.DynamoDBAPI {
		return pieces{c}
	}},
	{name: "a count written outside the transaction", client: func(_ *actor,
		c dynamodbiface.DynamoDBAPI) dynamodbiface.DynamoDBAPI {
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
		if put(w, "SPACE") {
			delete(w.Put.Item, "bytes")
		}
		return true
	})},
	{name: "reserved space never corrected", client: changing(func(_ *actor, w *types.TransactWriteItem) bool {
		return w.Update == nil || text(w.Update.Key, "pk") != "SPACE"
	})},
	{name: "a requeue takes no space row", client: changing(func(a *actor, w *types.TransactWriteItem) bool {
		return a.does.Name != ingest.ActRequeue || !put(w, "SPACE")
	})},
	{name: "the end of the last job does not close the batch",
		client: changing(func(a *actor, w *types.TransactWriteItem) bool {
			if c := w.ConditionCheck; c != nil && strings.HasPrefix(a.name, "worker") && text(c.Key, "sk") == "COUNT" {
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
	{name: "a release during a hold", client: func(a *actor,
		c dynamodbiface.DynamoDBAPI) dynamodbiface.DynamoDBAPI {
		return unseen{c, a}
	}},
	{name: "a hold does not revoke the scheduler's lease", client: func(_ *actor,
		c dynamodbiface.DynamoDBAPI) dynamodbiface.DynamoDBAPI {
		return withoutLease{c}
	}},
	{name: "a report that misses a late job", client: func(a *actor,
		c dynamodbiface.DynamoDBAPI) dynamodbiface.DynamoDBAPI {
		return stale{c, a}
	}},
	{name: "a cancellation that lets unpacking continue", client: func(a *actor,
		c dynamodbiface.DynamoDBAPI) dynamodbiface.DynamoDBAPI {
		return unended{c, a}
	}},
	{name: "a deletion without counts", client: changing(func(a *actor, w *types.TransactWriteItem) bool {
		return a.does.Name != ingest.ActDelete || w.Update == nil || text(w.Update.Key, "sk") != "COUNT"
	})},
	{name: "the receipt of an item not checked", client: changing(func(_ *actor, w *types.TransactWriteItem) bool {
		if w.Put != nil && strings.HasPrefix(text(w.Put.Item, "pk"), "ACT#") {
			w.Put.ConditionExpression, w.Put.ExpressionAttributeNames, w.Put.ExpressionAttributeValues = nil, nil, nil
		}
		return true
	})},
}

// withoutLease leaves the scheduler's lease out of transactions that place or lift a hold.
type withoutLease struct{ dynamodbiface.DynamoDBAPI }

func (s withoutLease) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput,
	o ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	places := func(w types.TransactWriteItem) bool {
		return put(&w, "HOLD") || w.Delete != nil && text(w.Delete.Key, "pk") == "HOLD"
	}
	if slices.ContainsFunc(in.TransactItems, places) {
		in.TransactItems = slices.DeleteFunc(in.TransactItems, func(w types.TransactWriteItem) bool {
			return w.Put != nil && strings.HasPrefix(text(w.Put.Item, "pk"), "LEASE#")
		})
	}
	return s.DynamoDBAPI.TransactWriteItems(ctx, in, o...)
}

// unseen hides the rows of holds from the release of a job or batch, and drops conditions on
// them.
type unseen struct {
	dynamodbiface.DynamoDBAPI
	a *actor
}

func (s unseen) releases() bool {
	kind := s.a.does.Target.Kind
	return s.a.does.Name == ingest.ActRelease && (kind == ingest.TargetJob || kind == ingest.TargetBatch)
}

func (s unseen) GetItem(ctx context.Context, in *dynamodb.GetItemInput,
	o ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	out, err := s.DynamoDBAPI.GetItem(ctx, in, o...)
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
	return s.DynamoDBAPI.TransactWriteItems(ctx, in, o...)
}

// stale gives reports the rows of jobs as an earlier report has read them.
type stale struct {
	dynamodbiface.DynamoDBAPI
	a *actor
}

func (s stale) GetItem(ctx context.Context, in *dynamodb.GetItemInput,
	o ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	out, err := s.DynamoDBAPI.GetItem(ctx, in, o...)
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
	dynamodbiface.DynamoDBAPI
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
	return s.DynamoDBAPI.TransactWriteItems(ctx, in, o...)
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

func put(w *types.TransactWriteItem, pk string) bool {
	return w.Put != nil && text(w.Put.Item, "pk") == pk
}

// seen changes the result of queries in some partitions.
type seen struct {
	dynamodbiface.DynamoDBAPI
	partition string // prefix
	change    func([]tabletest.Item) []tabletest.Item
}

func seeing(partition string, change func([]tabletest.Item) []tabletest.Item) func(*actor,
	dynamodbiface.DynamoDBAPI) dynamodbiface.DynamoDBAPI {
	return func(_ *actor, c dynamodbiface.DynamoDBAPI) dynamodbiface.DynamoDBAPI {
		return seen{c, partition, change}
	}
}

func (s seen) Query(ctx context.Context, in *dynamodb.QueryInput, o ...func(*dynamodb.Options)) (*dynamodb.QueryOutput,
	error) {
	out, err := s.DynamoDBAPI.Query(ctx, in, o...)
	for _, c := range in.KeyConditions {
		for _, v := range c.AttributeValueList {
			if pk, is := v.(*types.AttributeValueMemberS); is && c.ComparisonOperator == types.ComparisonOperatorEq &&
				strings.HasPrefix(pk.Value, s.partition) && err == nil {
				out.Items = s.change(out.Items)
			}
		}
	}
	return out, err
}

// changed changes or removes rows of transactions.
type changed struct {
	dynamodbiface.DynamoDBAPI
	a    *actor
	keep func(*actor, *types.TransactWriteItem) bool
}

func changing(keep func(*actor, *types.TransactWriteItem) bool) func(*actor,
	dynamodbiface.DynamoDBAPI) dynamodbiface.DynamoDBAPI {
	return func(a *actor, c dynamodbiface.DynamoDBAPI) dynamodbiface.DynamoDBAPI { return changed{c, a, keep} }
}

func (s changed) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput,
	o ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	var kept []types.TransactWriteItem
	for _, w := range in.TransactItems {
		if s.keep(s.a, &w) {
			kept = append(kept, w)
		}
	}
	return s.DynamoDBAPI.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: kept}, o...)
}

// stripped sends writes and checks without one of their conditions.
type stripped struct {
	dynamodbiface.DynamoDBAPI
	condition string
}

func without(condition string) func(*actor, dynamodbiface.DynamoDBAPI) dynamodbiface.DynamoDBAPI {
	return func(_ *actor, c dynamodbiface.DynamoDBAPI) dynamodbiface.DynamoDBAPI { return stripped{c, condition} }
}

func (s stripped) strip(cond **string) bool {
	if *cond == nil || !strings.Contains(**cond, s.condition) {
		return false
	}
	*cond = nil
	return true
}

func (s stripped) PutItem(ctx context.Context, in *dynamodb.PutItemInput,
	o ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	if s.strip(&in.ConditionExpression) {
		in.ExpressionAttributeNames, in.ExpressionAttributeValues = nil, nil
	}
	return s.DynamoDBAPI.PutItem(ctx, in, o...)
}

func (s stripped) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput,
	o ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	if s.condition == "until_ms" && text(in.Key, "sk") == "LEASE" {
		in.ConditionExpression = nil
	}
	return s.DynamoDBAPI.UpdateItem(ctx, in, o...)
}

func (s stripped) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput,
	o ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	for i := range in.TransactItems {
		if p := in.TransactItems[i].Put; p != nil {
			s.strip(&p.ConditionExpression)
		}
		if c := in.TransactItems[i].ConditionCheck; c != nil {
			s.strip(&c.ConditionExpression)
		}
	}
	return s.DynamoDBAPI.TransactWriteItems(ctx, in, o...)
}

// pieces sends each row of a transaction as a transaction of its own.
type pieces struct{ dynamodbiface.DynamoDBAPI }

func (s pieces) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput,
	o ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	for _, w := range in.TransactItems {
		one := &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{w}}
		if out, err := s.DynamoDBAPI.TransactWriteItems(ctx, one, o...); err != nil {
			return out, err
		}
	}
	return &dynamodb.TransactWriteItemsOutput{}, nil
}

// outside writes the counts after the transaction that they belong to.
type outside struct{ dynamodbiface.DynamoDBAPI }

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
	out, err := s.DynamoDBAPI.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: inside}, o...)
	if err != nil || len(counts) == 0 {
		return out, err
	}
	return s.DynamoDBAPI.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: counts}, o...)
}
