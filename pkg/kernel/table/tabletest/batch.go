package tabletest

import (
	"context"
	"math/rand/v2"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"archivist/pkg/kernel/table"
)

// BatchGetItem reads rows of one table consistently. As in DynamoDB the rows are in no order,
// and each row is asked for once. It processes all keys of a request.
func (f *Fake) BatchGetItem(_ context.Context, in *dynamodb.BatchGetItemInput,
	_ ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := &dynamodb.BatchGetItemOutput{Responses: map[string][]Item{}}
	if len(in.RequestItems) != 1 {
		return nil, invalid("tabletest: rows of %d tables", len(in.RequestItems))
	}

	for name, of := range in.RequestItems {
		if of.ConsistentRead == nil || !*of.ConsistentRead || of.ProjectionExpression != nil {
			return nil, invalid("tabletest: a read that is not consistent, or projected, is not supported")
		}

		if len(of.Keys) == 0 || len(of.Keys) > table.MaxGets {
			return nil, invalid("a request for %d rows; the limit is %d", len(of.Keys),
				table.MaxGets)
		}

		seen := map[table.Key]bool{}
		for _, key := range of.Keys {
			k, err := keyOf(key)
			if err != nil {
				return nil, err
			}

			if seen[k] {
				return nil, invalid("Provided list of item keys contains duplicates")
			}

			seen[k] = true
			if it := f.get(k); it != nil {
				out.Responses[name] = append(out.Responses[name], it)
			}
		}

		some := out.Responses[name]
		rand.Shuffle(len(some), func(i, j int) { some[i], some[j] = some[j], some[i] })
	}
	return out, nil
}

// batched are the partitions of a BatchGetItem.
func batched(of map[string]types.KeysAndAttributes) (pks []string) {
	for _, rows := range of {
		for _, k := range rows.Keys {
			pks = append(pks, str(k, "pk"))
		}
	}
	return pks
}
