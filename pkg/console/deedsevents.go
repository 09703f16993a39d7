package console

import (
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/access"
)

// Fields that several deeds have.
var (
	allField   = asking{Name: "all", Value: "true", Option: "--all"}
	eventField = asking{Name: "event", Label: "Event", Form: "text", Option: "--event",
		Required: true}
	partitionField = asking{Name: "partition", Label: "Only this partition of the log",
		Form:   "text",
		Option: "--partition"}
	filterField = asking{Name: "filter", Label: "Only events that this filter selects, e.g. " +
		"Object+Modify",
		Form: "filter", Option: "--filter"}
	whichField = asking{Name: "filter",
		Label: "Events that this filter selects, e.g. Object+Modify", Form: "filter",
		Option: "--filter", Required: true}
	intoField = asking{Name: "into", Label: "Name of a shadow, to build something else beside " +
		"what is in use",
		Form: "text", Option: "--into"}
)

// onConsumers is what can be done to a consumer. Its states: runs or paused, also parked and scheduled.
var onConsumers = deedKind{Page: "consumers/{0}", Path: "/v1/consumers/{0}/actions", Deeds: []deed{
	{Name: "redrive", Title: "Handle all parked events again", Role: access.Operator,
		States: []string{"parked"},
		Means: "The parked events are handled again, the oldest first. Correct the cause of " +
			"their failure first.",
		Done:   "The parked events are handled again within a minute or two.",
		Fields: []asking{allField}, Command: "archivist consumer redrive {0}"},
	{Name: "redrive-some", Action: "redrive", Title: "Handle some parked events again",
		Role:   access.Operator,
		States: []string{"parked"},
		Means: "The parked events that a filter selects are handled again. First you see what " +
			"it selects.",
		Done:   "The parked events that were selected are handled again within a minute or two.",
		Fields: []asking{whichField}, Command: "archivist consumer redrive {0}"},
	{Name: "redrive-one", Action: "redrive", Title: "Handle a parked event again",
		Role: access.Operator, Row: true,
		Means:  "It is handled again, and then those that wait behind it.",
		Done:   "The event is handled again within a minute or two.",
		Fields: []asking{eventField}, Command: "archivist consumer redrive {0}"},
	{Name: "discard", Title: "Give up all parked events", Role: access.Operator,
		States: []string{"parked"}, Loses: true,
		Means: "The consumer never handles the parked events. What it keeps may lack them " +
			"until it is rebuilt.",
		Done:   "The parked events are given up within a minute or two.",
		Fields: []asking{allField}, Command: "archivist consumer discard {0}"},
	{Name: "discard-one", Action: "discard", Title: "Give up a parked event",
		Role: access.Operator, Row: true, Loses: true,
		Means:  "The consumer never handles this event. Those that wait behind it are handled.",
		Done:   "The event is given up within a minute or two.",
		Fields: []asking{eventField}, Command: "archivist consumer discard {0}"},
	{Name: "skip", Title: "Pass events up to the one that it stands before",
		Role: access.Operator, Row: true, Loses: true,
		Means: "The events of the partition up to this number are passed, and not handled.",
		Done:  "The events are passed.", Fields: []asking{
			{Name: "partition", Label: "Partition of the log", Form: "text",
				Option: "--partition", Required: true},
			{Name: "seq", Label: "Number of the last event that is passed", Form: "number",
				Option:   "--seq",
				Required: true}}, Command: "archivist consumer skip {0}"},
	{Name: "pause", Title: "Pause", Role: access.Operator, States: []string{"runs"},
		Means: "It handles no more events. They wait.", Done: "It is paused: its events wait.",
		Command: "archivist consumer pause {0}"},
	{Name: "resume", Title: "Resume", Role: access.Operator, States: []string{"paused"},
		Means: "The pause ends: it goes on from where it was.", Done: "The pause has ended.",
		Command: "archivist consumer resume {0}"},
	{Name: "run", Title: "Run now", Role: access.Operator, States: []string{"scheduled"},
		Means:   "It runs within a minute, as if the time of its schedule had come.",
		Done:    "It runs within a minute.",
		Command: "archivist consumer run {0}"},
	{Name: "replay", Title: "Replay events", Role: access.Operator,
		Path: "/v1/consumers/{0}/replays",
		To:   "replays/{id}",
		Means: "It handles past events again, beside the new ones. If you give a filter, you " +
			"first see what it selects.",
		Done: "The replay has begun.", Fields: []asking{
			{Name: "from", Label: "From: horizon (the oldest), time:2026-11-01T00:00:00Z or " +
				"seq:NUMBER", Form: "text",
				Option: "--from"},
			{Name: "until", Label: "Until: latest, time:TIME or seq:NUMBER", Form: "text",
				Option: "--until"},
			partitionField, filterField, intoField}, Command: "archivist consumer replay {0}"},
	{Name: "rebuild", Title: "Rebuild what it keeps", Role: access.Operator,
		Path: "/v1/consumers/{0}/replays",
		To:   "replays/{id}", Loses: true,
		Means: "It gets a snapshot of all that is stored now, and then new events. It does not " +
			"run before the end of that.",
		Done: "The rebuild has begun.", Fields: []asking{{Name: "rebuild", Value: "true"},
			intoField},
		Command: "archivist consumer rebuild {0}"},
	{Name: "reset", Title: "Go to another place in the log", Role: access.Operator, Loses: true,
		Means: "It goes on there: events are handled again, or are passed and never handled.",
		Done:  "It goes on at the other place.", Fields: []asking{
			{Name: "to", Label: "To: latest, horizon, time:TIME, or seq:NUMBER of a partition",
				Form:   "text",
				Option: "--to", Required: true}, partitionField},
		Command: "archivist consumer reset {0}"},
	{Name: "delete", Title: "Delete", Role: access.Administrator, Loses: true, To: "consumers",
		Means: "The consumer and its places in the log are removed. Events stay.",
		Done:  "The consumer is deleted.",
		Fields: []asking{{Name: "discard", Label: "Give up its parked events, too",
			Form: "flag", Option: "--discard"}},
		Command: "archivist consumer delete {0}"},
}}

// onReplays is what can be done to a replay.
var onReplays = deedKind{Page: "replays/{0}", Path: "/v1/replays/{0}/actions", Deeds: []deed{
	{Name: "cancel", Title: "Cancel", Role: access.Operator, States: []string{v1.ReplayRunning},
		Loses:   true,
		Means:   "It ends before all is handled. What it has handled, stays.",
		Done:    "It is cancelled.",
		Command: "archivist consumer cancel-replay {0}"},
}}
