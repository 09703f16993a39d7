package sim

import (
	"context"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/guregu/dynamo/v2/dynamodbiface"

	"archivist/pkg/ingest"
	"archivist/pkg/queue"
)

// mutant breaks one rule from outside: a wrapper, never a switch in the
// production code.
type mutant struct {
	name    string
	client  func(*actor, dynamodbiface.DynamoDBAPI) dynamodbiface.DynamoDBAPI
	step    func(a *actor, m queue.Message, s queue.Step) queue.Step
	noSweep bool
}

var mutants = []mutant{
	{name: "the rev condition stripped", client: without("rev =")},
	{name: "a row put where one may stand already", client: without("attribute_not_exists(")},
	{name: "the clock's fence not checked", client: without("fence =")},
	{name: "a transaction committed piece by piece", client: func(_ *actor, c dynamodbiface.DynamoDBAPI) dynamodbiface.DynamoDBAPI { return pieces{c} }},
	{name: "a count written outside the transaction", client: func(_ *actor, c dynamodbiface.DynamoDBAPI) dynamodbiface.DynamoDBAPI { return outside{c} }},
	{name: "the sweep left out", noSweep: true},
	{name: "success answered for a stage that the job has not left", step: func(a *actor, m queue.Message, s queue.Step) queue.Step {
		return func(ctx context.Context, h *queue.Held) (ingest.Result, error) {
			_ = a.Answer(ctx, m.Token, ingest.Success, "")
			return s(ctx, h)
		}
	}},
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

func (s stripped) PutItem(ctx context.Context, in *dynamodb.PutItemInput, o ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	if s.strip(&in.ConditionExpression) {
		in.ExpressionAttributeNames, in.ExpressionAttributeValues = nil, nil
	}
	return s.DynamoDBAPI.PutItem(ctx, in, o...)
}

func (s stripped) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, o ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
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

func (s pieces) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, o ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
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

func (s outside) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, o ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
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
