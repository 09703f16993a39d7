package audiotest

import (
	"bufio"
	"encoding/binary"
	"io"
	"math"
	"os"

	"github.com/mewkiz/flac"
	"github.com/mewkiz/flac/frame"
	"github.com/mewkiz/flac/meta"
)

// WriteWAV writes samples as a WAV file of one channel of 16 bits. A file that is there is
// replaced.
func WriteWAV(path string, rate int, samples []float32) error {
	return create(path, func(w io.Writer) error {
		if err := WAVHeader(w, rate, len(samples)); err != nil {
			return err
		}
		return binary.Write(w, binary.LittleEndian, pcm16(samples))
	})
}

// WAVHeader writes the header of a WAV file of one channel of 16 bits, with n samples that
// the caller writes. It has the 44 bytes of the usual form: RIFF, fmt and data.
func WAVHeader(w io.Writer, rate, n int) error {
	h, put := make([]byte, 44), binary.LittleEndian
	copy(h, "RIFF....WAVEfmt ")
	put.PutUint32(h[4:], uint32(36+2*n))
	put.PutUint32(h[16:], 16)
	put.PutUint16(h[20:], 1)
	put.PutUint16(h[22:], 1)
	put.PutUint32(h[24:], uint32(rate))
	put.PutUint32(h[28:], uint32(2*rate))
	put.PutUint16(h[32:], 2)
	put.PutUint16(h[34:], 16)
	copy(h[36:], "data")
	put.PutUint32(h[40:], uint32(2*n))
	_, err := w.Write(h)
	return err
}

// WriteFLAC writes samples as a FLAC file of one channel of 16 bits. Its blocks have 4,096
// samples; the last is shorter.
func WriteFLAC(path string, rate int, samples []float32) error {
	return create(path, func(w io.Writer) error {
		const block = 4096
		enc, err := flac.NewEncoder(w, &meta.StreamInfo{BlockSizeMin: block, BlockSizeMax: block,
			SampleRate: uint32(rate), NChannels: 1, BitsPerSample: 16, NSamples: uint64(len(samples))})
		if err != nil {
			return err
		}
		enc.EnablePredictionAnalysis(true)
		for at := 0; at < len(samples); at += block {
			part := pcm16(samples[at:min(at+block, len(samples))])
			sub := &frame.Subframe{SubHeader: frame.SubHeader{Pred: frame.PredVerbatim}, NSamples: len(part),
				Samples: make([]int32, len(part))}
			for i, v := range part {
				sub.Samples[i] = int32(v)
			}
			head := frame.Header{HasFixedBlockSize: true, BlockSize: uint16(len(part)), SampleRate: uint32(rate),
				Channels: frame.ChannelsMono, BitsPerSample: 16, Num: uint64(at / block)}
			if err := enc.WriteFrame(&frame.Frame{Header: head, Subframes: []*frame.Subframe{sub}}); err != nil {
				return err
			}
		}
		return enc.Close()
	})
}

// pcm16 rounds samples to 16 bits; what is too loud is cut.
func pcm16(samples []float32) []int16 {
	out := make([]int16, len(samples))
	for i, v := range samples {
		out[i] = int16(math.Round(float64(max(-1, min(v, 1))) * math.MaxInt16))
	}
	return out
}

// create writes a file through a buffer; what was written before an error is left.
func create(path string, write func(io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}

	w := bufio.NewWriter(f)
	if err := write(w); err != nil {
		f.Close()
		return err
	}

	if err := w.Flush(); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}
