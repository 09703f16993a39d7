package audiotest

import (
	"fmt"
	"math"
)

// Hidden is where a clip was put into a recording.
type Hidden struct {
	Clip   int     // its number in Set.Clips
	At     int     // the sample of the recording at which it begins
	GainDB float64 // by which it was made louder
	Kind   string  // what makes it hard to find
}

// Nanoseconds is when the clip begins.
func (h Hidden) Nanoseconds(rate int) int64 {
	return int64(math.Round(float64(h.At) / float64(rate) * 1e9))
}

// Set is a recording, and clips that are in it or not. Recording and clips have the same
// rate, and samples in [-1, 1].
type Set struct {
	Rate      int
	Recording []float32
	Clips     [][]float32
	Truth     []Hidden // ordered by At within each clip
}

// NewSet makes a recording of so many seconds (at least 40), of speech over a quiet noise, and 8
// clips of 1.5 to 4 s: five of speech, two melodies, and one of noise. The last speech and the
// last melody are not in the recording.
//
// Hidden are: one at the start and one at the end; one with +12 dB, one with -12 dB; one with
// as much noise as clip (0 dB), one over other speech as loud as it (0 dB); two that overlap
// by half; one three times. Of the first melody the first half is there too, followed by
// something else: that is no hit. The recording is then made as loud as possible, with a peak
// of 0.9.
func NewSet(seed uint64, rate, seconds int) *Set {
	s := &Set{Rate: rate, Recording: Speech(seed, rate, seconds*rate)}
	for i := range 5 {
		s.Clips = append(s.Clips, Speech(seed<<8+uint64(i)+1, rate, (15+5*i)*rate/10))
	}

	s.Clips = append(s.Clips, Melody(seed<<8+6, rate, 3*rate), Melody(seed<<8+7, rate, 2*rate),
		Noise(seed<<8+8, 2*rate))
	s.hide(rate)
	for i, v := range Noise(seed<<8+99, len(s.Recording)) {
		s.Recording[i] += v * 0.01
	}

	peak := float32(0)
	for _, v := range s.Recording {
		peak = max(peak, v, -v)
	}

	for i := range s.Recording {
		s.Recording[i] *= 0.9 / peak
	}
	return s
}

// hide puts the clips into the recording, each after the ones before. Times are for 40 s, and
// stretched with the recording. Some samples are added to them, so that no clip begins at a
// multiple of a frame.
func (s *Set) hide(rate int) {
	at := func(seconds float64) int {
		return int(seconds * float64(rate) * float64(len(s.Recording)) / float64(40*rate))
	}

	s.Put(Hidden{0, 0, 0, "at the start"})
	s.Put(Hidden{1, at(3) + 7, 12, "+12 dB"})
	s.Put(Hidden{2, at(6.5) + 3, -12, "-12 dB"})
	s.Put(Hidden{3, at(10) + 1, 0, "noise at 0 dB"})
	s.noise(at(10)+1, len(s.Clips[3]))
	s.Mix(Hidden{5, at(14) + 2, 0, "over speech at 0 dB"})
	s.Put(Hidden{0, at(18) + 5, -3, "overlap"})
	s.Mix(Hidden{7, at(18) + 5 + len(s.Clips[0])/2, 5, "overlap"})
	s.Put(Hidden{2, at(23) + 9, 6, "several"})
	s.Put(Hidden{2, at(26) + 4, 3, "several"})
	half := s.Clips[5][:len(s.Clips[5])/2]
	copy(s.Recording[at(30):], half)
	copy(s.Recording[at(30)+len(half):], level(Melody(4711, rate, len(half)), RMS(half)))
	s.Put(Hidden{3, at(34) + 8, -6, "several"})
	s.Put(Hidden{0, len(s.Recording) - len(s.Clips[0]), 0, "at the end"})
}

// Put hides a clip in place of what was there.
func (s *Set) Put(h Hidden) {
	clear(s.Recording[h.At : h.At+len(s.Clips[h.Clip])])
	s.Mix(h)
}

// Mix hides a clip over what is there. The sum may be louder than 1; NewSet corrects that at
// the end.
func (s *Set) Mix(h Hidden) {
	clip := s.Clips[h.Clip]
	if h.At < 0 || h.At+len(clip) > len(s.Recording) {
		panic(fmt.Sprintf("clip %d at %d is not within the recording", h.Clip, h.At))
	}
	gain := float32(math.Pow(10, h.GainDB/20))
	for i, v := range clip {
		s.Recording[h.At+i] += gain * v
	}
	s.Truth = append(s.Truth, h)
}

// noise adds as much noise as there is of other sound, most of it below 2.5 kHz as that is.
func (s *Set) noise(at, n int) {
	part, noise := s.Recording[at:at+n], Noise(uint64(at), n)
	resonate(noise, s.Rate, 1000, 3000)
	for i, v := range level(noise, RMS(part)) {
		part[i] += v
	}
}

// Of are the times, in nanoseconds, at which a clip begins. They are in order; nil if the
// clip is not in the recording.
func (s *Set) Of(clip int) []int64 {
	var out []int64
	for _, h := range s.Truth {
		if h.Clip == clip {
			out = append(out, h.Nanoseconds(s.Rate))
		}
	}
	return out
}
