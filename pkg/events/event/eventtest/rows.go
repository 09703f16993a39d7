package eventtest

import (
	"encoding/json"
	"flag"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"archivist/pkg/events/envelope"
	"archivist/pkg/kernel/table"
)

// rows is set by go test ./pkg/NAME -rows FOLDER.
var rows = flag.String("rows", "",
	"folder to which the first row of each type of events is written, if it has none")

// Sample is the row of an event as it was stored once, in DynamoDB's JSON, and the envelope that it
// has now. So a test finds a release that reads a stored row in another way.
type Sample struct {
	Row      map[string]any  `json:"row"`
	Envelope *envelope.Event `json:"envelope"`
}

// Item is the stored row.
func (s Sample) Item() (table.Item, error) {
	item := table.Item{}
	for name, v := range s.Row {
		value, err := decode(v)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		item[name] = value
	}
	return item, nil
}

// encode is a row in DynamoDB's JSON. It has the kinds of values that rows of events have.
func encode(item table.Item) map[string]any {
	out := map[string]any{}
	for name, v := range item {
		out[name] = encodeValue(v)
	}
	return out
}

// encodeValue is one value in DynamoDB's JSON. It panics at a kind that rows of events do not have,
// so that a test shows it.
func encodeValue(v types.AttributeValue) any {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return map[string]any{"S": v.Value}
	case *types.AttributeValueMemberN:
		return map[string]any{"N": v.Value}
	case *types.AttributeValueMemberL:
		list := []any{}
		for _, one := range v.Value {
			list = append(list, encodeValue(one))
		}
		return map[string]any{"L": list}
	case *types.AttributeValueMemberM:
		return map[string]any{"M": encode(v.Value)}
	}
	panic(fmt.Sprintf("eventtest: a row has a %T", v))
}

// decode reads one value of DynamoDB's JSON, such as {"S": "text"}.
func decode(v any) (types.AttributeValue, error) {
	kinds, _ := v.(map[string]any)
	for kind, value := range kinds {
		switch value := value.(type) {
		case string:
			if kind == "N" {
				return &types.AttributeValueMemberN{Value: value}, nil
			}
			return &types.AttributeValueMemberS{Value: value}, nil
		case []any:
			list := &types.AttributeValueMemberL{}
			for _, one := range value {
				item, err := decode(one)
				if err != nil {
					return nil, err
				}
				list.Value = append(list.Value, item)
			}
			return list, nil
		case map[string]any:
			fields, err := Sample{Row: value}.Item()
			return &types.AttributeValueMemberM{Value: fields}, err
		}
	}

	text, _ := json.Marshal(v)
	return nil, fmt.Errorf("eventtest: %s is no value of a row", text)
}
