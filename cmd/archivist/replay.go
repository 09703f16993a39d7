package main

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"strconv"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/fault"
	"archivist/pkg/terminal"
)

// replayCmd is for replays that were started.
type replayCmd struct {
	List   replayListCmd   `cmd:"" help:"List the replays of a consumer, newest first."`
	Show   replayShowCmd   `cmd:"" help:"Show a replay, and what failed."`
	Watch  replayWatchCmd  `cmd:"" help:"Follow a replay until it has ended."`
	Cancel replayCancelCmd `cmd:"" help:"End a replay. What is handled, stays."`
}

// consumerReplayCmd repeats events.
type consumerReplayCmd struct {
	consumerActing
	From      string `help:"First event: horizon, time:TIME, or seq:NUMBER." default:"horizon" placeholder:"PLACE"`
	Until     string `help:"Last event: latest, time:TIME, or seq:NUMBER." default:"latest" placeholder:"PLACE"`
	Partition string `help:"Only in this partition of the log." placeholder:"NAME"`
	Filter    string `help:"Only events that this filter selects." placeholder:"FILTER"`
	Into      string `help:"${help_into}" placeholder:"SHADOW"`
	Watch     bool   `default:"true" negatable:"" help:"Follow it until it has ended."`
}

func (consumerReplayCmd) prints() any { return v1.Replay{} }

// Run fails if events have failed.
func (c *consumerReplayCmd) Run(a *app) error {
	return a.replay(c.consumerActing, v1.ReplayRequest{From: c.From, Until: c.Until, Partition: c.Partition,
		Filter: c.Filter, Into: c.Into}, c.Watch)
}

// consumerRebuildCmd makes again what a consumer keeps.
type consumerRebuildCmd struct {
	consumerActing
	Into  string `help:"${help_into}" placeholder:"SHADOW"`
	Watch bool   `default:"true" negatable:"" help:"Follow it until it has ended."`
}

func (consumerRebuildCmd) prints() any { return v1.Replay{} }

// Run fails if snapshots have failed.
func (c *consumerRebuildCmd) Run(a *app) error {
	return a.replay(c.consumerActing, v1.ReplayRequest{Rebuild: true, Into: c.Into}, c.Watch)
}

// replay starts a replay, and follows it.
func (a *app) replay(c consumerActing, in v1.ReplayRequest, follow bool) error {
	in.Reason = c.Reason
	r, err := a.client.StartReplay(a.ctx, c.Name, in, cmp.Or(c.Key, rand.Text()))
	if err != nil {
		return err
	}
	if !follow {
		return a.showReplay(r)
	}
	fmt.Fprintf(a.errors, "replay %s\n", terminal.Printable(r.ID))
	return a.followReplay(r.ID)
}

// replayListCmd finds a replay whose id is not known.
type replayListCmd struct {
	consumerName
	limit
}

func (replayListCmd) prints() any { return v1.Replay{} }

// Run requests one replay more than is shown, to detect that there are more.
func (c *replayListCmd) Run(a *app) error {
	list, err := a.client.Replays(a.ctx, c.Name, c.more())
	if err != nil {
		return err
	}
	list = limited(a, c.limit, list)
	return a.print(list, func(p terminal.Page) { terminal.Table(p, list, replayColumns...) })
}

var replayColumns = []terminal.Column[v1.Replay]{
	{Title: "replay", Text: func(r v1.Replay) string { return r.ID }},
	{Title: "state", Text: func(r v1.Replay) string { return r.State }, Style: stateStyle},
	{Title: "failed", Text: func(r v1.Replay) string { return strconv.FormatInt(r.Failed, 10) }},
	{Title: "started", Text: func(r v1.Replay) string { return minute(r.Started) },
		Raw: func(r v1.Replay) string { return r.Started }},
	{Title: "events", Text: replayedText, Share: 1},
}

// replayedText says what a replay repeats.
func replayedText(r v1.Replay) string {
	if r.Rebuild {
		return "all that is stored"
	}
	text := r.From + " to " + r.Until
	if r.Partition != "" {
		text += " of " + r.Partition
	}
	if r.Filter != "" {
		text += ", " + r.Filter
	}
	return text
}

// replayText is how far a replay is, or how it ended.
func replayText(r v1.Replay) string {
	text := "done"
	switch {
	case r.State == v1.ReplayCancelled:
		text = "cancelled"
	case r.State == v1.ReplayRunning && r.Rebuild:
		text = fmt.Sprintf("%d snapshots, %d of %d parts", r.Read, r.PartitionsDone, r.Partitions)
	case r.State == v1.ReplayRunning:
		text = fmt.Sprintf("%d of %d events looked at", r.Read, r.Total)
	}
	if r.Failed > 0 {
		text += fmt.Sprintf(", %d failed", r.Failed)
	}
	if r.Repeats > 0 {
		text += ", " + terminal.Count(int(r.Repeats), "interruption") + ": some events may have been handled twice"
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
type replayShowCmd struct{ replayID }

func (replayShowCmd) prints() any { return v1.Replay{} }

// Run shows one replay.
func (c *replayShowCmd) Run(a *app) error {
	r, err := a.client.Replay(a.ctx, c.ID)
	if err != nil {
		return err
	}
	return a.showReplay(r)
}

func (a *app) showReplay(r v1.Replay) error {
	return a.print(r, func(p terminal.Page) {
		p.Fields("replay", r.ID, "consumer", r.Consumer, "into", r.Into, "events", replayedText(r), "state", r.State,
			"result", replayText(r), "reason", r.Reason, "by", r.Actor, "started", r.Started, "ended", r.Ended)
		showReplayFailures(p, r)
	})
}

// showReplayFailures prints what failed.
func showReplayFailures(p terminal.Page, r v1.Replay) {
	for _, f := range r.Failures {
		fmt.Fprintf(p, "\n%s  %s\n", terminal.Red.Of("failed"), terminal.Printable(f.Event))
		p.Lines("  ", f.Reason)
	}
}

// replayWatchCmd follows a replay that somebody has started.
type replayWatchCmd struct{ replayID }

func (replayWatchCmd) prints() any { return v1.Replay{} }

// Run fails if events have failed.
func (c *replayWatchCmd) Run(a *app) error { return a.followReplay(c.ID) }

// followReplay shows a replay until it has ended. It runs by itself: an interrupt ends only the
// command.
func (a *app) followReplay(id string) error {
	var last v1.Replay
	err := a.watch(func() (s sight, err error) {
		last, err = a.client.Replay(a.ctx, id)
		return replaySight(last), err
	})
	if a.ctx.Err() != nil || fault.Is(err, fault.Unavailable) {
		fmt.Fprintf(a.errors, "archivist: replay %s continues; to follow it, run archivist replay watch %s, "+
			"to end it, archivist replay cancel %s --reason TEXT\n", id, id, id)
		return err
	}
	if a.json == nil {
		showReplayFailures(a.page(), last)
	}
	return err
}

// replaySight summarizes a replay.
func replaySight(r v1.Replay) sight {
	s := sight{things: []any{r}, state: r.State, text: replayText(r), bar: true, done: r.Read, of: r.Total,
		over: r.State != v1.ReplayRunning}
	switch {
	case r.State == v1.ReplayCancelled:
		s.failed = fault.New(fault.Conflict, "replay %s was cancelled; what it had handled, stays", r.ID)
	case r.Failed > 0:
		s.failed = fault.New(fault.Conflict, "%s failed; they are not parked: replay them again, with a filter",
			terminal.Count(int(r.Failed), "event"))
	}
	return s
}

// replayCancelCmd ends a replay.
type replayCancelCmd struct {
	replayID
	Reason string `required:"" help:"Why. It is kept in the events." placeholder:"TEXT"`
	Key    string `name:"idempotency-key" help:"${help_action_key}" placeholder:"KEY"`
}

func (replayCancelCmd) prints() any { return v1.Replay{} }

// Run cancels the replay.
func (c *replayCancelCmd) Run(a *app) error {
	r, err := a.client.ActOnReplay(a.ctx, c.ID, v1.ReplayAction{Action: "cancel", Reason: c.Reason},
		cmp.Or(c.Key, rand.Text()))
	if err != nil {
		return err
	}
	return a.showReplay(r)
}
