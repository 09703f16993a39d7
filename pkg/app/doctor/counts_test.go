package doctor_test

import (
	"errors"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
)

// TestCountsKeepStopAfter: counts that are made again have the number of failed jobs after
// which the batch is cancelled.
func TestCountsKeepStopAfter(t *testing.T) {
	w := settled(t)
	w.set(batchKey(w.second), "stop_after", num(3))
	w.drop(countKey(w.second))
	w.repairs([]string{"batch-counts batch:" + batchOf(w.second)})
	var counts queue.Counts
	err := w.doctor().Queue.Table.Get(t.Context(), countKey(w.second), &counts)
	if err != nil || counts.StopAfter != 3 {
		t.Errorf("%+v, %v", counts, err)
	}
}

// TestCountsOfEarlierVersion: counts that are made again have callbacks only if each completed job
// tells them: one that an earlier version completed does not, and a sum without it would be too
// small. Bytes are known of each.
func TestCountsOfEarlierVersion(t *testing.T) {
	for _, told := range []bool{false, true} {
		w := settled(t)
		calls := &types.AttributeValueMemberL{}
		if told {
			one := map[string]types.AttributeValue{"named_by": str("profile"),
				"call_site": str("https://example.org"), "at_ms": num(1), "tries": num(1)}
			calls.Value = []types.AttributeValue{&types.AttributeValueMemberM{Value: one}}
		}
		w.set(jobKey(w.second), "calls", calls)
		w.drop(countKey(w.second))
		w.repairs([]string{"batch-counts batch:" + batchOf(w.second)})
		var counts queue.Counts
		err := w.doctor().Queue.Table.Get(t.Context(), countKey(w.second), &counts)
		shown, showErr := w.doctor().Queue.CountsOf(t.Context(),
			[]queue.Batch{{Batch: ingest.Batch{ID: batchOf(w.second)}}})
		if err = errors.Join(err, showErr); err != nil {
			t.Fatal(err)
		}
		if counts.Untold == told || shown[0].Called == 1 != told || shown[0].Bytes == 0 {
			t.Errorf("callbacks told %v: %+v, %+v", told, counts, shown)
		}
	}
}
