package correlate

import (
	"context"
	"math"
)

// edge is how far before the start and after the end of a recording a clip may reach, in seconds:
// an MP3 file that does not say how late its encoder was begins up to 50 ms late.
const edge = 0.05

// search calls found with each place of the recording at which the clip may begin, in samples,
// ordered; each is a peak of the correlation with the clip's probe. A place may be a bit before the
// start of the recording. An error of found ends the search. Between two pairs of blocks it looks
// whether ctx has ended.
//
// Two blocks are transformed at once, as real and imaginary part; the next two begin where the
// results of these end (overlap-save; Oppenheim, Schafer, 8.7).
func search(ctx context.Context, rec *samples, c *clip, set Settings, found func(at int64) error,
	progress func(part float64)) error {
	margin := int64(edge * float64(set.Rate))
	first, last := c.from-margin, c.from+rec.n-c.n+margin // of the probe
	s := newSearcher(c, set.Threshold)
	p := &peaks{apart: max(c.n/8, int64(set.Rate)/50),
		found: func(at int64) error { return found(at - c.from) }}
	for at := first; at <= last; at += 2 * int64(s.step) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := s.block(rec, at); err != nil {
			return err
		}
		if err := s.peaks(at, last, p); err != nil {
			return err
		}
		progress(float64(min(at+2*int64(s.step)-first, last+1-first)) / float64(last+1-first))
	}
	return p.end()
}

// searcher correlates blocks.
type searcher struct {
	fft    *fft
	probe  []complex64  // spectrum, conjugate: a product with it is a correlation
	size   int          // of the probe, in samples
	step   int          // results of a block
	blocks [2][]float32 // of the recording; the second begins step samples after the first
	buf    []complex64  // both: the first as real, the second as imaginary part
	least  float64      // least square of a correlation in buf, at the energy 1
}

// newSearcher prepares the probe's spectrum, once for a search.
func newSearcher(c *clip, threshold float64) *searcher {
	// Three quarters of each transform are results.
	n := max(powerOfTwo(4*len(c.probe)), 1<<14)
	s := &searcher{
		fft:   newFFT(n),
		probe: make([]complex64, n),
		size:  len(c.probe),
		step:  n - len(c.probe) + 1,
		buf:   make([]complex64, n),
	}

	for i, v := range c.probe {
		s.probe[i] = complex(v, 0)
	}

	s.fft.forward(s.probe)
	for i, v := range s.probe {
		s.probe[i] = complex(real(v), -imag(v))
	}

	s.blocks[0], s.blocks[1] = make([]float32, n), make([]float32, n)
	// A part of the clip may be less like the recording than the whole. backward returns results
	// times n. Squares are compared, so that no root is taken of each sample.
	least := 0.8 * threshold * float64(n)
	s.least = least * least * c.energy
	return s
}

// block correlates the recording from at on, for 2*step results, which are in buf.
func (s *searcher) block(rec *samples, at int64) error {
	a, b := s.blocks[0], s.blocks[1]
	if err := rec.read(a, at); err != nil {
		return err
	}

	if err := rec.read(b, at+int64(s.step)); err != nil {
		return err
	}

	for i := range s.buf {
		s.buf[i] = complex(a[i], b[i])
	}

	s.fft.forward(s.buf)
	for i, y := range s.probe {
		x := s.buf[i]
		s.buf[i] = complex(real(x)*real(y)-imag(x)*imag(y), real(x)*imag(y)+imag(x)*real(y))
	}

	s.fft.backward(s.buf)
	return nil
}

// peaks passes on what is like the probe, up to last. The energy of the recording under the probe
// is moved on from sample to sample: what comes in is added, what goes out is subtracted; it is
// summed anew for each block, so that errors of rounding do not add up.
func (s *searcher) peaks(at, last int64, p *peaks) error {
	for half, x := range s.blocks {
		from := at + int64(half*s.step)
		sum := energy(x[:s.size])
		for i := range s.step {
			if from+int64(i) > last {
				return nil
			}

			v := float64(real(s.buf[i]))
			if half == 1 {
				v = float64(imag(s.buf[i]))
			}

			if square := v * v; square > s.least*sum && sum > s.quiet() {
				if err := p.add(from+int64(i), square/sum); err != nil {
					return err
				}
			}

			if i+s.size < len(x) {
				in, out := float64(x[i+s.size]), float64(x[i])
				sum += in*in - out*out
			}
		}
	}
	return nil
}

// quiet is the energy of a window of the recording in which there is nothing: a hundredth of the
// energy that counts as silence. A quotient of two such numbers would be chance.
func (s *searcher) quiet() float64 { return silence * silence / 100 * float64(s.size) }

// peaks are the largest of values that come in order, each at a distance from the others: so that
// each sample of one peak is not verified.
type peaks struct {
	apart int64                // samples
	found func(at int64) error // is called with each peak
	at    int64                // of the largest value since the last peak
	value float64              // of it; 0: none
}

// add adds a value at a place that is not before the last one.
func (p *peaks) add(at int64, value float64) error {
	if p.value > 0 && at-p.at >= p.apart {
		if err := p.end(); err != nil {
			return err
		}
	}
	if value > p.value {
		p.at, p.value = at, value
	}
	return nil
}

// end passes the last peak on.
func (p *peaks) end() error {
	if p.value == 0 {
		return nil
	}
	p.value = 0
	return p.found(p.at)
}

// parabola is where the parabola through three values, at -1, 0 and 1, has its peak: between -0.5
// and 0.5, because the one in the middle is taken to be the largest; 0 if it has none.
func parabola(before, at, after float64) float64 {
	bend := before - 2*at + after
	if bend >= 0 {
		return 0
	}
	return math.Max(-0.5, math.Min(0.5*(before-after)/bend, 0.5))
}
