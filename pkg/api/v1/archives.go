package v1

// ArchiveLocation says where an archive is.
type ArchiveLocation struct {
	// object: a preserved object, whose revisions are its versions. git, svn: a repository.
	Kind string `json:"kind" enum:"object,git,svn" example:"git"`
	// The URL of a repository: https, http or, of Git, s3.
	URL string `json:"url,omitempty" maxLength:"1000" example:"https://git.example.org/maps.git"`
	// The branch of a Git repository. Its first parents are the revisions, counted from 1.
	Branch string `json:"branch,omitempty" maxLength:"200" example:"main"`
	// The ARK of an object.
	ARK string `json:"ark,omitempty" maxLength:"300" example:"ark:/99999/fk4tq65d6k"`
	// The name of a secret in AWS Secrets Manager that has user:password.
	Secret string `json:"secret,omitempty" maxLength:"512" example:"archivist/maps"`
}

// ArchiveDefinition is an archive as it is configured. A field that is left out has its default.
type ArchiveDefinition struct {
	// What people call it.
	Title string `json:"title,omitempty" maxLength:"300" example:"Historical maps"`
	// Where it is.
	Location ArchiveLocation `json:"location"`
	// The first revision that is planned. By default the first that is notified; of an object, its newest version.
	Baseline int64 `json:"baseline,omitempty" minimum:"0" example:"1"`
	// How often the archive itself is asked for its newest revision: 60 to 2,592,000; -1 for never. By default 3,600.
	ReconcileSeconds int64 `json:"reconcileSeconds,omitempty" example:"3600"`
	// How many tasks run at once, at most: 1 to 500. By default 20.
	Running int `json:"running,omitempty" minimum:"0" example:"20"`
}

// Archive is what has revisions: a preserved object, a Git or a Subversion repository.
type Archive struct {
	// The name: lower-case letters, digits and hyphens.
	Name string `json:"name" example:"maps"`
	ArchiveDefinition
	// active: revisions are planned and tasks are started. paused, by a person, and stopped, because a revision has
	// become another: neither; what runs goes on. deleting: what has not ended is cancelled.
	Mode string `json:"mode" enum:"active,paused,stopped,deleting,deleted" example:"active"`
	// Why it is not active.
	Why string `json:"why,omitempty" example:"The repository is being moved."`
	// The first part of the ids of its revisions and tasks: its name, and from its second epoch on the number of that.
	Ref string `json:"ref" example:"maps"`
	// The first revision that is planned. Absent: none is known yet.
	First int64 `json:"first,omitempty" example:"1"`
	// All revisions from the first to this one are planned.
	Watermark int64 `json:"watermark" example:"12"`
	// Its newest revision, when it was asked last.
	Head int64 `json:"head,omitempty" example:"12"`
	// When it was asked last.
	Looked string `json:"looked,omitempty" format:"date-time" example:"2026-11-22T09:30:00Z"`
	// When it was added.
	Created string `json:"created" format:"date-time" example:"2026-11-22T09:30:00Z"`
	// Why its next revision cannot be read.
	Trouble *ArchiveTrouble `json:"trouble,omitempty"`
}

// ArchiveTrouble says why a revision cannot be read.
type ArchiveTrouble struct {
	// The revision.
	Revision int64 `json:"revision" example:"13"`
	// The reason.
	Reason string `json:"reason" example:"https://git.example.org/maps.git answered 503 Service Unavailable"`
	// When it was tried first.
	Since string `json:"since" format:"date-time" example:"2026-11-22T09:30:00Z"`
	// How often it was tried.
	Tries int `json:"tries" example:"3"`
	// When it is tried again.
	Next string `json:"next" format:"date-time" example:"2026-11-22T09:34:00Z"`
}

// ArchiveGap is a revision that nobody has notified, while a later one was notified.
type ArchiveGap struct {
	// The revision that is missing.
	Missing int64 `json:"missing" example:"13"`
	// The first revision behind the gap that was notified.
	Behind int64 `json:"behind" example:"14"`
	// When that was notified.
	Since string `json:"since" format:"date-time" example:"2026-11-22T09:30:00Z"`
	// When the archive itself is asked for it.
	Looks string `json:"looks,omitempty" format:"date-time" example:"2026-11-22T09:31:00Z"`
}

// ArchiveLock is a lock: the tasks that need it run one at a time, in the order of their revisions.
type ArchiveLock struct {
	// Its name.
	Name string `json:"name" example:"database"`
	// The id of the task that has it. Absent: none has.
	Holder string `json:"holder,omitempty" example:"maps/12/index"`
	// How many others need it.
	Waiting int `json:"waiting" example:"2"`
}

// ArchiveSchedule starts a task at times.
type ArchiveSchedule struct {
	// The name of the task.
	Task string `json:"task" example:"report"`
	// When, in five fields: minute, hour, day of the month, month, day of the week.
	Cron string `json:"cron" example:"30 2 * * *"`
	// The time zone.
	Zone string `json:"zone" example:"Europe/Berlin"`
	// What becomes of a time while the run of the time before goes on.
	Overlap string `json:"overlap" enum:"skip,queue,replace" example:"skip"`
	// The next time.
	Next string `json:"next" format:"date-time" example:"2026-11-23T01:30:00Z"`
}

// ArchiveBackfill plans revisions before the first.
type ArchiveBackfill struct {
	// The revision that is planned next.
	Next int64 `json:"next" example:"3"`
	// The last one.
	To int64 `json:"to" example:"10"`
}

// ArchiveStatus is an archive with what goes on in it.
type ArchiveStatus struct {
	Archive
	// The revision that is missing, so that those behind it cannot be planned.
	Gap *ArchiveGap `json:"gap,omitempty"`
	// The number of tasks that have not ended, by state.
	Open map[string]int `json:"open"`
	// Whether there are more of them, which were not counted.
	More bool `json:"more,omitempty"`
	// Those that are dispatched or run, in their order.
	RunningNow []Task `json:"runningNow"`
	// How many can, at most.
	Limit int `json:"limit" example:"20"`
	// The locks that are held or needed.
	Locks []ArchiveLock `json:"locks"`
	// The schedules, the next one first.
	Schedules []ArchiveSchedule `json:"schedules"`
	// The back-fill that goes on.
	Backfill *ArchiveBackfill `json:"backfill,omitempty"`
}

// ArchiveAction is a request to act on an archive. Each action has its own fields.
type ArchiveAction struct {
	// pause: nothing more is planned or started. resume: it goes on. skip: a revision gets no tasks. backfill: plan
	// revisions before the first. delete: cancel what has not ended, and forget the archive; its history stays.
	Action string `json:"action" enum:"pause,resume,skip,backfill,delete" example:"pause"`
	// The reason. It is kept in the events.
	Reason string `json:"reason" minLength:"1" maxLength:"500" example:"The repository is being moved."`
	// For resume of an archive that is stopped: begin anew at this revision, in a new epoch. Absent: go on as it was.
	Restart int64 `json:"restart,omitempty" minimum:"1" example:"12"`
	// For skip: the revision.
	Revision int64 `json:"revision,omitempty" minimum:"1" example:"13"`
	// For backfill: the first revision.
	From int64 `json:"from,omitempty" minimum:"1" example:"3"`
	// For backfill: the last revision.
	To int64 `json:"to,omitempty" minimum:"1" example:"10"`
}

// RevisionNotice says that a revision was committed.
type RevisionNotice struct {
	// The number of the revision.
	Revision int64 `json:"revision" minimum:"1" example:"12"`
	// Which revision it is, such as the hash of a commit. The same number with another one stops the archive,
	// if the repository says so, too.
	Transaction string `json:"transaction,omitempty" maxLength:"200" example:"9fceb02d0ae598e95dc970b74767f19372d61af8"`
}

// ArchiveRevision is a revision of an archive.
type ArchiveRevision struct {
	// The id.
	ID string `json:"id" example:"maps/12"`
	// Its number.
	Revision int64 `json:"revision" example:"12"`
	// notified; planning; committed: its tasks are planned; invalid: its definition is, so it has no tasks; skipped, by
	// a person: likewise; before: it is before the first revision.
	State string `json:"state" enum:"notified,planning,committed,invalid,skipped,before" example:"committed"`
	// Which revision it is.
	Transaction string `json:"transaction,omitempty" example:"9fceb02d0ae598e95dc970b74767f19372d61af8"`
	// Who committed it.
	Author string `json:"author,omitempty" example:"ann"`
	// The message of the commit.
	Message string `json:"message,omitempty" example:"The harbour, second sheet"`
	// When it was committed.
	Time string `json:"time,omitempty" format:"date-time" example:"2026-11-22T09:29:58Z"`
	// When it was notified.
	Notified string `json:"notified" format:"date-time" example:"2026-11-22T09:30:00Z"`
	// When it was planned.
	Planned string `json:"planned,omitempty" format:"date-time" example:"2026-11-22T09:30:02Z"`
	// The hash of its definition: equal ones are equal.
	Definition string `json:"definition,omitempty" example:"b5bb9d8014a0f9b1d61e21e796d78dccdf1352f2"`
	// What is wrong with its definition.
	Problems []DefinitionProblem `json:"problems,omitempty"`
	// Why it was skipped, or why the token of its commit was not accepted.
	Reason string `json:"reason,omitempty" example:"The revision is damaged."`
	// The id of the task that made it.
	MadeBy string `json:"madeBy,omitempty" example:"maps/11/convert"`
	// The names of the tasks that led to it, the nearest last.
	Chain []string `json:"chain,omitempty" example:"[\"convert\"]"`
	// The number of its tasks, COMMIT and runs included.
	Tasks int64 `json:"taskCount" example:"3"`
	// How many of them have ended.
	Ended int64 `json:"endedCount" example:"1"`
}

// DefinitionProblem is why a file below _workflows is no definition.
type DefinitionProblem struct {
	// The path of the file.
	File string `json:"file" example:"_workflows/all.yaml"`
	// The line, from 1. Absent: the file as a whole.
	Line int `json:"line,omitempty" example:"3"`
	// The column, from 1.
	Column int `json:"column,omitempty" example:"5"`
	// What is wrong.
	Message string `json:"message" example:"unknown key \"depend\"; did you mean depends?"`
}

// RevisionPlan is a revision with its tasks.
type RevisionPlan struct {
	ArchiveRevision
	// Its tasks in their order, COMMIT first. None until the revision is planned.
	Plan []Task `json:"plan"`
	// Whether there are more runs by hand or by schedule; the list of tasks has all.
	More bool `json:"more,omitempty"`
}

// RevisionPreview is what a revision would plan.
type RevisionPreview struct {
	// The revision.
	Revision int64 `json:"revision" example:"13"`
	// What is wrong with its definition: if anything is, it would have no tasks.
	Problems []DefinitionProblem `json:"problems"`
	// The tasks, COMMIT first.
	Tasks []PreviewTask `json:"tasks"`
}

// RevisionGraph is a revision as a graph, for tools that draw it and as a picture.
type RevisionGraph struct {
	// Its tasks, and those of other revisions that they wait for, supersede or are superseded by.
	Nodes []GraphNode `json:"nodes"`
	// What they have to do with each other.
	Links []GraphLink `json:"links"`
	// In the language of Graphviz.
	DOT string `json:"dot" example:"digraph \"Revision maps/12\" {}"`
	// A flowchart of Mermaid.
	Mermaid string `json:"mermaid" example:"flowchart LR"`
	// A picture.
	SVG string `json:"svg" example:"<svg xmlns=\"http://www.w3.org/2000/svg\"/>"`
}

// GraphNode is a task in a graph.
type GraphNode struct {
	// Its id.
	ID string `json:"id" example:"maps/12/index"`
	// Its name.
	Label string `json:"label" example:"index"`
	// The lock that it takes.
	Note string `json:"note,omitempty" example:"lock disk"`
	// Its state. Absent: it is not known any more.
	State string `json:"state,omitempty" example:"running"`
	// Its revision.
	Group string `json:"group,omitempty" example:"revision 12"`
	// Whether it is COMMIT.
	Round bool `json:"round,omitempty"`
}

// GraphLink goes from one node in a graph to another.
type GraphLink struct {
	// The id of the node at its beginning.
	From string `json:"from" example:"maps/11/index"`
	// The id of the node at its end.
	To string `json:"to" example:"maps/12/index"`
	// depends: to waits for from. cancels: from supersedes to. absent: to needs that from is not there.
	Kind string `json:"kind" enum:"depends,cancels,absent" example:"depends"`
	// What is unusual about it.
	Label string `json:"label,omitempty" example:"if succeeded"`
}

// PreviewTask is a task that a revision would plan.
type PreviewTask struct {
	// Its name.
	Task string `json:"task" example:"index"`
	// What it would wait for.
	Awaits []PreviewRelation `json:"awaits"`
	// What it would supersede.
	Cancels []PreviewRelation `json:"cancels"`
}

// PreviewRelation is a relation of a task that a revision would plan to another one.
type PreviewRelation struct {
	// The name of the other task.
	Task string `json:"task" example:"index"`
	// Its revision. Absent: there is none.
	Revision int64 `json:"revision,omitempty" example:"12"`
	// Why.
	Why string `json:"why" example:"index of revision 12, the nearest that has planned it, must end first"`
}
