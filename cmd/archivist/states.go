package main

import (
	"fmt"
	"strings"

	v1 "archivist/pkg/api/v1"
)

// jobState is a state of jobs to look for, in any case.
type jobState string

// UnmarshalText refuses what is no state.
func (s *jobState) UnmarshalText(text []byte) error { return parseState(s, string(text)) }

func (jobState) candidates() []string { return v1.JobStates }

// batchState is a state of batches to look for, in any case.
type batchState string

// UnmarshalText refuses what is no state.
func (s *batchState) UnmarshalText(text []byte) error { return parseState(s, string(text)) }

func (batchState) candidates() []string { return v1.BatchStates }

// state is a text that must be one of some.
type state interface {
	jobState | batchState
	candidates() []string
}

func parseState[S state](to *S, text string) error {
	for _, known := range (*to).candidates() {
		if strings.EqualFold(known, text) {
			*to = S(known)
			return nil
		}
	}
	return fmt.Errorf("there is no state %q; expected one of %s", text, strings.Join((*to).candidates(), ", "))
}
