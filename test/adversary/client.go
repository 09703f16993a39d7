package adversary

import (
	"context"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"archivist/pkg/kernel/table"
	"archivist/pkg/kernel/table/tabletest"
)

// Client is the actor's client of a table. refuse, if set, is asked for each partition of a
// request.
func (a *Actor) Client(fake *tabletest.Fake, refuse func(partition string) error) Keyed {
	return Keyed{Client: &tabletest.Client{DynamoDBAPI: fake, Do: a.Do, Refuse: refuse}}
}

// Timed makes the waits of a table those of the actor.
func (a *Actor) Timed(t *table.Table) *table.Table {
	t.Wait, t.Jitter = a.Wait, a.Rng.Float64
	return t
}

// Keyed names the row in each read: an actor may read several at the same time, and they
// need an order to replay.
type Keyed struct {
	*tabletest.Client
	Queries bool // names the partition in each query, too
}

// named is the client for one call with that name.
func (k Keyed) named(rest string) *tabletest.Client {
	named := *k.Client
	named.Do = func(op string, call func() error) error { return k.Do(op+rest, call) }
	return &named
}

// GetItem reads a row.
func (k Keyed) GetItem(ctx context.Context, in *dynamodb.GetItemInput,
	o ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	return k.named(" "+Text(in.Key, "pk")+" "+Text(in.Key, "sk")).GetItem(ctx, in, o...)
}

// Query reads rows.
func (k Keyed) Query(ctx context.Context, in *dynamodb.QueryInput, o ...func(*dynamodb.Options)) (*dynamodb.QueryOutput,
	error) {
	name := ""
	for _, attribute := range slices.Sorted(maps.Keys(in.KeyConditions)) {
		for _, v := range in.KeyConditions[attribute].AttributeValueList {
			if s, is := v.(*types.AttributeValueMemberS); is && k.Queries {
				name += " " + s.Value
			}
		}
	}
	return k.named(name).Query(ctx, in, o...)
}

// BatchGetItem reads rows.
func (k Keyed) BatchGetItem(ctx context.Context, in *dynamodb.BatchGetItemInput,
	o ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error) {
	name := ""
	for _, of := range in.RequestItems {
		for _, key := range of.Keys {
			name += " " + Text(key, "pk") + " " + Text(key, "sk")
		}
	}
	return k.named(name).BatchGetItem(ctx, in, o...)
}
