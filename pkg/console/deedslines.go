package console

import "archivist/pkg/kernel/access"

// onComponents is what can be done to a component. Its states: runs or paused, also working while a run goes on.
var onComponents = deedKind{Page: "components/{0}", Path: "/v1/components/{0}/actions",
	Deeds: []deed{
		{Name: "run", Title: "Run now", Role: access.Operator, States: []string{"runs"},
			Path:  "/v1/components/{0}/runs",
			Means: "A run begins, and works on the items that are ready.", Done: "A run has begun.",
			To: "components/{0}/runs/{id}", Command: "archivist component run {0}"},
		{Name: "pause", Title: "Pause", Role: access.Operator, States: []string{"runs"},
			Means: "No run and no item begins. Items wait.", Done: "It is paused: items wait.",
			Command: "archivist component pause {0}"},
		{Name: "resume", Title: "Resume", Role: access.Operator, States: []string{"paused"},
			Means: "The pause ends.", Done: "The pause has ended.",
			Command: "archivist component resume {0}"},
		{Name: "interrupt", Title: "Interrupt its runs", Role: access.Operator,
			States: []string{"working"}, Loses: true,
			Means:   "The runs end now. Items that they work on are worked on again later.",
			Done:    "Its runs are interrupted.",
			Command: "archivist component interrupt {0}"},
		{Name: "delete", Title: "Delete", Role: access.Administrator, States: []string{"runs",
			"paused"}, Loses: true,
			Means: "The component is removed from all items. The events that it recorded stay.",
			To:    "components",
			Done:  "The component is deleted.", Command: "archivist component delete {0}"},
	}}

// onItems is what can be done to an item. Its states: goes or stopped; leased while a component works on it.
var onItems = deedKind{Page: "item?id={0}", Path: "/v1/item/actions?id={0}", Deeds: []deed{
	{Name: "event", Title: "Force: record an event by hand", Role: access.Operator,
		Means: "The event counts as if a component had recorded it: the item goes on to what " +
			"needs it.",
		Done: "The event is recorded.", Fields: []asking{
			{Name: "event", Label: "Name of the event", Form: "text", Required: true},
			{Name: "outcome", Label: "Outcome", Form: "choice", Choices: []string{"success",
				"failure"},
				Option: "--outcome"}}, Command: "archivist component item event {0}"},
	{Name: "revoke", Title: "Revoke events", Role: access.Operator, Loses: true,
		Means: "The events do not count any more, and stay in the history. Components that need " +
			"them wait again.",
		Done: "The events are revoked.", Fields: []asking{
			{Name: "events", Label: "Names of the events, with a comma between them",
				Form: "names", Required: true}},
		Command: "archivist component item revoke {0}"},
	{Name: "release", Title: "Release it from a component", Role: access.Operator,
		States: []string{"leased"}, Loses: true,
		Means: "The component does not have the item any more. Only if nothing works on it: " +
			"another run can begin it.",
		Done: "The item is released.", Fields: []asking{
			{Name: "component", Label: "Component", Form: "text", Required: true}},
		Command: "archivist component item release {0}"},
	{Name: "prioritize", Title: "Set the priority", Role: access.Operator,
		Means: "Items with a higher number are worked on first.", Done: "Its priority is set.",
		Fields: []asking{
			{Name: "priority", Label: "Priority (9 is first, 1 last)", Form: "number",
				Required: true, Option: "--priority"}},
		Command: "archivist component item prioritize {0}"},
	{Name: "restart", Title: "Begin again", Role: access.Operator, Loses: true,
		Means: "The events from the one that you name on, or from the first failure on, do not " +
			"count any more.",
		Done: "It begins again.", Fields: []asking{
			{Name: "from", Label: "From this event; empty: from the first failure",
				Form: "text", Option: "--first-event"}},
		Command: "archivist component item restart {0}"},
	{Name: "stop", Title: "Stop", Role: access.Operator, States: []string{"goes"},
		Means: "No component begins work on it, until it is begun again.", Done: "It is stopped.",
		Command: "archivist component item stop {0}"},
}}
