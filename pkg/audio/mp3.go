package audio

import (
	"bufio"
	"io"

	"github.com/hajimehoshi/go-mp3"
)

// decoderDelay is how much later than its input a decoder gives a sample: 528 samples of its filters, and 1.
const decoderDelay = 528 + 1

// mp3File reads MPEG audio layer III. The library decodes frames; that the frames are whole, and where the sound
// begins and ends, is decided here: it takes the end of a file and what is not a frame without a word, and decodes
// the frame that only describes the file as 26 ms of silence.
type mp3File struct {
	frames *mp3Frames
	dec    *mp3.Decoder
	skip   int       // samples to leave out before the next
	left   int       // samples to give; -1: to the end
	held   []float32 // samples after these: padding, unless more frames follow than the file says it has
	buf    []byte
}

func openMP3(r *bufio.Reader) (decoder, error) {
	frames, tag, err := newFrames(r)
	if err != nil {
		return nil, err
	}
	m := &mp3File{frames: frames, left: -1, buf: make([]byte, 1152*4)}
	if tag.gapless {
		m.skip = tag.delay + decoderDelay
		// A frame is decoded as late as m.skip; the last samples would come out of a frame that is not there.
		m.left = max(0, tag.frames*frames.first.samples-tag.delay-max(tag.padding, decoderDelay))
	}
	err = guarded("MP3", func() (err error) {
		m.dec, err = mp3.NewDecoder(frames)
		return err
	})
	if frames.err != nil {
		return nil, frames.err
	}
	if err == io.EOF {
		return nil, invalid("the MP3 file has no samples")
	}
	return m, err
}

func (m *mp3File) info() Info { return Info{"MP3", m.frames.first.rate, m.frames.first.channels} }

func (m *mp3File) read(buf []float32) (int, error) {
	for {
		n, err := m.next(buf)
		if n > 0 || err != nil {
			return n, err
		}
	}
}

// next decodes some samples; what is left out counts as none.
func (m *mp3File) next(buf []float32) (int, error) {
	if m.left < 0 && len(m.held) > 0 {
		n := copy(buf, m.held)
		m.held = m.held[n:]
		return n, nil
	}
	want := 4 * min(len(buf), len(m.buf)/4)
	var n int
	err := guarded("MP3", func() (err error) {
		n, err = io.ReadFull(m.dec, m.buf[:want])
		if err == io.ErrUnexpectedEOF {
			err = nil
		}
		return err
	})
	if m.frames.err != nil {
		return 0, m.frames.err
	}
	if err != nil {
		return 0, err
	}
	data := m.buf[:n/4*4]
	skipped := min(m.skip, len(data)/4)
	m.skip -= skipped
	n = mix(buf, data[4*skipped:])
	if m.left < 0 {
		return n, nil
	}
	given := min(n, m.left)
	m.left -= given
	m.held = append(m.held, buf[given:n]...)
	if m.frames.got > m.frames.want { // files that were put together
		m.left = -1
	}
	return given, nil
}

// mix averages the two channels of 16 bits that the library gives.
func mix(buf []float32, data []byte) int {
	for i := range len(data) / 4 {
		l := int16(uint16(data[4*i]) | uint16(data[4*i+1])<<8)
		r := int16(uint16(data[4*i+2]) | uint16(data[4*i+3])<<8)
		buf[i] = (float32(l) + float32(r)) / (1 << 16)
	}
	return len(data) / 4
}
