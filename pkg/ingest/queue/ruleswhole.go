package queue

import (
	"context"
	"strings"
	"sync"

	"archivist/pkg/events/check"
	"archivist/pkg/kernel/table"
)

// ruleWhole is that the lists of all collections are known to be whole.
const ruleWhole = "lists-whole"

// unlisted counts what a run of the doctor has found missing in lists, and has not repaired.
type unlisted struct {
	N int

	mu sync.Mutex
	of map[table.Key]int // of rows that were checked, and not passed yet
}

// begin begins the check of the row of a job or batch. A row may be checked more than once: the last check counts.
func (u *unlisted) begin(row table.Key) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.of == nil {
		u.of = map[table.Key]int{}
	}
	u.of[row] = 0
}

func (u *unlisted) add(row table.Key, n int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.of[row] += n
}

// passed counts what is missing of a row, after its repair. What could not be read may be missing.
func (u *unlisted) passed(row table.Raw) {
	u.mu.Lock()
	defer u.mu.Unlock()
	n, checked := u.of[row.Key]
	delete(u.of, row.Key)
	switch {
	case checked:
		u.N += n
	case strings.HasPrefix(row.PK, jobKey("").PK) && row.SK == jobKey("").SK,
		strings.HasPrefix(row.PK, batchKey("").PK) && row.SK == batchKey("").SK:
		u.N++
	}
}

// repairing is a repair after which so much less of a row is missing.
func (u *unlisted) repairing(row table.Key,
	repair func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		err := repair(ctx)
		if err == nil {
			u.add(row, -1)
		}
		return err
	}
}

// whole finds, after all rows, that nothing is missing in the lists of all collections, and that this is not known. A
// table that no version has swept is new: the first sweep says so.
func (r *rules) whole(ctx context.Context) ([]check.Problem, error) {
	if r.unlisted.N > 0 {
		return nil, nil
	}
	row, err := r.swept(ctx)
	if row.Whole || row.Rev == 0 || err != nil {
		return nil, err
	}
	return []check.Problem{{Invariant: ruleWhole, Subject: sweptKey.String(), Repair: r.setWhole,
		Evidence: "nothing is missing in the lists of all collections, but they are still merged " +
			"of those of each, which takes longer"}}, nil
}
