package audio

import (
	"bufio"
	"errors"
	"io"
)

// decoderDelay is how much later than its input a decoder gives a sample: 528 samples of its
// filters, and 1. The LAME tag counts its delay without it.
const decoderDelay = 528 + 1

// mp3File reads MPEG audio layer III. That the frames are whole, and where the sound begins
// and ends, is decided outside the sandbox. Encoders put samples before and after the sound;
// with a LAME tag both are left out.
type mp3File struct {
	frames  *mp3Frames
	sandbox *mp3Sandbox
	skip    int       // samples to leave out before the next
	left    int       // samples to give; -1: to the end
	ready   []float32 // what the last frame gave, as far as it is not read
	// held are the samples after those: padding, unless more frames follow than the file says
	// it has.
	held []float32
}

// openMP3 decodes the first frame, so that a file without one that can be decoded is refused.
func openMP3(r *bufio.Reader) (decoder, error) {
	frames, tag, err := newFrames(r)
	if err != nil {
		return nil, err
	}

	m := &mp3File{frames: frames, left: -1}
	if tag.gapless {
		m.skip = tag.delay + decoderDelay
		// A frame is decoded as late as m.skip; the last samples would come out of a frame that
		// is not there.
		m.left = max(0, tag.frames*frames.first.samples-tag.delay-max(tag.padding, decoderDelay))
	}

	if m.sandbox, err = newMP3Sandbox(); err != nil {
		return nil, err
	}

	if err := m.next(); err != nil {
		if err == io.EOF {
			err = invalid("the MP3 file has no samples")
		}
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

func (m *mp3File) info() Info { return Info{"MP3", m.frames.first.rate, m.frames.first.channels} }

// read gives what is ready, or decodes frames until there is something.
func (m *mp3File) read(buf []float32) (int, error) {
	for len(m.ready) == 0 {
		if err := m.next(); err != nil {
			return 0, err
		}
	}
	n := copy(buf, m.ready)
	m.ready = m.ready[n:]
	return n, nil
}

// next decodes a frame; it may be left out whole.
func (m *mp3File) next() error {
	frame, err := m.frames.next()
	if err != nil {
		return err
	}

	if m.ready, err = m.sandbox.decode(frame); err != nil {
		return err
	}

	skipped := min(m.skip, len(m.ready))
	m.skip -= skipped
	m.ready = m.ready[skipped:]

	// Without a LAME tag all is given.
	if m.left < 0 {
		return nil
	}

	given := min(m.left, len(m.ready))
	m.left -= given
	m.held = append(m.held, m.ready[given:]...)
	m.ready = m.ready[:given]
	if m.frames.got > m.frames.want { // files that were put together
		m.ready, m.left = append(m.ready, m.held...), -1
	}
	return nil
}

// Close frees the memory of the sandbox.
func (m *mp3File) Close() error { return m.sandbox.Close() }
