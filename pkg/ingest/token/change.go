package token

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"archivist/pkg/events/event"
	"archivist/pkg/kernel/access"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/registry"
)

// By says who changes a token, why, and by which request.
type By = registry.By

// Request asks for a token. By has the reason, and the id of the request if it can be repeated.
type Request struct {
	Name   string
	Grants []string // as access.Parse reads them
	Days   int      // that it lives
	By     By
}

// check returns an Invalid that names the first field that is not accepted, or else the grants in their order.
func (in Request) check() (grants []string, err error) {
	switch {
	case !names.MatchString(in.Name):
		return nil, fault.New(
			fault.Invalid,
			"name: found %q; expected 1 to 40 lower-case letters, digits and hyphens, "+
				"the first one no hyphen",
			in.Name,
		)
	case len(in.Grants) == 0 || len(in.Grants) > MaxGrants:
		return nil, fault.New(
			fault.Invalid,
			"grants: found %d; expected 1 to %d",
			len(in.Grants),
			MaxGrants,
		)
	case in.Days < 1 || in.Days > MaxDays:
		return nil, fault.New(fault.Invalid, "days: found %d; expected 1 to %d", in.Days, MaxDays)
	}

	for _, text := range in.Grants {
		if _, err := access.Parse(text); err != nil {
			return nil, fault.New(fault.Invalid, "grants: %w", err)
		}
	}
	grants = slices.Clone(in.Grants)
	slices.Sort(grants)
	return slices.Compact(grants), in.By.Check()
}

// Create makes a token, and returns its text, which nothing can tell again. A name that an active token has is a
// Conflict, and so is one token more than MaxLiving. A request that was done before is a Conflict, too: it names the
// token that it made, and what to do.
func (s *Store) Create(ctx context.Context, in Request) (row *Token, text string, err error) {
	grants, err := in.check()
	if err != nil {
		return nil, "", err
	}

	secret, id := newSecret(), s.NewID()
	if in.By.Request != "" {
		id = idOf(in.By.Request)
	}
	err = s.Table.Again(ctx, "the list of tokens", func() error {
		now := s.Now()
		row = &Token{
			Head:    head(subject(id).Key()),
			ID:      id,
			Name:    in.Name,
			Sum:     digest(secret),
			Grants:  grants,
			Created: now.UnixMilli(),
			By:      in.By.Actor,
			Reason:  in.By.Reason,
			Expires: now.Add(time.Duration(in.Days) * 24 * time.Hour).UnixMilli(),
		}
		return s.create(ctx, row, in.By)
	})
	if err != nil {
		return nil, "", err
	}
	return row, access.TokenPrefix + id + "_" + secret, nil
}

// create is one try of Create.
func (s *Store) create(ctx context.Context, row *Token, by By) error {
	if err := s.notDone(ctx, row.ID, by); err != nil {
		return err
	}

	all, err := s.living(ctx)
	if err != nil {
		return err
	}
	if other := all.named(row.Name); other != nil {
		return fault.New(
			fault.Conflict,
			"name: the active token %s has the name %s. Take another name, or first: "+
				"archivist token revoke %s --reason …",
			other.ID,
			row.Name,
			other.ID,
		)
	}
	if len(all.Tokens) >= MaxLiving {
		return fault.New(
			fault.Conflict,
			"there are %d active tokens, as many as are allowed; revoke one that is not "+
				"needed: archivist token list",
			len(all.Tokens),
		)
	}

	all.Tokens = append(all.Tokens, one{row.ID, row.Name, row.Expires})
	return s.commit(ctx, all, row, "token.created", nil, by)
}

// notDone returns a Conflict if a request has made its token before. The event is asked, which stays when the token is
// removed.
func (s *Store) notDone(ctx context.Context, id string, by By) error {
	if by.Request == "" {
		return nil
	}
	_, err := s.Table.Raw(ctx, event.Key(subject(id), 1))
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return fault.New(
		fault.Conflict,
		"a request with this Idempotency-Key has made the token %s before. A token is "+
			"shown once; if you do not have it: archivist token revoke %s --reason …, and "+
			"send a new request with another key",
		id,
		id,
	)
}

// Revoke ends a token: when it returns nil, the token is accepted no more. One that is revoked already stays as it is.
// One that has expired can be revoked, too.
func (s *Store) Revoke(ctx context.Context, id string, by By) (row *Token, err error) {
	if err := by.Check(); err != nil {
		return nil, err
	}
	err = s.Table.Again(ctx, "the token "+id, func() (err error) {
		row, err = s.Token(ctx, id)
		if err != nil || row.Revoked > 0 {
			return err
		}
		all, err := s.living(ctx)
		if err != nil {
			return err
		}

		before := row.properties(s.Now())
		all.Tokens = slices.DeleteFunc(all.Tokens, func(t one) bool { return t.ID == row.ID })
		row.Revoked, row.RevokedBy, row.RevokedReason = s.Now().UnixMilli(), by.Actor, by.Reason
		return s.commit(ctx, all, row, "token.revoked", before, by)
	})
	return row, err
}

// commit writes a token and the active ones, with the event.
func (s *Store) commit(
	ctx context.Context,
	all *living,
	row *Token,
	kind string,
	before any,
	by By,
) error {
	now := s.Now()
	row.Version++
	row.place()
	tx := s.Table.Begin(s.NewID())
	tx.InsertOrSave(row)
	tx.InsertOrSave(all)
	err := event.Append(
		tx,
		subject(row.ID),
		row.Version,
		event.New{Type: kind, Time: now.UnixMilli(), Actor: by.Actor,
			Component: by.Component, Detail: Detail{by.Reason}, Before: before,
			After: row.properties(now)},
	)
	if err != nil {
		return err
	}
	return tx.Commit(ctx)
}

// Detail is the detail of an event of a token.
type Detail struct {
	Reason string `json:"reason,omitempty"`
}

// properties are what events say of a token: nothing of its secret.
type properties struct {
	Name    string   `json:"name"`
	State   State    `json:"state"`
	Grants  []string `json:"grants"`
	Expires string   `json:"expires"`
}

func (t *Token) properties(now time.Time) properties {
	return properties{
		t.Name,
		t.State(now),
		t.Grants,
		time.UnixMilli(t.Expires).UTC().Format(time.RFC3339),
	}
}

// secretBytes is how many random bytes a secret has.
const secretBytes = 32

// newSecret makes a secret: 64 digits of hexadecimal.
func newSecret() string {
	var b [secretBytes]byte
	_, _ = rand.Read(b[:]) // it never fails (package crypto/rand)
	return hex.EncodeToString(b[:])
}

// digest is what the table has of a secret.
func digest(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// idOf is the id of the token of a request: the same for the same request, so that a repetition finds it.
func idOf(request string) string {
	return strings.ToUpper(digest("token of the request " + request)[:26])
}
