package revision

import (
	"cmp"
	"context"
	"maps"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/revisions/workflow"
)

// A step that a person starts (manual in the definition) is planned like others. When all that it waits for
// has ended, it is Manual until a person starts it, or something supersedes it. Until then it is in no line
// of a lock: others need not wait for a person who may never come.

// StartManual starts an instance that waits for a person, with values of its parameters. If the same person has
// started it with the same values, it is returned as it is. A reason or a value that cannot be is an Invalid.
// A Conflict means that it does not wait for a person: not yet, not any more, or never. One that does not exist
// is a NotFound.
func (s *Store) StartManual(ctx context.Context, id string, set map[string]string, by By) (Instance, error) {
	err := checkReason(by)
	if err != nil {
		return Instance{}, err
	}

	in, err := s.change(ctx, id, guard{by: by}, func(c *change) error {
		in, starter := c.in(), cmp.Or(by.Actor, manager)
		switch {
		case in.Manual == "":
			return fault.New(fault.Conflict, "the task %s needs nobody to start it", id)
		case in.Starter == starter && maps.Equal(in.Parameters, set):
			return nil
		case in.Starter != "":
			return fault.New(fault.Conflict,
				"the task %s was started by %s already", id, in.Starter)
		case in.State.Over():
			return fault.New(fault.Conflict, "the task %s has ended: %s", id, in.State)
		case in.State != workflow.Manual:
			return fault.New(fault.Conflict,
				"the task %s cannot be started yet: it is %s; archivist explain %s "+
					"says what it waits for", id, in.State, id)
		}
		return c.startManual(starter, set)
	})
	if err == nil {
		s.wake(ctx, archiveOf(id))
	}
	return in, err
}

// startManual lets an instance go on that waits for a person. From now on it is in the line of its lock.
func (c *change) startManual(starter string, set map[string]string) error {
	in := c.in()
	def, err := c.s.Definition(c.ctx, archiveOf(in.Archive), in.Definition)
	if err != nil {
		return err
	}

	_, err = def.Task(in.Task).Values(set)
	if err == nil && in.Lock != "" {
		_, err = c.locked() // its line gets a new row
	}

	if err != nil {
		return err
	}

	in.Starter, in.Parameters = starter, set
	return c.release(c.by.Reason)
}
