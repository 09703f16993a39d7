package jobs

import (
	"archivist/cmd/archivist/command"
	v1 "archivist/pkg/api/v1"
)

// selection are the flags that select the jobs of a bulk operation. They are joined by AND. The archive needs a
// batch, a collection or a state, so that nobody acts on all jobs by mistake.
type selection struct {
	Batch      given `short:"b" help:"Jobs of this batch." placeholder:"ID" group:"Several jobs:"`
	Collection given `short:"c" help:"Jobs of this collection." placeholder:"NAME" group:"Several jobs:"`
	// --all-failed and --all-held are short forms of it; the three must not contradict each other.
	State     jobState `help:"Jobs in this state, e.g. failed." placeholder:"STATE" group:"Several jobs:"`
	AllFailed bool     `help:"The same as --state failed." group:"Several jobs:"`
	AllHeld   bool     `help:"The same as --state held." group:"Several jobs:"`
	Message   given    `help:"Jobs whose message contains this text." placeholder:"TEXT" group:"Several jobs:"`
	Before    given    `help:"${help_before}" placeholder:"TIME" group:"Several jobs:"`
	// For a release after that of a collection or batch: a person has held such a job by its id, and releases it
	// so.
	KeepOwn                   bool `name:"keep-own-holds" help:"${help_keep_own}" group:"Several jobs:"`
	command.FollowedByDefault `group:"Several jobs:"`
}

// selects reports whether the flags select jobs, so that the command starts an operation. --keep-own-holds and
// --watch select none.
func (s *selection) selects() bool {
	return s.Batch != "" || s.Collection != "" || s.State != "" || s.AllFailed || s.AllHeld ||
		s.Message != "" ||
		s.Before != ""
}

// bulk starts an operation that does an action on the selected jobs, and follows it if --watch is set. The
// moment of --before is fixed here: jobs that reach their state later are not selected.
func (s *selection) bulk(a *command.App, in v1.Action, key string) error {
	state := string(s.State)
	for _, all := range []struct {
		isSet bool
		state string
	}{{s.AllFailed, v1.Failed}, {s.AllHeld, v1.Held}} {
		if all.isSet && state != "" && state != all.state {
			return command.Usage("give one of --state, --all-failed and --all-held")
		}
		if all.isSet {
			state = all.state
		}
	}

	before, err := moment(a, "--before", string(s.Before), -1)
	if err != nil {
		return err
	}

	filter := v1.JobFilter{
		Batch:        string(s.Batch),
		Collection:   string(s.Collection),
		State:        state,
		Before:       before,
		Message:      string(s.Message),
		KeepOwnHolds: s.KeepOwn,
	}
	return startOperation(a, v1.OperationRequest{
		Action:        in.Action,
		Filter:        &filter,
		ActionOptions: v1.ActionOptions{Reason: in.Reason, Confirm: in.Confirm, DryRun: in.DryRun},
		Until:         in.Until,
		Priority:      in.Priority,
	}, key, s.Watch)
}
