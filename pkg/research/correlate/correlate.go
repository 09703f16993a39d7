// Package correlate finds where clips are in a long recording, by normalised cross-correlation. It
// is the analysis "correlation".
//
// A clip is found although it is louder or quieter, inverted, beneath noise or other sound about as
// loud as itself, or was stored with losses. It is not found at another speed or pitch.
//
// The score of a hit is the normalised cross-correlation of clip and recording: 1 is the clip
// alone; with other sound of the same energy it is 0.71. The steps:
//
//  1. The recording is decoded once, to one channel at Settings.Rate, into a file; so memory is constant.
//  2. Of the clip, the four seconds with the most energy are correlated with the whole recording, in blocks, by FFT.
//  3. Where that has a peak, the whole clip is compared, window by window. A hit needs the score, and no part in which
//     the clip is missing: of a jingle of which only the first half is the same, half the energy would be enough.
//  4. A parabola through the peak gives the offset between samples.
package correlate

import (
	"context"
	"errors"
	"time"

	"archivist/pkg/research/analysis"
)

// Analysis is the analysis, for the list of analyses.
type Analysis struct{}

// Check returns an Invalid if the settings cannot be used.
func (Analysis) Check(settings []byte) error {
	_, err := parse(settings)
	return err
}

// Open decodes a recording.
func (Analysis) Open(ctx context.Context, path string, settings []byte) (analysis.Session, error) {
	s, err := parse(settings)
	if err != nil {
		return nil, err
	}
	return Open(ctx, path, s)
}

// Session is a recording in which clips are looked for. It is used by one caller at a time.
type Session struct {
	settings  Settings
	recording *samples
}

// Open decodes the recording at path into a temporary file. It returns a *analysis.Rejected if the
// recording is damaged, silent, or shorter than half a second.
func Open(ctx context.Context, path string, settings Settings) (*Session, error) {
	if err := settings.Check(); err != nil {
		return nil, err
	}
	recording, err := load(ctx, path, settings.Rate, analysis.Episode)
	if err != nil {
		return nil, err
	}
	return &Session{settings: settings, recording: recording}, nil
}

// Close removes the temporary file.
func (s *Session) Close() error { return s.recording.Close() }

// Duration is that of the recording.
func (s *Session) Duration() time.Duration {
	return time.Duration(float64(s.recording.n) / float64(s.settings.Rate) * float64(time.Second))
}

// Clip looks for the clip of a file. A clip that is longer than the recording is not in it: that is
// a result, because the same clip can be in another recording.
func (s *Session) Clip(ctx context.Context, path string,
	progress func(part float64)) (analysis.Result, error) {
	if progress == nil {
		progress = func(float64) {}
	}
	c, err := openClip(ctx, path, s.settings.Rate)
	if err != nil {
		return analysis.Result{}, err
	}
	found, err := s.find(ctx, c, progress)
	return found, errors.Join(err, c.Close())
}

// find looks for a clip that was decoded. The search finds candidates, the verifier decides; of
// hits that are closer to each other than half of the clip, the best is kept.
func (s *Session) find(ctx context.Context, c *clip,
	progress func(part float64)) (analysis.Result, error) {
	result := analysis.Result{Hits: []analysis.Hit{}}
	if c.n > s.recording.n {
		progress(1)
		return result, nil
	}

	h := &hits{apart: float64(c.n) / 2}
	v := newVerifier(s.recording, c, s.settings.Threshold)
	err := search(ctx, s.recording, c, s.settings, func(at int64) error {
		m, err := v.verify(at)
		if err != nil {
			return err
		}
		if m.hit {
			h.add(m)
		}
		return nil
	}, progress)
	if err != nil {
		return result, err
	}

	rate := float64(s.settings.Rate)
	for _, m := range h.sorted() {
		result.Hits = append(result.Hits, analysis.Hit{
			Offset: max(0, int64(m.at/rate*1e9+0.5)),
			Score:  min(m.score, 1),
			Length: int64(float64(c.n) / rate * 1e9),
		})
	}

	result.Truncated = h.truncated
	return result, nil
}
