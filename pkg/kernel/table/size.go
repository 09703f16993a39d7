package table

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/guregu/dynamo/v2"
)

// Size is the size of a row in bytes by DynamoDB's rules ("Item sizes and formats" in its
// developer guide). It is 0 for a row that cannot be encoded: writing it returns the error.
// Names and texts count by their bytes in UTF-8; of numbers it is an estimate that is not too
// small for integers.
func Size(row any) int {
	item, err := dynamo.MarshalItem(row)
	if err != nil {
		return 0
	}
	n := 0
	for name, v := range item {
		n += len(name) + valueSize(v)
	}
	return n
}

func valueSize(v types.AttributeValue) int {
	const container, element = 3, 1 // bytes that a list or map, and each of its elements, cost
	switch x := v.(type) {
	case *types.AttributeValueMemberS:
		return len(x.Value)
	case *types.AttributeValueMemberN:
		return len(x.Value)/2 + 2
	case *types.AttributeValueMemberB:
		return len(x.Value)
	case *types.AttributeValueMemberL:
		n := container
		for _, e := range x.Value {
			n += element + valueSize(e)
		}
		return n
	case *types.AttributeValueMemberM:
		n := container
		for name, e := range x.Value {
			n += element + len(name) + valueSize(e)
		}
		return n
	}
	return 1
}
