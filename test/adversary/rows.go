package adversary

import (
	"strconv"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/guregu/dynamo/v2"

	"archivist/pkg/kernel/table/tabletest"
)

// Text is a text of a row, "" if there is none.
func Text(it tabletest.Item, name string) string {
	v, _ := it[name].(*types.AttributeValueMemberS)
	if v == nil {
		return ""
	}
	return v.Value
}

// Number is a number of a row, 0 if there is none.
func Number(it tabletest.Item, name string) (n int64) {
	if v, ok := it[name].(*types.AttributeValueMemberN); ok {
		n, _ = strconv.ParseInt(v.Value, 10, 64)
	}
	return n
}

// Either is the row after a change, or, if it was removed, before.
func Either(ch tabletest.Change) tabletest.Item {
	if ch.After != nil {
		return ch.After
	}
	return ch.Before
}

// Read decodes a row; none is the zero value.
func Read[T any](it tabletest.Item) T {
	var v T
	if it != nil {
		if err := dynamo.UnmarshalItem(it, &v); err != nil {
			panic(err)
		}
	}
	return v
}
