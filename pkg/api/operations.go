package api

import v1 "archivist/pkg/api/v1"

// operations are what the document says of each operation beyond its types, by its id.
var operations = map[string]about{
	"submitBatch": {tag: "Batches", refusals: []problemType{conflict},
		request: requestExample, answer: v1.Accepted{ID: batchID, State: v1.Pending},
		description: "The payload is fetched later: the answer says only that the request is of the right form. " +
			"The header `Location`, relative to the request, is the batch.\n\n" +
			"With an `Idempotency-Key` a request can be repeated: for 7 days the same key with the same request " +
			"gives the same batch, and with another request a conflict. Requests are compared by what they mean, " +
			"not by their bytes."},
	"listBatches": {tag: "Batches", states: v1.BatchStates,
		answer:      v1.List[v1.Batch]{Items: []v1.Batch{listed(batchExample)}, Cursor: cursorExample},
		description: "Newest first, 50 to a page. A filter comes before the paging."},
	"getBatch": {tag: "Batches", refusals: []problemType{notFound}, answer: batchExample,
		description: "The batch as it is now, with the counts of its jobs and the mails that did not reach a " +
			"recipient."},
	"getBatchReport": {tag: "Batches", refusals: []problemType{notFound},
		redirect: "application/json", document: reportExample,
		description: "How each job ended: a JSON document of any size, by a redirect. There is none until all " +
			"jobs have ended."},
	"listBatchEvents": {tag: "Batches", refusals: []problemType{notFound},
		answer:      events(v1.EventBatchState, "Batch", `{"from": "Pending", "to": "Processing", "exec": 1}`),
		description: "What happened to the batch, oldest first."},
	"explainBatch": {tag: "Batches", refusals: []problemType{notFound},
		answer:      v1.Explanation{State: v1.Processing, WaitsFor: "jobs", Why: "3 of its 12 jobs are under way."},
		description: "The one thing that the batch waits for, in a sentence or two."},
	"listBatchJobs": {tag: "Batches", refusals: []problemType{notFound}, states: v1.JobStates,
		answer:      v1.List[v1.Job]{Items: []v1.Job{jobExample}},
		description: "In the order of the manifest, 100 to a page. A filter comes before the paging."},

	"listJobs": {tag: "Jobs", states: v1.JobStates,
		answer:      v1.List[v1.Job]{Items: []v1.Job{jobExample}, Cursor: cursorExample},
		description: "Newest first, 50 to a page. A filter comes before the paging."},
	"getJob": {tag: "Jobs", refusals: []problemType{notFound}, answer: jobExample,
		description: "The job as it is now."},
	"listJobEvents": {tag: "Jobs", refusals: []problemType{notFound},
		answer:      events(v1.EventJobState, "Job", `{"from": "Downloading", "to": "Processing", "exec": 2}`),
		description: "What happened to the job, oldest first."},
	"explainJob": {tag: "Jobs", refusals: []problemType{notFound},
		answer: v1.Explanation{State: v1.Pending, WaitsFor: "slot",
			Why: "12 of 343 waiting jobs are ahead of it."},
		description: "The one thing that the job waits for, in a sentence or two."},
	"getReceipt": {tag: "Jobs", refusals: []problemType{notFound, conflict}, answer: receiptExample,
		description: "What is preserved of the job, file by file, read from the stored object: 1,000 files to a " +
			"page. It is a conflict until the job has stored a version."},
	"actOnJob": {tag: "Jobs", refusals: []problemType{notFound, conflict, changed, held},
		request: v1.Action{Action: "requeue", Reason: "The source is reachable again."}, answer: jobExample,
		description: "`requeue` lets a failed job go on after its last successful state. It is a conflict where " +
			"that cannot help, and, without `confirm`, where a later submission has stored a version of the " +
			"object.\n\n`fail` ends a job under way; a version that is committed already stays."},

	"findObjects": {tag: "Objects", refusals: []problemType{notFound},
		answer: v1.List[v1.Object]{Items: []v1.Object{objectExample}, Cursor: cursorExample},
		description: "By `ark`; by `collection` and `localId`; or all of a `collection`, last changed first, 50 " +
			"to a page."},
	"getObject": {tag: "Objects", refusals: []problemType{notFound}, answer: objectExample,
		description: "The object as it is now. An ARK is given by its two parts: `ark:/99999/fk4x` is at " +
			"`/v1/objects/99999/fk4x`."},
	"listVersions": {tag: "Objects", refusals: []problemType{notFound},
		answer:      v1.List[v1.Version]{Items: []v1.Version{versionExample}},
		description: "The versions of the object, oldest first."},
	"listFiles": {tag: "Objects", refusals: []problemType{notFound},
		answer: v1.List[v1.File]{Items: []v1.File{fileExample}},
		description: "The files of a version, those of the depositor by path, then those of the system: 1,000 to " +
			"a page."},
	"getContent": {tag: "Objects", refusals: []problemType{notFound}, redirect: "application/octet-stream",
		description: "The bytes of a file, by a redirect to the storage."},
	"listObjectEvents": {tag: "Objects", refusals: []problemType{notFound},
		answer: events(v1.EventObjectCreate, "Object",
			`{"version": 1, "versions": 1, "localIds": ["map-1851"], "job": "`+jobID+`"}`),
		description: "What happened to the object, oldest first: as JSON, or as PREMIS 3 for a client that " +
			"accepts XML. The next page of PREMIS is in the header `Link`."},

	"getCollection": {tag: "Collections", answer: collectionExample,
		description: "A collection that nobody made a profile for has the default."},
	"putCollection": {tag: "Collections", refusals: []problemType{changed},
		request: collectionExample.Profile, answer: collectionExample,
		description: "The profile replaces that of the collection as a whole. It holds for batches submitted " +
			"from now on."},
	"listCollectionEvents": {tag: "Collections",
		answer:      events(v1.EventCollectionProfile, "Collection", `{"title": "Historical maps", "priority": 5}`),
		description: "How the profile changed, oldest first."},

	"getQueue": {tag: "Operation", answer: queueExample,
		description: "How many jobs wait and run, and what is free."},
	"reindex": {tag: "Operation", refusals: []problemType{notFound, conflict, changed},
		answer: v1.Reindexed{Objects: 1000, Changed: 2, Cursor: "a0"},
		description: "Writes the rows that are missing in the table, from the storage root alone, for some " +
			"seconds. While the answer has a `cursor` there is more to do: ask again with it."},
}
