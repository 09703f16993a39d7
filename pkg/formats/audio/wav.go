package audio

import (
	"bufio"
	"encoding/binary"
	"io"
	"math"
)

// Codes of formats in a WAV file's fmt chunk (RFC 2361).
const (
	wavInt        = 0x0001
	wavFloat      = 0x0003
	wavExtensible = 0xfffe
)

// unknownSize is the size of a data chunk whose writer could not go back to write it, and in RF64
// that of any chunk whose size is in the ds64 chunk (EBU Tech 3306).
const unknownSize = math.MaxUint32

// wav reads RIFF/WAVE, RF64 and BW64. The maintained libraries read integers only, and no
// RF64.
type wav struct {
	r      *bufio.Reader
	rate   int
	chans  int
	code   uint16 // wavInt or wavFloat
	bits   int    // of a sample as stored: 8, 16, 24, 32, 64
	size   uint64 // bytes of samples; unknownSize: to the end of the file
	open   bool   // size is unknown
	done   uint64 // bytes of samples that were read
	frames []byte
}

// isWAV tells by the first 12 bytes, of which the size of the file is not looked at: many
// writers have it wrong.
func isWAV(head []byte) bool {
	if len(head) < 12 || string(head[8:12]) != "WAVE" {
		return false
	}
	id := string(head[:4])
	return id == "RIFF" || id == "RF64" || id == "BW64"
}

// openWAV reads the chunks up to the samples. Chunks of other kinds are left out; each is
// filled up to an even number of bytes. What follows the samples is never read.
func openWAV(r *bufio.Reader) (decoder, error) {
	if _, err := r.Discard(12); err != nil {
		return nil, err
	}

	w := &wav{r: r}
	var size64 uint64
	for {
		var head [8]byte
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return nil, cutOff("WAV", "before its samples", err)
		}
		size := uint64(binary.LittleEndian.Uint32(head[4:]))
		switch id := string(head[:4]); id {
		case "data":
			return w.data(size, size64)
		case "fmt ", "ds64":
			chunk, err := w.chunk(id, size)
			if err != nil {
				return nil, err
			}
			if id == "ds64" {
				size64 = binary.LittleEndian.Uint64(chunk[8:])
			} else if err := w.format(chunk); err != nil {
				return nil, err
			}
		default:
			if _, err := r.Discard(int(size + size%2)); err != nil {
				return nil, cutOff("WAV", "before its samples", err)
			}
		}
	}
}

// chunk reads a chunk of a header. Both kinds have at least 16 bytes; more than 64 KB has no
// header.
func (w *wav) chunk(id string, size uint64) ([]byte, error) {
	if size < 16 || size > 1<<16 {
		return nil, invalid("the WAV file is damaged: its %s chunk has %d bytes", id, size)
	}
	buf := make([]byte, size+size%2)
	if _, err := io.ReadFull(w.r, buf); err != nil {
		return nil, cutOff("WAV", "in its header", err)
	}
	return buf, nil
}

// format reads a fmt chunk. An extensible format has its code in the first two bytes of a
// GUID (WAVEFORMATEXTENSIBLE).
func (w *wav) format(b []byte) error {
	w.code = binary.LittleEndian.Uint16(b)
	w.chans = int(binary.LittleEndian.Uint16(b[2:]))
	w.rate = int(binary.LittleEndian.Uint32(b[4:]))
	align := int(binary.LittleEndian.Uint16(b[12:]))
	if w.code == wavExtensible {
		if len(b) < 40 {
			return invalid("the WAV file is damaged: its fmt chunk has %d bytes, 40 are needed", len(b))
		}
		w.code = binary.LittleEndian.Uint16(b[24:])
	}

	if w.code != wavInt && w.code != wavFloat {
		return invalid("the WAV file has samples of the coding 0x%04x; only PCM and floating point are read", w.code)
	}

	if w.chans == 0 || align == 0 || align%w.chans != 0 {
		return invalid("the WAV file is damaged: %d channels in blocks of %d bytes", w.chans, align)
	}

	// The container of a sample counts: 20 bits are stored as 24, in the upper ones.
	w.bits = align / w.chans * 8
	if !w.readable() {
		return invalid("the WAV file has samples of %d bits; PCM of 8, 16, 24 and 32 bits and floating point of "+
			"32 and 64 bits are read", w.bits)
	}
	return nil
}

// readable reports whether samples of this code and width are read.
func (w *wav) readable() bool {
	if w.code == wavFloat {
		return w.bits == 32 || w.bits == 64
	}
	return w.bits == 8 || w.bits == 16 || w.bits == 24 || w.bits == 32
}

// data begins the samples.
func (w *wav) data(size, size64 uint64) (decoder, error) {
	if w.bits == 0 {
		return nil, invalid("the WAV file is damaged: its samples come before their format")
	}
	if size == unknownSize && size64 > 0 {
		size = size64
	}
	w.size, w.open = size, size == unknownSize
	return w, nil
}

func (w *wav) info() Info { return Info{"WAV", w.rate, w.chans} }

// read reads whole frames. With a known size, less than that is an error; bytes that are no
// whole frame at the end are left out.
func (w *wav) read(buf []float32) (int, error) {
	frame := w.chans * w.bits / 8
	want := uint64(min(len(buf), 4096) * frame)
	if left := w.size - w.done; !w.open && left < want {
		want = left / uint64(frame) * uint64(frame)
	}

	if want == 0 {
		return 0, io.EOF
	}

	if uint64(len(w.frames)) < want {
		w.frames = make([]byte, want)
	}

	n, err := io.ReadFull(w.r, w.frames[:want])
	w.done += uint64(n)

	// Only a file whose size is not known may end here.
	whole := err == io.EOF || err == io.ErrUnexpectedEOF
	if whole && !w.open {
		return 0, ended("WAV", w.done, w.size, "bytes of samples")
	}

	if err != nil && !whole {
		return 0, err
	}

	if n < frame {
		return 0, io.EOF
	}
	return w.mix(buf, w.frames[:n/frame*frame])
}

// mix averages the channels of each frame. Floating-point samples may be beyond 1, but not
// infinite.
func (w *wav) mix(buf []float32, data []byte) (int, error) {
	width, n := w.bits/8, 0
	scale := 1 / float64(w.chans)
	for ; len(data) > 0; n++ {
		var sum float64
		for range w.chans {
			sum += w.sample(data[:width])
			data = data[width:]
		}
		if math.IsNaN(sum) || math.IsInf(sum, 0) {
			return 0, invalid("the WAV file is damaged: a sample is not a number")
		}
		buf[n] = float32(sum * scale)
	}
	return n, nil
}

// sample is one sample; 8 bits are unsigned.
func (w *wav) sample(b []byte) float64 {
	if w.code == wavFloat {
		if w.bits == 32 {
			return float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
		}
		return math.Float64frombits(binary.LittleEndian.Uint64(b))
	}

	switch w.bits {
	case 8:
		return (float64(b[0]) - 128) / (1 << 7)
	case 16:
		return float64(int16(binary.LittleEndian.Uint16(b))) / (1 << 15)
	case 24:
		return float64(int32(uint32(b[0])<<8|uint32(b[1])<<16|uint32(b[2])<<24)) / (1 << 31)
	}
	return float64(int32(binary.LittleEndian.Uint32(b))) / (1 << 31)
}
