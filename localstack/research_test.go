package localstack

import (
	"path/filepath"
	"testing"

	"archivist/pkg/research/analysis/shipped"
)

// TestResearchSample: the analysis finds what is hidden in the sample, and nothing else.
func TestResearchSample(t *testing.T) {
	for _, slots := range []int{5, 6} { // of the end-to-end tests, and of make research
		checkSample(t, NewResearchSample(20, 10, slots))
	}
}

func checkSample(t *testing.T, s *ResearchSample) {
	dir := t.TempDir()
	if err := s.Write(dir); err != nil {
		t.Fatal(err)
	}
	hits, worst := 0, int64(0)
	for e := range s.Episodes {
		path := filepath.Join(dir, EpisodeName(e)+".wav")
		session, err := shipped.Analyses["correlation"].Open(t.Context(), path, nil)
		if err != nil {
			t.Fatal(err)
		}
		for k := range s.Episodes[e].Clips {
			found, err := session.Clip(t.Context(), filepath.Join(dir, ClipName(k)+".wav"), nil)
			if err != nil {
				t.Fatal(err)
			}
			var at []int64
			for _, h := range found.Hits {
				at = append(at, h.Offset)
			}
			off, err := s.Compare(e, k, at)
			if err != nil {
				t.Error(err)
			}
			hits, worst = hits+len(at), max(worst, off)
		}
		if err := session.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d hits, at most %d ns off", hits, worst)
	if hits < 10 {
		t.Errorf("only %d clips are hidden", hits)
	}
}
