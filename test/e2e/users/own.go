// Package users has functions that users of the system could have written, for the end-to-end tests: a consumer of
// events, and the runnable of components. On an emulator they are programs, in the process they are registered.
package users

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"

	"archivist/pkg/events/consumer"
	"archivist/pkg/events/envelope"
	"archivist/pkg/events/target"
)

// Answer names the events that were not handled.
type Answer struct {
	Failed []consumer.Failure `json:"failed"`
}

// Own is a consumer of events. It notes each of its calls as a line of JSON in a file, and, as a consumer whose name
// begins with "loop", changes another collection by the API.
func Own(file, api, token string) func(context.Context, target.Call) (Answer, error) {
	return func(_ context.Context, b target.Call) (Answer, error) {
		if err := note(file, b); err != nil {
			return Answer{}, err
		}
		for range b.Events {
			if other := map[string]string{"loop-a": "loop-b", "loop-b": "loop-a"}[b.Consumer]; other != "" {
				if err := change(api, token, other, b.Cause); err != nil {
					return Answer{}, err
				}
			}
		}
		return Answer{Failed: []consumer.Failure{}}, nil
	}
}

// note appends a line of JSON to a file, in one write: calls at once do not mix.
func note(file string, call any) error {
	line, err := json.Marshal(call)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.Write(append(line, '\n'))
	return err
}

// change holds a collection, or releases it if it is on hold, because of an event.
func change(api, token, collection, cause string) error {
	for _, action := range []string{"hold", "release"} {
		body := fmt.Appendf(nil, `{"action": %q, "reason": "a loop of consumers"}`, action)
		req, err := http.NewRequest(http.MethodPost,
			api+"/v1/collections/"+collection+"/actions", bytes.NewReader(body))
		if err != nil {
			return err
		}
		req.Header.Set("Authorization", "Bearer "+token)
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
