package events

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"strconv"

	"archivist/cmd/archivist/command"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/terminal"
)

// consumerReplayCmd repeats events of the log. The place of the consumer stays: new events go on beside it.
type consumerReplayCmd struct {
	consumerActing
	From      string `help:"First event: horizon, time:TIME, or seq:NUMBER." default:"horizon" placeholder:"PLACE"`
	Until     string `help:"Last event: latest, time:TIME, or seq:NUMBER." default:"latest" placeholder:"PLACE"`
	Partition string `help:"Only in this partition of the log." placeholder:"NAME"`
	Filter    string `help:"Only events that this filter selects." placeholder:"FILTER"`
	// A shadow is made by functions and queues only: handlers that ship have one place for what they keep.
	Into string `help:"${help_into}" placeholder:"SHADOW"`
	command.FollowedByDefault
}

func (consumerReplayCmd) Prints() any { return v1.Replay{} }

// Run fails if events have failed.
func (c *consumerReplayCmd) Run(a *command.App) error {
	return startReplay(a, c.consumerActing, v1.ReplayRequest{
		From:      c.From,
		Until:     c.Until,
		Partition: c.Partition,
		Filter:    c.Filter,
		Into:      c.Into,
	}, c.Watch)
}

// consumerRebuildCmd makes again what a consumer keeps, from all that is stored: not from events, of which the
// older ones may have expired.
type consumerRebuildCmd struct {
	consumerActing
	Into string `help:"${help_into}" placeholder:"SHADOW"`
	command.FollowedByDefault
}

func (consumerRebuildCmd) Prints() any { return v1.Replay{} }

// Run fails if snapshots have failed.
func (c *consumerRebuildCmd) Run(a *command.App) error {
	return startReplay(a, c.consumerActing, v1.ReplayRequest{Rebuild: true, Into: c.Into}, c.Watch)
}

// startReplay starts a replay, and follows it unless the user does not want that.
func startReplay(a *command.App, c consumerActing, in v1.ReplayRequest, follow bool) error {
	in.Reason = c.Reason
	r, err := a.Client.StartReplay(a.Ctx, c.Name, in, cmp.Or(c.Key, rand.Text()))
	if err != nil {
		return err
	}
	if !follow {
		return command.Show(a, showReplay)(r, nil)
	}
	fmt.Fprintf(a.Errors, "replay %s\n", terminal.Printable(r.ID))
	return followReplay(a, r.ID)
}

// replayListCmd finds a replay whose id is not known.
type replayListCmd struct {
	consumerName
	command.Limit
}

func (replayListCmd) Prints() any { return v1.Replay{} }

// Run requests one replay more than is shown, to detect that there are more.
func (c *replayListCmd) Run(a *command.App) error {
	return command.List(a, c.Limit, replayColumns...)(a.Client.Replays(a.Ctx, c.Name, c.More()))
}

// replayColumns show how each replay ended, and what it repeated.
var replayColumns = []terminal.Column[v1.Replay]{
	{Title: "replay", Text: func(r v1.Replay) string { return r.ID }},
	{Title: "state", Text: func(r v1.Replay) string { return r.State }, Style: command.StateStyle},
	{Title: "failed", Text: func(r v1.Replay) string { return strconv.FormatInt(r.Failed, 10) }},
	{
		Title: "started",
		Text:  func(r v1.Replay) string { return command.Minute(r.Started) },
		Raw:   func(r v1.Replay) string { return r.Started },
	},
	{Title: "events", Text: replayedText, Share: 1},
}

// replayedText says what a replay repeats: a part of the log, or all that is stored.
func replayedText(r v1.Replay) string {
	if r.Rebuild {
		return "all that is stored"
	}

	// These are as they were asked for, not what they are now.
	text := r.From + " to " + r.Until
	if r.Partition != "" {
		text += " of " + r.Partition
	}

	if r.Filter != "" {
		text += ", " + r.Filter
	}
	return text
}

// replayText is how far a replay is, or how it ended. An interruption is told because events may have been
// handled twice: the target has to bear that.
func replayText(r v1.Replay) string {
	text := "done"
	switch {
	case r.State == v1.ReplayCancelled:
		text = "cancelled"
	// How much is stored is not known before its end, so there is no share.
	case r.State == v1.ReplayRunning && r.Rebuild:
		text = fmt.Sprintf("%d snapshots, %d of %d parts", known(r.Read), known(r.PartitionsDone),
			known(r.Partitions))
	case r.State == v1.ReplayRunning:
		text = fmt.Sprintf("%d of %d events looked at", known(r.Read), known(r.Total))
	}

	if r.Failed > 0 {
		text += fmt.Sprintf(", %d failed", r.Failed)
	}

	if r.Repeats > 0 {
		text += ", " + terminal.Count(int(r.Repeats), "interruption") +
			": some events may have been handled twice"
	}

	if r.Waiting != "" {
		text += "; waits: " + r.Waiting
	}
	return text
}

// replayID is the argument of the commands on one replay.
type replayID struct {
	ID string `arg:"" name:"replay" help:"Id of a replay."`
}

// replayShowCmd shows also a replay that runs.
type replayShowCmd struct {
	replayID
	command.Followed
}

func (replayShowCmd) Prints() any { return v1.Replay{} }

// Run shows one replay. With --watch it fails if events have failed.
func (c *replayShowCmd) Run(a *command.App) error {
	if c.Watch {
		return followReplay(a, c.ID)
	}
	return command.Show(a, showReplay)(a.Client.Replay(a.Ctx, c.ID))
}

// showReplay prints a replay, and what failed in it.
func showReplay(p terminal.Page, r v1.Replay) {
	p.Fields("replay", r.ID, "consumer", r.Consumer, "into", r.Into, "events", replayedText(r),
		"state", r.State,
		"result", replayText(r), "reason", r.Reason, "by", r.Actor, "started", r.Started,
		"ended", r.Ended)
	showReplayFailures(p, r)
}

// showReplayFailures prints what failed, with the reasons in full.
func showReplayFailures(p terminal.Page, r v1.Replay) {
	for _, f := range r.Failures {
		fmt.Fprintf(p, "\n%s  %s\n", terminal.Red.Of("failed"), terminal.Printable(f.Event))
		p.Lines("  ", f.Reason)
	}
}

// followReplay shows a replay until it has ended, and what failed. It runs by itself: an interrupt, or an API
// that does not answer, ends only the command, which says how to follow and how to end it.
func followReplay(a *command.App, id string) error {
	var last v1.Replay
	err := a.Watch(func() (s command.Snapshot, err error) {
		last, err = a.Client.Replay(a.Ctx, id)
		return replaySnapshot(last), err
	})
	if a.Ctx.Err() != nil || fault.Is(err, fault.Unavailable) {
		fmt.Fprintf(a.Errors,
			"archivist: replay %s continues; to follow it, run archivist consumer show-replay %s --watch, "+
				"to end it, archivist consumer cancel-replay %s --reason TEXT\n", id, id, id)
		return err
	}

	if a.JSON == nil {
		showReplayFailures(a.Page(), last)
	}
	return err
}

// known is a number of a replay that runs, 0 if it is not known.
func known[N int | int64](n *N) N {
	if n == nil {
		return 0
	}
	return *n
}

// replaySnapshot summarizes a replay. It fails if it was cancelled, or if events failed: a replay parks nothing, so
// they are nowhere else.
func replaySnapshot(r v1.Replay) command.Snapshot {
	s := command.Snapshot{
		Things: []any{r},
		State:  r.State,
		Text:   replayText(r),
		Bar:    true,
		Done:   known(r.Read),
		Of:     known(r.Total),
		Over:   r.State != v1.ReplayRunning,
	}

	switch {
	case r.State == v1.ReplayCancelled:
		s.Failed = fault.New(fault.Conflict, "replay %s was cancelled; what it had handled, stays", r.ID)
	case r.Failed > 0:
		s.Failed = fault.New(fault.Conflict,
			"%s failed; they are not parked: replay them again, with a filter",
			terminal.Count(int(r.Failed), "event"))
	}
	return s
}

// replayCancelCmd ends a replay after the events that it is handling. What is handled, stays.
type replayCancelCmd struct {
	replayID
	Reason string `required:"" help:"Why. It is kept in the events." placeholder:"TEXT"`
	Key    string `name:"idempotency-key" help:"${help_action_key}" placeholder:"KEY"`
}

func (replayCancelCmd) Prints() any { return v1.Replay{} }

// Run cancels the replay.
func (c *replayCancelCmd) Run(a *command.App) error {
	return command.Show(a, showReplay)(
		a.Client.ActOnReplay(a.Ctx, c.ID, v1.ReplayAction{Action: "cancel", Reason: c.Reason},
			cmp.Or(c.Key, rand.Text())))
}
