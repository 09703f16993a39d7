package correlate

import (
	"cmp"
	"math"
	"slices"

	"archivist/pkg/research/analysis"
)

// match is a place at which a clip may be.
type match struct {
	at    float64 // where it begins in the recording, in samples and parts of one
	score float64 // the normalised cross-correlation, 0 to 1
	hit   bool    // it is there
}

// verifier compares the whole clip with places of a recording. It is used for one place at a time.
type verifier struct {
	rec       *samples
	clip      *clip
	threshold float64   // the least score of a hit
	a, b      []float32 // a window of the clip, and of the recording
	parts     []part    // of the windows, summed up: part i is that of the windows before i
	fft       *fft      // of at least twice a window
	fa, fb    []complex64
}

// part is how a part of the clip is like the recording.
type part struct {
	cross    float64 // sum of the products
	clip     float64 // energy of the clip
	rec      float64 // energy of the recording
	variance float64 // that cross would have by chance
}

// newVerifier allocates what a verifier needs for all places. The last window can have almost twice
// the length of the others, for which the buffers have room.
func newVerifier(rec *samples, c *clip, threshold float64) *verifier {
	size := max(2*c.window, len(c.probe)+2)
	n := powerOfTwo(2 * c.window)
	return &verifier{
		rec:       rec,
		clip:      c,
		threshold: threshold,
		a:         make([]float32, size),
		b:         make([]float32, size),
		parts:     make([]part, len(c.windows)+1),
		fft:       newFFT(n),
		fa:        make([]complex64, n),
		fb:        make([]complex64, n),
	}
}

// verify says whether the clip begins at a sample of the recording. It refines the place, compares
// window by window, and takes the score of the whole. Only of what has the score are the parts
// looked at, which takes a transform for each window.
func (v *verifier) verify(at int64) (match, error) {
	shift, err := v.refine(at)
	if err != nil {
		return match{}, err
	}

	at += int64(math.Round(shift))
	err = v.each(at, func(i int, a, b []float32) {
		p := v.parts[i]
		v.parts[i+1] = part{
			cross: p.cross + cross(a, b),
			clip:  p.clip + v.clip.windows[i],
			rec:   p.rec + energy(b),
		}
	})
	if err != nil {
		return match{}, err
	}

	// The last part is the sum of all windows.
	all := v.parts[len(v.parts)-1]
	m := match{at: float64(at) + shift - math.Round(shift)}
	if all.rec > 0 {
		m.score = math.Abs(all.cross) / math.Sqrt(all.clip*all.rec)
	}

	if m.score < v.threshold {
		return m, nil
	}

	err = v.each(at, func(i int, a, b []float32) {
		v.parts[i+1].variance = v.parts[i].variance + v.variance(a, b)
	})

	if err != nil {
		return m, err
	}
	m.hit = v.complete()
	return m, nil
}

// refine is by how many samples the probe is moved against the recording: between -0.5 and 0.5. It
// correlates at the sample before, at and after the place. The least number under the root keeps
// silence from a division by 0.
func (v *verifier) refine(at int64) (float64, error) {
	probe := v.clip.probe
	x := v.a[:len(probe)+2]
	if err := v.rec.read(x, at+v.clip.from-1); err != nil {
		return 0, err
	}
	var like [3]float64
	for i := range like {
		like[i] = math.Abs(cross(probe, x[i:])) / math.Sqrt(energy(x[i:i+len(probe)])+1e-30)
	}
	return parabola(like[0], like[1], like[2]), nil
}

// each calls do with each window of the clip, and the recording at its place.
func (v *verifier) each(at int64, do func(i int, a, b []float32)) error {
	for i := range v.clip.windows {
		n, from := v.clip.length(i), int64(i)*int64(v.clip.window)
		a, b := v.a[:n], v.b[:n]
		if err := v.clip.read(a, from); err != nil {
			return err
		}
		if err := v.rec.read(b, at+from); err != nil {
			return err
		}
		do(i, a, b)
	}
	return nil
}

// variance is the mean square of the correlation of a and b at all shifts: what it is by chance,
// with what both have of each frequency. Of noise it is little, of two notes of one pitch much, of
// two of different pitch almost nothing.
func (v *verifier) variance(a, b []float32) float64 {
	clear(v.fa)
	clear(v.fb)
	for i := range a {
		v.fa[i], v.fb[i] = complex(a[i], 0), complex(b[i], 0)
	}

	v.fft.forward(v.fa)
	v.fft.forward(v.fb)
	var sum float64
	for i, x := range v.fa {
		y := v.fb[i]
		sum += float64(real(x)*real(x)+imag(x)*imag(x)) * float64(real(y)*real(y)+imag(y)*imag(y))
	}
	return sum / float64(len(v.fa)) / float64(len(a))
}

// pause is the energy of a pause in a clip, as a share of the mean: -30 dB. Nobody can tell whether
// a pause is there.
const pause = 1e-3

// complete says whether the clip is in every part: windows, two, four, … of them, up to half of the
// clip. In each is asked for half the loudness that the clip has as a whole; a part that is too
// quiet beneath the rest of the recording to decide is left out.
func (v *verifier) complete() bool {
	all := v.parts[len(v.parts)-1]
	// How loud the clip is in the recording; negative if it is inverted.
	gain := all.cross / all.clip
	count := len(v.parts) - 1
	for size := 1; size <= (count+1)/2; size *= 2 {
		// Parts of several windows overlap by half, so that no gap lies unseen between two of them.
		for from := 0; from+size <= count; from += max(1, size/2) {
			a, b := v.parts[from], v.parts[from+size]
			here := b.clip - a.clip
			if here < pause*all.clip*float64(size)/float64(count) {
				continue
			}
			// How much of the part is there, as energy of the clip, and three standard deviations
			// of what chance adds to that.
			there := (b.cross - a.cross) / gain
			doubt := 3 * math.Sqrt(b.variance-a.variance) / math.Abs(gain)
			if there+doubt < 0.5*here {
				return false
			}
		}
	}
	return true
}

// cross is the sum of the products. b has at least as many values as a.
func cross(a, b []float32) float64 {
	b = b[:len(a)]
	var sum float64
	for i, v := range a {
		sum += float64(v) * float64(b[i])
	}
	return sum
}

// hits are the best matches, at a distance from each other. Those of a place come together.
type hits struct {
	apart     float64 // samples
	best      []match // by place; up to twice as many as are kept, so that few cuts are made
	truncated bool    // some were left out
}

// add keeps a match, or the better of it and the one before at the same place. Matches come ordered
// by place.
func (h *hits) add(m match) {
	if n := len(h.best); n > 0 && m.at-h.best[n-1].at < h.apart {
		if m.score > h.best[n-1].score {
			h.best[n-1] = m
		}
		return
	}
	h.best = append(h.best, m)
	if len(h.best) >= 2*analysis.MaxHits {
		h.cut()
	}
}

// cut leaves the best analysis.MaxHits, ordered by time. Of equal scores the earlier is kept, so
// that a result is the same each time.
func (h *hits) cut() {
	if len(h.best) <= analysis.MaxHits {
		return
	}
	h.truncated = true
	slices.SortFunc(h.best, func(a, b match) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.at, b.at))
	})
	h.best = h.best[:analysis.MaxHits]
	slices.SortFunc(h.best, func(a, b match) int { return cmp.Compare(a.at, b.at) })
}

// sorted are the hits that are kept, ordered by time.
func (h *hits) sorted() []match {
	h.cut()
	return h.best
}
