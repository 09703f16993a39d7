package audio

import (
	"bufio"
	"io"

	"github.com/mewkiz/flac"
)

// flacFile reads FLAC. Each frame has a checksum, which the library verifies. rest is a part
// of buf, which is used again for each frame.
type flacFile struct {
	stream *flac.Stream
	done   uint64    // samples that were decoded
	rest   []float32 // decoded, and not yet read
	buf    []float32
}

// openFLAC reads the metadata up to the first frame.
func openFLAC(r *bufio.Reader) (decoder, error) {
	f := &flacFile{}
	err := guarded("FLAC", func() (err error) {
		f.stream, err = flac.New(r)
		return err
	})
	if err == io.EOF {
		return nil, cutOff("FLAC", "before its samples", err)
	}
	return f, err
}

func (f *flacFile) info() Info {
	return Info{"FLAC", int(f.stream.Info.SampleRate), int(f.stream.Info.NChannels)}
}

// read gives what is left of a frame, or decodes the next one. A file that ends before as
// many samples as it says is cut off; one that says 0 does not say.
func (f *flacFile) read(buf []float32) (int, error) {
	for len(f.rest) == 0 {
		err := guarded("FLAC", f.frame)
		if total := f.stream.Info.NSamples; err == io.EOF && f.done < total {
			return 0, ended("FLAC", f.done, total, "samples")
		}
		if err != nil {
			return 0, err
		}
	}
	n := copy(buf, f.rest)
	f.rest = f.rest[n:]
	return n, nil
}

// frame decodes the next frame. A frame may leave its bits per sample to the stream's header
// (RFC 9639, section 9.1.4). Channels that were coded as differences are decoded by the
// library.
func (f *flacFile) frame() error {
	frame, err := f.stream.Next()
	if err != nil {
		return err
	}

	if frame.BitsPerSample == 0 {
		frame.BitsPerSample = f.stream.Info.BitsPerSample
	}

	if err := frame.Parse(); err != nil {
		return err
	}

	if len(frame.Subframes) != int(f.stream.Info.NChannels) {
		return invalid("the FLAC file has %d channels, but a frame of %d", f.stream.Info.NChannels,
			len(frame.Subframes))
	}

	n := len(frame.Subframes[0].Samples)
	f.done += uint64(n)
	if cap(f.buf) < n {
		f.buf = make([]float32, n)
	}

	f.rest = f.buf[:n]
	scale := 1 / float64(len(frame.Subframes)) / float64(uint64(1)<<(frame.BitsPerSample-1))
	for i := range f.rest {
		var sum int64
		for _, s := range frame.Subframes {
			sum += int64(s.Samples[i])
		}
		f.rest[i] = float32(float64(sum) * scale)
	}
	return nil
}
