package research

import (
	"context"
	"encoding/json"
	"regexp"

	"archivist/pkg/definition"
	"archivist/pkg/fault"
	"archivist/pkg/table"
)

// Inbox has the messages of the queues of pending work.
type Inbox interface {
	// Receive receives a message of a project. receipt is "" if none waits.
	Receive(ctx context.Context, project string) (body, receipt string, err error)
	Delete(ctx context.Context, project, receipt string) error
}

// takenRow says which lease a researcher was given for a token, so that a request whose answer was lost
// can be repeated.
type takenRow struct {
	table.Head
	Lease string `dynamo:"lease_id"`
}

// takenDays is how long a token is known. A repetition comes within minutes.
const takenDays = 1

func takenKey(project, researcher, token string) table.Key {
	return table.Key{PK: "RESEARCHTAKEN#" + project, SK: researcher + "#" + token}
}

// tokens are the tokens of acceptances. A researcher makes one for each.
var tokens = regexp.MustCompile(`^[A-Za-z0-9_-]{1,100}$`)

// mostRefused bounds the messages that one Next deletes because they are no longer valid.
const mostRefused = 10

// Next gives a researcher the first work item of the queue that is valid, nil if none waits. A repeated
// request with the same token is given the same work item; it is a Conflict after its lease has ended.
func (s *Store) Next(ctx context.Context, project, researcher, token string, in Inbox) (*Work, error) {
	err := checkAcceptance(researcher, token)
	if err != nil {
		return nil, err
	}
	var taken takenRow
	k := takenKey(project, researcher, token)
	all, err := s.read(ctx, projectKey(project), k)
	if err == nil {
		_, err = all.project(project)
	}
	if err == nil {
		err = all.decode(k, &taken)
	}
	if taken.Rev > 0 || err != nil {
		return s.again(ctx, taken.Lease, researcher, token, err)
	}
	for range mostRefused {
		body, receipt, err := in.Receive(ctx, project)
		if err != nil || receipt == "" {
			return nil, err
		}
		w, err := s.acceptMessage(ctx, project, body, Acceptance{Researcher: researcher, Token: token,
			taken: k})
		gone := fault.Is(err, fault.Conflict) || fault.Is(err, fault.NotFound)
		if err != nil && !gone {
			return nil, err // the message comes again
		}
		// A message that stays comes again, and is refused and deleted then.
		failed := in.Delete(ctx, project, receipt)
		if failed != nil {
			s.warn("a message of pending work was not deleted", "project", project, "error", failed)
		}
		if err == nil {
			return &w, nil
		}
		s.warn("a message of pending work was refused", "project", project, "error", err)
	}
	return nil, nil
}

// again answers a repeated request.
func (s *Store) again(ctx context.Context, id, researcher, token string, err error) (*Work, error) {
	if err != nil {
		return nil, err
	}
	w, err := s.Accept(ctx, Acceptance{Lease: id, Researcher: researcher, Token: token})
	if err != nil {
		return nil, err
	}
	return &w, nil
}

// acceptMessage accepts the work item of a message. A message that is none is a NotFound.
func (s *Store) acceptMessage(ctx context.Context, project, body string, a Acceptance) (Work, error) {
	var m Message
	err := json.Unmarshal([]byte(body), &m)
	if err != nil || m.Lease == "" || m.Project != project {
		return Work{}, fault.New(fault.NotFound, "the message %q is no work item of the project %s",
			definition.Clip(body, 200), project)
	}
	a.Lease = m.Lease
	return s.Accept(ctx, a)
}

// checkAcceptance returns an Invalid for a researcher or a token that cannot be kept.
func checkAcceptance(researcher, token string) error {
	if !line("researcher", researcher, maxResearcher) {
		return fault.New(fault.Invalid, "researcher: found %q; expected a name of at most %d bytes",
			definition.Clip(researcher, 60), maxResearcher)
	}
	return wrong(!tokens.MatchString(token), "token: found %q; expected 1 to 100 letters, digits, hyphens and "+
		"underscores", definition.Clip(token, 60))
}

// remember keeps the lease that is given for a token, if that is wanted.
func (c *change) remember(a Acceptance) error {
	k := a.taken
	if k == (table.Key{}) {
		return nil
	}
	var known takenRow
	err := c.rows.decode(k, &known)
	if err != nil {
		return err
	}
	if known.Rev > 0 && known.Lease != a.Lease {
		return fault.New(fault.Unavailable, "the token was used for the lease %s; repeat the request", known.Lease)
	}
	c.tx.Insert(&takenRow{Head: table.Head{PK: k.PK, SK: k.SK, ExpiresAt: c.now/1000 + takenDays*24*3600},
		Lease: a.Lease})
	return nil
}
