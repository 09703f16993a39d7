package correlate

import "archivist/pkg/research/analysis"

// loudness is how loud a recording is, part by part, as it was decoded. Each step is exact: the
// same samples give the same bytes on every machine.
type loudness struct {
	each  int64  // samples of a part
	peaks []byte // the loudest sample of each part, whatever its sign; 255 is the loudest that a file can have
}

// add takes over a block. before is how many samples came before it.
func (l *loudness) add(block []float32, before int64) {
	for i, v := range block {
		at := int((before + int64(i)) / l.each)
		if at == len(l.peaks) {
			l.peaks = append(l.peaks, 0)
		}
		// A product with a power of two is exact, so that nothing depends on how it is rounded.
		l.peaks[at] = max(l.peaks[at], byte(min(max(v, -v)*256, 255)))
	}
}

// in are the peaks in at most so many parts of the recording, of about the same length.
func (l *loudness) in(most int) []byte {
	parts := min(most, len(l.peaks))
	out := make([]byte, parts)
	for i := range out {
		for _, v := range l.peaks[i*len(l.peaks)/parts : (i+1)*len(l.peaks)/parts] {
			out[i] = max(out[i], v)
		}
	}
	return out
}

// Loudness is that of the recording, in at most so many parts.
func (s *Session) Loudness() []byte { return s.recording.loud.in(analysis.MaxPeaks) }
