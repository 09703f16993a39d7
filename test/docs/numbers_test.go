package docs

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"archivist/pkg/app/boot"
	"archivist/pkg/components/component"
	"archivist/pkg/events/consumer"
	"archivist/pkg/events/eventlog"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/kernel/bucket"
	"archivist/pkg/research"
	"archivist/pkg/revisions/revision"
	"archivist/pkg/revisions/runner"
	"archivist/pkg/revisions/workflow"
	"archivist/pkg/views/search"
)

const day = 24 * time.Hour

// TestNumbers: what the documents say of times and limits is what the code has.
func TestNumbers(t *testing.T) {
	for document, numbers := range map[string][]struct {
		says      string
		got, want any
	}{
		"features.md": {
			{"in parts of 16 MiB", bucket.DefaultLimits.Part, int64(16 << 20)},
			{"each object every 90 days or as set", boot.DefaultLimits.FixityDays, 90},
			{"gives the same batch for 7 days", time.Duration(queue.KeepKeys), 7 * day},
			{"leave the table after 90 days", eventlog.DefaultRetention.Expiring, 90 * day},
			{"the first 1,000 paths are indexed", search.MaxFiles, 1000},
		},
		"consumers.md": {
			{"places of the log stay for 14 days", eventlog.DefaultRetention.Log, 14 * day},
			{"operations and pauses for 90 days", eventlog.DefaultRetention.Expiring, 90 * day},
			{"At most\n1,000 are parked in a partition", consumer.MaxParked, 1000},
		},
		"components.md": {
			{"At most 30\ncomponents can be defined", component.MaxComponents, 30},
			{"People can record events of 100 different names", component.MaxEventNames, 100},
			{"20 types, 20 parents and 20\nidentifiers",
				[]int{component.MaxTypes, component.MaxParents, component.MaxIdentifiers}, []int{20, 20, 20}},
		},
		"research.md": {
			{"under a **lease** of 2 hours", research.Default.Lease, 2 * time.Hour},
			{"the queue for at most 30 minutes", research.Default.Queue, 30 * time.Minute},
			{"to 30 minutes from then", research.Default.Extension, 30 * time.Minute},
			{"at most to 12 hours in all", research.Default.Most, 12 * time.Hour},
			{"it is present for 90 seconds", research.Default.Presence, 90 * time.Second},
			{"said again every 30 seconds", research.Default.Renewal, 30 * time.Second},
			{"can have 100,000 clips", research.MaxClips, 100_000},
			{"clips of a work item, 1 to 100", research.MaxMaxClips, 100},
			{"at most 100 leases at once", research.MaxLeases, 100},
			{"or clips, at most 50 |", research.MaxFeeds, 50},
		},
		"revisions.md": {
			{"| 3,600 | how often the archive itself is asked", revision.Default.Reconcile, time.Hour},
			{"| 20 | how many tasks run at once, at most", revision.MaxRunning, 20},
			{"the archive is asked for it after a minute", revision.Default.Gap, time.Minute},
			{"one that runs is asked to stop, and has a minute", revision.Default.Grace, time.Minute},
			{"30 days after all tasks of a revision have ended", revision.Default.Keep, 30 * day},
			{"After 10 in a row without a success", workflow.Bound, 10},
			{"At most 100 files of 256 KiB each, with 200 tasks",
				[]int{workflow.MaxFiles, workflow.MaxFile, workflow.MaxTasks}, []int{100, 256 << 10, 200}},
			{"| 1 s to 24 h;", workflow.MaxTimeout, day},
			{"| 10 attempts;", workflow.MaxAttempts, 10},
			{"they are skipped after more than 5 in a row", workflow.MaxDepth, 5},
			{"The files of a revision have at most 4 GiB", int64(runner.MaxCheckout), int64(4 << 30)},
			{"at most 1,000 files with 1 GiB",
				[]int64{runner.MaxOutputs, runner.MaxOutputSize}, []int64{1000, 1 << 30}},
			{"At most 10 MiB are kept", runner.MaxLog, 10 << 20},
		},
	} {
		text, err := os.ReadFile(filepath.Join(root, "docs", document))
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range numbers {
			if !strings.Contains(string(text), n.says) {
				t.Errorf("%s does not say %q", document, n.says)
			}
			if !reflect.DeepEqual(n.got, n.want) {
				t.Errorf("%s says %q; it is %v", document, n.says, n.got)
			}
		}
	}
}
