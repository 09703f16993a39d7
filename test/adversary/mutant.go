package adversary

import (
	"context"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/guregu/dynamo/v2/dynamodbiface"

	"archivist/pkg/kernel/table/tabletest"
)

// Client is a client of the table. A mutant breaks a rule by a wrapper of it, so that the
// production code has no switches for it.
type Client = dynamodbiface.DynamoDBAPI

// Put reports whether a part of a transaction puts a row into a partition.
func Put(w *types.TransactWriteItem, pk string) bool {
	return w.Put != nil && Text(w.Put.Item, "pk") == pk
}

// Seeing changes the results of queries in the partitions whose names begin with partition.
func Seeing(c Client, partition string, change func([]tabletest.Item) []tabletest.Item) Client {
	return seen{c, partition, change}
}

type seen struct {
	Client
	partition string
	change    func([]tabletest.Item) []tabletest.Item
}

func (s seen) Query(ctx context.Context, in *dynamodb.QueryInput, o ...func(*dynamodb.Options)) (*dynamodb.QueryOutput,
	error) {
	out, err := s.Client.Query(ctx, in, o...)
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

// Changing changes the parts of transactions, or removes those for which keep is false.
func Changing(c Client, keep func(*types.TransactWriteItem) bool) Client { return changed{c, keep} }

type changed struct {
	Client
	keep func(*types.TransactWriteItem) bool
}

func (s changed) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput,
	o ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	var kept []types.TransactWriteItem
	for _, w := range in.TransactItems {
		if s.keep(&w) {
			kept = append(kept, w)
		}
	}
	return s.Client.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: kept}, o...)
}

// Apart sends the parts of a transaction that change rows for which is holds after the others, in a
// transaction of their own.
func Apart(c Client, is func(key tabletest.Item) bool) Client { return parted{c, is} }

type parted struct {
	Client
	is func(key tabletest.Item) bool
}

func (s parted) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput,
	_ ...func(*dynamodb.Options)) (out *dynamodb.TransactWriteItemsOutput, err error) {
	var parts [2][]types.TransactWriteItem
	for _, w := range in.TransactItems {
		i := 0
		if key := changedKey(&w); key != nil && s.is(key) {
			i = 1
		}
		parts[i] = append(parts[i], w)
	}
	for _, p := range parts {
		if len(p) > 0 && err == nil {
			out, err = s.Client.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: p})
		}
	}
	return out, err
}

// changedKey has the key of the row that a part of a transaction changes, nil if it changes none.
func changedKey(w *types.TransactWriteItem) tabletest.Item {
	switch {
	case w.Put != nil:
		return w.Put.Item
	case w.Delete != nil:
		return w.Delete.Key
	case w.Update != nil:
		return w.Update.Key
	}
	return nil
}

// Without sends writes and checks without a condition that contains the text.
func Without(c Client, condition string) Client { return stripped{c, condition} }

type stripped struct {
	Client
	condition string
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
	return s.Client.PutItem(ctx, in, o...)
}

func (s stripped) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput,
	o ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	if s.condition == "until_ms" && Text(in.Key, "sk") == "LEASE" {
		in.ConditionExpression = nil
	}
	return s.Client.UpdateItem(ctx, in, o...)
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
	return s.Client.TransactWriteItems(ctx, in, o...)
}

// Unconditioned puts some rows without their conditions.
func Unconditioned(c Client, some func(row tabletest.Item) bool) Client {
	return unconditioned{c, some}
}

type unconditioned struct {
	Client
	some func(row tabletest.Item) bool
}

func (s unconditioned) PutItem(ctx context.Context, in *dynamodb.PutItemInput,
	o ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	if s.some(in.Item) {
		in.ConditionExpression, in.ExpressionAttributeNames, in.ExpressionAttributeValues = nil, nil, nil
	}
	return s.Client.PutItem(ctx, in, o...)
}

func (s unconditioned) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput,
	o ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	for _, w := range in.TransactItems {
		if p := w.Put; p != nil && s.some(p.Item) {
			p.ConditionExpression, p.ExpressionAttributeNames, p.ExpressionAttributeValues = nil, nil, nil
		}
	}
	return s.Client.TransactWriteItems(ctx, in, o...)
}

// Pieces sends each part of a transaction as a transaction of its own.
func Pieces(c Client) Client { return pieces{c} }

type pieces struct{ Client }

func (s pieces) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput,
	o ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	for _, w := range in.TransactItems {
		one := &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{w}}
		if out, err := s.Client.TransactWriteItems(ctx, one, o...); err != nil {
			return out, err
		}
	}
	return &dynamodb.TransactWriteItemsOutput{}, nil
}
