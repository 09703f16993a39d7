package api

import (
	"maps"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/access"
)

const (
	taskExampleID = "maps/12/index"
	stateRunning  = "running"
)

// hashExample is the hash of a commit.
const hashExample = "9fceb02d0ae598e95dc970b74767f19372d61af8"

var (
	archiveDefinition = v1.ArchiveDefinition{Title: "Historical maps",
		Location: v1.ArchiveLocation{Kind: "git",
			URL: "https://git.example.org/maps.git", Branch: "main"}}

	archiveExample = v1.Archive{Name: "maps", ArchiveDefinition: archiveDefinition, Mode: "active",
		Ref:   "maps",
		First: 1, Watermark: 12, Head: 12, Looked: timeExample, Created: timeExample}

	taskExample = v1.Task{ID: taskExampleID, Archive: "maps", Revision: 12, Name: "index",
		Trigger: "commit",
		State:   stateRunning, Since: timeExample, Created: timeExample, Attempt: 1, Base: 11,
		Edges: []v1.TaskEdge{{Task: "COMMIT", On: "ended", ID: "maps/12/COMMIT",
			Verdict: "satisfied",
			End:     "succeeded"}}}

	revisionExample = v1.ArchiveRevision{ID: "maps/12", Revision: 12, State: "committed",
		Transaction: hashExample,
		Author:      "ann", Message: "The harbour, second sheet", Notified: timeExample,
		Planned: timeExample, Tasks: 3,
		Ended: 1}

	outputExample = v1.TaskOutput{Path: "build/maps.pdf", Size: 1 << 20,
		SHA256: "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae"}
)

// onTasks is what the descriptions of operations on tasks have in common.
const onTasks = " Ids of tasks have slashes, so they are in the query."

var archiveOperations = map[string]about{
	"listArchives": {tag: "Archives", role: viewer, answer: listOf(archiveExample),
		description: "All archives, by name. Those that were deleted are left out."},
	"getArchive": {tag: "Archives", role: viewer, refusals: []problemType{notFound},
		answer: v1.ArchiveStatus{Archive: archiveExample,
			Open:       map[string]int{"blocked": 1, stateRunning: 1},
			RunningNow: []v1.Task{taskExample}, Limit: 20, Locks: []v1.ArchiveLock{},
			Schedules: []v1.ArchiveSchedule{}},
		description: "How far it is planned, what runs, who has which lock, and what its schedules start next."},
	"putArchive": {tag: "Archives", role: administrator, refusals: []problemType{notFound, conflict,
		changed},
		request: archiveDefinition,
		answer:  archiveExample,
		description: "The same settings again change nothing that matters. The baseline cannot be changed when " +
			"revisions " +
			"are planned. The name of an archive that was deleted begins in a new epoch."},
	"actOnArchive": {tag: "Archives", role: operator, refusals: []problemType{notFound, conflict,
		changed},
		request: v1.ArchiveAction{Action: "pause", Reason: "The repository is being moved."},
		answer:  archiveExample,
		description: "Each action has its own fields; others are refused. If the archive is already as the action " +
			"wants it, nothing is changed. Only an archive that was stopped, because a revision has become " +
			"another, can `restart`. With an `Idempotency-Key` the action is done once."},
	"listArchiveEvents": {tag: "Archives", role: viewer, refusals: []problemType{notFound},
		answer:      events(v1.EventArchiveAdded, "Archive", `{"mode": "active", "epoch": 1}`),
		description: "What people and the service have changed, oldest first."},
	"previewRevision": {tag: "Archives", role: viewer, refusals: []problemType{notFound, conflict},
		answer: v1.RevisionPreview{Revision: 13, Problems: []v1.DefinitionProblem{},
			Tasks: []v1.PreviewTask{
				{Task: "index", Cancels: []v1.PreviewRelation{},
					Awaits: []v1.PreviewRelation{{Task: "index", Revision: 12,
						Why: "index of revision 12, the nearest that has planned it, must end first"}}}}},
		description: "Reads the definition of a revision from the archive, and says what it would plan if it were " +
			"the " +
			"next one. Nothing is changed. It is a conflict if the revision is planned already."},
	"notifyRevision": {tag: "Archives", role: administrator, also: access.Notifier,
		refusals: []problemType{notFound, conflict, changed},
		request:  v1.RevisionNotice{Revision: 12, Transaction: hashExample},
		answer:   revisionExample,
		description: "All that the hook of a repository does. Notices may come in any order and more than once. The " +
			"same revision with another transaction makes the manager ask the repository, and stops the archive if " +
			"that says so. A program that a task runs gives the token of its run in `Archivist-Run`."},
	"listRevisions": {tag: "Archives", role: viewer, refusals: []problemType{notFound},
		answer: listOf(revisionExample),
		description: "The newest first, 100 to a page. `maps` is the present epoch of the archive, `maps@1` the " +
			"first."},
	"getRevision": {tag: "Archives", role: viewer, refusals: []problemType{notFound, conflict},
		answer: v1.RevisionPlan{ArchiveRevision: revisionExample, Plan: []v1.Task{taskExample}},
		description: "The revision with all of its tasks, what each waits for, and what became of that. Whoever is " +
			"going to wait for the revision and is run by a task gives the token of the run in `Archivist-Run`: one " +
			"that would wait for itself, or for a later revision, gets a conflict."},
	"getRevisionGraph": {tag: "Archives", role: viewer, refusals: []problemType{notFound, conflict},
		answer: v1.RevisionGraph{DOT: `digraph "Revision maps/12" {}`, Mermaid: "flowchart LR",
			SVG: `<svg xmlns="http://www.w3.org/2000/svg"/>`,
			Nodes: []v1.GraphNode{{ID: taskExampleID, Label: "index", State: stateRunning,
				Group: "revision 12"}},
			Links: []v1.GraphLink{{From: "maps/11/index", To: taskExampleID, Kind: "depends"}}},
		description: "The tasks of the revision with their states, and those of other revisions that they wait for " +
			"or supersede, or that have superseded them. Of tasks that they supersede, those of the 10 revisions " +
			"before are looked at. It is a conflict if the revision is not planned yet."},
	"listRevisionEvents": {tag: "Archives", role: viewer, refusals: []problemType{notFound},
		answer: events(v1.EventRevisionNotified, "Revision",
			`{"transaction": "9fceb02d", "state": "notified"}`),
		description: "What happened to the revision, oldest first."},

	"listTasks": {tag: "Tasks", role: viewer, refusals: []problemType{notFound},
		answer: listOf(taskExample),
		states: v1.TaskStates,
		description: "The newest first; those of one revision in their order. The filters are applied before the " +
			"paging: a page can be short, and is the last only if it has no cursor."},
	"runTask": {tag: "Tasks", role: operator, refusals: []problemType{notFound, conflict, changed},
		request: v1.TaskRun{Revision: 12, Reason: "The index was damaged."}, answer: taskExample,
		description: "Runs the task with the definition of the revision. It waits for its turn of its lock, and " +
			"supersedes nothing newer. With an `Idempotency-Key`, of letters, digits, hyphens and underscores, the " +
			"same " +
			"request within 7 days gives the same run."},
	"getTask": {tag: "Tasks", role: viewer, refusals: []problemType{notFound},
		answer: v1.TaskDetails{Task: taskExample, Attempts: []v1.TaskAttempt{{Attempt: 1,
			Execution: "task-01M7ZBMEYHBB62YP6RY21T1GQ8", Started: timeExample,
			Began: timeExample}}},
		description: "The task as it stands, with its attempts." + onTasks},
	"listTaskEvents": {tag: "Tasks", role: viewer, refusals: []problemType{notFound},
		answer: events(v1.EventTaskState, "Task",
			`{"from": "ready", "to": "dispatched", "attempt": 1}`),
		description: "What happened to the task, oldest first." + onTasks},
	"getTaskLog": {tag: "Tasks", role: viewer, refusals: []problemType{notFound},
		answer: v1.TaskLog{Attempt: 1, Parts: []v1.TaskLogPart{{Time: timeExample, Stream: "stdout",
			Text: "12 sheets indexed\n"}}, Next: "000001"},
		description: "What the programs of an attempt have written, by default of the newest. To follow it, pass " +
			"`next` " +
			"of each response as `from` of the next request until `ended`. The newest comes first with " +
			"`before=end`: some 64 KiB, of at most 50 stored parts; `first`, passed as `before`, leads to what " +
			"precedes." + onTasks},
	"actOnRevision": {tag: "Archives", role: operator, refusals: []problemType{notFound, conflict,
		changed},
		request: v1.RevisionAction{Action: "rerun-failed", Reason: "The disk was full."},
		answer:  v1.RevisionOutcome{Started: []v1.Task{taskExample}, Left: []string{}},
		description: "Runs the failed tasks of a revision again, with their dependents: a task that also waited for " +
			"another failed one follows that. A task that cannot be run is in `left`. Nothing that has failed is a " +
			"conflict."},
	"listTaskOutputs": {tag: "Tasks", role: viewer, refusals: []problemType{notFound},
		answer: listOf(outputExample),
		description: "The files that an attempt has left, by default the newest. A task of which the newest attempt " +
			"succeeded has all that its definition names." + onTasks},
	"getTaskOutput": {tag: "Tasks", role: viewer, refusals: []problemType{notFound},
		redirect:    "application/octet-stream",
		description: "The content of a file: a redirect to the storage." + onTasks},
	"actOnTask": {tag: "Tasks", role: operator, refusals: []problemType{notFound, conflict,
		changed},
		request: v1.TaskAction{Action: "cancel", Reason: "It hangs."}, answer: taskExample,
		description: "A task that has not started is cancelled at once. One that runs is told to end, and is ended " +
			"after " +
			"a minute. `start` lets a task go on whose state is `manual`; the same person can repeat it. `rerun` " +
			"answers with the new run; `withDependents` names in `follow` what it lets follow. " +
			"COMMIT cannot be cancelled: skip the revision." + onTasks},
}

// archiveParameters describe the parameters of the routes of archives.
var archiveParameters = map[string]parameter{
	"archive":         {"The name of the archive.", "maps"},
	"revision":        {"The number of the revision.", ""},
	"task":            {"The name of the task.", "index"},
	"attempt":         {"The number of the attempt. Omit it for the newest.", ""},
	"Archivist-Run":   {"The token of the run that makes the request.", ""},
	"getTaskLog from": {"What the page before has as next.", "000001"},
	"getTaskLog before": {"What ends the page: `end`, or the first of another page. Not with from.",
		"000002"},
	"getTaskOutput path":       {"The path of the file.", "build/maps.pdf"},
	"listTasks task":           {"Only tasks of this name.", "index"},
	"listTasks revision":       {"Only those of this revision.", ""},
	"listTasks state":          {"Only tasks in this state. Case is ignored.", stateRunning},
	"previewRevision revision": {"The number of the revision. Omit it for the newest.", ""},
}

func init() {
	maps.Copy(operations, archiveOperations)
	maps.Copy(parameters, archiveParameters)
	for _, id := range []string{"getTask", "listTaskEvents", "getTaskLog",
		"listTaskOutputs",
		"getTaskOutput", "actOnTask"} {
		parameters[id+" id"] = parameter{"The id of the task.", taskExampleID}
	}
}
