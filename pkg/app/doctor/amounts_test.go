package doctor_test

import "testing"

// TestAmountsOfEarlierVersions: jobs of a batch of an earlier version have not all added their
// bytes and callbacks. What its counts have of them is not shown, and no finding.
func TestAmountsOfEarlierVersions(t *testing.T) {
	w := settled(t)
	w.set(countKey(w.second), "weighed", nil)
	w.set(countKey(w.second), "n_bytes", num(1))
	w.finds(true)
	counts, err := w.doctor().Queue.Counts(t.Context(), batchOf(w.second))
	if err != nil || counts.Bytes != 0 || counts.Completed != 1 {
		t.Errorf("%+v, %v", counts, err)
	}
}
