// Command own is a consumer of events for the end-to-end tests: somebody's own function. It notes
// each of its calls as a line of JSON in the file that the environment names, and, as a
// consumer whose name begins with "loop", changes another collection.
package main

import (
	"context"
	"encoding/json"
	"os"

	"github.com/aws/aws-lambda-go/lambda"

	"archivist/pkg/consumer"
)

// answer names the events that were not handled.
type answer struct {
	Failed []consumer.Failure `json:"failed"`
}

func handle(_ context.Context, b consumer.Batch) (answer, error) {
	line, err := json.Marshal(b)
	if err != nil {
		return answer{}, err
	}
	f, err := os.OpenFile(os.Getenv("OWN_FILE"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return answer{}, err
	}
	defer f.Close()
	if _, err := f.Write(append(line, '\n')); err != nil { // one write: calls at once do not mix
		return answer{}, err
	}
	return answer{Failed: []consumer.Failure{}}, nil
}

func main() { lambda.Start(handle) }
