package inprocess

import (
	"context"
	"testing"
)

// TestAnswersAreKept: the answer of an invocation stays as it is when the same environment answers another one.
func TestAnswersAreKept(t *testing.T) {
	echo := onLambda(func(_ context.Context, text string) (string, error) { return text, nil })
	for range 20 { // the library's pool forgets its buffers at random under the race detector
		answer, err := echo(t.Context(), []byte(`"the first"`))
		if err != nil {
			t.Fatal(err)
		}
		if _, err = echo(t.Context(), []byte(`"the other"`)); err != nil {
			t.Fatal(err)
		}
		if string(answer) != `"the first"` {
			t.Fatalf("the first answer has become %s", answer)
		}
	}
}
