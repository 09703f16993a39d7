package e2e

import (
	"fmt"
	"testing"
	"time"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/formats/checkm"
	"archivist/pkg/ingest"
)

// TestManyObjectsInOneBatch: twice as many jobs as may be in flight wait at the gates, and each takes two
// executions: one to its size, one to its end. None is lost or repeated, and none needs a minute.
func TestManyObjectsInOneBatch(t *testing.T) {
	begin(t)
	defer stopMinutes(t)()
	const n = 40
	src := newSource(t)
	var rows []checkm.Row
	for i := range n {
		path := fmt.Sprintf("/file-%d.txt", i)
		src.put(path, fmt.Appendf(nil, "content %d", i))
		rows = append(rows, src.row(path))
	}
	started := time.Now()
	batch, _ := submit(t, src.list(t, "/many.checkm", "mrt-single-file-batch-manifest", rows...), "")
	until(t, "the batch completes", 2*soon, func() bool { return batchOf(t, batch).State == "Completed" })
	took := time.Since(started)
	t.Logf("%d jobs in %s: %.1f jobs/s", n, took.Round(time.Second), n/took.Seconds())
	if want := (v1.Counts{Expected: n, Completed: n}); batchOf(t, batch).Counts != want {
		t.Errorf("the counts are %+v", batchOf(t, batch).Counts)
	}
	for i := range n {
		job := ingest.JobID(batch, i+1)
		if n := executionsOf(t, job); n != 2 || repairsOf(t, job) != 0 {
			t.Errorf("job %s took %d executions and %d repairs", job, n, repairsOf(t, job))
		}
	}
}
