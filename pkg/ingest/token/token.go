// Package token keeps the tokens of the deployment itself, for hooks and small programs: each has a name, grants and
// an end, and can be revoked at any time. People and large programs sign in with an issuer instead.
//
//	s := token.Store{Table: t, Now: time.Now, NewID: newID}
//	row, secret, err := s.Create(ctx, token.Request{Name: "nightly", Grants: []string{"viewer"}, Days: 90, By: by})
//	who, err := s.Verify(ctx, secret) // who.Subject is "token:" + row.ID
//	_, err = s.Revoke(ctx, row.ID, by)
//
// The text of a token is arc_ID_SECRET. It is returned once, by Create: the table has only a hash of the secret, which
// has 32 random bytes; so a hash without a salt cannot be searched. Verify reads the row consistently each time: after
// a Revoke was answered, the token is accepted nowhere.
//
//	active → revoked           by a person
//	active → expired           by the time alone, without a write and without an event
//
// The rows:
//
//	TOKEN#{id}  TOKEN    a token; it is removed 90 days after its end
//	TOKENS      LIVING   the active tokens: their names are different, and there are at most MaxLiving
//
// Each change writes both rows in one transaction, so that changes at the same time follow one another.
package token

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"time"

	"archivist/pkg/events/event"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// The bounds of tokens.
const (
	MaxLiving = 1000
	MaxDays   = 366 // that a token lives
	MaxGrants = 50
	kept      = 90 * 24 * time.Hour // after its end
)

// names are the names of tokens: of a program or a computer. No id is one: ids have no lower-case letters.
var names = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,39}$`)

// State is the state of a token, which follows from its row and the time.
type State string

// The states.
const (
	Active  State = "active"
	Expired State = "expired"
	Revoked State = "revoked"
)

// Token is the row of a token. Times are milliseconds since 1970; Revoked is 0 until somebody revokes it.
type Token struct {
	table.Head
	Version int64    `dynamo:"version"` // the number of its last event
	ID      string   `dynamo:"id"`
	Name    string   `dynamo:"token_name"`
	Sum     string   `dynamo:"secret_sha256"` // of the secret, in hexadecimal
	Grants  []string `dynamo:"grants"`

	Created int64  `dynamo:"created"`
	By      string `dynamo:"created_by"`
	Reason  string `dynamo:"created_because"`
	Expires int64  `dynamo:"expires_ms"`

	Revoked       int64  `dynamo:"revoked_ms,omitempty"`
	RevokedBy     string `dynamo:"revoked_by,omitempty"`
	RevokedReason string `dynamo:"revoked_because,omitempty"`

	// Used is the day (UTC) on which a call was last made with it, e.g. "2026-11-30"; "" is never. It is noted if that
	// can be done at once: a day can be missing.
	Used string `dynamo:"used_day,omitempty"`
}

// State is the state at a time. A token that was revoked before its end stays so.
func (t *Token) State(now time.Time) State {
	switch {
	case t.Revoked > 0:
		return Revoked
	case now.UnixMilli() >= t.Expires:
		return Expired
	}
	return Active
}

// place sets what follows from the row: its place in the index "list", and when it may be removed.
func (t *Token) place() {
	t.ListPK, t.ListSK = "tokens", fmt.Sprintf("%013d#%s", t.Created, t.ID)
	end := t.Expires
	if t.Revoked > 0 {
		end = min(end, t.Revoked)
	}
	t.ExpiresAt = time.UnixMilli(end).Add(kept).Unix()
}

// living is the row of the active tokens. Those that have expired are taken out with the next change.
type living struct {
	table.Head
	Tokens []one `dynamo:"tokens"`
}

// one is a token in it.
type one struct {
	ID      string `dynamo:"id"`
	Name    string `dynamo:"token_name"`
	Expires int64  `dynamo:"expires_ms"`
}

func subject(id string) event.Subject { return event.Subject{Type: event.Token, ID: id} }

var livingKey = table.Key{PK: "TOKENS", SK: "LIVING"}

func head(k table.Key) table.Head { return table.Head{PK: k.PK, SK: k.SK} }

// Store keeps tokens. It has no state of its own: any number of processes use one table.
type Store struct {
	Table *table.Table
	Now   func() time.Time
	// NewID makes ids of capitals and digits. nil: the store only verifies, and does not note when a token is used.
	NewID func() string
}

// Token reads a token by its id, or an active one by its name. A missing one is a NotFound.
func (s *Store) Token(ctx context.Context, idOrName string) (*Token, error) {
	id := idOrName
	if names.MatchString(id) {
		all, err := s.living(ctx)
		if err != nil {
			return nil, err
		}
		found := all.named(id)
		if found == nil {
			return nil, fault.New(
				fault.NotFound,
				"there is no active token with the name %q; archivist token list "+
					"shows all tokens with their ids",
				id,
			)
		}
		id = found.ID
	}

	var row Token
	err := s.Table.Get(ctx, subject(id).Key(), &row)
	if fault.Is(err, fault.NotFound) {
		return nil, fault.New(
			fault.NotFound,
			"there is no token %q; tokens are removed 90 days after their end",
			idOrName,
		)
	}
	if err != nil {
		return nil, err
	}
	return &row, nil
}

// Tokens lists 50 tokens, newest first, and returns the cursor of those that follow, "" at the end.
func (s *Store) Tokens(ctx context.Context, cursor string) (page []Token, next string, err error) {
	var found []struct {
		table.Head
		ID string `dynamo:"id"`
	}
	next, err = s.Table.Page(
		ctx,
		table.Query{Index: "list", PK: "tokens", Cursor: cursor, Desc: true, Limit: 50},
		&found,
	)
	if err != nil {
		return nil, "", err
	}

	keys := make([]table.Key, len(found))
	for i, f := range found {
		keys[i] = subject(f.ID).Key()
	}
	rows, err := s.Table.Many(ctx, keys)
	if err != nil {
		return nil, "", err
	}
	for _, k := range keys {
		raw, there := rows[k]
		if !there { // removed since
			continue
		}
		var row Token
		if err := raw.Decode(&row); err != nil {
			return nil, "", err
		}
		page = append(page, row)
	}
	return page, next, nil
}

// living reads the active tokens. There may be no row yet.
func (s *Store) living(ctx context.Context) (*living, error) {
	row := living{Head: head(livingKey)}
	err := s.Table.Get(ctx, livingKey, &row)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return nil, err
	}

	row.without(s.Now())
	return &row, nil
}

// without takes those out that have expired.
func (l *living) without(now time.Time) {
	l.Tokens = slices.DeleteFunc(l.Tokens, func(t one) bool { return now.UnixMilli() >= t.Expires })
}

// named is the token with a name, nil if there is none.
func (l *living) named(name string) *one {
	for i := range l.Tokens {
		if l.Tokens[i].Name == name {
			return &l.Tokens[i]
		}
	}
	return nil
}
