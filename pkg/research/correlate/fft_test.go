package correlate

import (
	"fmt"
	"math"
	"math/cmplx"
	"math/rand/v2"
	"testing"
)

// The spectrum has the values of the definition, in some order; and back it is the signal.
func TestFFT(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{2, 4, 8, 16, 64, 128, 512} {
		x := make([]complex64, n)
		for i := range x {
			x[i] = complex(float32(r.NormFloat64()), float32(r.NormFloat64()))
		}
		f, got := newFFT(n), append([]complex64(nil), x...)
		f.forward(got)
		left := append([]complex64(nil), got...)
		for k := range n {
			var want complex128
			for i, v := range x {
				want += complex128(v) * cmplx.Rect(1, -2*math.Pi*float64(k*i)/float64(n))
			}
			nearest := 0
			for i, v := range left {
				if cmplx.Abs(complex128(v)-want) < cmplx.Abs(complex128(left[nearest])-want) {
					nearest = i
				}
			}
			if cmplx.Abs(complex128(left[nearest])-want) > 1e-4 {
				t.Fatalf("%d: frequency %d is %v, the nearest value is %v", n, k, want, left[nearest])
			}
			left = append(left[:nearest], left[nearest+1:]...)
		}
		f.backward(got)
		for i, v := range got {
			if cmplx.Abs(complex128(v)/complex(float64(n), 0)-complex128(x[i])) > 1e-5 {
				t.Fatalf("%d: there and back sample %d is %v, was %v", n, i, v/complex(float32(n), 0), x[i])
			}
		}
	}
}

func BenchmarkFFT(b *testing.B) {
	for _, n := range []int{1 << 14, 1 << 15, 1 << 16, 1 << 17, 1 << 18} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			f, x := newFFT(n), make([]complex64, n)
			for b.Loop() {
				f.forward(x)
				clear(x)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(2*n), "ns/sample")
		})
	}
}
