package queue_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"archivist/pkg/events/check"
	"archivist/pkg/events/check/checktest"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/kernel/table"
)

// sweptBefore is the row of the last sweep as an earlier version knows it.
type sweptBefore struct {
	table.Head
	At int64 `dynamo:"at_ms"`
}

// notWhole sweeps as an earlier version does. So it makes the table one of an earlier version, and the process a new
// one.
func (b *bench) notWhole() {
	b.Helper()
	row := sweptBefore{Head: table.Head{PK: "LEASE#clock", SK: "SWEEP"}}
	if err := b.q.Table.Get(b.Context(), row.Key(), &row); err != nil {
		b.Fatal(err)
	}
	tx := b.q.Table.Begin(b.q.NewID())
	tx.Save(&row)
	if err := tx.Commit(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.q.Names = &queue.Names{}
}

// asBefore lists a job as the version did that had no lists of all collections.
func (b *bench) asBefore(id string) {
	b.Helper()
	j := b.job(id)
	before := slices.DeleteFunc(queue.Listed(&j), func(r table.Row) bool {
		return strings.HasPrefix(r.Key().PK, "NAMED#all#")
	})
	b.forgets(id)
	tx := b.q.Table.Begin(b.q.NewID())
	tx.Follow(id, nil, append(before, table.OwnedAt(id, table.Key{PK: "NAMED#state#c#" + string(j.State),
		SK: fmt.Sprintf("%013d#%s", j.Created, id)})...))
	if err := tx.Commit(b.Context()); err != nil {
		b.Fatal(err)
	}
}

// listsBoth fails unless lists of all collections, and of one by a state through which jobs pass, have the first job,
// which is Estimating, and the second, which is Pending.
func (b *bench) listsBoth(when, first, second string) {
	b.Helper()
	for _, c := range []struct {
		queue.Find
		want []string
	}{
		{queue.Find{}, []string{second, first}},
		{queue.Find{Submitter: "eve"}, []string{second, first}},
		{queue.Find{State: "Pending"}, []string{second}},
		{queue.Find{State: "Estimating"}, []string{first}},
		{queue.Find{State: "Estimating", Collections: []string{"c"}}, []string{first}},
		{queue.Find{State: "Estimating", Collections: []string{"d"}}, nil},
	} {
		c.Find.Names = func(context.Context) ([]string, error) { return []string{"c", "d"}, nil }
		c.Until = b.now.Add(time.Hour)
		p, err := b.q.FindJobs(b.Context(), c.Find)
		if err != nil {
			b.Fatal(err)
		}
		var got []string
		for _, j := range p.Items {
			got = append(got, j.Job.ID)
		}
		if !slices.Equal(got, c.want) {
			b.Errorf("%s, state %q, submitter %q, of %v: %v; expected %v", when, c.State, c.Submitter, c.Collections,
				got, c.want)
		}
	}
}

// examine is a run of the doctor: how many rows are wrong, which it repairs if asked, but those of one job; and what it
// finds at the end.
func (b *bench) examine(repair bool, but string) (found int, end []check.Problem) {
	b.Helper()
	rules := b.q.RowRules()
	for _, p := range checktest.All(b, checktest.Page(b.q.Table, b.q.Now, b.q.NewID), rules,
		func(table.Raw) bool { return true }) {
		if p.Invariant != "job-named" && p.Invariant != "reservation-owner" {
			b.Fatalf("the doctor finds %+v", p)
		}
		found++
		if !repair || but != "" && strings.Contains(p.Subject, but) {
			continue
		}
		if err := p.Repair(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	rows, _, err := b.q.Table.Scan(b.Context(), "", 1000, "")
	if err != nil {
		b.Fatal(err)
	}
	for _, row := range rows {
		rules.Row(row)
	}
	end, err = rules.End(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	return found, end
}

// TestWholeLists: jobs that an earlier version made are found in all lists, before the doctor has listed them anew and
// after it. Only once it has listed all is it known that the lists of all collections are whole; those of a new
// table are.
func TestWholeLists(t *testing.T) {
	b := newBench(t)
	b.q.Settings.MaxInFlight = 1
	b.tick()
	batch := b.submitJobs(ingest.Job{Collection: "c", Submitter: "eve", SizeKnown: true},
		ingest.Job{Collection: "c", Submitter: "eve", SizeKnown: true})
	first, second := ingest.JobID(batch, 1), ingest.JobID(batch, 2)
	b.tick()
	lists := func(when string) { t.Helper(); b.listsBoth(when, first, second) }
	lists("new")

	b.asBefore(first)
	b.asBefore(second)
	b.notWhole()
	lists("upgraded")

	// Of each job the list of all, of its submitter and its state; and the first was listed in its collection.
	if n, end := b.examine(false, ""); n != 7 || len(end) > 0 {
		t.Errorf("%d rows are wrong, then %v", n, end)
	}
	if _, end := b.examine(true, second); len(end) > 0 {
		t.Errorf("the second job is not listed, and the lists are whole: %v", end)
	}
	lists("repaired in part")
	n, end := b.examine(true, "")
	if n != 3 || len(end) != 1 || end[0].Invariant != "lists-whole" {
		t.Fatalf("%d rows were wrong, then %v", n, end)
	}
	lists("repaired")
	if err := end[0].Repair(t.Context()); err != nil {
		t.Fatal(err)
	}
	lists("whole")
	if n, end := b.examine(false, ""); n > 0 || len(end) > 0 {
		t.Errorf("%d rows are wrong, then %v", n, end)
	}
}

// TestNewListsAreWhole: the lists of a table without jobs are whole from its first sweep on, and the doctor has nothing
// to say before it.
func TestNewListsAreWhole(t *testing.T) {
	b := newBench(t)
	if end, err := b.q.RowRules().End(t.Context()); len(end) > 0 || err != nil {
		t.Errorf("before the first sweep: %v, %v", end, err)
	}
	whole := func(want bool) {
		t.Helper()
		asked := false
		_, err := b.q.FindJobs(t.Context(), queue.Find{Until: b.now,
			Names: func(context.Context) ([]string, error) { asked = true; return nil, nil }})
		if err != nil || asked == want {
			t.Errorf("the collections are asked for: %v, %v", asked, err)
		}
	}
	whole(false)
	b.tick()
	whole(true)
	b.notWhole()
	b.tick() // one that is not the first says nothing
	whole(false)
	if end, err := b.q.RowRules().End(t.Context()); len(end) != 1 || err != nil {
		t.Errorf("not whole, and swept: %v, %v", end, err)
	}
}

// TestWholeOfMoved: a job that changes during its check is checked again, and only the last check counts: else the
// lists of an archive in which jobs run would never be known to be whole.
func TestWholeOfMoved(t *testing.T) {
	b := newBench(t)
	b.tick()
	id := ingest.JobID(b.submitJobs(ingest.Job{Collection: "c", Submitter: "eve", SizeKnown: true}), 1)
	raw := func() table.Raw {
		row, err := b.q.Table.Raw(t.Context(), table.Key{PK: "JOB#" + id, SK: "JOB"})
		if err != nil {
			t.Fatal(err)
		}
		return row
	}
	before := raw()
	b.tick()
	b.notWhole()

	rules, pg := b.q.RowRules(), checktest.Page(b.q.Table, b.q.Now, b.q.NewID)
	wrong := func(row table.Raw) int {
		x := check.Row{Page: pg, Raw: row}
		if err := x.Check(t.Context(), []check.Rules{rules}); err != nil {
			t.Fatal(err)
		}
		return len(x.Problems)
	}
	if first, then := wrong(before), wrong(raw()); first == 0 || then > 0 {
		t.Fatalf("%d and %d things are wrong", first, then)
	}
	rules.Row(before)
	if end, err := rules.End(t.Context()); len(end) != 1 || err != nil {
		t.Errorf("%v, %v", end, err)
	}
}

// TestWholeOfUnknown: what a job is whose row is damaged is not known, and so not whether it is listed.
func TestWholeOfUnknown(t *testing.T) {
	b := newBench(t)
	b.tick()
	id := ingest.JobID(b.submitJobs(ingest.Job{Collection: "c", Submitter: "eve", SizeKnown: true}), 1)
	b.notWhole()
	var j queue.Job
	if err := b.q.Table.Get(t.Context(), table.Key{PK: "JOB#" + id, SK: "JOB"}, &j); err != nil {
		t.Fatal(err)
	}
	j.State = "Odd"
	tx := b.q.Table.Begin(b.q.NewID())
	tx.Save(&j)
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}

	rules := b.q.RowRules()
	checktest.All(t, checktest.Page(b.q.Table, b.q.Now, b.q.NewID), rules, func(table.Raw) bool { return true })
	rows, _, err := b.q.Table.Scan(t.Context(), "", 1000, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		rules.Row(row)
	}
	if end, err := rules.End(t.Context()); len(end) > 0 || err != nil {
		t.Errorf("%v, %v", end, err)
	}
}

// TestWholeAfterEarlierVersion: who goes back to an earlier version has jobs that are not in the lists of all
// collections. After the next upgrade these are merged again, until the doctor has listed them.
func TestWholeAfterEarlierVersion(t *testing.T) {
	b := newBench(t)
	b.q.Settings.MaxInFlight = 1
	b.tick()
	batch := b.submitJobs(ingest.Job{Collection: "c", Submitter: "eve", SizeKnown: true},
		ingest.Job{Collection: "c", Submitter: "eve", SizeKnown: true})
	b.tick()
	first, second := ingest.JobID(batch, 1), ingest.JobID(batch, 2)
	b.listsBoth("new", first, second)
	b.asBefore(second)
	b.notWhole()
	b.listsBoth("upgraded again", first, second)
}
