package notify

import (
	"encoding/json"
	"fmt"
)

// Warnings are texts that a depositor should check. An old report has a number of files
// instead of a list: it is read as one text.
type Warnings []string

// UnmarshalJSON reads a list, or the number of an earlier report.
func (w *Warnings) UnmarshalJSON(data []byte) error {
	var files int
	if err := json.Unmarshal(data, (*[]string)(w)); err == nil ||
		json.Unmarshal(data, &files) != nil {
		return err
	}
	*w = Warnings{fmt.Sprintf("the digest of %d files matched, and their size differed; the receipt names them", files)}
	return nil
}
