package lambda

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"archivist/pkg/aws/cloudwatch"
	"archivist/pkg/events/event"
	"archivist/pkg/kernel/lease"
	"archivist/pkg/kernel/table"
	"archivist/pkg/kernel/table/tabletest"
	"archivist/pkg/research"
)

// shop is the function of curation with a real store, and a dead-letter queue.
type shop struct {
	*Curation
	rows *table.Table
	dies func() bool // before a call of the table
	dead map[string]string
	ids  int
}

var errDied = errors.New("died")

func newShop(t *testing.T) *shop {
	s := &shop{dies: func() bool { return false }, dead: map[string]string{}}
	now := func() time.Time { return time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC) }
	newID := func() string { s.ids++; return fmt.Sprint("id", s.ids) }
	s.rows = tabletest.Table(&tabletest.Client{DynamoDBAPI: tabletest.New(), Do: s.do})
	s.rows.Wait = func(context.Context, time.Duration) error { return errDied }
	store := &research.Store{Table: s.rows, Leases: &lease.Store{Table: s.rows, Now: now, NewID: newID}, Now: now,
		NewID: newID, Times: research.Default, Projects: []string{"songs"},
		Analyses: map[string]func([]byte) error{"any": func([]byte) error { return nil }}}
	s.Curation = &Curation{Curate: store.Curate, Now: now, Metrics: &cloudwatch.Metrics{},
		Log: slog.New(slog.DiscardHandler),
		DeadLetter: func(_ context.Context, body string, why map[string]string) error {
			if s.dies() {
				return errDied
			}
			s.dead[body] = why["reason"]
			return nil
		}}
	err := store.Apply(t.Context(), research.Project{Name: "songs",
		Analysis: research.Analysis{Name: "any", Version: "1"}}, research.By{Actor: "ann", Reason: "a test"})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// do makes a call of the table, unless the function dies before it, or after.
func (s *shop) do(_ string, call func() error) error {
	if s.dies() {
		return errDied
	}
	err := call()
	if s.dies() {
		return errDied
	}
	return err
}

// deliver delivers messages in batches until all are kept or dead letters. Each may come more than once.
func (s *shop) deliver(t *testing.T, draw *rand.Rand, bodies []string) {
	t.Helper()
	var waiting []events.SQSMessage
	for i, body := range bodies {
		for range 1 + draw.IntN(2) {
			waiting = append(waiting, events.SQSMessage{MessageId: fmt.Sprint(i), Body: body})
		}
	}
	for round := 0; len(waiting) > 0; round++ {
		if round == 200 {
			t.Fatalf("%d messages keep coming back", len(waiting))
		}
		draw.Shuffle(len(waiting), func(i, j int) { waiting[i], waiting[j] = waiting[j], waiting[i] })
		batch := waiting[:min(len(waiting), 1+draw.IntN(10))]
		waiting = slices.Clone(waiting[len(batch):])
		out, err := s.Handle(t.Context(), CurationEvent{Records: batch})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range out.BatchItemFailures {
			at := slices.IndexFunc(batch, func(m events.SQSMessage) bool { return m.MessageId == f.ItemIdentifier })
			waiting = append(waiting, batch[at])
		}
	}
}

// known is what is known of each episode and clip in the end.
func (s *shop) known(t *testing.T) string {
	t.Helper()
	var all []string
	for _, kind := range []event.Type{event.Episode, event.Clip} {
		for _, id := range []string{"1", "2", "3"} {
			subject := event.Subject{Type: kind, ID: "songs/" + research.Key("s", id)}
			rows, _, err := event.Page(t.Context(), s.rows, subject, "")
			if err != nil || len(rows) == 0 {
				t.Fatalf("%v: %d events, %v", subject, len(rows), err)
			}
			all = append(all, rows[len(rows)-1].Detail)
		}
	}
	return strings.Join(all, "\n")
}

// histories are messages about three episodes and three clips: with other titles, addresses, priorities,
// withdrawn and not, of the same and of other times; and some that nobody can keep.
func histories(draw *rand.Rand) (bodies []string, poison int) {
	for i := range 40 {
		m := map[string]any{"project": "songs", "source": "s", "id": fmt.Sprint(1 + i%3),
			"kind":    []string{"episode", "clip"}[i/3%2],
			"title":   fmt.Sprint("title ", draw.IntN(3)),
			"url":     fmt.Sprint("https://media.example.org/", draw.IntN(3)),
			"curated": 1_000_000 + draw.IntN(10), "withdrawn": draw.IntN(4) == 0}
		if draw.IntN(2) == 0 {
			m["priority"] = draw.IntN(5)
		}
		if draw.IntN(3) == 0 {
			m["initial"] = 900_000 + draw.IntN(10)
		}
		if i >= 12 && draw.IntN(5) == 0 {
			m["curated"], m["title"], poison = 0, fmt.Sprint("poison ", poison), poison+1
		}
		body, err := json.Marshal(m)
		if err != nil {
			panic(err)
		}
		bodies = append(bodies, string(body))
	}
	return bodies, poison
}

// TestCurationHistories: messages may come twice, in any order, and the function may die at any call. What
// is known in the end is as if each came once, in order; and each that cannot be kept is a dead letter.
func TestCurationHistories(t *testing.T) {
	for seed := range uint64(25) {
		draw := rand.New(rand.NewPCG(seed, 1))
		bodies, poison := histories(draw)
		plain := newShop(t)
		for _, body := range bodies {
			out, err := plain.Handle(t.Context(), CurationEvent{Records: []events.SQSMessage{{Body: body}}})
			if err != nil || len(out.BatchItemFailures) > 0 {
				t.Fatal(out, err)
			}
		}
		wild := newShop(t)
		wild.dies = func() bool { return draw.IntN(25) == 0 }
		wild.deliver(t, draw, bodies)
		wild.dies = func() bool { return false }
		if got, want := wild.known(t), plain.known(t); got != want {
			t.Fatalf("seed %d:\n%s\nwant\n%s", seed, got, want)
		}
		if len(wild.dead) != poison || len(plain.dead) != poison {
			t.Fatalf("seed %d: %d and %d dead letters of %d", seed, len(wild.dead), len(plain.dead), poison)
		}
		for _, reason := range wild.dead {
			if !strings.Contains(reason, "curated: found 0; expected a time after 1970") {
				t.Fatalf("seed %d: a dead letter: %s", seed, reason)
			}
		}
	}
}
