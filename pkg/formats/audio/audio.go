// Package audio decodes WAV, FLAC and MP3 to samples of one channel at one rate, in constant
// memory.
//
//	s, err := audio.Open("episode.mp3", 8000)
//	…
//	defer s.Close()
//	for {
//		n, err := s.Read(buf) // samples in [-1, 1]; io.EOF after the last
//	}
//
// The format is told by the content, never by the name. A file that is damaged, cut off, empty or
// of another format is an error of the kind fault.Invalid that says what is wrong with it; an
// error of the disk keeps its own.
//
// Sample n of a stream is what a player plays at n / rate seconds: the delay that an MP3 encoder
// adds is taken away if the file says how long it is (the LAME tag), and resampling shifts
// nothing. Channels are averaged.
//
// One goroutine reads a stream. What a file says of itself is never believed further than its
// bytes go: sizes and lengths are bounds for errors, not for memory.
package audio

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"os"

	"archivist/pkg/kernel/fault"
)

// MinRate and MaxRate bound the rates of files and of what is asked for, in samples per second.
const (
	MinRate = 4_000
	MaxRate = 192_000
)

// maxChannels is how many channels a WAV file may have. FLAC allows 8. It bounds the memory
// of one step.
const maxChannels = 64

// Stream is an open file. err is the last error of Read, which is returned from then on.
type Stream struct {
	file  *os.File
	input *input
	dec   decoder
	out   *resampler // nil if the file has the rate already
	err   error
}

// Open opens the file at path as samples of rate per second (MinRate to MaxRate). It reads up
// to the first samples, so most files that cannot be decoded are refused here. The caller
// closes the stream.
func Open(path string, rate int) (*Stream, error) {
	if rate < MinRate || rate > MaxRate {
		return nil, fault.New(fault.Invalid, "rate %d: want %d to %d samples per second", rate, MinRate, MaxRate)
	}

	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}

	s := &Stream{file: f, input: &input{r: f}}
	s.dec, err = openChecked(s.input)
	if err != nil {
		s.Close()
		return nil, s.cause(err)
	}

	if from := s.dec.info().Rate; from != rate {
		s.out = newResampler(s.dec, from, rate)
	}
	return s, nil
}

// openChecked opens the decoder of a file. It is returned also with an error of checkInfo, to be
// closed.
func openChecked(in io.Reader) (decoder, error) {
	dec, err := open(in)
	if err != nil {
		return dec, err
	}
	return dec, checkInfo(dec.info())
}

// checkInfo refuses a file that says of itself what no recording is.
func checkInfo(i Info) error {
	if i.Rate < MinRate || i.Rate > MaxRate {
		return invalid("the %s file has %d samples per second; only %d to %d are read", i.Format, i.Rate, MinRate,
			MaxRate)
	}
	if i.Channels < 1 || i.Channels > maxChannels {
		return invalid("the %s file has %d channels; only 1 to %d are read", i.Format, i.Channels, maxChannels)
	}
	return nil
}

// Info describes the file.
func (s *Stream) Info() Info { return s.dec.info() }

// Read fills buf with the next samples and returns how many. It returns io.EOF, with 0
// samples, after the last one. An error that comes with samples is returned by the next call.
// An empty buf gives 0 samples without an error.
func (s *Stream) Read(buf []float32) (int, error) {
	if s.err != nil || len(buf) == 0 {
		return 0, s.err
	}

	var n int
	if s.out != nil {
		n, s.err = s.out.read(buf)
	} else {
		n, s.err = s.dec.read(buf)
	}

	s.err = s.cause(s.err)
	if n > 0 {
		return n, nil
	}
	return 0, s.err
}

// cause is err, or the error of the disk behind it: a decoder may hide that the file could not be
// read.
func (s *Stream) cause(err error) error {
	if err != nil && s.input.err != nil {
		return s.input.err
	}
	return err
}

// Close closes the file, and frees what its decoder has.
func (s *Stream) Close() error {
	err := s.file.Close()
	if dec, ok := s.dec.(io.Closer); ok {
		err = errors.Join(err, dec.Close())
	}
	return err
}

// input is the file; it remembers that reading it failed.
type input struct {
	r   io.Reader
	err error
}

func (i *input) Read(buf []byte) (int, error) {
	n, err := i.r.Read(buf)
	if err != nil && err != io.EOF {
		i.err = err
	}
	return n, err
}

// open finds the format by the first bytes. Tags before the sound are left out first; MP3 has
// no signature of its own, so it is the last that is tried.
func open(in io.Reader) (decoder, error) {
	r := bufio.NewReaderSize(in, 1<<16)
	head, err := r.Peek(1)
	if len(head) == 0 {
		if err == io.EOF {
			return nil, invalid("the file is empty")
		}
		return nil, err
	}

	if err := skipID3(r); err != nil {
		return nil, err
	}

	head, _ = r.Peek(512)
	switch {
	case isWAV(head):
		return openWAV(r)
	case len(head) >= 4 && string(head[:4]) == "fLaC":
		return openFLAC(r)
	case startsFrames(head):
		return openMP3(r)
	}
	return nil, invalid("the file is not WAV, FLAC or MP3; by its first bytes it is %s", http.DetectContentType(head))
}
