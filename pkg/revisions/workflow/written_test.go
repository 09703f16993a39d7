package workflow_test

import (
	"maps"
	"reflect"
	"strings"
	"testing"
)

// TestLineBreaks: a file says the same with the line breaks of Windows.
func TestLineBreaks(t *testing.T) {
	file := "- name: a\n  script: |\n    one\n    two\n  env:\n    A: 'b\n      c'\n    B: \"d\n\n      e\"\n...\n" +
		"# end\n"
	a, b := parse(t, file), parse(t, strings.ReplaceAll(file, "\n", "\r\n"))
	if got := a.Task("a").Env; got["A"] != "b c" || got["B"] != "d\ne" || !reflect.DeepEqual(a, b) {
		t.Errorf("%+v\n%+v", a, b)
	}
}

// TestTruths: a variable is true or false as it is written, and a key that is a truth takes all that YAML has.
func TestTruths(t *testing.T) {
	a := parse(t, "- name: b\n- {name: a, depends: b, follow: True, interruptible: FALSE, "+
		"env: {A: True, B: False, C: TRUE}}")
	want := map[string]string{"A": "True", "B": "False", "C": "TRUE"}
	if got := a.Task("a"); !maps.Equal(got.Env, want) || !got.Follow || !got.Uninterruptible {
		t.Errorf("%+v", got)
	}
}
