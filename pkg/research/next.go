package research

import (
	"context"
	"encoding/json"

	"archivist/pkg/kernel/definition"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// Inbox has the messages of the queues of pending work. They come at least once (SQS, standard
// queues).
type Inbox interface {
	// Receive receives a message of a project. receipt is "" if none waits. A message that is not
	// deleted comes again after a time, while its time to live lasts.
	Receive(ctx context.Context, project string) (body, receipt string, err error)

	// Delete deletes a message that was received.
	Delete(ctx context.Context, project, receipt string) error

	// Return gives a message that was received back to the queue, from which others receive it some seconds later.
	Return(ctx context.Context, project, receipt string) error
}

// mostRefused bounds the messages that one Next deletes because they are no longer valid. After
// them it answers that none waits, and the researcher asks again.
const mostRefused = 10

// Next gives who asks the first work item of the queue that is valid, nil if none waits; a needs no lease. A
// repeated request with the same token is given the same work item; it is a Conflict after its
// lease has ended.
//
// It returns an Invalid for a name or a token that cannot be kept, a NotFound if there is no such
// project, and a Held if the researcher is paused. After any other error the request is repeated with
// the same token. A message that is no longer valid is deleted.
func (s *Store) Next(ctx context.Context, project string, a Acceptance, in Inbox) (*Work, error) {
	err := checkAcceptance(a.Researcher, a.Token)
	if err != nil {
		return nil, err
	}

	a.taken = takenKey(project, a.Researcher, a.Token)
	given, err := s.given(ctx, project, a.taken)
	if err != nil {
		return nil, err
	}

	if given != "" {
		return s.again(ctx, given, a)
	}

	err = s.Admit(ctx, project, a.Researcher)
	if err != nil {
		return nil, err
	}

	for range mostRefused {
		body, receipt, err := in.Receive(ctx, project)
		if err != nil || receipt == "" {
			return nil, err
		}

		w, err := s.acceptMessage(ctx, project, body, a)
		done := in.Delete
		switch {
		case fault.Is(err, fault.Held): // it is for another researcher
			done = in.Return
		case err != nil && !fault.Is(err, fault.Conflict) && !fault.Is(err, fault.NotFound):
			return nil, err // the message comes again
		}

		// A message that stays comes again, and is refused and deleted then.
		failed := done(ctx, project, receipt)
		if failed != nil {
			s.warn("a message of pending work was not deleted or given back", "project", project, "error", failed)
		}

		if err == nil {
			return &w, nil
		}

		s.warn("a message of pending work was refused", "project", project, "error", err)
	}
	return nil, nil
}

// given is the lease that was given for a token, "" if none was. It is a NotFound if there is no such project.
func (s *Store) given(ctx context.Context, project string, k table.Key) (string, error) {
	var taken takenRow
	all, err := s.read(ctx, projectKey(project), k)
	if err != nil {
		return "", err
	}

	if _, err := all.project(project); err != nil {
		return "", err
	}
	err = all.decode(k, &taken)
	return taken.Lease, err
}

// again answers a repeated request: the lease was given for its token before.
func (s *Store) again(ctx context.Context, id string, a Acceptance) (*Work, error) {
	a.Lease, a.taken = id, table.Key{}
	w, err := s.Accept(ctx, a)
	if err != nil {
		return nil, err
	}
	return &w, nil
}

// acceptMessage accepts the work item of a message. A message that is none, or of another project,
// is a NotFound, by which it is deleted: it will never be one.
func (s *Store) acceptMessage(ctx context.Context, project, body string,
	a Acceptance) (Work, error) {
	var m Message
	err := json.Unmarshal([]byte(body), &m)
	if err != nil || m.Lease == "" || m.Project != project {
		return Work{}, fault.New(fault.NotFound, "the message %q is no work item of the project %s",
			definition.Clip(body, 200), project)
	}
	a.Lease = m.Lease
	return s.Accept(ctx, a)
}
