package token

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"archivist/pkg/events/event"
	"archivist/pkg/kernel/access"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table/tabletest"
)

// errLost is what a caller sees of a call whose answer is lost.
var errLost = errors.New("no answer")

// world is one history: several processes make, use and revoke tokens. A process can end at any of its calls, and
// answers are lost, also of calls that had their effect.
type world struct {
	*testing.T
	*Store
	r     *rand.Rand
	calls int // until the process ends; 0: it does not
	dead  bool
	lose  bool
	meets bool // another process makes a change before a call

	texts   map[string]string // of the tokens whose text was answered, by id
	revoked map[string]bool   // whose revocation was answered
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{T: t, r: rand.New(rand.NewPCG(seed, 1)), lose: true, texts: map[string]string{},
		revoked: map[string]bool{}}
	n := 0
	tb := tabletest.Table(&tabletest.Client{DynamoDBAPI: tabletest.New(), Do: w.do})
	w.Store = &Store{Table: tb, Now: time.Now,
		NewID: func() string { n++; return fmt.Sprintf("ID%05d", n) }}
	return w
}

// do makes a call, or not, and perhaps loses its answer. Between two calls of a process another one may do all that it
// does.
func (w *world) do(_ string, call func() error) error {
	if w.dead {
		return errLost
	}
	if w.meets && w.r.IntN(4) == 0 {
		w.meets = false
		calls := w.calls
		w.calls = 0
		w.change()
		w.calls, w.meets = calls, true
	}
	w.calls--
	w.dead = w.calls == 0
	lost := w.dead || w.lose && w.r.IntN(20) == 0
	if lost && w.r.IntN(2) == 0 {
		return errLost // before its effect
	}
	if err := call(); err != nil || !lost {
		return err
	}
	return errLost
}

// step is what a process does. It may end at any of its calls.
func (w *world) step() {
	w.calls, w.dead, w.meets = 0, false, w.r.IntN(3) == 0
	if w.r.IntN(3) == 0 {
		w.calls = 1 + w.r.IntN(12)
	}
	w.change()
	w.calls, w.dead, w.meets = 0, false, false
	if w.r.IntN(6) == 0 {
		time.Sleep(time.Duration(w.r.IntN(int(24 * time.Hour)))) // of the bubble: tokens expire
	}
}

// change makes, uses or revokes a token. Names and requests are few, so that they meet.
func (w *world) change() {
	switch by := by(""); w.r.IntN(5) {
	case 0, 1:
		if w.r.IntN(2) == 0 {
			by.Request = fmt.Sprint("api:", w.r.IntN(12))
		}
		row, text, err := w.Create(w.Context(), Request{Name: fmt.Sprint("n", w.r.IntN(4)),
			Grants: []string{"viewer"}, Days: 1 + w.r.IntN(3), By: by})
		if err == nil {
			if w.texts[row.ID] != "" {
				w.Errorf("the token %s is made twice", row.ID)
			}
			w.texts[row.ID] = text
		}
	case 2:
		if ids := slices.Sorted(maps.Keys(w.texts)); len(ids) > 0 {
			_, _ = w.Verify(w.Context(), w.texts[ids[w.r.IntN(len(ids))]])
		}
	default:
		var row *Token
		var err error
		if row, err = w.Token(w.Context(), fmt.Sprint("n", w.r.IntN(4))); err == nil {
			row, err = w.Revoke(w.Context(), row.ID, by)
		}
		if err == nil {
			w.revoked[row.ID] = true
		}
	}
}

// check checks what holds at any time: no two active tokens have one name; a token whose revocation was answered is
// accepted by nobody, and one that is active is; each change is one event; and the row of the active ones is right.
func (w *world) check() (revoked int) {
	w.lose = false
	defer func() { w.lose = true }()
	rows := w.all()
	names := map[string]string{}
	for _, row := range rows {
		active := row.State(w.Now()) == Active
		if other := names[row.Name]; active && other != "" {
			w.Fatalf("%s and %s are active with the name %s", other, row.ID, row.Name)
		}
		if active {
			names[row.Name] = row.ID
		}
		if active && w.revoked[row.ID] {
			w.Fatalf("the token %s is active, and its revocation was answered", row.ID)
		}
		want := []string{"token.created"}
		if row.Revoked > 0 {
			want, revoked = append(want, "token.revoked"), revoked+1
		}
		if got := w.told(row.ID); fmt.Sprint(got) != fmt.Sprint(want) {
			w.Fatalf("the events of %s are %q; expected %q", row.ID, got, want)
		}
		if text := w.texts[row.ID]; text != "" {
			x, err := w.Verify(w.Context(), text)
			if (err == nil) != active || err == nil && x.Subject != access.TokenSubject+row.ID ||
				err != nil && !errors.Is(err, access.ErrUnauthenticated) {
				w.Fatalf("the token %s is %s: %+v, %v", row.ID, row.State(w.Now()), x, err)
			}
		}
	}

	all, err := w.living(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	if len(all.Tokens) != len(names) {
		w.Fatalf("%+v are active; expected %v", all.Tokens, names)
	}
	for _, t := range all.Tokens {
		if names[t.Name] != t.ID {
			w.Fatalf("%+v is not active", t)
		}
	}
	return revoked
}

// all are the rows of all tokens, also of those whose making had no answer.
func (w *world) all() (all []Token) {
	for cursor, more := "", true; more; more = cursor != "" {
		page, next, err := w.Tokens(w.Context(), cursor)
		if err != nil {
			w.Fatal(err)
		}
		all, cursor = append(all, page...), next
	}
	return all
}

// told are the types of the events of a token.
func (w *world) told(id string) (types []string) {
	rows, _, err := event.Page(w.Context(), w.Table, subject(id), "")
	if err != nil {
		w.Fatal(err)
	}
	for _, e := range rows {
		types = append(types, e.Type)
	}
	return types
}

// TestHistories: random histories of tokens. At the end a person who repeats what had no answer gets what was asked
// for: each name can be freed, and made anew.
func TestHistories(t *testing.T) {
	made, revoked, unknown := 0, 0, 0
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, seed)
				for range 60 {
					w.step()
					w.check()
				}
				made, revoked = made+len(w.texts), revoked+w.check()
				unknown += len(w.all()) - len(w.texts)
				w.rest()
			})
		})
	}
	if made == 0 || revoked == 0 || unknown == 0 {
		t.Errorf("%d tokens were made, %d revoked, and of %d nobody has the text", made, revoked, unknown)
	}
}

// rest frees all names, and takes them again.
func (w *world) rest() {
	w.lose = false
	for n := range 4 {
		name := fmt.Sprint("n", n)
		row, err := w.Token(w.Context(), name)
		if err == nil {
			_, err = w.Revoke(w.Context(), row.ID, by(""))
		}
		if err != nil && !fault.Is(err, fault.NotFound) {
			w.Error(err)
		}
		if _, _, err := w.Create(w.Context(), Request{Name: name, Grants: []string{"viewer"}, Days: 1,
			By: by("")}); err != nil {
			w.Error(err)
		}
	}
	w.check()
}
