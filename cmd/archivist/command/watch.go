package command

import (
	"bytes"
	"fmt"
	"time"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/terminal"
)

// Snapshot is the result of one look at something that goes on.
type Snapshot struct {
	// Things are what --json prints, always in the same order and number: each is compared with what it was at the
	// last look.
	Things []any
	// Text says in one line how far it is, and Rows are shown below it.
	Text string
	Rows []string
	// State is not shown. Without a terminal, a line is written at once if it has changed.
	State string
	// Done and Of are how much is done of what, in whatever is counted; Of is 0 for things that do not say how much
	// is left. With Bar, a terminal shows a bar and the rate, too.
	Done, Of int64
	Bar      bool
	// Over ends it: all has ended, or waits for a person. Then Watch returns Failed.
	Over   bool
	Failed error
}

// Followed is the flag of commands that can follow what they show.
type Followed struct {
	Watch bool `short:"w" help:"Follow it until it has ended."`
}

// FollowedByDefault is the flag of commands that start something, and follow it unless they are told not to.
type FollowedByDefault struct {
	Watch bool `short:"w" default:"true" negatable:"" help:"Follow it until it has ended."`
}

// MostMissed is how many polls in a row may fail before a command gives up. Only failures that may pass count
// (fault.Unavailable): the network of a notebook, a gateway that is busy. With Pause that is some seconds at
// first, and a minute later.
const MostMissed = 5

// Watch polls until everything has ended, less often the longer it takes, and returns what has failed then. It
// returns the error of the context if the user interrupts it: what is watched goes on.
func (a *App) Watch(look func() (Snapshot, error)) error {
	show, missed := a.shower(), 0
	for n := 0; ; n++ {
		s, err := look()
		switch {
		case a.Ctx.Err() != nil:
			return a.Ctx.Err()
		case fault.Is(err, fault.Unavailable) && missed < MostMissed:
			missed++
		case err != nil:
			return err
		default:
			missed = 0
			show(s)
			if s.Over {
				return s.Failed
			}
		}

		if err := a.Wait(a.Ctx, Pause(n)); err != nil {
			return err
		}
	}
}

// Pause is the wait after the nth poll, from 0: half a second at first, a tenth more each time, and 10 seconds
// after about two minutes. So a small submission is seen to end at once, and one of days costs six requests a
// minute.
func Pause(n int) time.Duration {
	d := 500 * time.Millisecond
	for ; n > 0 && d < 10*time.Second; n-- {
		d += d / 10
	}
	return min(d, 10*time.Second)
}

// shower shows the result of a poll: as a line of JSON for each item that has changed, or else as a status line.
// The last result is a line of the output, with the rows: it is what remains on the terminal and in a file.
func (a *App) shower() func(Snapshot) {
	if a.JSON != nil {
		return a.jsonShower()
	}

	line, speed, state := a.StatusTo(a.Screen), terminal.Meter{Now: a.Now}, ""
	return func(s Snapshot) {
		text := s.Text
		if s.Of > 0 {
			speed.Add(s.Done)
			text = terminal.Percent(s.Done, s.Of) + "  " + s.Text
		}

		if s.Over {
			line.End()
			for _, row := range append([]string{text}, s.Rows...) {
				fmt.Fprintln(a.Screen, terminal.Printable(row))
			}
			return
		}

		if s.Bar && s.Of > 0 && a.Err.Width > 0 {
			text = terminal.Bar(s.Done, s.Of) + " " + text + perSecond(speed.Rate())
		}

		if s.Done < s.Of {
			text += speed.Left(s.Of)
		}

		line.Show(text, s.State != state, s.Rows...)
		state = s.State
	}
}

// perSecond is a rate: ", 12 a second", or "" if it is not known.
func perSecond(rate float64) string {
	switch {
	case rate <= 0:
		return ""
	case rate < 10:
		return fmt.Sprintf(", %.1f a second", rate)
	}
	return fmt.Sprintf(", %.0f a second", rate)
}

// jsonShower prints each item whenever it has changed, by the text of the chosen fields: a change of another
// field is no line.
func (a *App) jsonShower() func(Snapshot) {
	seen := map[int]string{}
	return func(s Snapshot) {
		for i, thing := range s.Things {
			var line bytes.Buffer
			_ = a.PrintLine(&line, thing) // a wire type can always be encoded
			if line.String() != seen[i] {
				seen[i] = line.String()
				// Who closes the pipe early, as head does, has got what they want.
				_, _ = line.WriteTo(a.Out)
			}
		}
	}
}
