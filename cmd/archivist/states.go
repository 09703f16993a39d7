package main

import (
	"fmt"
	"strings"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/terminal"
)

// stateStyle is the colour of a state, an outcome, a severity or a verdict.
func stateStyle(text string) terminal.Style {
	switch text {
	case v1.Completed, "success", "accepted":
		return terminal.Green
	case v1.Failed, "failure", "error", "rejected":
		return terminal.Red
	case v1.Held, v1.Deleted, "warning":
		return terminal.Yellow
	}
	return terminal.Blue
}

// jobState is a state of jobs to look for, in any case.
type jobState string

// UnmarshalText refuses an unknown state.
func (s *jobState) UnmarshalText(text []byte) error { return parseState(s, string(text)) }

// candidates are the values for completion in a shell.
func (jobState) candidates() []string { return v1.JobStates }

// batchState is a state of batches to look for, in any case.
type batchState string

// UnmarshalText refuses an unknown state.
func (s *batchState) UnmarshalText(text []byte) error { return parseState(s, string(text)) }

// candidates are the values for completion in a shell.
func (batchState) candidates() []string { return v1.BatchStates }

// state is a text that must be one of its candidates.
type state interface {
	jobState | batchState
	candidates() []string
}

// parseState parses a state of jobs or of batches, ignoring case.
func parseState[S state](to *S, text string) error {
	for _, known := range (*to).candidates() {
		if strings.EqualFold(known, text) {
			*to = S(known)
			return nil
		}
	}
	return fmt.Errorf("there is no state %q; expected one of %s", text, strings.Join((*to).candidates(), ", "))
}
