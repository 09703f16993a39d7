package main

import (
	"errors"

	v1 "archivist/pkg/api/v1"
)

// selection are the flags that select several jobs.
type selection struct {
	Batch      given    `short:"b" help:"Jobs of this batch." placeholder:"ID" group:"Several jobs:"`
	Collection given    `short:"c" help:"Jobs of this collection." placeholder:"NAME" group:"Several jobs:"`
	State      jobState `help:"Jobs in this state, e.g. failed." placeholder:"STATE" group:"Several jobs:"`
	AllFailed  bool     `help:"The same as --state failed." group:"Several jobs:"`
	AllHeld    bool     `help:"The same as --state held." group:"Several jobs:"`
	Message    given    `help:"Jobs whose message contains this text." placeholder:"TEXT" group:"Several jobs:"`
	Before     given    `help:"${help_before}" placeholder:"TIME" group:"Several jobs:"`
	KeepOwn    bool     `name:"keep-own-holds" help:"${help_keep_own}" group:"Several jobs:"`
	Watch      bool     `default:"true" negatable:"" help:"Follow the operation (default)." group:"Several jobs:"`
}

// given is the value of a flag that cannot be empty. A script whose variable is not set would
// otherwise act on all jobs instead of those of a batch, or hold without an end.
type given string

// UnmarshalText refuses an empty value.
func (g *given) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		return errors.New("the value is empty; leave the flag out if none is wanted")
	}
	*g = given(text)
	return nil
}

// selects reports whether the flags select jobs.
func (s *selection) selects() bool {
	return s.Batch != "" || s.Collection != "" || s.State != "" || s.AllFailed || s.AllHeld || s.Message != "" ||
		s.Before != ""
}

// bulk starts an operation that does an action on the selected jobs.
func (s *selection) bulk(a *app, in v1.Action, key string) error {
	state := string(s.State)
	for _, all := range []struct {
		isSet bool
		state string
	}{{s.AllFailed, v1.Failed}, {s.AllHeld, v1.Held}} {
		if all.isSet && state != "" && state != all.state {
			return usage("give one of --state, --all-failed and --all-held")
		}
		if all.isSet {
			state = all.state
		}
	}
	before, err := a.moment("--before", string(s.Before), -1)
	if err != nil {
		return err
	}
	filter := v1.JobFilter{Batch: string(s.Batch), Collection: string(s.Collection), State: state, Before: before,
		Message: string(s.Message), KeepOwnHolds: s.KeepOwn}
	return a.start(v1.OperationRequest{
		Action:        in.Action,
		Filter:        &filter,
		ActionOptions: v1.ActionOptions{Reason: in.Reason, Confirm: in.Confirm, DryRun: in.DryRun},
		Until:         in.Until,
		Priority:      in.Priority,
	}, key, s.Watch)
}
