package correlate

import (
	"context"
	"flag"
	"path/filepath"
	"testing"

	"archivist/pkg/formats/audio/audiotest"
)

var minutes = flag.Int("minutes", 1, "how long the recordings are in which nothing is to be found; 60 take minutes")

// The best score of clips that are not in a recording, before and after the question whether the whole clip is there:
// why the threshold is 0.5. Measured with -minutes 60 (bench/RESULTS.md).
func TestFalsePeaks(t *testing.T) {
	const rate = 8000
	kinds := []struct {
		name string
		make func(seed uint64, n int) []float32
	}{
		{"speech", func(seed uint64, n int) []float32 { return audiotest.Speech(seed, rate, n) }},
		{"melody", func(seed uint64, n int) []float32 { return audiotest.Melody(seed, rate, n) }},
		{"noise", audiotest.Noise},
	}
	dir := t.TempDir()
	for _, in := range kinds {
		path := filepath.Join(dir, in.name)
		if err := audiotest.WriteWAV(path, rate, in.make(1, *minutes*60*rate)); err != nil {
			t.Fatal(err)
		}
		set := Settings{Threshold: 0.2, Rate: rate}
		s, err := Open(context.Background(), path, set)
		if err != nil {
			t.Fatal(err)
		}
		for _, of := range kinds {
			for _, tenths := range []int{5, 10, 20, 40} {
				var peak, hit float64
				for seed := range uint64(2) {
					clip := filepath.Join(dir, "clip")
					if err := audiotest.WriteWAV(clip, rate, of.make(100+seed, tenths*rate/10)); err != nil {
						t.Fatal(err)
					}
					p, h := s.falsePeaks(t, clip)
					peak, hit = max(peak, p), max(hit, h)
				}
				t.Logf("%s of %.1f s in %d min of %s: best peak %.3f, best hit %.3f", of.name, float64(tenths)/10,
					*minutes, in.name, peak, hit)
				// Two or three notes of one instrument are what other melodies have too.
				same := in.name == "melody" && of.name == "melody" && tenths < 20
				if hit >= 0.5 && !same {
					t.Errorf("a hit with the score %.3f where nothing is", hit)
				}
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// falsePeaks are the best scores of all peaks, and of those that are hits.
func (s *Session) falsePeaks(t *testing.T, path string) (peak, hit float64) {
	ctx := context.Background()
	c, err := openClip(ctx, path, s.settings.Rate)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	v := newVerifier(s.recording, c, 0)
	err = search(ctx, s.recording, c, Settings{Threshold: 0.2, Rate: s.settings.Rate}, func(at int64) error {
		m, err := v.verify(at)
		peak = max(peak, m.score)
		if m.hit {
			hit = max(hit, m.score)
		}
		return err
	}, func(float64) {})
	if err != nil {
		t.Fatal(err)
	}
	return peak, hit
}
