// Package audiotest makes recordings whose contents are known: tones, noise, signals like speech,
// and clips that are hidden in them at known times, with a gain and beneath noise. The same seed
// makes the same samples.
//
//	set := audiotest.NewSet(1, 44100, 60)
//	err := audiotest.WriteWAV("episode.wav", set.Rate, set.Recording)
//	for _, hidden := range set.Truth { … } // which clip begins at which sample
package audiotest

import (
	"math"
	"math/rand/v2"
)

// random is the source of chance of a seed.
func random(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15)) }

// Tone is n samples of a sine of hz at the given rate, with an amplitude of 0.5. It begins
// with 0.
func Tone(rate, n int, hz float64) []float32 {
	out := make([]float32, n)
	for i := range out {
		out[i] = float32(0.5 * math.Sin(2*math.Pi*hz*float64(i)/float64(rate)))
	}
	return out
}

// Noise is n samples of white noise with an RMS of 0.1.
func Noise(seed uint64, n int) []float32 {
	r, out := random(seed), make([]float32, n)
	for i := range out {
		out[i] = float32(0.1 * r.NormFloat64())
	}
	return out
}

// Melody is n samples of notes of 0.1 to 0.4 s, each with overtones that fade, like a jingle. Its
// RMS is 0.1.
func Melody(seed uint64, rate, n int) []float32 {
	r, out := random(seed), make([]float32, n)
	for at := 0; at < n; {
		length := int((0.1 + 0.3*r.Float64()) * float64(rate))
		hz := 220 * math.Pow(2, float64(r.IntN(25))/12)
		for i := 0; i < length && at+i < n; i++ {
			t, v := float64(i)/float64(rate), 0.0
			for k := 1.0; k <= 5 && k*hz < float64(rate)/2; k++ {
				v += math.Sin(2*math.Pi*k*hz*t) * math.Exp(-3*k*t) / k
			}
			out[at+i] = float32(v)
		}
		at += length
	}
	return level(out, 0.1)
}

// vowels are the first three formants of vowels, in Hz (Peterson and Barney, 1952, men).
var vowels = [][3]float64{{270, 2290, 3010}, {530, 1840, 2480}, {660, 1720, 2410}, {730, 1090, 2440}, {570, 840, 2410},
	{300, 870, 2240}, {640, 1190, 2390}, {490, 1350, 1690}}

// Speech is n samples like speech: sounds of 50 to 200 ms, most of them pulses in the rhythm of a
// voice through the formants of a vowel, others hissing; between them pauses. Its RMS is 0.1.
func Speech(seed uint64, rate, n int) []float32 {
	r, out := random(seed), make([]float32, n)
	voice := 90 + 110*r.Float64()
	for at := 0; at < n; {
		length := min(int((0.05+0.15*r.Float64())*float64(rate)), n-at)
		sound := out[at : at+length]
		switch kind := r.Float64(); {
		case kind < 0.15: // a pause
		case kind < 0.3:
			hiss(r, sound, rate)
		default:
			vowel(r, sound, rate, voice*(0.8+0.4*r.Float64()))
		}
		at += length
	}
	return level(out, 0.1)
}

// vowel fills out with pulses of a pitch that slides, through the resonances of a vowel.
// pitch is in Hz at the beginning.
func vowel(r *rand.Rand, out []float32, rate int, pitch float64) {
	slide, phase := 0.8+0.4*r.Float64(), 1.0
	for i := range out {
		phase += pitch * (1 + (slide-1)*float64(i)/float64(len(out))) / float64(rate)
		if phase >= 1 {
			phase -= 1
			out[i] = float32(1 + 0.1*r.NormFloat64())
		}
	}
	formants := vowels[r.IntN(len(vowels))]
	for _, hz := range formants {
		resonate(out, rate, hz*(0.95+0.1*r.Float64()), 60+0.04*hz)
	}
	fade(level(out, 0.05+0.1*r.Float64()), rate)
}

// hiss fills out with noise around 2.5 to 6 kHz.
func hiss(r *rand.Rand, out []float32, rate int) {
	for i := range out {
		out[i] = float32(r.NormFloat64())
	}
	resonate(out, rate, min(2500+3500*r.Float64(), 0.45*float64(rate)), 800)
	fade(level(out, 0.02+0.03*r.Float64()), rate)
}

// resonate filters x by a resonance at hz of the given bandwidth (Klatt, 1980). It works in
// place, with a gain of 1 at 0 Hz.
func resonate(x []float32, rate int, hz, bandwidth float64) {
	t := 1 / float64(rate)
	c := -math.Exp(-2 * math.Pi * bandwidth * t)
	b := 2 * math.Exp(-math.Pi*bandwidth*t) * math.Cos(2*math.Pi*hz*t)
	a := 1 - b - c
	y1, y2 := 0.0, 0.0
	for i, v := range x {
		y := a*float64(v) + b*y1 + c*y2
		x[i], y1, y2 = float32(y), y, y1
	}
}

// fade begins and ends x softly, in 5 ms.
func fade(x []float32, rate int) {
	n := min(rate/200, len(x)/2)
	for i := range n {
		gain := float32(i) / float32(n)
		x[i] *= gain
		x[len(x)-1-i] *= gain
	}
}

// level gives x an RMS, and returns it. Silence stays silence.
func level(x []float32, rms float64) []float32 {
	if now := RMS(x); now > 0 {
		for i := range x {
			x[i] *= float32(rms / now)
		}
	}
	return x
}

// RMS is the root of the mean square of x. It is 0 for no samples.
func RMS(x []float32) float64 {
	var sum float64
	for _, v := range x {
		sum += float64(v) * float64(v)
	}
	return math.Sqrt(sum / float64(max(len(x), 1)))
}
