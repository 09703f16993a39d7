package table

import (
	"strings"

	"github.com/guregu/dynamo/v2"
)

// ConditionError reports that a transaction was refused because conditions did not hold. Keys
// are the rows of these conditions. Keys may be empty, if DynamoDB gave no reasons.
type ConditionError struct{ Keys []Key }

// Error names the rows.
func (e *ConditionError) Error() string {
	names := make([]string, len(e.Keys))
	for i, k := range e.Keys {
		names[i] = k.String()
	}
	return "table: changed meanwhile: " + strings.Join(names, ", ")
}

// Failed reports whether the row k was one of them.
func (e *ConditionError) Failed(k Key) bool {
	for _, f := range e.Keys {
		if f == k {
			return true
		}
	}
	return false
}

func isCondition(err error) bool { return dynamo.IsCondCheckFailed(err) }
