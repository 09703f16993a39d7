package console

import (
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/access"
)

// Fields that several deeds on tasks have.
var (
	forceField = asking{Name: "force", Label: "Although a newer revision has a result",
		Form: "flag", Option: "--force"}
	setField = asking{Name: "parameters", Label: "Parameters, each on a line: NAME=VALUE",
		Form:   "values",
		Option: "--set"}
)

// onArchives is what can be done to an archive. Its states are its modes.
var onArchives = deedKind{Page: "archives/{0}", Path: "/v1/archives/{0}/actions", Deeds: []deed{
	{Name: "pause", Title: "Pause", Role: access.Operator, States: []string{"active"},
		Means: "Nothing more is planned or started. What runs goes on.", Done: "It is paused.",
		Command: "archivist archive pause {0}"},
	{Name: "resume", Title: "Resume", Role: access.Operator, States: []string{"paused"},
		Means: "Revisions are planned and tasks started again.", Done: "The pause has ended.",
		Command: "archivist archive resume {0}"},
	{Name: "restart", Action: "resume", Title: "Restart", Role: access.Operator,
		States: []string{"stopped"}, Loses: true,
		Means: "It begins anew at the revision that you give. Revisions before it that are not " +
			"planned get no tasks.",
		Done: "It begins anew.", Fields: []asking{{Name: "restart",
			Label: "Begin anew at revision", Form: "number",
			Option: "--restart", Required: true}}, Command: "archivist archive resume {0}"},
	{Name: "skip", Title: "Skip a revision", Role: access.Operator, States: []string{"active",
		"paused", "stopped"},
		Loses: true, Means: "The revision gets no tasks, and those after it are planned. Use it " +
			"for one that cannot be read.",
		Done: "The revision is skipped.", Fields: []asking{{Name: "revision",
			Label: "Number of the revision",
			Form:  "number", Required: true}}, Command: "archivist archive skip {0}"},
	{Name: "backfill", Title: "Plan earlier revisions", Role: access.Operator,
		States: []string{"active", "paused"},
		Means:  "Revisions before the first one that was planned get their tasks, too.",
		Done:   "Earlier revisions are being planned.", Fields: []asking{
			{Name: "from", Label: "From revision", Form: "number", Required: true},
			{Name: "to", Label: "To revision", Form: "number", Required: true}},
		Command: "archivist archive backfill {0}"},
	{Name: "run", Title: "Run a task", Role: access.Operator,
		Path: "/v1/archives/{0}/tasks/{1}/runs", Row: true,
		Means: "The task runs once more, beside what revisions start.", To: "task?id={id}",
		Done: "The run is planned.",
		Fields: []asking{{Name: "revision", Label: "At this revision; empty: the newest that is " +
			"planned", Form: "number",
			Option: "--revision"}, forceField, setField},
		Command: "archivist archive task run {0} {1}"},
	{Name: "delete", Title: "Delete", Role: access.Administrator, States: []string{"active",
		"paused", "stopped"},
		Loses: true, Means: "What has not ended is cancelled, and the archive is forgotten. Its " +
			"history stays.",
		Done: "It is being deleted.", Command: "archivist archive delete {0}"},
}}

// onRevisions is what can be done to a revision. The state is failed if one of its tasks is.
var onRevisions = deedKind{Page: "archives/{0}/revisions/{1}",
	Path: "/v1/archives/{0}/revisions/{1}/actions",
	Deeds: []deed{{Name: "rerun-failed", Title: "Run failed tasks again", Role: access.Operator,
		States: []string{"failed"}, Means: "Each failed task runs again, and then what waited " +
			"for it.",
		Done: "The failed tasks run again.", Fields: []asking{forceField},
		Command: "archivist archive task rerun {0}/{1} --failed"}}}

// onTasks is what can be done to a task of a revision.
var onTasks = deedKind{Page: "task?id={0}", Path: "/v1/task/actions?id={0}", Deeds: []deed{
	{Name: "start", Title: "Start", Role: access.Operator, States: []string{"manual"},
		Means: "A person has to start this task: it starts now.", Done: "It is started.",
		Fields: []asking{setField}, Command: "archivist archive task start {0}"},
	{Name: "rerun", Title: "Run again", Role: access.Operator, States: v1.TaskEnds,
		Means: "It runs again, with the same revision.", Done: "It runs again.",
		To: "task?id={id}", Fields: []asking{
			{Name: "withDependents", Label: "With what waited for it", Form: "flag",
				Option: "--with-dependents"},
			forceField, setField}, Command: "archivist archive task rerun {0}"},
	{Name: "cancel", Title: "Cancel", Role: access.Operator, States: v1.TaskStates[:7], Loses: true,
		Means: "It ends. A program that runs is told to stop; what it has not left is lost. " +
			"What waits for it may be skipped.",
		Done: "It is being cancelled.", Command: "archivist archive task cancel {0}"},
}}
