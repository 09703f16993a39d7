package tabletest

import (
	"context"
	"maps"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"archivist/pkg/kernel/table"
)

// PutItem writes a row if its condition holds.
func (f *Fake) PutItem(_ context.Context, in *dynamodb.PutItemInput,
	_ ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	_, err := f.single(types.TransactWriteItem{Put: &types.Put{
		Item:                      in.Item,
		ConditionExpression:       in.ConditionExpression,
		ExpressionAttributeNames:  in.ExpressionAttributeNames,
		ExpressionAttributeValues: in.ExpressionAttributeValues,
		TableName:                 in.TableName,
	}})
	return &dynamodb.PutItemOutput{}, err
}

// UpdateItem changes a row if its condition holds.
func (f *Fake) UpdateItem(_ context.Context, in *dynamodb.UpdateItemInput,
	_ ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	now, err := f.single(types.TransactWriteItem{Update: &types.Update{
		Key:                       in.Key,
		ConditionExpression:       in.ConditionExpression,
		UpdateExpression:          in.UpdateExpression,
		ExpressionAttributeNames:  in.ExpressionAttributeNames,
		ExpressionAttributeValues: in.ExpressionAttributeValues,
		TableName:                 in.TableName,
	}})

	out := &dynamodb.UpdateItemOutput{}
	if err != nil {
		return out, err
	}
	if in.ReturnValues == types.ReturnValueAllNew {
		out.Attributes = now
	}
	return out, nil
}

// DeleteItem removes a row if its condition holds.
func (f *Fake) DeleteItem(_ context.Context, in *dynamodb.DeleteItemInput,
	_ ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error) {
	_, err := f.single(types.TransactWriteItem{Delete: &types.Delete{
		Key:                       in.Key,
		ConditionExpression:       in.ConditionExpression,
		ExpressionAttributeNames:  in.ExpressionAttributeNames,
		ExpressionAttributeValues: in.ExpressionAttributeValues,
		TableName:                 in.TableName,
	}})
	return &dynamodb.DeleteItemOutput{}, err
}

// single makes one write and returns the new row. A condition that fails is a
// ConditionalCheckFailedException with the row, and writes nothing.
func (f *Fake) single(w types.TransactWriteItem) (Item, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p, err := f.prepare(w)
	if err != nil {
		return nil, err
	}

	if !p.holds {
		return nil, &types.ConditionalCheckFailedException{Message: aws.String("The conditional request failed"),
			Item: p.old}
	}
	return maps.Clone(p.new), f.commit([]plan{p})
}

// TransactWriteItems writes all or nothing. It forgets client request tokens at once: nothing
// may depend on the ten minutes that DynamoDB keeps them. If conditions fail, the reasons of
// all actions are returned in their order. There are no conflicts here, because one
// transaction is made at a time.
func (f *Fake) TransactWriteItems(_ context.Context, in *dynamodb.TransactWriteItemsInput,
	_ ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(in.TransactItems) > table.MaxActions {
		return nil, invalid("a transaction of %d actions; the limit is %d", len(in.TransactItems),
			table.MaxActions)
	}

	seen := map[table.Key]bool{}
	size := 0
	var plans []plan
	reasons := make([]types.CancellationReason, len(in.TransactItems))
	cancelled := false
	for i, w := range in.TransactItems {
		p, err := f.prepare(w)
		if err != nil {
			return nil, err
		}

		if seen[p.key] {
			return nil, invalid("Transaction request cannot include multiple operations on one item")
		}

		seen[p.key] = true
		size += itemSize(p.new)
		reasons[i].Code = aws.String("None")
		if !p.holds {
			cancelled = true
			reasons[i] = types.CancellationReason{Code: aws.String("ConditionalCheckFailed"),
				Message: aws.String("The conditional request failed")}
		}

		plans = append(plans, p)
	}

	if size > 4<<20 {
		return nil, invalid("a transaction of %d bytes; the limit is 4 MB", size)
	}

	if cancelled {
		return nil, &types.TransactionCanceledException{Message: aws.String("Transaction cancelled"),
			CancellationReasons: reasons}
	}
	return &dynamodb.TransactWriteItemsOutput{}, f.commit(plans)
}
