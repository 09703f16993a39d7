package research

import (
	"fmt"
	"slices"
	"testing"

	"archivist/pkg/events/event"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// matrixOf are the rows of the matrix of the bench: its episodes by id, with what their cells say.
func (b *bench) matrixOf(cursor string, clip int) (m Matrix, rows []string) {
	b.t.Helper()
	m, err := b.Matrix(b.t.Context(), songs, cursor, clip)
	b.must(err)
	for _, r := range m.Rows {
		rows = append(rows, fmt.Sprint(r.ID, " ", r.Pairs, " ", r.Unreviewed))
	}
	return m, rows
}

// cells checks the rows of the matrix.
func (b *bench) cells(want ...string) {
	b.t.Helper()
	if _, is := b.matrixOf("", 0); !slices.Equal(is, want) {
		b.t.Errorf("the matrix: %q, want %q", is, want)
	}
}

// TestMatrix: a cell says how many places were found, that nothing was found, or what is missing
// yet. A row that an earlier version has changed says only what is researched.
func TestMatrix(t *testing.T) {
	b := compared(t, 1, 1)
	b.curate(Episode, "e", 0, 1)
	for i := range 6 {
		b.curate(Clip, fmt.Sprint("c", i), 0, int64(10-i))
	}
	b.cells("e ...... []")
	b.finds("r", at(1, 2, 3)...)
	b.finds("r")
	b.finds("r", at(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17)...)
	b.finds("r", at(1)...)
	b.present("other")
	b.pass()
	b.cells("e 30+1ww []")

	var e episodeRow
	b.must(b.Table.Get(t.Context(), episodeKey(songs, Key("s", "e")), &e))
	e.Found, e.Tallied = nil, 0
	tx := b.Table.Begin(b.NewID())
	tx.Save(&e)
	b.must(tx.Commit(t.Context()))
	b.cells("e xxxxww []")
	b.must(b.decide(t.Context(), songs, Key("s", "e")))
	b.report(b.accept("other"), 0, true)
	b.cells("e xxxxxw []")

	b.must(b.Apply(t.Context(), Project{Name: songs, Analysis: Analysis{Name: "any", Version: "3"},
		MaxClips: 1}, by))
	b.cells("e ...... []")
	b.present("r")
	b.finds("r", at(1, 2)...)
	b.cells("e 2w.... []")
}

// TestMatrixOfPersons: a cell says that another researcher or a person is needed.
func TestMatrixOfPersons(t *testing.T) {
	b := compared(t, 2, 1)
	b.curate(Episode, "e", 0, 1)
	b.curate(Clip, "c", 0, 1)
	b.finds("one", at(1)...)
	b.cells("e q []")
	w := b.finds("two", at(50)...)
	b.cells("e d []")
	b.must(b.Decide(t.Context(), songs, Key("s", "e"), Key("s", "c"), Decision{Lease: w.Lease.ID}, by))
	b.cells("e 1 []")

	b, w = reviewing(t, 1, at(1, 2)...)
	b.cells("e 2 [0]")
	b.must(b.review("ann", Review{Lease: w.Lease.ID, Accept: true}))
	b.cells("e 2 []")
}

// TestMatrixOfDamage: a clip whose row is missing keeps its column, so that the others stay in theirs; a pair whose row
// cannot be read is shown as that, not as one that waits for nobody.
func TestMatrixOfDamage(t *testing.T) {
	b, _ := reviewing(t, 1, at(1, 2)...)
	k := pairKey(songs, Key("s", "e"), Key("s", "c"))
	b.must(b.Table.Rows.Update("pk", k.PK).Range("sk", k.SK).Set("since_ms", "then").Run(t.Context()))
	b.cells("e ! []")

	b = compared(t, 1, 1)
	b.curate(Episode, "e", 0, 1)
	for i := range 3 {
		b.curate(Clip, fmt.Sprint("c", i), 0, int64(10-i))
	}
	b.finds("r", at(1, 2, 3)...)
	before, _ := b.matrixOf("", 0)
	lost := before.Clips[0].Key
	gone := mediaSubject(event.Clip, songs, lost).Key()
	b.must(b.Table.Rows.Delete("pk", gone.PK).Range("sk", gone.SK).Run(t.Context()))
	m, _ := b.matrixOf("", 0)
	if len(m.Clips) != 3 || m.Clips[0].Key != lost || !m.Clips[0].Lost || m.Clips[1].ID != before.Clips[1].ID ||
		m.Clips[1].Lost {
		t.Errorf("without the row of the first clip: %+v", m.Clips)
	}
}

// TestMatrixOfManyReviews: what waits for a person is known of the pairs that are shown, also if very many others
// wait that come before them.
func TestMatrixOfManyReviews(t *testing.T) {
	b, _ := reviewing(t, 1, at(1, 2)...)
	p, err := b.projectRow(t.Context(), songs)
	b.must(err)
	for part := range 11 {
		tx := b.Table.Begin(b.NewID())
		for n := range 100 {
			k := pairKey(songs, "0", fmt.Sprint(part*100+n))
			tx.Insert(&pairRow{Head: table.Head{PK: k.PK, SK: k.SK, ListPK: reviewsPK(songs, p.Generation),
				ListSK: fmt.Sprintf("0/%04d", part*100+n)}})
		}
		b.must(tx.Commit(t.Context()))
	}
	m, rows := b.matrixOf("", 0)
	if m.More || !slices.Equal(rows, []string{"e 2 [0]"}) {
		t.Errorf("%q, more: %v", rows, m.More)
	}
}

// TestMatrixAsked: what is asked of is bounded, and begins with the clips that are named.
func TestMatrixAsked(t *testing.T) {
	m := Matrix{Clips: make([]Known, 2), Clip: 402, Begin: 400,
		Rows: []MatrixRow{{Pairs: "1.3x0"}, {Pairs: "+dw9q"}}}
	want := []cellAt{{0, 2}, {0, 3}, {1, 3}, {0, 0}, {1, 0}}
	if is := m.withPlaces(); !slices.Equal(is, want) {
		t.Errorf("%v, want %v", is, want)
	}
}

// TestMatrixPages: each episode is in one row, and each clip in one column, whatever page is read,
// also what is withdrawn.
func TestMatrixPages(t *testing.T) {
	b := compared(t, 1, 1)
	for i := range 120 {
		b.curate(Episode, fmt.Sprint("e", i), 0, int64(1000-i))
	}
	for i := range matrixNames + 5 {
		b.curate(Clip, fmt.Sprint("c", i), 0, int64(1000-i))
	}
	_, err := b.Curate(t.Context(), Curated{Project: songs, Kind: Episode, Source: "s", ID: "e7",
		Withdrawn: true,
		URL:       "https://media.example.org/e7", Curated: millis(b.clock) + 1}, by)
	b.must(err)
	seen := map[string]bool{}
	sizes := []int{}
	for cursor := ""; ; {
		m, _ := b.matrixOf(cursor, 0)
		for _, r := range m.Rows {
			seen[r.ID] = true
		}
		sizes = append(sizes, len(m.Rows))
		cursor = m.Next
		if cursor == "" {
			break
		}
	}
	if len(seen) != 120 || !slices.Equal(sizes, []int{50, 50, 20}) {
		t.Errorf("%d episodes on pages of %v", len(seen), sizes)
	}
	m, _ := b.matrixOf("", matrixNames)
	if len(m.Clips) != 5 || m.Clips[0].ID != "c40" || m.Begin != 0 || m.Total != 45 ||
		len(m.Rows[0].Pairs) != 45 ||
		m.Rows[0].ID != "e0" {
		t.Errorf("%d clips from %+v of %d", len(m.Clips), m.Clips[0], m.Total)
	}
	for _, cursor := range []string{"x", "ready:-1:", "ready:x:", "live:0:"} {
		if _, err := b.Matrix(t.Context(), songs, cursor, 0); !fault.Is(err, fault.Invalid) {
			t.Errorf("%q: %v", cursor, err)
		}
	}
	if m, _ := b.matrixOf("", 9999); len(m.Clips) != 1 || m.Clip != 44 {
		t.Errorf("behind the end: %d clips from %d on", len(m.Clips), m.Clip)
	}
}
