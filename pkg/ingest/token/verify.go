package token

import (
	"context"
	"crypto/subtle"
	"regexp"
	"time"

	"github.com/guregu/dynamo/v2"

	"archivist/pkg/kernel/access"
	"archivist/pkg/kernel/fault"
)

// texts are the texts of tokens: no other text is looked up.
var texts = regexp.MustCompile(`^` + access.TokenPrefix + `([0-9A-Z]{1,40})_([0-9a-f]{64})$`)

// errUnknown is the same for all that is no token: an id that nobody has, a secret that is wrong, another text.
var errUnknown = access.Refused(
	"the token is not one of this deployment; an administrator makes one with " +
		"archivist token create",
)

// Verify returns whose token it is. An error is as access.Verifies says. Only who has the right secret is told that the
// token has ended.
func (s *Store) Verify(ctx context.Context, text string) (access.Identity, error) {
	part := texts.FindStringSubmatch(text)
	if part == nil {
		return access.Identity{}, errUnknown
	}

	var row Token
	err := s.Table.Get(ctx, subject(part[1]).Key(), &row)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return access.Identity{}, fault.New(
			fault.Unavailable,
			"the token %s cannot be verified now: %w",
			part[1],
			err,
		)
	}
	// Of a row that is not there, the sum is "": no secret has that.
	if subtle.ConstantTimeCompare([]byte(digest(part[2])), []byte(row.Sum)) != 1 {
		return access.Identity{}, errUnknown
	}

	now := s.Now()
	switch row.State(now) {
	case Revoked:
		return access.Identity{}, access.Refused("the token was revoked on " + day(row.Revoked) +
			"; an administrator makes a new one")
	case Expired:
		return access.Identity{}, access.Refused("the token has expired on " + day(row.Expires) +
			"; an administrator makes a new one")
	}
	s.used(ctx, &row, now)
	return row.identity(), nil
}

// identity is who calls with the token. A grant that this release does not know allows nothing.
func (t *Token) identity() access.Identity {
	x := access.Identity{
		Subject: access.TokenSubject + t.ID,
		Name:    t.Name,
		Expires: time.UnixMilli(t.Expires).UTC(),
	}
	for _, text := range t.Grants {
		if g, err := access.Parse(text); err == nil {
			x.Grants = append(x.Grants, g)
		}
	}
	return x
}

// patience is how long a call waits at most until its use is noted.
const patience = 300 * time.Millisecond

// used notes that a token is used today, once a day. What cannot be noted is not: a call does not fail by that, and the
// next one notes it.
func (s *Store) used(ctx context.Context, row *Token, now time.Time) {
	today := day(now.UnixMilli())
	if s.NewID == nil || row.Used >= today {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	_ = s.Table.Change(ctx, row.Key(), s.NewID(), func(u *dynamo.Update) {
		u.Set("used_day", today).If(
			"attribute_exists(pk) AND (attribute_not_exists(used_day) OR used_day < ?)", today)
	}, row)
}

// day is the day of a time in milliseconds since 1970, in UTC.
func day(ms int64) string { return time.UnixMilli(ms).UTC().Format(time.DateOnly) }
