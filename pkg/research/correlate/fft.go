package correlate

import "math"

// fft is the discrete Fourier transform of a length that is a power of two, in place. Its spectra
// are in an order of their own, which is enough to multiply two of them; so nothing is ever put
// into order.
//
// It is radix 4, decimated in frequency there and in time back (Oppenheim, Schafer: Discrete-Time
// Signal Processing, 9.3 and 9.4), depth first, so that small parts stay in the cache. The library
// gonum needs four times as long (bench/RESULTS.md): it works on numbers of 64 bits, and puts
// spectra into order.
type fft struct {
	size  int            // a power of two
	turns map[int][]turn // by length of the part; not changed later
}

// turn is what the second to fourth quarter are multiplied by: cosine and sine of one, two and
// three times an angle (twiddle factors). backward uses them conjugated.
type turn struct{ c1, s1, c2, s2, c3, s3 float32 }

// newFFT computes the factors of all lengths that a transform of this size has parts of. size is a
// power of two.
func newFFT(size int) *fft {
	f := &fft{size: size, turns: map[int][]turn{}}
	for n := size; n >= 4; n /= 4 {
		turns := make([]turn, n/4)
		for i := range turns {
			angle := func(k int) (float32, float32) {
				s, c := math.Sincos(-2 * math.Pi * float64(k*i%n) / float64(n))
				return float32(c), float32(s)
			}
			t := &turns[i]
			t.c1, t.s1 = angle(1)
			t.c2, t.s2 = angle(2)
			t.c3, t.s3 = angle(3)
		}

		f.turns[n] = turns
	}
	return f
}

// forward makes x its spectrum, in the order of this type. x has the size of the transform; the
// parts of x that it calls itself with have a quarter each. Butterflies are first, then the parts.
func (f *fft) forward(x []complex64) {
	n := len(x)
	if n == 2 {
		x[0], x[1] = x[0]+x[1], x[0]-x[1]
	}

	if n < 4 {
		return
	}

	q := n / 4
	x0, x1, x2, x3 := x[:q:q], x[q:2*q:2*q], x[2*q:3*q:3*q], x[3*q:n:n]
	for i, t := range f.turns[n] {
		a, b, c, d := x0[i], x1[i], x2[i], x3[i]
		sum, diff := a+c, a-c
		sum2, diff2 := b+d, b-d
		x0[i] = sum + sum2
		r, j := real(sum-sum2), imag(sum-sum2)
		x2[i] = complex(r*t.c2-j*t.s2, r*t.s2+j*t.c2)
		r, j = real(diff)+imag(diff2), imag(diff)-real(diff2)
		x1[i] = complex(r*t.c1-j*t.s1, r*t.s1+j*t.c1)
		r, j = real(diff)-imag(diff2), imag(diff)+real(diff2)
		x3[i] = complex(r*t.c3-j*t.s3, r*t.s3+j*t.c3)
	}

	if q > 1 {
		f.forward(x0)
		f.forward(x1)
		f.forward(x2)
		f.forward(x3)
	}
}

// backward makes a spectrum the signal again, times its length: it undoes forward step by step, the
// parts first.
func (f *fft) backward(x []complex64) {
	n := len(x)
	if n == 2 {
		x[0], x[1] = x[0]+x[1], x[0]-x[1]
	}

	if n < 4 {
		return
	}

	q := n / 4
	x0, x1, x2, x3 := x[:q:q], x[q:2*q:2*q], x[2*q:3*q:3*q], x[3*q:n:n]
	if q > 1 {
		f.backward(x0)
		f.backward(x1)
		f.backward(x2)
		f.backward(x3)
	}

	for i, t := range f.turns[n] {
		a := x0[i]
		r, j := real(x1[i]), imag(x1[i])
		b := complex(r*t.c1+j*t.s1, j*t.c1-r*t.s1)
		r, j = real(x2[i]), imag(x2[i])
		c := complex(r*t.c2+j*t.s2, j*t.c2-r*t.s2)
		r, j = real(x3[i]), imag(x3[i])
		d := complex(r*t.c3+j*t.s3, j*t.c3-r*t.s3)
		sum, diff := a+c, a-c
		sum2, diff2 := b+d, b-d
		x0[i] = sum + sum2
		x2[i] = sum - sum2
		x1[i] = complex(real(diff)-imag(diff2), imag(diff)+real(diff2))
		x3[i] = complex(real(diff)+imag(diff2), imag(diff)-real(diff2))
	}
}
