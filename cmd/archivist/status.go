package main

import (
	"fmt"
	"io"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"
)

// status is the line that says how far a command is: on a terminal one that is
// written again and again, else a new one now and then.
type status struct {
	screen stream    // the terminal, if it is one
	lines  io.Writer // where lines are written without one; nil: nowhere
	now    func() time.Time

	last  string
	shown time.Time
	began bool
}

// pace is how often a line is written where there is no terminal.
const pace = 10 * time.Second

// statusTo makes a status line on the terminal of the errors, so that what a command
// prints can go elsewhere; without a terminal it writes to lines.
func (a *app) statusTo(lines io.Writer) *status {
	return &status{screen: a.err, lines: lines, now: a.now}
}

// show shows a text. Without a terminal it is left out if it comes too soon after the
// line before, unless it is news.
func (s *status) show(line string, news bool) {
	line = printable(line)
	switch {
	case s.screen.width > 0:
		fmt.Fprintf(s.screen, "\r\x1b[K%s", text.Snip(line, s.screen.width-1, "…"))
		s.began = true
	case s.lines == nil || line == s.last:
	case news || s.shown.IsZero() || s.now().Sub(s.shown) >= pace:
		fmt.Fprintln(s.lines, line)
		s.last, s.shown = line, s.now()
	}
}

// clear takes the line off the terminal.
func (s *status) clear() {
	if s.began {
		fmt.Fprint(s.screen, "\r\x1b[K")
		s.began = false
	}
}

// meter measures how fast something goes, over the last minute.
type meter struct {
	now     func() time.Time
	samples []sample
}

type sample struct {
	at   time.Time
	done int64
}

// window is the time over which a rate is measured.
const window = time.Minute

// add notes that so much is done.
func (m *meter) add(done int64) {
	now := m.now()
	for len(m.samples) > 1 && now.Sub(m.samples[1].at) > window {
		m.samples = m.samples[1:]
	}
	m.samples = append(m.samples, sample{now, done})
}

// rate is how much is done in a second; 0 if that is not known.
func (m *meter) rate() float64 {
	if len(m.samples) == 0 {
		return 0
	}
	first, last := m.samples[0], m.samples[len(m.samples)-1]
	took := last.at.Sub(first.at).Seconds()
	if took <= 0 {
		return 0
	}
	return float64(last.done-first.done) / took
}

// left says how long the rest takes at the present rate, "" if that is not known.
func (m *meter) left(of int64) string {
	rate := m.rate()
	if rate <= 0 || len(m.samples) == 0 {
		return ""
	}
	rest := float64(of-m.samples[len(m.samples)-1].done) / rate
	return ", " + (time.Duration(rest+0.5) * time.Second).String() + " left"
}

// percent is a share in whole percent, which is 100 only at the end.
func percent(done, of int64) string {
	if of <= 0 {
		return "  0 %"
	}
	return fmt.Sprintf("%3d %%", 100*min(done, of)/of)
}

// redraw is how often a line is written again while bytes come.
const redraw = 200 * time.Millisecond
