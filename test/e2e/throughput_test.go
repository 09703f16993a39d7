package e2e

import (
	"fmt"
	"testing"
	"time"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/checkm"
)

// Test6Hundred: a hundred objects in one batch, and how fast.
func Test6Hundred(t *testing.T) {
	miniStackOnly(t, ownCode)
	const n = 100
	src := newSource(t)
	var rows []checkm.Row
	for i := range n {
		path := fmt.Sprintf("/file-%d.txt", i)
		src.put(path, fmt.Appendf(nil, "content %d", i))
		rows = append(rows, src.row(path))
	}
	started := time.Now()
	batch, _ := submit(t, src.list(t, "/hundred.checkm", "mrt-single-file-batch-manifest", rows...), "")
	until(t, "the batch completes", 9*time.Minute, func() bool { return batchOf(t, batch).State == "Completed" })
	took := time.Since(started)
	if want := (v1.Counts{Expected: n, Completed: int64(n)}); batchOf(t, batch).Counts != want {
		t.Errorf("the counts are %+v", batchOf(t, batch).Counts)
	}
	t.Logf("%d jobs in %s: %.1f jobs/s", n, took.Round(time.Second), float64(n)/took.Seconds())
}
