package api

import v1 "archivist/pkg/api/v1"

// operations are what the document says of each operation, by its id.
var operations = map[string]about{
	"submitBatch": {tag: "Batches", request: requestExample, refusals: []problemType{conflict},
		answer: v1.Accepted{ID: batchID, State: v1.Pending},
		description: "The payload is fetched later: the answer says only that the request is of the right form. The " +
			"header " +
			"`Location`, relative to the request, is the batch. With an `Idempotency-Key` a request can be repeated: " +
			"for 7 days " +
			"the same key with the same request gives the same batch, and with another request a conflict. Requests " +
			"are compared " +
			"by what they mean, not by their bytes."},
	"listBatches": {tag: "Batches", answer: v1.List[v1.Batch]{Items: []v1.Batch{listed(batchExample)},
		Cursor: cursorExample},
		states: v1.BatchStates, description: "Newest first, 50 to a page. A filter comes before the paging."},
	"getBatch": {tag: "Batches", answer: batchExample, refusals: []problemType{notFound},
		description: "The batch as it is now, with the counts of its jobs and the mails that did not reach a " +
			"recipient."},
	"getBatchReport": {tag: "Batches", refusals: []problemType{notFound}, redirect: "application/json",
		document: reportExample,
		description: "How each job ended: a JSON document of any size, by a redirect. There is none until all jobs " +
			"have ended."},
	"listBatchEvents": {tag: "Batches", refusals: []problemType{notFound},
		answer: events(eventExample(v1.EventBatchState, "Batch",
			`{"from": "Pending", "to": "Processing", "exec": 1}`)),
		description: "What happened to the batch, oldest first."},
	"explainBatch": {tag: "Batches", refusals: []problemType{notFound},
		answer:      v1.Explanation{State: v1.Processing, WaitsFor: "jobs", Why: "3 of its 12 jobs are under way."},
		description: "The one thing that the batch waits for, in a sentence or two."},
	"listBatchJobs": {tag: "Batches", answer: v1.List[v1.Job]{Items: []v1.Job{jobExample}},
		refusals: []problemType{notFound},
		states:   v1.JobStates, description: "In the order of the manifest, 100 to a page. A filter comes before the " +
			"paging."},

	"listJobs": {tag: "Jobs", answer: v1.List[v1.Job]{Items: []v1.Job{jobExample}, Cursor: cursorExample},
		states: v1.JobStates, description: "Newest first, 50 to a page. A filter comes before the paging."},
	"getJob": {tag: "Jobs", answer: jobExample, refusals: []problemType{notFound},
		description: "The job as it is now."},
	"listJobEvents": {tag: "Jobs", refusals: []problemType{notFound},
		answer: events(eventExample(v1.EventJobState, "Job",
			`{"from": "Downloading", "to": "Processing", "exec": 2}`)),
		description: "What happened to the job, oldest first."},
	"explainJob": {tag: "Jobs", refusals: []problemType{notFound}, answer: v1.Explanation{State: v1.Pending,
		WaitsFor: "slot",
		Why:      "12 of 343 waiting jobs are ahead of it."},
		description: "The one thing that the job waits for, in a sentence or two."},
	"getReceipt": {tag: "Jobs", answer: receiptExample, refusals: []problemType{notFound, conflict},
		description: "What is preserved of the job, file by file, read from the stored object: 1,000 files to a " +
			"page. " +
			"It is a conflict until the job has stored a version."},
	"actOnJob": {tag: "Jobs", request: v1.Action{Action: "requeue", Reason: "The source is reachable again."},
		answer: jobExample, refusals: []problemType{notFound, conflict, changed, held},
		description: "`requeue` lets a failed job go on after its last successful state. It is a conflict where that " +
			"cannot help, " +
			"and, without `confirm`, where a later submission has stored a version of the object. `fail` ends a job " +
			"under way; " +
			"a version that is committed already stays."},

	"findObjects": {tag: "Objects", answer: v1.List[v1.Object]{Items: []v1.Object{objectExample},
		Cursor: cursorExample},
		refusals: []problemType{notFound},
		description: "By `ark`; by `collection` and `localId`; or all of a `collection`, last changed first, 50 to " +
			"a page."},
	"getObject": {tag: "Objects", answer: objectExample, refusals: []problemType{notFound},
		description: "The object as it is now. An ARK is given by its two parts: `ark:/99999/fk4x` is at " +
			"`/v1/objects/99999/fk4x`."},
	"listVersions": {tag: "Objects", answer: v1.List[v1.Version]{Items: []v1.Version{versionExample}},
		refusals:    []problemType{notFound},
		description: "The versions of the object, oldest first."},
	"listFiles": {tag: "Objects", answer: v1.List[v1.File]{Items: []v1.File{fileExample}},
		refusals: []problemType{notFound},
		description: "The files of a version, those of the depositor by path, then those of the system: 1,000 to " +
			"a page."},
	"getContent": {tag: "Objects", refusals: []problemType{notFound}, redirect: "application/octet-stream",
		description: "The bytes of a file, by a redirect to the storage."},
	"listObjectEvents": {tag: "Objects", refusals: []problemType{notFound},
		answer: events(eventExample(v1.EventObjectCreate, "Object",
			`{"version": 1, "versions": 1, "localIds": ["map-1851"], "job": "`+jobID+`"}`)),
		description: "What happened to the object, oldest first: as JSON, or as PREMIS 3 for a client that " +
			"accepts XML. " +
			"The next page of PREMIS is in the header `Link`."},

	"getCollection": {tag: "Collections", answer: collectionExample,
		description: "A collection that nobody made a profile for has the default."},
	"putCollection": {tag: "Collections", request: collectionExample.Profile, answer: collectionExample,
		refusals: []problemType{changed},
		description: "The profile replaces that of the collection as a whole. It holds for batches submitted from " +
			"now on."},
	"listCollectionEvents": {tag: "Collections", answer: events(eventExample(v1.EventCollectionProfile, "Collection",
		`{"title": "Historical maps", "priority": 5}`)),
		description: "How the profile changed, oldest first."},

	"getQueue": {tag: "Operation", description: "How many jobs wait and run, and what is free.",
		answer: v1.Queue{Waiting: map[string]int{"pending": 343, "provisioning": 2, "parked": 1}, Running: 20,
			MaxInFlight: 20,
			SpaceFree:   10 << 40, OldestWaiting: jobID, OldestSince: timeExample, LastSweep: timeExample}},
	"reindex": {tag: "Operation", answer: v1.Reindexed{Objects: 1000, Changed: 2, Cursor: "a0"},
		refusals: []problemType{notFound, conflict, changed},
		description: "Writes the rows that are missing in the table, from the storage root alone, for some seconds. " +
			"While the " +
			"answer has a `cursor` there is more to do: ask again with it."},
}

// Values of the examples.
const (
	batchID       = "01M7ZBMEYHBB62YP6RY21T1GQ6"
	jobID         = batchID + "-00001"
	arkExample    = "ark:/99999/fk4tq65d6k"
	timeExample   = "2026-11-22T09:31:12Z"
	cursorExample = "eyJwayI6IkJBVENIIzAxTTdaIn0"
	sha256Example = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
	sha512Example = "ee26b0dd4af7e749aa1a8ee3c10ae9923f618980772e473f8819a5d4940e0db27ac185f8a0e1d5f84f88bc887fd67b143732c304cc5fa9ad8e6f57f50028a8ff"
)

var (
	digests        = map[string]string{"sha256": sha256Example, "sha512": sha512Example}
	given          = v1.Digest{Algorithm: "sha256", Value: sha256Example}
	requestExample = v1.BatchRequest{Collection: "maps", Submitter: "Map Library",
		Payload:     v1.Payload{URL: "https://example.org/map.checkm", Type: "object-manifest"},
		Identifiers: &v1.Identifiers{Local: []string{"map-1851"}},
		Metadata:    &v1.Metadata{Who: "Blunt, John", What: "Map of the harbour", When: "1851"},
		Note:        "Scans of 2026", Notification: []string{"maps@example.org"}}
	batchExample = v1.Batch{ID: batchID, State: v1.Completed, Collection: "maps", Submitter: "Map Library",
		Note:    "Scans of 2026",
		Created: "2026-11-22T09:30:00Z", Counts: v1.Counts{Expected: 1, Completed: 1},
		Report: "/v1/batches/" + batchID + "/report",
		MailProblems: []v1.MailProblem{{Mail: "report", To: "maps@example.org",
			Problem: "Email address is not verified.", Tries: 2,
			NextTry: "2026-11-22T09:35:00Z", Text: "The report was not sent to maps@example.org: Email address is " +
				"not verified."}}}
	jobExample = v1.Job{ID: jobID, Batch: batchID, Collection: "maps", State: v1.Completed,
		LastSuccessfulState: v1.Notify,
		Priority:            5, SpaceNeeded: 3145728, Version: 1, InventoryDigest: sha512Example,
		Identifiers: v1.Identifiers{Primary: arkExample, Local: []string{"map-1851"}}, Progress: v1.Progress{Files: 3,
			Bytes: 3145728}}
	objectExample = v1.Object{ARK: arkExample, Collection: "maps", Title: "Map of the harbour",
		LocalIDs: []string{"map-1851"},
		Version:  1, Created: timeExample, Modified: timeExample, InventoryDigest: sha512Example}
	versionExample = v1.Version{Version: 1, Created: timeExample, Job: jobID, Files: 8, Bytes: 3151872,
		InventoryDigest: sha512Example}
	fileExample    = v1.File{Path: "producer/map.tif", Size: 1 << 20, MediaType: "image/tiff", Digests: digests}
	receiptFile    = v1.ReceiptFile{Path: "producer/map.tif", Size: 1 << 20, Digests: digests, Given: &given}
	receiptExample = v1.Receipt{Job: jobID, Batch: batchID, ARK: arkExample, Version: 1, Created: timeExample,
		Files: []v1.ReceiptFile{receiptFile}}
	reportExample = v1.Report{Batch: batchID, Collection: "maps", Note: "Scans of 2026", At: "2026-11-22T09:32:00Z",
		Counts: v1.ReportCounts{Completed: 1}, Failed: []v1.ReportJob{}, Open: []v1.ReportJob{},
		Completed: []v1.ReportJob{{Job: jobID, State: v1.Completed, Source: "https://example.org/map.checkm",
			ARK:     arkExample,
			Version: 1, InventoryDigest: sha512Example, LocalIDs: []string{"map-1851"},
			Title: "Map of the harbour", Files: 3,
			Bytes: 3145728, FileDetails: []v1.ReceiptFile{receiptFile}, Receipt: "/v1/jobs/" + jobID + "/receipt"}}}
	priority          = 5
	collectionExample = v1.Collection{Name: "maps", Profile: v1.Profile{Title: "Historical maps", Priority: &priority,
		RequireDigest: true, Notification: []string{"maps@example.org"},
		Callback: &v1.Callback{URL: "https://example.org/preserved", Secret: "archivist/callback", Mode: "required"}}}
)

// listed is a batch as it is in lists.
func listed(b v1.Batch) v1.Batch {
	b.MailProblems = nil
	return b
}

func events(e v1.Event) v1.List[v1.Event] { return v1.List[v1.Event]{Items: []v1.Event{e}} }

func eventExample(kind, subject, detail string) v1.Event {
	return v1.Event{ID: "01M7ZBMEYHBB62YP6RY21T1GQ7." + subject, Version: 2, Type: kind, Time: timeExample,
		Outcome: "success",
		Actor:   operator, Component: "scheduler", Detail: []byte(detail)}
}
