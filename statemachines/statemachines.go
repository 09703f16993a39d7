// Package statemachines holds the definitions of the state machines, as JSON in
// Amazon States Language.
package statemachines

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

//go:embed ingest-job.asl.json
var ingestJob string

//go:embed ingest-batch.asl.json
var ingestBatch string

// Definitions by the machine's name.
var Definitions = map[string]string{"ingest-job": ingestJob, "ingest-batch": ingestBatch}

// Timed returns a definition whose Task states wait as long as timeout says for
// the queue that they send to. Queues stay the placeholders "${stage}".
func Timed(name string, timeout func(stage string) time.Duration) (string, error) {
	var d struct {
		Comment string
		StartAt string
		States  map[string]map[string]any
	}
	if err := json.Unmarshal([]byte(Definitions[name]), &d); err != nil {
		return "", fmt.Errorf("statemachines: %s: %w", name, err)
	}
	for _, s := range d.States {
		if s["Type"] == "Task" {
			queue, _ := s["Parameters"].(map[string]any)["QueueUrl"].(string)
			s["TimeoutSeconds"] = int(timeout(strings.Trim(queue, "${}")).Seconds())
		}
	}
	out, err := json.Marshal(d)
	return string(out), err
}
