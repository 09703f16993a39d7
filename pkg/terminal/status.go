package terminal

import (
	"fmt"
	"io"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"
)

// Status is the line that says how far something is: on a terminal one that is written
// again and again, else a new one now and then. Terminal or Lines may be left out.
type Status struct {
	Terminal Stream
	Lines    io.Writer // where lines are written if there is no terminal; nil: nowhere
	Now      func() time.Time

	last  string
	shown time.Time
	began bool
}

// Pace is how often a line is written where there is no terminal.
const Pace = 10 * time.Second

// clear goes to the beginning of the line and empties it (ECMA-48, EL).
const clear = "\r\x1b[K"

// Show shows a text. Without a terminal it is left out if it comes too soon after the
// line before, unless it is news.
func (s *Status) Show(line string, news bool) {
	line = Printable(line)
	if s.Terminal.Width > 0 {
		fmt.Fprint(s.Terminal, clear+text.Snip(line, s.Terminal.Width-1, "…"))
		s.began = true
		return
	}

	isDue := s.shown.IsZero() || s.Now().Sub(s.shown) >= Pace
	if s.Lines != nil && line != s.last && (news || isDue) {
		fmt.Fprintln(s.Lines, line)
		s.last, s.shown = line, s.Now()
	}
}

// End takes the line off the terminal.
func (s *Status) End() {
	if s.began {
		fmt.Fprint(s.Terminal, clear)
		s.began = false
	}
}

// Meter measures how fast something goes, over the last minute: what was long ago says
// little of how long the rest takes.
type Meter struct {
	Now func() time.Time

	samples []sample
}

type sample struct {
	at   time.Time
	done int64
}

// window is the time over which a rate is measured.
const window = time.Minute

// Add notes that so much is done.
func (m *Meter) Add(done int64) {
	now := m.Now()
	for len(m.samples) > 1 && now.Sub(m.samples[1].at) > window {
		m.samples = m.samples[1:]
	}
	m.samples = append(m.samples, sample{now, done})
}

// Since is the time since the last Add, as long as can be if there was none.
func (m *Meter) Since() time.Duration {
	if len(m.samples) == 0 {
		return 1<<63 - 1
	}
	return m.Now().Sub(m.samples[len(m.samples)-1].at)
}

// Rate is how much is done in a second; 0 if that is not known.
func (m *Meter) Rate() float64 {
	if len(m.samples) < 2 {
		return 0
	}
	first, last := m.samples[0], m.samples[len(m.samples)-1]
	took := last.at.Sub(first.at).Seconds()
	if took <= 0 {
		return 0
	}
	return float64(last.done-first.done) / took
}

// Left is how long the rest of a whole takes at the present rate: ", 20s left", or ""
// if that is not known.
func (m *Meter) Left(whole int64) string {
	rate := m.Rate()
	if rate <= 0 {
		return ""
	}
	rest := float64(whole-m.samples[len(m.samples)-1].done) / rate
	return ", " + (time.Duration(rest+0.5) * time.Second).String() + " left"
}

// Percent is a part of a whole in percent, rounded down: 100 is the end.
func Percent(done, whole int64) string {
	if whole <= 0 {
		return "  0 %"
	}
	return fmt.Sprintf("%3d %%", 100*min(done, whole)/whole)
}
