package anvl

import (
	"reflect"
	"strings"
	"testing"
)

func TestRoundTrip(t *testing.T) {
	in := []Element{{"who", "Lovelace, Ada"}, {"what", "Notes:\nupon the memoir"}, {"empty", ""}, {"when", "1843"}}
	var b strings.Builder
	if err := Write(&b, in...); err != nil {
		t.Fatal(err)
	}
	got, err := Read(strings.NewReader("# a comment\n\n" + b.String()))
	want := []Element{in[0], in[1], in[3]}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	for _, bad := range []string{" continues nothing", "no colon"} {
		if _, err := Read(strings.NewReader(bad)); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
}
