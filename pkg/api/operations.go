package api

import v1 "archivist/pkg/api/v1"

// onActions is what the descriptions of all actions have in common.
const onActions = "\n\nAn action needs a reason, which is kept in the events. If the target is already as the action " +
	"wants it, the action changes nothing and succeeds. `dryRun` returns what would be done. An action with " +
	"consequences that are easily overlooked is refused without `confirm`; detail names them. With an " +
	"`Idempotency-Key` the action is done once, and each repetition within 30 days returns the result of the first " +
	"request."

// onFinding is what the descriptions of lists that are searched have in common.
const onFinding = " All filters are applied before the paging: a page that is short, and not the last, says that the " +
	"search has taken 10 seconds, or read 100,000 rows; its cursor goes on. Following pages have each once, also " +
	"while they move between states."

// operations describes each operation in the document beyond its types, by its id. Those of archives
// and of research are added when the package is initialized, by the files that have them. The keys are
// the OperationIDs of the routes.
var operations = map[string]about{
	"submitBatch": {tag: "Batches", role: operator, scope: inHandler,
		refusals: []problemType{conflict},
		request:  requestExample, answer: v1.Accepted{ID: batchID, State: v1.Pending},
		description: "The payload is downloaded later: a success means only that the request is valid. " +
			"The header `Location` is the URL of the batch, relative to the request.\n\n" +
			"With an `Idempotency-Key` a request can be repeated: for 7 days the same key with the same request " +
			"returns the same batch, and with a different request a conflict. Requests are compared by meaning, " +
			"not by their bytes."},
	"checkBatch": {tag: "Batches", role: operator, scope: inHandler,
		request: v1.BatchCheck{BatchRequest: requestExample}, answer: v1.BatchChecked{Accepted: true},
		description: "The checks that `submitBatch` makes, and nothing is stored. A manifest that is given as text " +
			"is checked row by row, as that of an upload; one at a URL is not read."},
	"listBatches": {tag: "Batches", role: viewer, scope: ofList, states: v1.BatchStates,
		answer: v1.List[v1.Batch]{Items: []v1.Batch{listed(batchExample)},
			Cursor: cursorExample},
		description: "Newest first, or with `order` oldest, 50 to a page, of a collection or of all." + onFinding},
	"getBatch": {tag: "Batches", role: viewer, scope: ofBatch, refusals: []problemType{notFound},
		answer: batchExample,
		description: "The current state of the batch, with the counts of its jobs and the mails that did not reach a " +
			"recipient."},
	"getBatchReport": {tag: "Batches", role: viewer, scope: ofBatch,
		refusals: []problemType{notFound},
		redirect: "application/json", document: reportExample, table: "The jobs",
		description: "How each job ended: a redirect to a JSON document of any size. It does not exist until all " +
			"jobs have ended.\n\nAfter the action `update-report` there is a newer report, which also has what " +
			"has changed since the one before it. The earlier ones remain, by their `number`; without a number, " +
			"it is the newest.\n\nAs CSV it is not a redirect, but has pages: the header `Link` has the URL of the " +
			"next one, with the number of the report, and only the first has the names of the columns."},
	"listBatchEvents": {tag: "Batches", role: viewer, scope: ofBatch,
		refusals: []problemType{notFound},
		answer: events(v1.EventBatchState, "Batch",
			`{"from": "Pending", "to": "Processing", "exec": 1}`),
		description: "The events of the batch, oldest first."},
	"explain": {tag: "Explanations", role: viewer, scope: ofExplained,
		refusals: []problemType{notFound, conflict}, answer: explanationExample,
		description: "What anything waits for: a batch, a job, an upload, an operation, a collection; an object, " +
			"by its ARK, or by its local id and its collection; an item, a component or a run of one; a consumer; " +
			"an archive, a revision (`ARCHIVE/12`) or a task (`ARCHIVE/12/TASK`); a research project, a lease, " +
			"and as `PROJECT/NAME` an episode, a clip or a researcher. Several things with one name are a " +
			"conflict that lists them; `TYPE:ID` asks for one, e.g. `Collection:maps`. Slashes in the id are not " +
			"encoded. With `component`, the id is an item, and the response is of this component alone; with " +
			"`clip`, it is an episode, and the response is of the pair; with `consumer` and `event`, it is the " +
			"subject of an event, and the response says what became of that."},
	"listBatchJobs": {tag: "Batches", role: viewer, scope: ofBatch,
		refusals: []problemType{notFound}, states: v1.JobStates,
		answer:      v1.List[v1.Job]{Items: []v1.Job{jobExample}},
		description: "In the order of the manifest, 100 to a page. The filter is applied before the paging."},

	"listJobs": {tag: "Jobs", role: viewer, scope: ofList, states: v1.JobStates,
		answer: v1.List[v1.Job]{Items: []v1.Job{jobExample}, Cursor: cursorExample},
		description: "Newest first, or with `order` oldest, 50 to a page, of one collection or all. " +
			"Of few in a state, those of the newest batch are first." + onFinding},
	"getJob": {tag: "Jobs", role: viewer, scope: ofJob, refusals: []problemType{notFound},
		answer:      jobExample,
		description: "The current state of the job, with the states that it was in."},
	"listJobEvents": {tag: "Jobs", role: viewer, scope: ofJob, refusals: []problemType{notFound},
		answer: events(v1.EventJobState, "Job",
			`{"from": "Downloading", "to": "Processing", "exec": 2}`),
		description: "The events of the job, oldest first."},
	"getReceipt": {tag: "Jobs", role: viewer, scope: ofJob,
		refusals: []problemType{notFound, conflict}, answer: receiptExample,
		description: "The preserved files of the job, read from the stored object: 1,000 files to a " +
			"page. Until the job has stored a version, the response is a conflict. As CSV, the header " +
			"`Link` has the URL of the next page, and only the first has the names of the columns."},
	"actOnJob": {tag: "Jobs", role: operator, refusals: []problemType{notFound, conflict, changed,
		held},
		request:     v1.JobAction{Action: "requeue", ActionOptions: sourceIsBack},
		answer:      v1.JobActionResult{ActionOutcome: requeuedExample, Job: requeuedJob},
		description: "The response has the result of the action and the fields of the job after it." + onActions},
	"actOnBatch": {tag: "Batches", role: operator,
		refusals: []problemType{notFound, conflict, unconfirmed, changed, held},
		request:  v1.BatchAction{Action: "update-report", ActionOptions: sourceIsBack},
		answer:   v1.ActionResult{ActionOutcome: reportedExample},
		description: "`update-report` is a conflict while jobs of the batch have not ended." +
			onActions},
	"actOnCollection": {tag: "Collections", role: operator, refusals: []problemType{conflict,
		changed},
		request: v1.CollectionAction{Action: "release", ActionOptions: sourceIsBack},
		answer:  v1.ActionResult{ActionOutcome: releasedExample},
		description: "While a collection is held, submissions are accepted, but no work on them starts. What runs, " +
			"finishes. The response to `release` names in `next` the bulk operation that releases what the hold has " +
			"stopped." + onActions},
	"actOnQueue": {tag: "Operation", role: operator, refusals: []problemType{conflict, changed},
		request: v1.PauseAction{Action: "pause", ActionOptions: maintenance,
			Until: "2026-11-22T18:00:00Z"},
		answer: pausedExample("queue"),
		description: "While the queue is paused, submissions are accepted, but no job is admitted. What runs, " +
			"finishes." + onActions},
	"actOnStorage": {tag: "Operation", role: operator, refusals: []problemType{conflict, changed},
		request: v1.PauseAction{Action: "pause", ActionOptions: maintenance,
			Until: "2026-11-22T18:00:00Z"},
		answer: pausedExample("storage"),
		description: "While the storage is paused, no job begins to store a version. Jobs continue up to that point " +
			"and wait there." + onActions},

	"startOperation": {tag: "Operation", role: operator, refusals: []problemType{notFound,
		conflict},
		request: requeueAll, answer: operationExample,
		description: "An action on all jobs that `filter` selects when the operation plans them. A job on which the " +
			"action is refused does not stop the others. With `dryRun` the operation only finds out what the action " +
			"would do with each job.\n\nThe action `doctor` checks the rules that the rows and the storage root must " +
			"keep.\n\nThe operation runs by itself: read it, or interrupt it, under its id. With an " +
			"`Idempotency-Key` the same request within 30 days returns the same operation."},
	"listOperations": {tag: "Operation", role: viewer,
		answer: v1.List[v1.Operation]{Items: []v1.Operation{operationExample},
			Cursor: cursorExample},
		description: "Newest first. Operations are kept for 90 days."},
	"getOperation": {tag: "Operation", role: viewer, refusals: []problemType{notFound},
		answer:      operationExample,
		description: "The current state of the operation, with its counts."},
	"listItems": {tag: "Operation", role: viewer, refusals: []problemType{notFound},
		answer:      v1.List[v1.OperationItem]{Items: []v1.OperationItem{itemExample}},
		description: "In the order of their ids, with what was done, or would be by a dry run. The doctor has none."},
	"listRefusals": {tag: "Operation", role: viewer, refusals: []problemType{notFound},
		answer:      v1.List[v1.Refusal]{Items: []v1.Refusal{refusalExample}},
		description: "In the order of their ids, with the reasons."},
	"listFindings": {tag: "Operation", role: viewer, refusals: []problemType{notFound},
		answer:      v1.List[v1.Finding]{Items: []v1.Finding{findingExample}},
		description: "In the order in which they were found, with the evidence and the command that repairs it."},
	"listOperationEvents": {tag: "Operation", role: viewer, refusals: []problemType{notFound},
		answer: events(v1.EventOperationStarted, "Operation",
			`{"action": "requeue", "filter": {"collection": "maps"}, "state": "Running", "exec": 1, "counts": `+
				`{"planned": 0, "done": 0, "refused": 0, "left": 0}}`),
		description: "The events of the operation, oldest first."},
	"actOnOperation": {tag: "Operation", role: operator, refusals: []problemType{notFound, conflict,
		changed},
		request: v1.OperationAction{Action: "interrupt", Reason: "It was the wrong collection."},
		answer:  interrupted(operationExample),
		description: "`interrupt` stops the operation; jobs that are done stay so. `continue` lets an interrupted " +
			"operation do the rest."},
	"listHolds": {tag: "Operation", role: viewer,
		answer: v1.List[v1.Hold]{Items: []v1.Hold{holdExample}},
		description: "The pauses of the queue and the storage, then the holds of collections and batches, oldest " +
			"first. The hold of a single job is on the job."},

	"findObjects": {tag: "Objects", role: viewer, scope: ofFound, refusals: []problemType{notFound},
		answer: v1.List[v1.Object]{Items: []v1.Object{objectExample}, Cursor: cursorExample},
		description: "By `ark`; by `collection` and `localId`; all of a `collection`, last changed first; those of a " +
			"`title`, of all collections or of one, by title; those of a `date`; or all, by title. 50 to a page. " +
			"With a `format` or a `sort` the list is that of the search index. GET /v1/search " +
			"combines more."},
	"searchObjects": {tag: "Objects", role: viewer, scope: inHandler, answer: foundExample,
		description: "Words are found in titles, creators, dates, ids, names of files, and all other elements of " +
			"the description of the newest version, whatever their case and diacritics. A query that cannot be read " +
			"is refused with the position of the error. A stored version is usually found within seconds."},
	"browseObjects": {tag: "Objects", role: viewer, scope: ofList,
		answer: v1.List[v1.BrowseEntry]{Items: []v1.BrowseEntry{{Value: "Map of the harbour",
			Object: objectExample}},
			Cursor: cursorExample},
		description: "All objects: by title; by date and title; once for each creator; or by collection and title, " +
			"50 to a page. The order of texts is that of the Unicode Collation Algorithm, without regard to case and " +
			"diacritics; numbers are ordered by value. Objects without a title, date or creator are last."},
	"getObject": {tag: "Objects", role: viewer, scope: ofObject,
		refusals: []problemType{notFound}, answer: objectExample,
		description: "The current state of the object. An ARK is given by its two parts:  `ark:/99999/fk4x` is at " +
			"`/v1/objects/99999/fk4x`."},
	"listVersions": {tag: "Objects", role: viewer, scope: ofObject,
		refusals:    []problemType{notFound},
		answer:      v1.List[v1.Version]{Items: []v1.Version{versionExample}},
		description: "The versions of the object, oldest first."},
	"listFiles": {tag: "Objects", role: viewer, scope: ofObject, refusals: []problemType{notFound},
		answer: v1.List[v1.File]{Items: []v1.File{fileExample}},
		description: "The files of a version: the depositor's files by path, then the system files, " +
			"which the last page has all."},
	"getDescription": {tag: "Objects", role: viewer, scope: ofObject, refusals: []problemType{notFound},
		answer: descriptionExample,
		description: "The description of the version, from its files `mrt-erc.txt` and " +
			"`mrt-dc.xml`."},
	"listChanges": {tag: "Objects", role: viewer, scope: ofObject, refusals: []problemType{notFound},
		answer: v1.List[v1.FileChange]{Items: []v1.FileChange{changeExample}},
		description: "The depositor's files that differ between a version and the one before, by path. " +
			"Of version 1 all are added. A page before the last can be short or empty: very many " +
			"files are compared in parts."},
	"listRepairs": {tag: "Objects", role: viewer, refusals: []problemType{notFound},
		answer:      v1.List[v1.Repair]{Items: []v1.Repair{repairExample}},
		description: "The repairs of files of the object, oldest first."},
	"correctObject": {tag: "Objects", role: administrator, refusals: []problemType{notFound,
		conflict},
		request: correctionExample, answer: v1.Accepted{ID: batchID, State: v1.Pending},
		description: "A job makes a new version with the files of the newest one, and what the correction says. " +
			"Nothing is downloaded. The reason is the message of the version. A value is withdrawn by a code that " +
			"says why there is none, e.g. `(:unkn)`. A local id that is withdrawn can name another object from then " +
			"on; it stays in the history of this one. In the same way something is decided about the object: " +
			"`access`, `legalHold` or `retainUntil`, one of them in a request, and nothing else with it. A legal " +
			"hold is not replaced by another one, and a retention not made earlier (409). The header `Location` is " +
			"the URL of the batch, relative to the request. An `Idempotency-Key` is as for `submitBatch`."},
	"proposeRepair": {tag: "Objects", role: administrator, refusals: []problemType{notFound,
		conflict},
		answer:  repairExample,
		request: repairRequestExample,
		description: "The component `file-repair` reads the stored file and its copy in the second bucket, and makes " +
			"a plan. Nothing is changed until a person has confirmed the plan by its token. A file that is right " +
			"is never replaced."},
	"confirmRepair": {tag: "Objects", role: administrator, refusals: []problemType{notFound,
		conflict},
		answer: repairExample,
		request: v1.RepairConfirmation{Token: "01M7ZBMEYHBB62YP6RY21T1GQA",
			Reason: "The plan is right."},
		description: "The damaged file is kept in the work bucket, the copy takes its place and is read back, and " +
			"the history of the object has an event. The same request again changes nothing."},
	"getFixity": {tag: "Objects", role: viewer, scope: ofObject,
		refusals: []problemType{notFound}, answer: fixityExample,
		description: "What the last check of the object's stored files found: each was read, and its digest compared " +
			"with that of the inventory. The component `fixity-check` checks each object some time after its last " +
			"check, and after each change; the component `copy-check` checks its copy in the second bucket."},
	"listFormats": {tag: "Objects", role: viewer, scope: ofObject,
		refusals: []problemType{notFound},
		answer:   v1.List[v1.FileFormats]{Items: []v1.FileFormats{formatsExample}},
		description: "The formats of the depositor's files of a version, by path, at most 1,000 to a page. The " +
			"component `format-identification` identifies them by the signatures of PRONOM, usually some " +
			"minutes after the version is stored."},
	"getContent": {tag: "Objects", role: viewer, scope: ofObject, refusals: []problemType{notFound},
		redirect: "application/octet-stream",
		description: "The content of a file: a redirect to the storage. The depositor's files of a withdrawn object " +
			"are refused with 403; `detail` has the reason."},
	"getStored": {tag: "Objects", role: viewer, scope: ofObject, refusals: []problemType{notFound},
		redirect: "application/octet-stream",
		description: "A file as it is in the storage root (OCFL 1.1): a redirect to the storage. `path` is below the " +
			"object's place there, e.g. `v1/inventory.json`, or a content path of an inventory. A withdrawn object " +
			"is refused with 403."},
	"listObjectEvents": {tag: "Objects", role: viewer, scope: ofObject,
		refusals: []problemType{notFound},
		answer: events(v1.EventObjectCreate, "Object",
			`{"version": 1, "versions": 1, "localIds": ["map-1851"], "job": "`+jobID+`"}`),
		description: "The events of the object, oldest first: as JSON, or as PREMIS 3 for a client that " +
			"accepts XML. For PREMIS, the header `Link` has the URL of the next page."},
	"listObjectHistory": {tag: "Objects", role: viewer, scope: ofObject,
		refusals: []problemType{notFound},
		answer:   v1.List[v1.HistoryEvent]{Items: []v1.HistoryEvent{historyExample}},
		description: "The permanent record of the object and its versions, oldest event first: as JSON, or as PREMIS " +
			"3 for a client that accepts XML. For PREMIS, the header `Link` has the URL of the next page. The record " +
			"is made from the events, usually within seconds."},
	"getObjectStatistics": {tag: "Objects", role: viewer, scope: ofObject,
		refusals: []problemType{notFound},
		answer: v1.ObjectStatistics{ARK: "ark:/99999/fk4tq65d6k", Downloads: 12,
			LastDownload: timeExample},
		description: "How often files of the object were downloaded through the API. Downloads are counted within " +
			"seconds. The count of a download can be lost if the table does not answer."},
	"getThumbnail": {tag: "Objects", role: viewer, scope: ofObject,
		refusals:    []problemType{notFound},
		redirect:    "application/octet-stream",
		description: "The thumbnail of an image: a redirect to the storage. Where there is none, `detail` says why."},
	"getManifest": {tag: "Objects", role: viewer, scope: ofObject,
		refusals: []problemType{notFound}, redirect: "text/plain",
		description: "The Checkm manifest of all files of the newest version: a redirect to the storage. It is made " +
			"some minutes after the last change of the object; its second line says of which version it is."},
	"listStatistics": {tag: "Collections", role: viewer, scope: ofList,
		answer: v1.List[v1.Statistics]{Items: []v1.Statistics{statisticsExample}},
		description: "What was ingested and downloaded in each collection, counted live: in order of the " +
			"collections, 100 to a page. With `collection`, of that one; with `from` or `to` also of its days, at " +
			"most 366."},

	"listCollections": {tag: "Collections", role: viewer, answer: v1.List[v1.CollectionName]{
		Items: []v1.CollectionName{{Name: "maps"}, {Name: "photographs"}}},
		description: "In order of their names. A collection exists by being named: it is listed once a submission " +
			"has named it, also if nothing of it was preserved."},
	"getCollection": {tag: "Collections", role: viewer, answer: collectionExample,
		description: "A collection without a profile of its own has the default profile."},
	"putCollection": {tag: "Collections", role: administrator, refusals: []problemType{changed,
		conflict},
		request: collectionExample.Profile, answer: collectionExample,
		description: "Replaces the whole profile of the collection. The new profile applies to batches submitted " +
			"from now on; its `legalHold` and `retainUntil` apply at once to all objects of the collection. A " +
			"profile that leaves out a legal hold, or makes a retention earlier, is refused (409)."},
	"listEvents": {tag: "Events", role: viewer, refusals: []problemType{notFound},
		answer: v1.EventPage{Items: []v1.LogEvent{logEventExample}, Cursor: cursorExample,
			After: 42},
		description: "Of `subject`, `partition` and `collection` at most one is given. The events of a subject and " +
			"of a partition are in order, the oldest first; those of a collection are the newest first. Without " +
			"any of them, the list has the newest first of the 100 collections that got an event last when it " +
			"began; `others` is how many more there are. Its pages have no gap and nothing twice; one is short " +
			"if its events are of very many collections. Where these go on in the archive only, it ends: " +
			"`incomplete` says so.\n\nTo follow a partition, pass `after` of each response to " +
			"the next request. The filter is applied before the paging: a page may be empty."},
	"listActs": {tag: "Events", role: viewer,
		answer: v1.ActPage{Items: []v1.Act{actExample}, Cursor: cursorExample},
		description: "What people did, of all logs, the newest first: each event with a person and a " +
			"reason, and changes of what only people change. An act on many jobs is one. Deposits are " +
			"not among them. Acts stay when their events have expired, and appear within a few " +
			"seconds.\n\nWith a filter, a page may be short; `looked` says how far it has come."},
	"getEvent": {tag: "Events", role: viewer, refusals: []problemType{notFound},
		answer: logEventExample,
		description: "The event, with all that it says. With its `cause`, a program that changes something because " +
			"of it can name it in the header `Archivist-Cause`: `event`, `root`, `depth` and each `component` in the " +
			"form of a query."},
	"listPartitions": {tag: "Events", role: viewer,
		answer: v1.List[v1.LogPartition]{Items: []v1.LogPartition{
			{Name: "maps", Log: "maps", Head: 42, Horizon: 1}}},
		description: "All partitions of the log, those that are closed included."},
	"listCollectionEvents": {tag: "Collections", role: viewer,
		answer: events(v1.EventCollectionProfile, "Collection",
			`{"title": "Historical maps", "priority": 5}`),
		description: "The changes of the profile, oldest first."},

	"listConsumers": {tag: "Consumers", role: viewer,
		answer:      v1.List[v1.Consumer]{Items: []v1.Consumer{consumerExample}},
		description: "All consumers, by name, with how far they have come."},
	"getConsumer": {tag: "Consumers", role: viewer, refusals: []problemType{notFound},
		answer:      consumerExample,
		description: "The definition of the consumer, and its place in each partition of the log."},
	"putConsumer": {tag: "Consumers", role: administrator, refusals: []problemType{notFound,
		conflict, changed},
		request: unnamed(consumerExample.ConsumerDefinition), answer: consumerExample,
		description: "Replaces the whole definition. The same definition again changes nothing. `start` and `paused` " +
			"hold for a new consumer only. The query's `reason` is kept in the events."},
	"actOnConsumer": {tag: "Consumers", role: operator, refusals: []problemType{notFound, conflict,
		changed},
		request: v1.ConsumerAction{Action: "redrive", Reason: "The index can be written again.",
			All: true},
		answer: v1.ConsumerOutcome{Action: "redrive",
			Summary: "parked events of search are handled again, within a " +
				"minute or two, in one partition", Consumer: &consumerExample},
		description: "Each action has its own fields; others are refused. An action needs a reason, which is kept in " +
			"the events. If the consumer is already as the action wants it, nothing is changed. With an " +
			"`Idempotency-Key` the action is done once."},
	"listParked": {tag: "Consumers", role: viewer, refusals: []problemType{notFound},
		answer: v1.List[v1.ParkedEvent]{Items: []v1.ParkedEvent{parkedExample}},
		description: "The events that the consumer could not handle, and those that wait behind them; those of one " +
			"order key one after the other, in the order of the log."},
	"listConsumerEvents": {tag: "Consumers", role: viewer, refusals: []problemType{notFound},
		answer: events(v1.EventConsumerPaused, "Consumer",
			`{"reason": "The index is being moved."}`),
		description: "The changes of the consumer by persons, oldest first."},
	"startReplay": {tag: "Consumers", role: operator, refusals: []problemType{notFound, conflict,
		changed},
		request: v1.ReplayRequest{From: "time:2026-11-01T00:00:00Z", Filter: "Object+Modify",
			Reason: "The function had a bug."}, answer: replayExample,
		description: "The consumer handles events again that are in the log, or, with `rebuild`, it gets a snapshot " +
			"of everything that is stored now. Calls of its target are marked as a replay, and it runs beside new " +
			"events: the consumer's places in the log do not move. Only a rebuild that is not into a shadow stops " +
			"the consumer until it is done. A consumer with `ignoreReplays` is refused. With an `Idempotency-Key`, " +
			"the same request again is the same replay."},
	"listReplays": {tag: "Consumers", role: viewer, refusals: []problemType{notFound},
		answer:      v1.List[v1.Replay]{Items: []v1.Replay{replayExample}, Cursor: cursorExample},
		description: "Newest first. Replays are kept for 90 days after their end."},
	"getReplay": {tag: "Consumers", role: viewer, refusals: []problemType{notFound},
		answer:      replayExample,
		description: "The replay with its progress, and what failed once it has ended."},
	"actOnReplay": {tag: "Consumers", role: operator, refusals: []problemType{notFound, conflict,
		changed},
		request: v1.ReplayAction{Action: "cancel", Reason: "It was the wrong filter."},
		answer:  replayExample,
		description: "A cancelled replay ends after the events that it is handling; these are not undone. A rebuild " +
			"that was cancelled leaves what the consumer keeps incomplete: rebuild again."},
	"tryFilter": {tag: "Consumers", role: viewer, refusals: []problemType{notFound},
		request: v1.FilterTrial{Filter: "Object+Create|Modify", Partition: "maps", From: "horizon"},
		answer: v1.FilterTrialResult{Read: 1000, Selected: 1,
			Events: []v1.SelectedEvent{selectedExample}},
		description: "Shows which past events a filter selects, and changes nothing. An invalid filter is refused " +
			"with the position of the mistake and the known names."},

	"getItemPREMIS": {tag: "Items", role: viewer, refusals: []problemType{notFound},
		description: "A page of what happened to the item, and to the object, version or batch that it is, as a " +
			"PREMIS 3 document. Imported events are as they were. The header `Link` names the next page."},
	"importItemPREMIS": {tag: "Items", role: operator, refusals: []problemType{notFound, conflict,
		changed},
		request: premisExample, answer: premisImported,
		description: "Each event of the document becomes an event of the item, the oldest first. An event that the " +
			"item has already, by its identifier, is not recorded again: the same request can be repeated. The whole " +
			"document is checked first; if an event is refused, nothing is imported, unless `skipRefused`."},
	"listComponents": {tag: "Components", role: viewer,
		answer:      v1.List[v1.Component]{Items: []v1.Component{componentExample}},
		description: "All components, by name, with how many items each can work on."},
	"getComponent": {tag: "Components", role: viewer, refusals: []problemType{notFound},
		answer:      componentExample,
		description: "The definition of the component, and how many items are in each class of its line."},
	"putComponent": {tag: "Components", role: administrator, refusals: []problemType{notFound,
		conflict, changed},
		request: unnamedComponent, answer: v1.ComponentApplied{Component: &componentExample},
		description: "Replaces the whole definition. The same definition again changes nothing. `paused` holds for a " +
			"new component only. After a change it is decided again for all items whether they are ready, which " +
			"`filling` shows. With `dryRun`, the response lists items that would be ready now, and nothing is " +
			"changed; it looks at some hundreds of items: if it has a `cursor`, repeat the request with it."},
	"actOnComponent": {tag: "Components", role: operator, refusals: []problemType{notFound,
		conflict, changed},
		request: v1.ComponentAction{Action: "pause", Reason: "The scanner is being repaired."},
		answer: v1.ComponentOutcome{Action: "pause",
			Summary: "count-words is paused: it begins no more runs; its " +
				"items wait", Component: &componentExample},
		description: "An action needs a reason, which is kept in the events. If the component is already as the " +
			"action wants it, nothing is changed."},
	"listComponentEvents": {tag: "Components", role: viewer, refusals: []problemType{notFound},
		answer: events("component.paused", "Component",
			`{"reason": "The scanner is being repaired."}`),
		description: "The changes of the component by persons, oldest first. What it did to an item is in the " +
			"history of the item."},
	"listLine": {tag: "Components", role: viewer, refusals: []problemType{notFound},
		answer: v1.List[v1.LineItem]{Items: []v1.LineItem{{Item: itemID, Class: "ready",
			Priority: 5,
			First:    "2026-11-22T09:29:00Z"}}},
		description: "The items of a class, the first to be worked on first, 100 to a page. Items that are done are " +
			"not listed."},
	"getComponentGraph": {tag: "Components", role: viewer,
		answer: v1.ComponentGraph{DOT: "digraph components {…}",
			Mermaid: "flowchart LR …", Nodes: []v1.GraphNode{
				{ID: "event Received", Label: "Received", Round: true},
				{ID: "structure", Label: "structure", Note: "Structure_checked"}},
			Links: []v1.GraphLink{{From: "event Received", To: "structure", Kind: "depends",
				Label: "Received"}}},
		description: "Each component with the events that it waits for, and the components that record them."},
	"listRuns": {tag: "Components", role: viewer, refusals: []problemType{notFound},
		answer:      v1.List[v1.ComponentRun]{Items: []v1.ComponentRun{runExample}},
		description: "Newest first, without their items. Runs are kept for a year."},
	"getRun": {tag: "Components", role: viewer, refusals: []problemType{notFound},
		answer:      runExample,
		description: "How far the run is, and a page of its items, the newest first."},
	"startRun": {tag: "Components", role: operator, refusals: []problemType{notFound, conflict,
		changed},
		request: v1.ComponentRunRequest{Reason: "The metadata is corrected."}, answer: runExample,
		description: "The run works on the items that are ready, up to `maxItems`. If the component is running, it " +
			"runs once more afterwards, and the response is the run that is going on."},

	"findItems": {tag: "Items", role: viewer,
		answer: v1.List[v1.Item]{Items: []v1.Item{componentItemExample}},
		description: "All items, in no order that has a meaning. The filter is applied before the paging: a page may " +
			"be empty and not be the last. An item that was just made may not be there yet."},
	"getItem": {tag: "Items", role: viewer, refusals: []problemType{notFound},
		answer:      componentItemExample,
		description: "The item with its events that count, and where it is in the lines of the components."},
	"createItem": {tag: "Items", role: operator, refusals: []problemType{conflict, changed},
		request: v1.ItemRequest{ID: itemID, ItemShape: v1.ItemShape{Types: []string{"delivery"}},
			Reason: "It arrived today."},
		answer: v1.ItemOutcome{Action: "create", Changed: true, Summary: "the item " + itemID +
			" is created",
			Item: componentItemExample},
		description: "A custom item is for what is not ingested yet, such as a delivery. One that is there already " +
			"with the same types, parents and identifiers stays as it is; with others it is a conflict."},
	"actOnItem": {tag: "Items", role: operator, refusals: []problemType{notFound, conflict,
		changed},
		request: v1.ItemAction{Action: "prioritize", Reason: "It is needed for the exhibition.",
			Priority: 9},
		answer: v1.ItemOutcome{Action: "prioritize", Changed: true,
			Summary: itemID + " has the priority 9 of 1 to 9", Item: componentItemExample},
		description: "Each action has its own fields; others are refused. An action needs a reason, which is kept in " +
			"the events. It is a conflict while a component that it concerns works on the item. If the item is " +
			"already as the action wants it, nothing is changed. With an `Idempotency-Key` the action is done once."},
	"listItemHistory": {tag: "Items", role: viewer, refusals: []problemType{notFound},
		answer: v1.List[v1.ItemEvent]{Items: []v1.ItemEvent{{LogEvent: itemEventExample,
			Name: "Words_counted",
			Own:  true}}},
		description: "What happened to the item and to what it follows, oldest first, 50 to a page. Events that were " +
			"revoked stay, and are marked."},

	"signIn": {tag: "Operation", open: true, refusals: []problemType{notFound},
		answer: v1.SignIn{Issuer: "https://login.example.org", ClientID: "archivist-cli",
			Scopes: []string{"openid", "profile", "offline_access"}},
		description: "The issuer at which people sign in, and the client as which the command line " +
			"does it for them. Not found if the deployment has none."},
	"whoAmI": {tag: "Operation", anyone: true,
		answer: v1.Caller{Subject: "4711", Name: "Ada Lovelace", Grants: []string{"viewer",
			"depositor:maps"},
			Expires: timeExample},
		description: "The caller as its token or its key says, with the roles that this API knows."},
	"getStatus": {tag: "Operation", role: viewer, answer: deploymentExample,
		description: "What has failed in the last 24 hours by its cause, what waits and since " +
			"when, what is paused or on hold, parked events, what is damaged or not copied, " +
			"raised alarms, and what runs. Each section is read by itself, with a limit of its " +
			"time: one that cannot be read is `unavailable` with the reason, and the others are " +
			"there."},
	"getQueue": {tag: "Operation", role: viewer, answer: queueExample,
		description: "What runs, what waits and why, and the free work space."},
	"listQueueEvents": {tag: "Operation", role: viewer,
		answer: events(v1.EventQueuePaused, "Queue",
			`{"reason": "Maintenance of the network."}`),
		description: "When the queue was paused and resumed, by whom and why, oldest first."},
	"listStorageEvents": {tag: "Operation", role: viewer,
		answer: events(v1.EventStoragePaused, "Queue",
			`{"reason": "Maintenance of the network."}`),
		description: "When the storage was paused and resumed, by whom and why, oldest first."},
	"verifyEvents": {tag: "Operation", role: administrator,
		answer: v1.EventsVerified{Files: 31, Events: 12000,
			Findings: []v1.ArchiveFinding{{Partition: "maps",
				File:    "epoch-1/maps/0.0/2026-11-22-000000000001.jsonl",
				Problem: "line 12: the event does not have its SHA-256"}}},
		description: "Checks for some seconds that the archive of events is as it was written: that no file and no " +
			"event is missing, and that none was changed. If the response has a `cursor`, repeat the request with it " +
			"to continue."},
	"actOnEventLog": {tag: "Operation", role: administrator, refusals: []problemType{changed},
		request: v1.EventLogAction{Action: "raise-epoch",
			Reason: "The table was restored to 2026-11-22T09:30Z."},
		answer: v1.EventLogOutcome{Action: "raise-epoch", Epoch: 2,
			Summary: "The log has the epoch 2. Consumers " +
				"that have begun before stop until they are reset: archivist consumer reset NAME --to cursor."},
		description: "`raise-epoch` says that the table was restored from a backup, so that a place in the log " +
			"may have another event than before. Each consumer stops with a `problem` until it is reset. The archive " +
			"of events goes on in a new folder. With an `Idempotency-Key` the action is done once."},
	"reindex": {tag: "Operation", role: administrator, refusals: []problemType{notFound, conflict,
		changed},
		answer: v1.Reindexed{Objects: 1000, Changed: 2, Cursor: "a0"},
		description: "Restores rows that are missing in the table, from the storage root alone, for some " +
			"seconds. If the response has a `cursor`, repeat the request with it to continue."},
}
