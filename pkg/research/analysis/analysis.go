// Package analysis says what an analysis of research is: it looks for a clip in a recording.
// Package analysis/shipped has those that there are, by name.
//
//	a := shipped.Analyses["correlation"]
//	err := a.Check(settings) // when a project is configured
//
//	session, err := a.Open(ctx, "episode.mp3", settings)
//	…
//	defer session.Close()
//	result, err := session.Clip(ctx, "jingle.wav", nil)
//	var rejected *analysis.Rejected
//	if errors.As(err, &rejected) { … } // the file will never do: rejected.Of says which
package analysis

import (
	"context"
	"time"
)

// MaxHits is how many hits of a clip in a recording are kept: the best.
const MaxHits = 1000

// Analysis is a way to look for clips in recordings. It has no state: several recordings can be
// open at once.
type Analysis interface {
	// Check sets nothing. It returns an Invalid if settings (JSON; none: the defaults) cannot be
	// used.
	Check(settings []byte) error

	// Open reads a recording, in constant memory. It returns a *Rejected if nothing can ever be
	// found in it. The caller closes the session.
	Open(ctx context.Context, path string, settings []byte) (Session, error)
}

// Session is a recording in which clips are looked for, one at a time.
type Session interface {
	// Clip looks for the clip of a file. It returns a *Rejected if the clip can never be found; no
	// hits are a result. progress, if it is not nil, is called with the part of the recording that
	// was searched, up to 1. The search ends soon after ctx does, with its error.
	Clip(ctx context.Context, path string, progress func(part float64)) (Result, error)

	// Close removes what the session has on the disk.
	Close() error
}

// MaxPeaks is in how many parts the loudness of a recording is told, at most.
const MaxPeaks = 600

// Heard is a Session that knows how its recording sounds. Not every analysis does.
type Heard interface {
	// Duration is that of the recording.
	Duration() time.Duration

	// Loudness has the loudest sample of each part of the recording, 255 for the loudest that there
	// can be: at most MaxPeaks parts of the same length. It is the same for the same recording on
	// every machine.
	Loudness() []byte
}

// Hit is where a clip is in a recording.
type Hit struct {
	Offset int64   `json:"offset"` // nanoseconds from the start of the recording to that of the clip
	Score  float64 `json:"score"`  // 0 to 1: how like the clip it is
	Length int64   `json:"length"` // nanoseconds
}

// Result is where a clip is in a recording, ordered by Offset.
type Result struct {
	Hits      []Hit `json:"hits"`
	Truncated bool  `json:"truncated,omitempty"` // there were more than MaxHits
}

// What a Rejected is of.
const (
	Clip    = "clip"
	Episode = "episode"
)

// Rejected is the error of a file that can never be analysed. Every other error may be gone another
// time.
type Rejected struct {
	Of     string // Clip or Episode
	Reason string
}

// Error returns the reason.
func (r *Rejected) Error() string { return r.Of + ": " + r.Reason }
