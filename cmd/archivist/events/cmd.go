package events

// Cmd is for the log of events.
type Cmd struct {
	List   eventListCmd   `cmd:"" help:"List events of a subject, of a collection, or of a partition of the log."`
	Acts   eventActsCmd   `cmd:"" help:"List what people did, and why, over all logs."`
	Tail   eventTailCmd   `cmd:"" help:"Show the newest events of a partition of the log, and follow it."`
	Show   eventShowCmd   `cmd:"" help:"Show all that an event says."`
	Verify eventVerifyCmd `cmd:"" help:"Check that the archive of events is as it was written."`

	RaiseEpoch eventRaiseEpochCmd `cmd:"" help:"${help_raise_epoch}"`
}

// ConsumerCmd is for what reacts to events: its definition, its place in the log, replays, and the events that
// it could not handle.
type ConsumerCmd struct {
	List  consumerListCmd  `cmd:"" help:"List the consumers, and how far they have come."`
	Show  consumerShowCmd  `cmd:"" help:"Show a consumer, and its place in each partition of the log."`
	Apply consumerApplyCmd `cmd:"" help:"Create a consumer, or change its definition."`

	Pause  consumerActCmd    `cmd:"" help:"Handle no more events. They wait."`
	Resume consumerActCmd    `cmd:"" help:"End the pause of a consumer."`
	Run    consumerActCmd    `cmd:"" help:"Let a consumer with a schedule run now."`
	Skip   consumerSkipCmd   `cmd:"" help:"Pass events without handling them."`
	Reset  consumerResetCmd  `cmd:"" help:"Go back or forward to another place in the log."`
	Delete consumerDeleteCmd `cmd:"" help:"Remove a consumer and its places in the log. Events stay."`

	Replay  consumerReplayCmd  `cmd:"" help:"Handle past events again."`
	Rebuild consumerRebuildCmd `cmd:"" help:"Rebuild what a consumer keeps, from all that is stored."`

	// They are about replays that were started by the two.
	Replays      replayListCmd   `cmd:"" help:"List the replays of a consumer, newest first."`
	ShowReplay   replayShowCmd   `cmd:"" help:"Show a replay, and what failed."`
	CancelReplay replayCancelCmd `cmd:"" help:"End a replay. What is handled, stays."`

	Parked  consumerParkedCmd    `cmd:"" help:"List the events that a consumer could not handle."`
	Redrive consumerParkedActCmd `cmd:"" help:"Handle parked events again."`
	Discard consumerParkedActCmd `cmd:"" help:"Give up parked events; handle those that wait behind them."`
	Preview consumerPreviewCmd   `cmd:"" help:"Show which past events a filter selects."`
}
