package correlate

import (
	"context"
	"errors"

	"archivist/pkg/research/analysis"
)

// probeSeconds is how much of a clip is correlated with the whole recording. It bounds the memory,
// and the time: four seconds of speech have hundreds of independent values, so that chance does not
// make a score near the threshold.
const probeSeconds = 4

// windowSeconds is the shortest part of a clip of which is asked whether it is there
// (verifier.complete).
const windowSeconds = 0.5

// clip is what is looked for.
type clip struct {
	*samples
	rate    int       // samples per second
	probe   []float32 // the part with the most energy
	from    int64     // where it begins, in samples of the clip
	energy  float64   // of the probe
	window  int       // length in samples
	windows []float64 // energies of the whole clip, window by window
}

// openClip decodes a clip and chooses its probe. The caller closes it. It returns a
// *analysis.Rejected if the clip can never be found.
func openClip(ctx context.Context, path string, rate int) (*clip, error) {
	s, err := load(ctx, path, rate, analysis.Clip)
	if err != nil {
		return nil, err
	}
	c := &clip{samples: s, rate: rate, window: int(windowSeconds * float64(rate))}
	if err := errors.Join(c.split(), c.choose()); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return c, nil
}

// split measures the windows. The last is longer: a rest would say little. A short clip has two.
func (c *clip) split() error {
	if int64(2*c.window) > c.n {
		c.window = int(c.n / 2)
	}

	buf := make([]float32, 2*c.window)
	for i := range int(c.n) / c.window {
		part := buf[:c.length(i)]
		if err := c.read(part, int64(i)*int64(c.window)); err != nil {
			return err
		}
		c.windows = append(c.windows, energy(part))
	}
	return nil
}

// length is that of window i, in samples.
func (c *clip) length(i int) int {
	if count := int(c.n) / c.window; i == count-1 {
		return int(c.n) - i*c.window
	}
	return c.window
}

// choose reads the part that is looked for first: as many windows in a row as there are in the
// probe, with the most energy. A quiet part would be like every other quiet part.
func (c *clip) choose() error {
	size := min(c.n, int64(probeSeconds*c.rate))
	count := max(1, int(size)/c.window)
	// The sum of the energies of count windows is moved on from window to window.
	best, sum, from := 0.0, 0.0, 0
	for i, w := range c.windows {
		sum += w
		if i >= count {
			sum -= c.windows[i-count]
		}
		if sum > best {
			best, from = sum, max(0, i-count+1)
		}
	}

	c.from = min(int64(from*c.window), c.n-size)
	c.probe = make([]float32, size)
	err := c.read(c.probe, c.from)
	c.energy = energy(c.probe)
	return err
}

// energy is the sum of the squares. It is added up in 64 bits: a long sum of small squares loses
// too much in 32.
func energy(x []float32) float64 {
	var sum float64
	for _, v := range x {
		sum += float64(v) * float64(v)
	}
	return sum
}

// powerOfTwo is the least that is not less than n.
func powerOfTwo(n int) int {
	size := 1
	for size < n {
		size *= 2
	}
	return size
}
