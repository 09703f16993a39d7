package researchsim

import (
	"fmt"
	"testing"

	"archivist/pkg/kernel/table/tabletest"
	"archivist/pkg/research"
	"archivist/test/adversary"
)

// closing stores the last result of an episode in a process whose transaction is delayed: meanwhile a clip is
// added, and the assigner looks at all closed episodes. It returns the first violation.
func closing(t *testing.T, unguarded bool) error {
	m := newMortal(t)
	must(t, m.Pause(t.Context(), songs, person)) // so that the episode is not changed by an assignment
	var client adversary.Client = m.fake
	if unguarded {
		client = without(m.fake, "RESEARCHPROJECT#")
	}
	delayed := false
	do := func(op string, call func() error) error {
		if op == "TransactWriteItems" && !delayed {
			delayed = true
			_, err := m.Curate(t.Context(), m.record("c9"), person)
			must(t, err)
			must(t, m.pass(t.Context()))
		}
		return call()
	}
	slow := newStore(tabletest.Table(&tabletest.Client{DynamoDBAPI: client, Do: do}), m.Now, m.NewID)
	for i, store := range []*research.Store{m.Store, m.Store, slow} {
		_, err := store.Record(t.Context(), research.Report{Project: songs, Lease: "lost", Researcher: "r",
			Analysis: "any@1", Episode: research.Key("s", "e0"), Sequence: 1 + i,
			Clip: research.Key("s", fmt.Sprint("c", i))})
		must(t, err)
	}
	return m.check.err
}

// TestClosing: an episode is closed only if no clip has come since it was looked at. Without the condition
// on the catalog, the clip would be forgotten.
func TestClosing(t *testing.T) {
	if err := closing(t, false); err != nil {
		t.Error(err)
	}
	err := closing(t, true)
	if err == nil {
		t.Error("without the condition on the catalog, nothing was found")
	}
	t.Log(err)
}
