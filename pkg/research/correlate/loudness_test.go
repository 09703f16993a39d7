package correlate_test

import (
	"crypto/sha256"
	"fmt"
	"testing"

	"archivist/pkg/research/analysis"
)

// TestLoudness: each part has its loudest sample, whatever its sign; a recording has at most so
// many parts, and the last one is not forgotten.
func TestLoudness(t *testing.T) {
	for _, seconds := range []int{1, 30, 61} {
		samples := make([]float32, seconds*8000)
		for i := range samples {
			samples[i] = 0.25
		}
		samples[len(samples)/2] = -0.75
		samples[len(samples)-1] = 1
		peaks := open(t, wav(t, 8000, samples)).Loudness()
		parts := min(20*seconds, analysis.MaxPeaks)
		if len(peaks) != parts || peaks[0] != 64 || peaks[parts/2] != 191 || peaks[parts-1] < 254 {
			t.Errorf("%d s: %v", seconds, peaks)
		}
	}
}

// TestLoudnessIsTheSame: that of an MP3, which is resampled, is the same bytes as ever, on every
// machine.
func TestLoudnessIsTheSame(t *testing.T) {
	const want = "325d73eebd1850e308538dd1bf9ec27e7949559c13b834b9bcebd877e83c9186"
	peaks := open(t, "testdata/episode.mp3").Loudness()
	if is := fmt.Sprintf("%x", sha256.Sum256(peaks)); is != want {
		t.Errorf("%d peaks have the digest %s", len(peaks), is)
	}
}
