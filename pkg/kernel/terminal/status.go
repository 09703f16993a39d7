package terminal

import (
	"fmt"
	"io"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"
)

// Status is a line that shows progress, with rows below it if there are some. On a terminal
// it is rewritten in place; elsewhere a new line is written from time to time. Terminal or
// Lines may be left out. It belongs to one goroutine. Without End, the last text stays on the
// terminal.
type Status struct {
	Terminal Stream
	Lines    io.Writer // where lines are written if there is no terminal; nil: nowhere
	Now      func() time.Time

	last  string
	rows  map[string]bool // those below the last line
	shown time.Time
	drawn int // lines on the terminal
}

// Pace is the interval between lines without a terminal.
const Pace = 10 * time.Second

// clear moves to the beginning of the line and erases it, up moves a number of lines up, below
// erases the rest of the screen (ECMA-48, EL, CUU and ED).
const (
	clear = "\r\x1b[K"
	up    = "\x1b[%dA"
	below = "\x1b[J"
)

// Show shows a text, and rows below it. Without a terminal it is left out if it comes too
// soon after the line before, unless it is news; then only those rows come that have changed.
// news is for what must not be missed in a log, such as a change of state. The same line is
// never written twice in a row.
func (s *Status) Show(line string, news bool, rows ...string) {
	line = Printable(line)
	if s.Terminal.Width > 0 {
		s.erase()
		for i, row := range append([]string{line}, rows...) {
			if i > 0 {
				fmt.Fprint(s.Terminal, "\n")
			}
			fmt.Fprint(s.Terminal, clear+text.Snip(Printable(row), s.Terminal.Width-1, "…"))
		}
		s.drawn = 1 + len(rows)
		return
	}

	isDue := s.shown.IsZero() || s.Now().Sub(s.shown) >= Pace
	if s.Lines != nil && line != s.last && (news || isDue) {
		fmt.Fprintln(s.Lines, line)
		before := s.rows
		s.last, s.shown, s.rows = line, s.Now(), map[string]bool{}
		for _, row := range rows {
			s.rows[row] = true
			if !before[row] {
				fmt.Fprintln(s.Lines, Printable(row))
			}
		}
	}
}

// erase goes back to the first of several lines on the terminal, and removes them.
func (s *Status) erase() {
	if s.drawn > 1 {
		fmt.Fprintf(s.Terminal, "\r"+up+below, s.drawn-1)
	}
}

// End removes all from the terminal. Lines that were written elsewhere stay.
func (s *Status) End() {
	if s.drawn > 0 {
		s.erase()
		fmt.Fprint(s.Terminal, clear)
		s.drawn = 0
	}
}

// Meter measures a rate over the last minute: older values say little about the remaining
// time. It has at most the samples of a minute, and one before.
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

// Add records the amount that is done. done is the amount since the beginning, not since the
// last call; its unit is the caller's.
func (m *Meter) Add(done int64) {
	now := m.Now()
	for len(m.samples) > 1 && now.Sub(m.samples[1].at) > window {
		m.samples = m.samples[1:]
	}
	m.samples = append(m.samples, sample{now, done})
}

// Since is the time since the last Add, the maximum if there was none.
func (m *Meter) Since() time.Duration {
	if len(m.samples) == 0 {
		return 1<<63 - 1
	}
	return m.Now().Sub(m.samples[len(m.samples)-1].at)
}

// Rate is the amount per second; 0 if it is not known.
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

// Left is the remaining time at the current rate: ", 20s left", or "" if it is not known. It
// needs two samples, and an amount that grows.
func (m *Meter) Left(whole int64) string {
	rate := m.Rate()
	if rate <= 0 {
		return ""
	}
	rest := float64(whole-m.samples[len(m.samples)-1].done) / rate
	return ", " + (time.Duration(rest+0.5) * time.Second).String() + " left"
}

// Percent is a part of a whole in percent, rounded down: 100 means complete.
func Percent(done, whole int64) string {
	if whole <= 0 {
		return "  0 %"
	}
	return fmt.Sprintf("%3d %%", 100*min(done, whole)/whole)
}
