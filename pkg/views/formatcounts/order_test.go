package formatcounts

import (
	"fmt"
	"testing"
)

// TestOrderOfManyFormats: the sum of what was counted of objects is that of their collection, in any order, also if
// that has more formats than are named.
func TestOrderOfManyFormats(t *testing.T) {
	var total Counts
	var shares []Counts
	for i := range MaxFormats + 3 {
		c := Counts{Objects: 1, Files: 1, Bytes: 1,
			Formats: []Format{{MediaType: fmt.Sprint("x/", i), Files: 1, Bytes: 1}}}
		c.Formats = total.Add(c)
		shares = append(shares, c)
	}
	var sum Counts
	for i := len(shares) - 1; i >= 0; i-- {
		sum.Add(shares[i])
	}
	if !total.alike(sum) {
		t.Errorf("%s; %s", total.text(), sum.text())
	}
}
