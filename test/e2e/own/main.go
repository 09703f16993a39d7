// Command own is a consumer of events for the end-to-end tests: somebody's own function. It notes
// each of its calls as a line of JSON in the file that the environment names, and, as a
// consumer whose name begins with "loop", changes another collection.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"

	"github.com/aws/aws-lambda-go/lambda"

	"archivist/pkg/consumer"
	"archivist/pkg/envelope"
	"archivist/pkg/target"
)

// answer names the events that were not handled.
type answer struct {
	Failed []consumer.Failure `json:"failed"`
}

func handle(_ context.Context, b target.Call) (answer, error) {
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
	for range b.Events {
		if other := map[string]string{"loop-a": "loop-b", "loop-b": "loop-a"}[b.Consumer]; other != "" {
			if err := change(other, b.Cause); err != nil {
				return answer{}, err
			}
		}
	}
	return answer{Failed: []consumer.Failure{}}, nil
}

// change holds a collection, or releases it if it is on hold, because of an event.
func change(collection, cause string) error {
	for _, action := range []string{"hold", "release"} {
		body := fmt.Appendf(nil, `{"action": %q, "reason": "a loop of consumers"}`, action)
		req, err := http.NewRequest(http.MethodPost,
			os.Getenv("OWN_API")+"/v1/collections/"+collection+"/actions", bytes.NewReader(body))
		if err != nil {
			return err
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set(envelope.CauseHeader, cause)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		var did struct{ Changed bool }
		err = json.NewDecoder(resp.Body).Decode(&did)
		resp.Body.Close()
		if err == nil && resp.StatusCode == http.StatusOK && did.Changed {
			return nil
		}
	}
	return fmt.Errorf("the collection %s can be neither held nor released", collection)
}

func main() { lambda.Start(handle) }
