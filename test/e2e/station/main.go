// Command station is the runnable of components for the end-to-end tests: somebody's own function. It
// notes each of its calls as a line of JSON in the file that the environment names. It fails with an
// item of the type "broken-" and the component's name.
package main

import (
	"context"
	"encoding/json"
	"os"
	"slices"

	"github.com/aws/aws-lambda-go/lambda"

	"archivist/pkg/component"
	"archivist/pkg/event"
)

func handle(_ context.Context, w component.Work) (component.Result, error) {
	line, err := json.Marshal(w)
	if err != nil {
		return component.Result{}, err
	}
	f, err := os.OpenFile(os.Getenv("STATION_FILE"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return component.Result{}, err
	}
	defer f.Close()
	if _, err := f.Write(append(line, '\n')); err != nil { // one write: calls at once do not mix
		return component.Result{}, err
	}
	if !slices.Contains(w.Types, "broken-"+w.Component) {
		return component.Result{}, nil
	}
	return component.Result{Outcome: event.Failure, Reason: "the item is broken", Report: component.Report{
		Total: 1, Entries: []component.Entry{{File: "METS.xml", Type: "structure", Component: w.Component,
			Description: "a file is missing"}}}}, nil
}

func main() { lambda.Start(handle) }
