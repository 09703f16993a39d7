package api

import (
	"strings"

	v1 "archivist/pkg/api/v1"
)

// Values of the examples: one submission, from the request to the preserved object.
const (
	batchID       = "01M7ZBMEYHBB62YP6RY21T1GQ6"
	jobID         = batchID + "-00001"
	operationID   = "01M7ZBMEYHBB62YP6RY21T1GQ8"
	arkExample    = "ark:/99999/fk4tq65d6k"
	timeExample   = "2026-11-22T09:31:12Z"
	cursorExample = "eyJwayI6IkJBVENIIzAxTTdaIn0"
)

var (
	sha256Example = strings.Repeat("9f86d081884c7d65", 4)
	sha512Example = strings.Repeat("ee26b0dd4af7e749", 8)
	digests       = map[string]string{"sha256": sha256Example, "sha512": sha512Example}
	given         = v1.Digest{Algorithm: "sha256", Value: sha256Example}
	priority      = 5
)

var requestExample = v1.BatchRequest{
	Collection: "maps", Submitter: "Map Library", Note: "Scans of 2026",
	Notification: []string{"maps@example.org"},
	Payload:      v1.Payload{URL: "https://example.org/map.checkm", Type: "object-manifest"},
	Identifiers:  &v1.Identifiers{Local: []string{"map-1851"}},
	Metadata:     &v1.Metadata{Who: "Blunt, John", What: "Map of the harbour", When: "1851"},
}

var correctionExample = v1.CorrectionRequest{
	Who: "Blunt, John", WithdrawLocal: []string{"map-1815"}, AddLocal: []string{"map-1851"},
	Reason: "The year in the id was wrong.",
}

var batchExample = v1.Batch{
	ID: batchID, State: v1.Completed, Collection: "maps", Submitter: "Map Library",
	Note:    "Scans of 2026",
	Created: "2026-11-22T09:30:00Z", Report: "/v1/batches/" + batchID + "/report", Reports: 1,
	Counts: v1.Counts{Expected: 1, Completed: 1},
	Bytes:  3145728, Callbacks: &v1.CallbackCounts{Delivered: 1},
	Mails: []v1.Notice{{Kind: "report", To: "maps@example.org", State: v1.NoticeFailed, At: timeExample, Tries: 2,
		Problem: "Email address is not verified.", NextTry: "2026-11-22T09:35:00Z"}},
	MailProblems: []v1.MailProblem{{Mail: "report", To: "maps@example.org",
		Problem: "Email address is not verified.",
		Tries:   2, NextTry: "2026-11-22T09:35:00Z",
		Text: "The report was not sent to maps@example.org: Email address is not verified."}},
}

var jobExample = v1.Job{
	Title: "Map of the harbour", Source: "https://example.org/map.tif", Created: timeExample,
	Stages: []v1.JobStage{
		{State: v1.Pending, Since: timeExample, Until: timeExample, Seconds: 12, Times: 1},
	},
	ID: jobID, Batch: batchID, Collection: "maps", State: v1.Completed,
	LastSuccessfulState: v1.Notify, Priority: 5,
	SpaceNeeded: 3145728, Version: 1, InventoryDigest: sha512Example,
	Identifiers: v1.Identifiers{Primary: arkExample, Local: []string{"map-1851"}},
	Progress:    v1.Progress{Files: 3, Bytes: 3145728},
	Callbacks: []v1.Notice{{Kind: "callback", To: "https://hooks.example.org", NamedBy: "profile",
		State: v1.NoticeDelivered, At: timeExample, Tries: 1}},
}

var objectExample = v1.Object{
	ARK: arkExample, Collection: "maps", Title: "Map of the harbour",
	LocalIDs: []string{"map-1851"}, Version: 1,
	Created: timeExample, Modified: timeExample, InventoryDigest: sha512Example,
}

var foundExample = v1.Found{
	Items: []v1.Object{objectExample}, Total: 1,
	Collections: []v1.CollectionCount{{Name: "maps", Objects: 1}},
	Years:       []v1.YearCount{{Year: "1851", Objects: 1}},
	Formats:     []v1.FormatCount{{Format: "image/tiff", Objects: 1}},
}

var versionExample = v1.Version{
	Version: 1, Created: timeExample, Job: jobID, Files: 8, Bytes: 3151872,
	InventoryDigest: sha512Example,
}

var fileExample = v1.File{Path: "producer/map.tif", Size: 1 << 20, MediaType: "image/tiff",
	Digests: digests}

var descriptionExample = v1.Description{Who: []string{"Blunt, John"}, What: []string{"Map of the harbour"},
	When: []string{"1851"}, Where: []string{arkExample}, More: map[string][]string{"rights": {"CC0"}}}

var changeExample = v1.FileChange{Change: "changed", Path: "producer/map.tif",
	Was: &v1.FileState{Size: 1 << 19, SHA512: digests["sha512"]},
	Is:  &v1.FileState{Size: 1 << 20, SHA512: digests["sha512"]}}

var receiptFile = v1.ReceiptFile{Path: "producer/map.tif", Size: 1 << 20, Digests: digests,
	Given: &given}

var receiptExample = v1.Receipt{
	Job: jobID, Batch: batchID, ARK: arkExample, Version: 1, Created: timeExample,
	Files: []v1.ReceiptFile{receiptFile},
}

var reportExample = v1.Report{
	Batch: batchID, Collection: "maps", Note: "Scans of 2026", At: "2026-11-22T09:32:00Z",
	Number: 1,
	Counts: v1.ReportCounts{Completed: 1}, Failed: []v1.ReportJob{}, Open: []v1.ReportJob{},
	Completed: []v1.ReportJob{{
		Job: jobID, State: v1.Completed, Source: "https://example.org/map.checkm", ARK: arkExample,
		Version:         1,
		InventoryDigest: sha512Example, LocalIDs: []string{"map-1851"}, Title: "Map of the harbour",
		Files: 3,
		Bytes: 3145728, FileDetails: []v1.ReceiptFile{receiptFile}, Receipt: "/v1/jobs/" + jobID +
			"/receipt",
	}},
}

var collectionExample = v1.Collection{Name: "maps", Profile: v1.Profile{
	Title: "Historical maps", Priority: &priority, RequireDigest: true,
	Notification: []string{"maps@example.org"},
	Callback: &v1.Callback{URL: "https://example.org/preserved", Secret: "archivist/callback",
		Mode: "required", Hosts: []string{"hooks.example.org"}},
}}

var deploymentExample = v1.Status{At: timeExample, Attention: true, Sections: []v1.StatusSection{
	{Name: "failures", State: v1.SectionAttention, Command: "archivist job list --state failed",
		Summary: "failed in the last 24 hours, and still so: 3 jobs, 0 batches without jobs",
		Lines: []v1.StatusLine{{Text: "its digest is wrong", Attention: true, Count: 3, Since: timeExample,
			Command: "archivist job list --state failed --message 'its digest is wrong'"}}},
	{Name: "waiting", State: v1.SectionOK, Summary: "nothing waits", Command: "archivist queue show",
		Lines: []v1.StatusLine{}},
	{Name: "alarms", State: v1.SectionUnavailable, Lines: []v1.StatusLine{},
		Summary: "not known: CloudWatch refused DescribeAlarms: AccessDenied"},
}, Queue: &v1.Queue{Waiting: map[string]int{"pending": 0}, MaxInFlight: 20, SpaceFree: 10 << 40,
	LastSweep: timeExample}}

var queueExample = v1.Queue{
	Now: []v1.RunningJob{{Job: jobID, Collection: "maps", State: v1.Downloading, Since: timeExample,
		Execution: jobID + "-2", Worker: operationID,
		Progress: v1.Progress{Files: 3, Done: "1 of 3 files"}}},
	Heads: []v1.GateHead{{Gate: "pending", Place: 1, Job: jobID, Collection: "maps",
		Since: timeExample, Why: "Waiting to start: all 20 slots are in use."}},
	Locks: &v1.LockLines{Looked: 3, Lines: []v1.LockLine{{Of: arkExample,
		First: "01M7ZBMEYHBB62YP6RY21T1GQ5-00001", Has: true, Collection: "maps", State: v1.Storing,
		Since: timeExample, Waiting: 1, Jobs: []string{jobID}}}},
	Limits: &v1.QueueLimits{OfCollection: 20,
		Collections: []v1.QueueUse{{Name: "maps", Running: 20}},
		Stages:      []v1.QueueUse{{Name: v1.Downloading, Running: 20}}, Space: 20 << 40, Reserve: 1 << 40,
		PatienceMinutes: 60, LargestHolder: jobID, LargestHeld: 1 << 40},
	Waiting: map[string]int{"pending": 343, "provisioning": 2, "parked": 1}, Running: 20,
	MaxInFlight: 20,
	SpaceFree:   10 << 40, OldestWaiting: jobID, OldestSince: timeExample, LastSweep: timeExample,
}

var (
	sourceIsBack = v1.ActionOptions{Reason: "The source is reachable again."}
	maintenance  = v1.ActionOptions{Reason: "Maintenance of the network."}
)

var requeuedExample = v1.ActionOutcome{Action: "requeue", Target: "job:" + jobID, Changed: true,
	Summary: "job " + jobID + " continues at Downloading", From: v1.Failed, To: v1.Downloading}

var requeuedJob = v1.Job{
	ID: jobID, Batch: batchID, Collection: "maps", State: v1.Downloading,
	LastSuccessfulState: v1.Provisioning,
	Priority:            5, SpaceNeeded: 3145728, RetryCount: 1,
	Identifiers: v1.Identifiers{Primary: arkExample, Local: []string{"map-1851"}},
	Progress:    v1.Progress{Files: 3},
}

var reportedExample = v1.ActionOutcome{Action: "update-report", Target: "batch:" + batchID,
	Changed: true,
	Summary: "batch " + batchID + " reports what has changed", From: v1.Failed,
	To: v1.UpdateReporting}

var releasedExample = v1.ActionOutcome{Action: "release", Target: "collection:maps", Changed: true,
	Summary: "collection maps is no longer on hold",
	Next: &v1.Bulk{Action: "release",
		Filter: v1.JobFilter{Collection: "maps", State: v1.Held, KeepOwnHolds: true}}}

// pausedExample is the result of a pause.
func pausedExample(target string) v1.ActionResult {
	return v1.ActionResult{ActionOutcome: v1.ActionOutcome{Action: "pause", Target: target,
		Changed: true,
		Summary: "the " + target + " is paused until 2026-11-22T18:00:00Z"}}
}

var requeueAll = v1.OperationRequest{Action: "requeue", ActionOptions: sourceIsBack,
	Filter: &v1.JobFilter{Collection: "maps", State: v1.Failed, Message: "404 Not Found"}}

var operationExample = v1.Operation{
	ID: operationID, Action: "requeue", State: v1.OperationRunning, Filter: requeueAll.Filter,
	Reason: sourceIsBack.Reason, Actor: nobody, Execution: operationID + "-1",
	Started: timeExample,
	Counts:  v1.OperationCounts{Planned: 120, Done: 80, Refused: 3, Left: 37},
}

var itemExample = v1.OperationItem{Job: jobID, Outcome: v1.ItemDone,
	Message: "job " + jobID + " continues at Processing"}

var refusalExample = v1.Refusal{Job: jobID, Reason: "job " + jobID +
	" cannot be requeued: a new submission is needed"}

var findingExample = v1.Finding{Invariant: "batch-counts", Subject: "batch:" + batchID,
	Evidence: "it counts 3 failed jobs; 2 of its jobs are Failed",
	Command:  "archivist doctor --repair"}

var holdExample = v1.Hold{Target: "collection:maps", Reason: "Rights are unclear.", Actor: nobody,
	Since: timeExample, Until: "2026-11-23T06:00:00Z"}

var actExample = v1.Act{Time: "2026-11-22T09:31:12.250Z", Actor: nobody, Type: "collection.held", Action: "modify",
	Subject: v1.EventRef{Type: "Collection", ID: "maps"}, Outcome: "success", Reason: "Rights are unclear.", Version: 3,
	Event: "01M7ZBMEYHBB62YP6RY21T1GQ7.1"}

// interrupted is an operation after it was interrupted.
func interrupted(o v1.Operation) v1.Operation {
	o.State, o.Execution = v1.OperationInterrupted, ""
	return o
}

// listed returns a batch in the form that lists have.
func listed(b v1.Batch) v1.Batch {
	b.MailProblems, b.Mails = nil, nil
	return b
}

// events returns a page with one event.
func events(kind, subject, detail string) v1.List[v1.Event] {
	return v1.List[v1.Event]{Items: []v1.Event{{
		ID: "01M7ZBMEYHBB62YP6RY21T1GQ7." + subject, Version: 2, Type: kind, Time: timeExample,
		Outcome: "success",
		Actor:   nobody, Component: "scheduler", Detail: []byte(detail),
	}}}
}

// logEventExample is an event with all that it says.
var logEventExample = v1.LogEvent{ID: "01M7ZBMEYHBB62YP6RY21T1GQ7.1",
	Subject: v1.EventRef{Type: "Object", ID: arkExample}, Version: 1, Type: v1.EventObjectCreate,
	Action: "create",
	Time:   timeExample, Outcome: "success",
	Objects:     []v1.EventRef{{Role: "version", Type: "Version", ID: arkExample + "/v1"}},
	Parents:     []v1.EventRef{{Type: "Collection", ID: "maps"}},
	Identifiers: []string{arkExample, "map-1851"}, Properties: []string{"title", "version"},
	Context: v1.EventContext{Actor: "Map Library", Component: "record", Version: "v1.4.0",
		Transaction: v1.EventTransaction{ID: "01M7ZBMEYHBB62YP6RY21T1GQ7", Index: 1, Count: 2}},
	After: []byte(`{"title": "Map of the harbour", "version": 1}`), Schema: 2, Partition: "maps",
	Seq: 42}

// historyExample is an event of the record of an object.
var historyExample = v1.HistoryEvent{ID: "01M7ZBMEYHBB62YP6RY21T1GQ7.0", SubjectType: "Object",
	SubjectID: "ark:/99999/fk4tq65d6k", Version: 1, Type: v1.EventObjectCreate, Action: "create",
	Time:    timeExample,
	Outcome: "success", Actor: nobody, Component: "record",
	Identifiers: []string{"ark:/99999/fk4tq65d6k", "map-1851"},
	Detail: map[string]any{"version": 1, "versions": 1, "localIds": []string{"map-1851"},
		"job": jobID}}

// statisticsExample are the counts of a collection.
var statisticsExample = v1.Statistics{Collection: "maps", Updated: timeExample,
	EventCounts: v1.EventCounts{
		Objects: 120, Versions: 151, Files: 3120, Bytes: 73014444032, Completed: 151, Failed: 4,
		Downloads: 980}}
var consumerExample = v1.Consumer{
	ConsumerDefinition: v1.ConsumerDefinition{Name: "search", Version: 1,
		Description: "Keeps the search index.",
		Filter:      "Object+Create|Modify|Delete", Target: v1.ConsumerTarget{Handler: "search"},
		Mode:  "async",
		Order: "subject", Batch: 10, Window: 100, Concurrency: 4, Retries: 3, OnFailure: "park",
		MaxDepth:  10,
		OwnEvents: "ignore", Start: "latest"},
	Created: "2026-11-22T09:30:00Z", Changed: "2026-11-22T09:30:00Z",
	Counted: "2026-11-22T09:30:03Z", Behind: 2, LagSeconds: 3, LagSince: timeExample,
	Partitions: []v1.ConsumerPartition{{Partition: "maps", Seq: 1841, Head: 1843, LagSeconds: 3,
		LagSince: timeExample}},
}

var replayExample = v1.Replay{ID: operationID, Consumer: "search",
	From: "time:2026-11-01T00:00:00Z", Until: "latest",
	Filter: "Object+Modify", State: v1.ReplayRunning, Partitions: new(2), PartitionsDone: new(1),
	Read: new(int64(1200)), Total: new(int64(4000)),
	Reason: "The function had a bug.", Actor: nobody, Started: timeExample}

var parkedExample = v1.ParkedEvent{Partition: "maps", Seq: 1842, Key: "Object#" + arkExample,
	Event: "01M7ZBMEYHBB62YP6RY21T1GQ9.Object", Type: v1.EventObjectModify, Subject: "Object:" +
		arkExample,
	Number: 4, Time: "2026-11-22T09:31:10Z",
	Reason: "the function answered: the index is read-only", Attempts: 4,
	Since: timeExample, Version: 1}

var selectedExample = v1.SelectedEvent{ID: "01M7ZBMEYHBB62YP6RY21T1GQ9.Object",
	Type:    v1.EventObjectCreate,
	Subject: "Object:" + arkExample, Number: 4, Partition: "maps", Seq: 1842,
	Time: "2026-11-22T09:31:10Z"}

// unnamed is a definition as it is sent: the path has the name.
func unnamed(d v1.ConsumerDefinition) v1.ConsumerDefinition {
	d.Name, d.Version = "", 0
	return d
}

var premisExample = v1.PREMISImport{Zone: "Europe/Copenhagen",
	Reason: "Migration of the newspapers",
	Document: `<event xmlns="info:lc/xmlns/premis-v2" version="2.2"><eventIdentifier>` +
		`<eventIdentifierType>UUID</eventIdentifierType>` +
		`<eventIdentifierValue>6a1b8f0e-5b0c-4c59-8f0b-5a3f2d1c0001</eventIdentifierValue></eventIdentifier>` +
		`<eventType>Data_Received</eventType><eventDateTime>2013-10-25T13:06:00</eventDateTime>` +
		`<eventOutcomeInformation><eventOutcome>success</eventOutcome></eventOutcomeInformation></event>`}

var premisImported = v1.PREMISImported{Item: "item:delivery-17", Present: []v1.PREMISEvent{},
	Refused: []v1.PREMISRefusal{}, Imported: []v1.PREMISEvent{{IdentifierType: "UUID",
		Identifier: "6a1b8f0e-5b0c-4c59-8f0b-5a3f2d1c0001", Event: "Data_Received"}}}

// itemID is the id of an item made by hand.
const itemID = "item:delivery-17"

// unnamedComponent is a definition as it is sent: the path has the name.
var unnamedComponent = v1.ComponentDefinition{Description: "Counts the words of each delivery.",
	Event: "Words_counted", PastSuccess: []string{"Received"}, Future: []string{"Words_counted"},
	Types: []string{"delivery"}, Wake: true,
	Runnable: v1.ComponentRunnable{Function: "count-words"}}

var componentExample = func() v1.Component {
	d := unnamedComponent
	d.Name, d.Version, d.MaxItems, d.Concurrency, d.Instances, d.MaxResults,
		d.MaxDepth = "count-words", 1, 1000, 10, 1,
		100, 20
	d.Timeout = &v1.ComponentTimeout{Item: 60, Run: 3600}
	return v1.Component{ComponentDefinition: d, Created: "2026-11-22T09:30:00Z",
		Changed:     "2026-11-22T09:30:00Z",
		Counts:      v1.ComponentCounts{Ready: 12, Failed: 1, Done: 177},
		OldestReady: "2026-11-22T09:29:00Z"}
}()

var runExample = v1.ComponentRun{ID: operationID, Component: "count-words", Definition: 1,
	State: v1.RunEnded,
	Actor: nobody, Reason: "The metadata is corrected.", Started: timeExample, Ended: timeExample,
	Until:    timeExample,
	MaxItems: 1000, Counts: v1.RunCounts{Done: 1},
	Items: []v1.RunItem{{Item: itemID, State: "success",
		Event: "01M7ZBMEYHBB62YP6RY21T1GQ9.0", Started: timeExample, Ended: timeExample}}}

var componentItemExample = v1.Item{ID: itemID, Types: []string{"delivery"},
	Identifiers: []string{itemID}, Priority: 9,
	First: "2026-11-22T09:29:00Z", Number: 3,
	Events: []v1.ItemMark{{Name: "Received", Outcome: "success",
		Time: timeExample, Event: "01M7ZBMEYHBB62YP6RY21T1GQ9.0", Number: 2}},
	Lines: []v1.ItemLine{{Component: "count-words", Class: "ready"}}}

var itemEventExample = v1.LogEvent{ID: "01M7ZBMEYHBB62YP6RY21T1GQ9.0",
	Subject: v1.EventRef{Type: "ComponentItem", ID: itemID}, Version: 3, Type: "component.ran",
	Action: "modify",
	Time:   timeExample, Outcome: "success", Context: v1.EventContext{Component: "count-words",
		Transaction: v1.EventTransaction{ID: "01M7ZBMEYHBB62YP6RY21T1GQ9", Count: 1}}, Schema: 1}
