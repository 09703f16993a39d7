package boot

import (
	"strings"
	"testing"
	"time"

	"archivist/pkg/ingest"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/research"
)

// TestResearchTimes: what is not named is as in the default; times that do not go together, and other
// texts, are refused with what is expected.
func TestResearchTimes(t *testing.T) {
	got, err := ParseResearchTimes("")
	if err != nil || got != research.Default {
		t.Errorf("%+v, %v", got, err)
	}
	want := research.Default
	want.Lease, want.Queue, want.Extension, want.Presence = 75*time.Second, time.Minute, 30*time.Second, time.Hour
	got, err = ParseResearchTimes("lease=75s,queue=1m,extension=30s,presence=1h")
	if err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
	for text, says := range map[string]string{"lease": "NAME=DURATION", "lease=2": "NAME=DURATION",
		"pass=1m":       "the names",
		"lease=90500ms": "whole seconds", "queue=2h": "shorter than the lease", "queue=30s": "at least a minute",
		"presence=45s": "two renewals"} {
		_, err := ParseResearchTimes(text)
		if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestPassEnds: a pass of the assigner ends before its lease does, and a report that cannot be stored
// becomes a dead letter before it expires.
func TestPassEnds(t *testing.T) {
	for name, timing := range ingest.Timings {
		c := timing.Research()
		if c.Timeout >= research.Default.Pass || c.Budget >= c.Timeout || !c.Redrives() || c.DeadLetter <= c.Retention {
			t.Errorf("%s: %+v", name, c)
		}
	}
}
