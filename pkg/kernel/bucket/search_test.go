package bucket_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/bucket/buckettest"
)

// line finds the first whole line that begins in a text.
func line(text []byte, start bool) (int, string, bool) {
	at := 0
	if !start {
		at = bytes.IndexByte(text, '\n') + 1
		if at == 0 {
			return 0, "", false
		}
	}
	key, _, whole := bytes.Cut(text[at:], []byte("\n"))
	return at, strings.TrimRight(string(key), "."), whole
}

func TestSearch(t *testing.T) {
	twin, buckets := buckettest.Open(t, "b")
	b := buckets[0]
	rng := rand.New(rand.NewPCG(1, 1))
	for _, n := range []int{0, 1, 2, 5000, 40_000} {
		var text bytes.Buffer
		text.WriteString("head\n")
		from := int64(text.Len())
		at := map[string]int64{}
		var keys []string
		for i := range n {
			key := fmt.Sprintf("k%06d", i*2)
			keys, at[key] = append(keys, key), int64(text.Len())
			fmt.Fprintf(&text, "%s%s\n", key, strings.Repeat(".", rng.IntN(200)))
		}
		to := int64(text.Len())
		text.WriteString("k999998\ntail\n")
		if err := b.Put(t.Context(), "text", text.Bytes(), bucket.Condition{}); err != nil {
			t.Fatal(err)
		}
		for range 200 {
			want := fmt.Sprintf("k%06d", rng.IntN(2*n+2))
			if rng.IntN(10) == 0 && n > 0 {
				want = []string{keys[0], keys[n-1], "a", "z", "k999998"}[rng.IntN(5)]
			}
			before := twin.Calls["GET object"]
			got, found, err := b.Search(t.Context(), "text", from, to, want, line)
			place, is := at[want]
			if err != nil || found != is || found && got != place {
				t.Fatalf("of %d: %s is at %d (%v), Search says %d, %v, %v", n, want, place, is, got, found, err)
			}
			if calls := twin.Calls["GET object"] - before; calls > 9 {
				t.Fatalf("of %d: %d reads", n, calls)
			}
		}
	}
}

// TestSearchLongRecords: a record that is longer than what is read at once hides
// neither itself nor those around it.
func TestSearchLongRecords(t *testing.T) {
	_, buckets := buckettest.Open(t, "b")
	b := buckets[0]
	rng := rand.New(rand.NewPCG(2, 2))
	for range 4 {
		var text bytes.Buffer
		at := map[string]int64{}
		for i := range 30 {
			key := fmt.Sprintf("k%06d", i*2)
			at[key] = int64(text.Len())
			fmt.Fprintf(&text, "%s%s\n", key, strings.Repeat(".", []int{0, 100, 1000, 70_000, 200_000}[rng.IntN(5)]))
		}
		if err := b.Put(t.Context(), "text", text.Bytes(), bucket.Condition{}); err != nil {
			t.Fatal(err)
		}
		for i := range 62 {
			want := fmt.Sprintf("k%06d", i)
			got, found, err := b.Search(t.Context(), "text", 0, int64(text.Len()), want, line)
			if place, is := at[want]; err != nil || found != is || found && got != place {
				t.Fatalf("%s is at %d (%v), Search says %d, %v, %v", want, place, is, got, found, err)
			}
		}
	}
}
