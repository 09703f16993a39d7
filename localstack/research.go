package localstack

import (
	"fmt"
	"os"
	"path/filepath"

	"archivist/pkg/formats/audio/audiotest"
)

// ResearchProject is the research project of the local deployment, and ResearchTimes are its times.
const (
	ResearchProject = "demo"
	ResearchTimes   = "lease=5m,queue=2m,extension=5m"
)

// MaxInFlight is how many jobs run at once locally, on the local AWS and in the demo.
const MaxInFlight = 20

// ResearchSample is episodes and clips whose hits are known. All of it follows from its sizes: the same numbers
// are the same sounds.
type ResearchSample struct {
	Episodes []*audiotest.Set // all have the same clips
}

// Sizes of the sample, in seconds.
const (
	sampleRate = 8000
	clipOf     = 1.5
	slotOf     = 2.0 // of an episode; in each at most one clip is hidden
)

// NewResearchSample makes episodes of slots of two seconds of speech, noise and tones, and clips of speech, melodies
// and noise. About a third of the clips are hidden in each episode, some of them twice, as there is room: 3 to 9 dB
// louder than the speech over which they lie.
func NewResearchSample(episodes, clips, slots int) *ResearchSample {
	s := &ResearchSample{}
	var all [][]float32
	for k := range clips {
		all = append(all, sampleClip(uint64(k)))
	}

	for e := range episodes {
		n := int(slotOf * sampleRate * float64(slots))
		set := &audiotest.Set{
			Rate:      sampleRate,
			Recording: audiotest.Speech(uint64(1000+e), sampleRate, n),
			Clips:     all,
		}

		tone := audiotest.Tone(sampleRate, n, 110*float64(1+e%7))
		for i, v := range audiotest.Noise(uint64(2000+e), n) {
			set.Recording[i] += v/4 + tone[i]/20
		}

		hideClips(set, e, slots)
		s.Episodes = append(s.Episodes, set)
	}
	return s
}

// sampleClip is the clip of a number: speech, a melody or noise in turn.
func sampleClip(k uint64) []float32 {
	n := int(clipOf * sampleRate)
	switch k % 3 {
	case 0:
		return audiotest.Speech(3000+k, sampleRate, n)
	case 1:
		return audiotest.Melody(3000+k, sampleRate, n)
	}
	return audiotest.Noise(3000+k, n)
}

// hideClips puts clips into the slots of an episode, until there are no more of these. The gain is that of the
// clip against what is there.
func hideClips(set *audiotest.Set, e, slots int) {
	slot := 0
	for k := range set.Clips {
		times := 0
		if (e+k)%3 == 0 {
			times = 1 + (e+k)/3%2
		}

		for range times {
			if slot == slots {
				return
			}
			at := int(slotOf*sampleRate)*slot + 13*e + 7*k // within the slot, which is half a second longer
			set.Mix(audiotest.Hidden{Clip: k, At: at, GainDB: 3 + float64((e+2*k)%7)})
			slot++
		}
	}
}

// Write writes the recordings to a folder, as WAV: episode-1.wav, clip-1.wav and so on.
func (s *ResearchSample) Write(folder string) error {
	err := os.MkdirAll(folder, 0o755)
	if err != nil {
		return err
	}

	for e, set := range s.Episodes {
		err = audiotest.WriteWAV(filepath.Join(folder, EpisodeName(e)+".wav"), set.Rate,
			set.Recording)
		if err != nil {
			return err
		}
	}

	for k, clip := range s.Episodes[0].Clips {
		err = audiotest.WriteWAV(filepath.Join(folder, ClipName(k)+".wav"), sampleRate, clip)
		if err != nil {
			return err
		}
	}
	return nil
}

// EpisodeName is the name of an episode, counted from 0, and its stable id.
func EpisodeName(e int) string { return fmt.Sprintf("episode-%d", e+1) }

// ClipName is that of a clip.
func ClipName(k int) string { return fmt.Sprintf("clip-%d", k+1) }

// Tolerance is how far a hit may be from where the clip was hidden, in nanoseconds: a millisecond, eight
// samples.
const Tolerance = 1_000_000

// Compare compares the hits that were found for a pair, in nanoseconds and ordered, with where the clip was
// hidden. worst is the largest difference. The error is another number of hits, or one that is too far off.
func (s *ResearchSample) Compare(e, k int, found []int64) (worst int64, err error) {
	truth := s.Episodes[e].Of(k)
	if len(found) != len(truth) {
		return 0, fmt.Errorf("%s in %s: found %v, hidden at %v", ClipName(k), EpisodeName(e), found, truth)
	}

	for i, at := range found {
		d := max(at-truth[i], truth[i]-at)
		if d > Tolerance {
			return d, fmt.Errorf("%s in %s: found at %d ns, hidden at %d ns", ClipName(k),
				EpisodeName(e), at, truth[i])
		}
		worst = max(worst, d)
	}
	return worst, nil
}
