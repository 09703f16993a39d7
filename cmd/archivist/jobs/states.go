package jobs

import (
	"fmt"
	"strings"

	v1 "archivist/pkg/api/v1"
)

// jobState is a state of jobs to look for, in any case: "failed" is v1.Failed.
type jobState string

// UnmarshalText refuses an unknown state.
func (s *jobState) UnmarshalText(text []byte) error { return parseState(s, string(text)) }

// Candidates are the values for completion in a shell.
func (jobState) Candidates() []string { return v1.JobStates }

// batchState is a state of batches to look for, in any case. Batches have other states than jobs.
type batchState string

// UnmarshalText refuses an unknown state.
func (s *batchState) UnmarshalText(text []byte) error { return parseState(s, string(text)) }

// Candidates are the values for completion in a shell.
func (batchState) Candidates() []string { return v1.BatchStates }

// uploadState is a state of uploads to look for, in any case.
type uploadState string

// UnmarshalText refuses an unknown state.
func (s *uploadState) UnmarshalText(text []byte) error { return parseState(s, string(text)) }

// Candidates are the values for completion in a shell.
func (uploadState) Candidates() []string { return v1.UploadStates }

// state is a text that must be one of its candidates. It is a constraint, so that all types have one parser.
type state interface {
	jobState | batchState | uploadState
	Candidates() []string
}

// parseState parses a state, ignoring case. An unknown one is refused with all that exist,
// because a list by it would be empty, as if there were no jobs.
func parseState[S state](to *S, text string) error {
	for _, known := range (*to).Candidates() {
		if strings.EqualFold(known, text) {
			*to = S(known)
			return nil
		}
	}
	return fmt.Errorf("there is no state %q; expected one of %s", text,
		strings.Join((*to).Candidates(), ", "))
}
