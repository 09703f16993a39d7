package runner

import (
	"context"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"archivist/pkg/revisions/workflow"
)

// TestMaskInPieces: what is shown does not depend on how the stream is cut, and has no secret.
func TestMaskInPieces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOfN(rapid.SampledFrom([]rune("abä€ \x1b")), 1, 6, -1)
		var texts []string
		for _, s := range rapid.SliceOfN(text, 0, 3).Draw(t, "secrets") {
			texts = append(texts, hidden(s)...)
		}
		piece := rapid.OneOf(text, rapid.SampledFrom(append(texts, "x", "\xff")))
		stream := strings.Join(rapid.SliceOf(piece).Draw(t, "stream"), "")
		whole := newMask(texts).next([]byte(stream), true)
		m, pieces := newMask(texts), ""
		for left := stream; left != ""; {
			n := rapid.IntRange(1, min(4, len(left))).Draw(t, "n")
			pieces += m.next([]byte(left[:n]), false)
			left = left[n:]
		}
		pieces += m.next(nil, true)
		// Where pieces meet, a run of bytes that are no UTF-8 can be shown as more than one sign.
		same := func(s string) string {
			for strings.Contains(s, "\uFFFD\uFFFD") {
				s = strings.ReplaceAll(s, "\uFFFD\uFFFD", "\uFFFD")
			}
			return s
		}
		if same(pieces) != same(whole) {
			t.Fatalf("%q in pieces, %q as a whole", pieces, whole)
		}
		for _, s := range texts {
			if strings.Contains(whole, s) {
				t.Fatalf("%q has %q", whole, s)
			}
		}
	})
}

func TestHidden(t *testing.T) {
	key := "-----BEGIN KEY-----\nMIIEvQIBADAN\nAg==\n-----END KEY-----\n"
	got := hidden(key)
	want := []string{strings.TrimSpace(key), "-----BEGIN KEY-----", "MIIEvQIBADAN", "-----END KEY-----"}
	if strings.Join(got, "|") != strings.Join(want, "|") || hidden(" \n") != nil {
		t.Errorf("%q", got)
	}
}

// TestSecrets: no secret is in the output, in one piece or in two; half of one is no secret.
func TestSecrets(t *testing.T) {
	w := newWorld(t)
	w.Secrets = func(context.Context, string) (string, error) { return "pass word of maps\n", nil }
	job := of(workflow.Task{Shell: "bash", Secrets: map[string]string{"KEY": "archivist/tasks/maps/key"},
		Script: `echo "a $KEY b $ARCHIVIST_RUN_TOKEN" >&2
printf %s "${KEY:0:7}"; sleep .2; printf '%s\n' "${KEY:7}"
printf 'x%s' "${KEY:0:9}"; sleep .2; echo " other"
printf %s "${KEY:0:7}"`})
	w.expect(w.run(job), Succeeded, 0, "")
	if said := w.output("stderr"); said != "a ***\n b ***\n" {
		t.Errorf("it said %q", said)
	}
	if said := w.output("stdout"); said != "***\n\nxpass word other\npass wo" {
		t.Errorf("it said %q", said)
	}
}
