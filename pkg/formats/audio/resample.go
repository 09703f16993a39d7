package audio

import (
	"io"
	"math"
)

// A resampler is a low-pass filter that is evaluated only where an output sample is (polyphase):
// a sinc in a Kaiser window (Oppenheim, Schafer: Discrete-Time Signal Processing, 7.5). It is
// symmetric around the time of the output, so nothing is shifted. The pass band ends at 90 % of
// the lower of the two Nyquist frequencies, and what is folded back into it is 80 dB below
// (stopBand, TestResampler). Interpolating libraries fold back audible parts of it.
const (
	stopBand = 80.0 // dB
	passBand = 0.9  // of the Nyquist frequency
)

// Positions are whole numbers, so that nothing drifts however long the file is.
type resampler struct {
	src      decoder
	up, down int         // output sample n is at the time n * down/up of the input
	half     int         // of the filter, in input samples
	phases   [][]float32 // the filter for each fraction of an input sample, 2*half long
	buf      []float32   // input from start on
	// start is the number of the first input sample in buf. It begins negative: before the
	// file is silence.
	start int
	count int  // how many input samples there were
	next  int  // number of the next output sample
	end   bool // the input has ended
	block []float32
}

// newResampler makes the filters of all phases: the length and beta follow from the stop band
// and the width between the bands by Kaiser's formulas.
func newResampler(src decoder, from, to int) *resampler {
	g := gcd(from, to)
	r := &resampler{src: src, up: to / g, down: from / g, block: make([]float32, 1<<14)}
	low := float64(min(from, to)) / 2
	// Both bands end at the same distance from the Nyquist frequency; frequencies are in input
	// samples.
	width := 2 * (1 - passBand) * low / float64(from)
	r.half = int(math.Ceil((stopBand-7.95)/(14.36*width)/2)) + 1
	beta := 0.1102 * (stopBand - 8.7)
	cut := low / float64(from)
	r.phases = make([][]float32, r.up)
	taps := make([]float32, r.up*2*r.half)
	for p := range r.phases {
		r.phases[p] = taps[p*2*r.half : (p+1)*2*r.half]
		fill(r.phases[p], float64(p)/float64(r.up), 2*cut, beta)
	}

	r.start = -(r.half - 1)
	r.buf = make([]float32, r.half-1)
	return r
}

// fill makes the filter for an output that is at frac after the input sample in the middle. Its
// sum is 1.
func fill(taps []float32, frac, cut, beta float64) {
	half, sum := len(taps)/2, 0.0
	values := make([]float64, len(taps))
	for i := range values {
		x := float64(i-(half-1)) - frac
		w := 1 - x*x/float64(half*half)
		values[i] = float64(cut * sinc(cut*x) * bessel(beta*math.Sqrt(max(w, 0))))
		sum += values[i]
	}
	for i, v := range values {
		taps[i] = float32(v / sum)
	}
}

// sinc is sin(πx) / πx.
func sinc(x float64) float64 {
	if x == 0 {
		return 1
	}
	return math.Sin(math.Pi*x) / (math.Pi * x)
}

// bessel is the modified Bessel function of order 0, by its series.
func bessel(x float64) float64 {
	sum, term := 1.0, 1.0
	for k := 1; term > sum*1e-12; k++ {
		term = float64(term * (x * x / 4 / float64(k*k)))
		sum += term
	}
	return sum
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// read gives the next output samples, as many as fit, and io.EOF where the input ends.
func (r *resampler) read(buf []float32) (int, error) {
	for i := range buf {
		at, phase := r.next*r.down/r.up, r.next*r.down%r.up
		if err := r.need(at + r.half + 1); err != nil {
			return i, err
		}
		if at >= r.count {
			return i, io.EOF
		}
		from := at - (r.half - 1) - r.start
		buf[i] = dot(r.phases[phase], r.buf[from:from+2*r.half])
		r.next++
	}
	return len(buf), nil
}

// need reads input until there are the samples before end, those after the file as silence.
func (r *resampler) need(end int) error {
	if r.start+len(r.buf) >= end {
		return nil
	}

	// What no later output needs is forgotten.
	used := r.next*r.down/r.up - (r.half - 1) - r.start
	r.buf = append(r.buf[:0], r.buf[min(used, len(r.buf)):]...)
	r.start += used
	for r.start+len(r.buf) < end {
		if r.end {
			r.buf = append(r.buf, make([]float32, 2*r.half)...)
			continue
		}
		n, err := r.src.read(r.block)
		r.buf = append(r.buf, r.block[:n]...)
		r.count += n
		if err == io.EOF {
			r.end = true
		} else if err != nil {
			return err
		}
	}
	return nil
}

// dot is the scalar product, in four sums that do not wait for each other. The conversions keep a
// processor from fusing a product with a sum, which rounds otherwise: all machines give the same
// samples.
func dot(a, b []float32) float32 {
	b = b[:len(a)]
	var s0, s1, s2, s3 float32
	i := 0
	for ; i+4 <= len(a); i += 4 {
		x, y := a[i:i+4:i+4], b[i:i+4:i+4]
		s0 += float32(x[0] * y[0])
		s1 += float32(x[1] * y[1])
		s2 += float32(x[2] * y[2])
		s3 += float32(x[3] * y[3])
	}

	for ; i < len(a); i++ {
		s0 += float32(a[i] * b[i])
	}
	return s0 + s1 + s2 + s3
}
