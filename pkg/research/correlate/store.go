package correlate

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"

	"archivist/pkg/formats/audio"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/research/analysis"
)

// samples are those of a file, decoded, in a file of 4 bytes for each: of five hours at 8,000 per
// second, 576 MB. The system keeps in memory what it has room for.
//
// They are read by one caller at a time, because all reads have one buffer.
type samples struct {
	file *os.File // 32-bit floats, little-endian
	n    int64    // how many samples there are
	peak float64  // the loudest, whatever its sign; 1 is the loudest that a file can have
	buf  []byte   // of blockSize samples
	loud loudness
}

// The least that is analysed. Shorter sounds are like too many others: with half a second of
// speech, other speech has scores of 0.4 already (TestFalsePeaks).
const (
	minSeconds = 0.5
	silence    = 1e-4 // of the loudest that a file can have: three steps of a file of 16 bits
)

// blockSize is how many samples are read or written at a time.
const blockSize = 1 << 14

// decode writes the samples of the file at path, without the sound below hearing that many
// recordings have: a constant part is like every other constant part. An Invalid means that the
// file is no recording that can be read. The caller closes what it returns.
func decode(ctx context.Context, path string, rate int) (*samples, error) {
	in, err := audio.Open(path, rate)
	if err != nil {
		return nil, err
	}

	defer in.Close()
	f, err := os.CreateTemp("", "archivist-samples-")
	if err != nil {
		return nil, err
	}

	// Where the system allows it, the name goes at once: then nothing is left of a process that is
	// killed.
	os.Remove(f.Name())
	s := &samples{file: f, buf: make([]byte, 4*blockSize), loud: loudness{each: int64(rate / 20)}}
	if err := s.fill(ctx, in, newHighPass(rate)); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// load decodes a file and refuses what nothing can be found by, as a *analysis.Rejected of the clip
// or episode: it is damaged, too short or silent. Another error, of the disk or of ctx, may be gone
// another time.
func load(ctx context.Context, path string, rate int, of string) (*samples, error) {
	s, err := decode(ctx, path, rate)
	if fault.Is(err, fault.Invalid) {
		return nil, &analysis.Rejected{Of: of, Reason: err.Error()}
	}

	if err != nil {
		return nil, err
	}

	reason := ""
	if seconds := float64(s.n) / float64(rate); seconds < minSeconds {
		reason = fmt.Sprintf("it has %.2f s of sound; at least %.1f s are needed", seconds,
			minSeconds)
	} else if s.peak < silence {
		reason = "it is silent"
	}

	if reason != "" {
		return nil, errors.Join(&analysis.Rejected{Of: of, Reason: reason}, s.Close())
	}
	return s, nil
}

// fill decodes a stream to its end, block by block, so that the memory does not grow with the
// recording.
func (s *samples) fill(ctx context.Context, in *audio.Stream, filter *highPass) error {
	w, block := bufio.NewWriterSize(s.file, len(s.buf)), make([]float32, blockSize)
	for {
		n, err := in.Read(block)
		if err == io.EOF {
			return w.Flush()
		}

		if err != nil {
			return err
		}

		if ctx.Err() != nil {
			return ctx.Err()
		}

		s.loud.add(block[:n], s.n)
		filter.apply(block[:n])
		for i, v := range block[:n] {
			binary.LittleEndian.PutUint32(s.buf[4*i:], math.Float32bits(v))
			s.peak = max(s.peak, math.Abs(float64(v)))
		}

		if _, err := w.Write(s.buf[:4*n]); err != nil {
			return err
		}

		s.n += int64(n)
	}
}

// read fills out with the samples from at on. Before the first and after the last is silence.
func (s *samples) read(out []float32, at int64) error {
	for at < 0 && len(out) > 0 {
		n := min(-at, int64(len(out)))
		clear(out[:n])
		out, at = out[n:], at+n
	}

	for len(out) > 0 && at < s.n {
		n := int(min(s.n-at, int64(len(out)), blockSize))
		if _, err := s.file.ReadAt(s.buf[:4*n], 4*at); err != nil {
			return err
		}
		for i := range out[:n] {
			out[i] = math.Float32frombits(binary.LittleEndian.Uint32(s.buf[4*i:]))
		}
		out, at = out[n:], at+int64(n)
	}

	clear(out)
	return nil
}

// Close removes the file, where it could not be removed while it was open.
func (s *samples) Close() error {
	err := s.file.Close()
	if left := os.Remove(s.file.Name()); !errors.Is(left, fs.ErrNotExist) {
		err = errors.Join(err, left)
	}
	return err
}

// highPass takes away what is below about 60 Hz: y[n] = x[n] - x[n-1] + a*y[n-1].
type highPass struct {
	a, x, y float64 // x and y of the sample before
	begun   bool
}

// newHighPass returns the filter for so many samples per second.
func newHighPass(rate int) *highPass {
	return &highPass{a: 1 - 2*math.Pi*60/float64(rate)}
}

// apply filters a block in place. Blocks come in order.
func (h *highPass) apply(block []float32) {
	if !h.begun && len(block) > 0 { // a constant before the first sample, too
		h.x, h.begun = float64(block[0]), true
	}
	for i, v := range block {
		x := float64(v)
		h.y = x - h.x + h.a*h.y
		h.x = x
		block[i] = float32(h.y)
	}
}
