package token

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"archivist/pkg/events/event"
	"archivist/pkg/kernel/access"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/registry"
	"archivist/pkg/kernel/table/tabletest"
)

// bed is a store of tokens on a twin of the table.
type bed struct {
	*testing.T
	*Store
	now    time.Time
	writes int          // that were tried
	fails  func() error // nil, or what a write answers
}

func newBed(t *testing.T) *bed {
	b := &bed{T: t, now: time.Date(2026, 11, 30, 9, 30, 0, 0, time.UTC)}
	tb := tabletest.Table(
		&tabletest.Client{
			DynamoDBAPI: tabletest.New(),
			Do: func(op string, call func() error) error {
				if op != "GetItem" && op != "Query" && op != "BatchGetItem" {
					b.writes++
					if b.fails != nil {
						return b.fails()
					}
				}
				return call()
			},
		},
	)
	n := 0
	b.Store = &Store{Table: tb, Now: func() time.Time { return b.now },
		NewID: func() string { n++; return fmt.Sprintf("ID%06d", n) }}
	return b
}

// by is a person with a reason.
func by(request string) registry.By {
	return registry.By{
		Actor:     "ann",
		Reason:    "The hook of the scanner.",
		Component: "api",
		Request:   request,
	}
}

// create makes a token for 10 days.
func (b *bed) create(name string) (*Token, string) {
	b.Helper()
	row, text, err := b.Create(
		b.Context(),
		Request{Name: name, Grants: []string{"viewer", "depositor:maps", "viewer"},
			Days: 10, By: by("")},
	)
	if err != nil {
		b.Fatal(err)
	}
	return row, text
}

// refused fails the test unless a token is refused with a text.
func (b *bed) refused(text, says string) {
	b.Helper()
	x, err := b.Verify(b.Context(), text)
	if !errors.Is(err, access.ErrUnauthenticated) || !strings.Contains(err.Error(), says) ||
		x.Subject != "" {
		b.Errorf("%+v, %v; expected a refusal with %q", x, err, says)
	}
}

// events are the events of a token, oldest first.
func (b *bed) events(id string) []event.Row {
	b.Helper()
	rows, _, err := event.Page(context.Background(), b.Table, subject(id), "")
	if err != nil {
		b.Fatal(err)
	}
	return rows
}

// TestLife: a token is accepted as what it is, from its making until it is revoked, or until its end. Only who has it
// is told which.
func TestLife(t *testing.T) {
	b := newBed(t)
	row, text := b.create("nightly")
	x, err := b.Verify(t.Context(), text)
	if err != nil || x.Subject != "token:"+row.ID || x.Name != "nightly" || !x.OwnToken() ||
		!x.Is(access.Viewer) ||
		x.Is(access.Operator) ||
		len(x.Grants) != 2 ||
		!x.Expires.Equal(b.now.AddDate(0, 0, 10)) {
		t.Fatalf("%+v, %v", x, err)
	}
	other, _ := b.create("other")
	head, secret := text[:len(text)-64], text[len(text)-64:]
	for _, wrong := range []string{head + strings.Repeat("0", 64), "arc_" + other.ID + "_" + secret,
		"arc_NONE_" + secret, "arc_" + row.ID, head, head + secret + "0",
		head + strings.ToUpper(secret), text + " ", "arc_", "", row.Sum, head + row.Sum,
		head + strings.Repeat("a", 9<<10), "arc_" + strings.Repeat("A", 9<<10) + "_" +
			secret, "arc_" + row.ID + "#X_" + secret} {
		b.refused(wrong, errUnknown.Error())
	}

	b.now = b.now.AddDate(0, 0, 10).Add(-time.Millisecond)
	if _, err := b.Verify(t.Context(), text); err != nil {
		t.Error(err)
	}
	b.now = b.now.Add(time.Millisecond)
	b.refused(text, "has expired on 2026-12-10")
	if _, err := b.Revoke(t.Context(), row.ID, by("")); err != nil {
		t.Fatal(err)
	}
	b.refused(text, "was revoked on 2026-12-10")
	b.refused(head+strings.Repeat("0", 64), errUnknown.Error())
}

// TestRevoke: after it was answered, the token is accepted no more. A repetition changes nothing; the name is free.
func TestRevoke(t *testing.T) {
	b := newBed(t)
	row, text := b.create("nightly")
	for range 2 {
		got, err := b.Revoke(t.Context(), row.ID, by(""))
		if err != nil || got.State(b.now) != Revoked || got.RevokedBy != "ann" ||
			got.Revoked != b.now.UnixMilli() {
			t.Fatalf("%+v, %v", got, err)
		}
		b.refused(text, "was revoked on 2026-11-30")
	}
	if all := b.events(row.ID); len(all) != 2 || all[1].Type != "token.revoked" ||
		all[1].Before != `{"state":"active"}` || all[1].After != `{"state":"revoked"}` {
		t.Errorf("%+v", all)
	}
	second, _ := b.create("nightly")
	b.refused(text, "was revoked")
	if got, err := b.Token(t.Context(), "nightly"); err != nil || got.ID != second.ID {
		t.Errorf("%+v, %v", got, err)
	}
	for _, id := range []string{"NONE", "none", "", "a#b"} {
		if _, err := b.Revoke(t.Context(), id, by("")); !fault.Is(err, fault.NotFound) {
			t.Errorf("%q: %v", id, err)
		}
	}
	if _, err := b.Revoke(t.Context(), second.ID, registry.By{Actor: "ann"}); !fault.Is(
		err,
		fault.Invalid,
	) {
		t.Error(err)
	}
}

// TestCreateRefuses: what is not accepted is refused before anything is stored, with its field.
func TestCreateRefuses(t *testing.T) {
	b := newBed(t)
	for says, in := range map[string]Request{
		"name: found \"\"":                  {Grants: []string{"viewer"}, Days: 1},
		"name: found \"Nightly\"":           {Name: "Nightly", Grants: []string{"viewer"}, Days: 1},
		"name: found \"-a\"":                {Name: "-a", Grants: []string{"viewer"}, Days: 1},
		"lower-case letters":                {Name: strings.Repeat("a", 41), Grants: []string{"viewer"}, Days: 1},
		"grants: found 0":                   {Name: "a", Days: 1},
		"grants: found 51":                  {Name: "a", Grants: make([]string, 51), Days: 1},
		"grants: found \"depositor\"":       {Name: "a", Grants: []string{"viewer", "depositor"}, Days: 1},
		"days: found 0; expected 1 to 366":  {Name: "a", Grants: []string{"viewer"}},
		"days: found -1; expected 1 to 366": {Name: "a", Grants: []string{"viewer"}, Days: -1},
		"days: found 367":                   {Name: "a", Grants: []string{"viewer"}, Days: 367},
	} {
		in.By = by("")
		if _, _, err := b.Create(t.Context(), in); !fault.Is(err, fault.Invalid) ||
			!strings.Contains(err.Error(), says) {
			t.Errorf("%v; expected %q", err, says)
		}
	}
	none := Request{Name: "a", Grants: []string{"viewer"}, Days: 1}
	if _, _, err := b.Create(t.Context(), none); !fault.Is(err, fault.Invalid) ||
		!strings.Contains(err.Error(), "reason") {
		t.Error(err)
	}
	if b.writes > 0 {
		t.Errorf("%d writes", b.writes)
	}
}

// TestNames: two active tokens have different names; the name of one that has ended is free.
func TestNames(t *testing.T) {
	b := newBed(t)
	first, _ := b.create("nightly")
	in := Request{Name: "nightly", Grants: []string{"viewer"}, Days: 366, By: by("")}
	_, _, err := b.Create(t.Context(), in)
	if !fault.Is(err, fault.Conflict) ||
		!strings.Contains(err.Error(), "archivist token revoke "+first.ID) {
		t.Error(err)
	}
	b.now = b.now.AddDate(0, 0, 10)
	if _, _, err := b.Create(t.Context(), in); err != nil {
		t.Error(err)
	}
}

// TestBound: there are at most 1,000 active tokens; one that ends makes place.
func TestBound(t *testing.T) {
	b := newBed(t)
	var last *Token
	for i := range MaxLiving {
		last, _ = b.create(fmt.Sprint("n", i))
	}
	in := Request{Name: "more", Grants: []string{"viewer"}, Days: 1, By: by("")}
	if _, _, err := b.Create(t.Context(), in); !fault.Is(err, fault.Conflict) ||
		!strings.Contains(err.Error(), "1000") {
		t.Error(err)
	}
	if _, err := b.Revoke(t.Context(), last.ID, by("")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.Create(t.Context(), in); err != nil {
		t.Error(err)
	}
	seen := map[string]bool{}
	for cursor, more := "", true; more; more = cursor != "" {
		page, next, err := b.Tokens(t.Context(), cursor)
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range page {
			seen[row.ID] = true
		}
		cursor = next
	}
	if len(seen) != MaxLiving+1 {
		t.Errorf("%d tokens are listed", len(seen))
	}
}

// TestRepeatedRequest: a request that is repeated makes no second token and shows no secret, also after the token was
// revoked and removed.
func TestRepeatedRequest(t *testing.T) {
	b := newBed(t)
	in := Request{Name: "nightly", Grants: []string{"viewer"}, Days: 1, By: by("api:key-1")}
	row, text, err := b.Create(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	again := func() {
		t.Helper()
		got, second, err := b.Create(t.Context(), in)
		if !fault.Is(err, fault.Conflict) ||
			!strings.Contains(err.Error(), "archivist token revoke "+row.ID) ||
			got != nil ||
			second != "" {
			t.Errorf("%v", err)
		}
	}
	again()
	if _, err := b.Verify(t.Context(), text); err != nil {
		t.Error(err)
	}
	if _, err := b.Revoke(t.Context(), row.ID, by("")); err != nil {
		t.Fatal(err)
	}
	again()
	tx := b.Table.Begin("gone") // as DynamoDB does after 90 days
	current, err := b.Token(t.Context(), row.ID)
	if err != nil || current.ExpiresAt != b.now.Add(kept).Unix() {
		t.Fatalf("%+v, %v", current, err)
	}
	tx.Remove(current)
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	again()
}

// TestUsed: the day of the last use is noted once a day. If that fails, the call does not, and the next call notes it.
func TestUsed(t *testing.T) {
	b := newBed(t)
	row, text := b.create("nightly")
	use := func(writes int, day string) {
		t.Helper()
		before := b.writes
		if _, err := b.Verify(t.Context(), text); err != nil {
			t.Fatal(err)
		}
		got, err := b.Token(t.Context(), row.ID)
		if err != nil || b.writes-before != writes || got.Used != day {
			t.Errorf(
				"%d writes, used on %q, %v; expected %d, %q",
				b.writes-before,
				got.Used,
				err,
				writes,
				day,
			)
		}
	}
	use(1, "2026-11-30")
	use(0, "2026-11-30")
	b.now = b.now.AddDate(0, 0, 1)
	b.fails = func() error { return errors.New("no permission") }
	b.Table.Wait = func(context.Context, time.Duration) error { return errors.New("no time for a second try") }
	use(1, "2026-11-30")
	use(1, "2026-11-30")
	b.fails = nil
	use(1, "2026-12-01")
	b.now = b.now.AddDate(0, 0, -1) // another clock
	use(0, "2026-12-01")
	b.now = b.now.AddDate(0, 0, 5)
	b.NewID = nil
	use(0, "2026-12-01")
}

// TestTableAway: without the table nothing is known of a token. That is no refusal.
func TestTableAway(t *testing.T) {
	b := newBed(t)
	_, text := b.create("nightly")
	tb := tabletest.Table(&tabletest.Client{DynamoDBAPI: tabletest.New(),
		Do: func(string, func() error) error { return tabletest.Throttled() }})
	tb.Wait = func(context.Context, time.Duration) error { return nil }
	s := Store{Table: tb, Now: b.Now}
	if _, err := s.Verify(t.Context(), text); !fault.Is(err, fault.Unavailable) ||
		errors.Is(
			err,
			access.ErrUnauthenticated,
		) || strings.Contains(err.Error(), text[len(text)-64:]) {
		t.Error(err)
	}
}

// TestSecretIsNowhere: nothing that is stored has the secret, and neither do errors and what JSON makes of a row.
func TestSecretIsNowhere(t *testing.T) {
	b := newBed(t)
	row, text := b.create("nightly")
	secret := text[len(text)-64:]
	if _, err := b.Verify(t.Context(), text); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Revoke(t.Context(), row.ID, by("")); err != nil {
		t.Fatal(err)
	}
	_, refusal := b.Verify(t.Context(), text)
	shown, err := json.Marshal(row)
	if err != nil || refusal == nil {
		t.Fatal(err, refusal)
	}
	all := string(shown) + refusal.Error()
	rows, _, err := b.Table.Scan(t.Context(), "", 100, "")
	if err != nil || len(rows) != 4 { // the token, the active ones, two events
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	for _, r := range rows {
		for name, value := range r.Item {
			data, err := json.Marshal(value)
			if err != nil {
				t.Fatal(err)
			}
			all += name + string(data)
		}
	}
	if strings.Contains(all, secret) || !strings.Contains(all, row.Sum) {
		t.Errorf("the secret %s is in %s", secret, all)
	}
}

// TestGrantsThatNobodyKnows: a grant of a release that knows more allows nothing here; the others do.
func TestGrantsThatNobodyKnows(t *testing.T) {
	row := Token{ID: "A", Grants: []string{"king", "depositor:gone"}}
	x := row.identity()
	if len(x.Grants) != 1 || x.Grants[0] != (access.Grant{Role: access.Depositor, Of: "gone"}) ||
		x.Is(access.Viewer) {
		t.Errorf("%+v", x)
	}
}
