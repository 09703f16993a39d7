package api

import (
	"fmt"
	"maps"

	v1 "archivist/pkg/api/v1"
)

// operatingOperations are what operators look at of the deployment.
var operatingOperations = map[string]about{
	"getActivity": {tag: "Operation", role: viewer, answer: activityExample,
		description: "By hour: jobs that were completed and that failed, bytes that were stored, " +
			"the longest wait at a gate, slots and work space in use. Of an hour before this was " +
			"kept, nothing is known."},
	"getJobCounts": {tag: "Jobs", role: viewer, scope: inHandler, answer: jobCountsExample,
		description: "How many jobs wait, run, are on hold and have failed, by collection, with " +
			"the work space that they need or have. At most 1,000 jobs of each place are " +
			"counted; `cut` has the places that have more. With `batches` also by batch: those that " +
			"have the most. A depositor gets the jobs of the own collections. Jobs that are deferred are " +
			"among all due items, in eight parts, and whether a job with work files has failed is in " +
			"its row: `quick` leaves out the place `deferred`, and looks at 200 jobs with work files."},
	"getBatchCounts": {tag: "Batches", role: viewer, scope: ofList,
		answer: v1.BatchCounts{States: []v1.StateBatches{{State: v1.Pending, Batches: 7},
			{State: v1.Held}, {State: v1.Processing, Batches: 100, More: true},
			{State: v1.Reporting}, {State: v1.Failed, Batches: 2}}},
		description: "How many batches wait, are on hold, work, report and have failed, up to 100 of " +
			"each state, of a collection or of all. Batches that are completed or deleted, and those " +
			"that report once more, are not counted."},
	"getSettings": {tag: "Operation", role: operator, answer: settingsExample,
		description: "The release of the software, and all settings of the deployment with their " +
			"values, units, defaults and meanings. No secret is among them. What the API cannot " +
			"know is marked."},
	"listRestores": {tag: "Operation", role: operator, answer: restoresExample,
		refusals: []problemType{notFound, conflict},
		description: "The tables of the account and region that were restored from the one in " +
			"use, or from that of which it is a copy itself; what each lacks, and the command " +
			"that sets it. DynamoDB does not say how much of a restore is done. At most 500 " +
			"tables are looked at; one can be named. What AWS refuses is in `problem` and " +
			"`unreadWhy`. The same is answered for 15 seconds."},
	"reportReindex": {tag: "Operation", role: administrator, refusals: []problemType{notFound},
		request: reindexReportExample,
		answer: v1.ReindexRun{ID: operationID, State: v1.ReindexRunning, Actor: nobody, Started: timeExample,
			Reported: timeExample, SecondsLeft: 1800, ReindexReport: reindexReportExample},
		description: "A reindex of all objects is driven by its client, and so only that knows " +
			"how far it is. What it reports is shown to others, and nothing depends on it. The " +
			"first report of an `id` begins the run; one of less than is known, and one after " +
			"the end, change nothing. A run is forgotten after 90 days."},
	"listReindexRuns": {tag: "Operation", role: viewer,
		answer: listOf(v1.ReindexRun{ID: operationID, State: v1.ReindexRunning, Actor: nobody,
			Started: timeExample, Reported: timeExample, SecondsLeft: 1800, ReindexReport: reindexReportExample}),
		description: "How far the reindexes of all objects are, the newest first, as it was reported last."},
}

func init() { maps.Copy(operations, operatingOperations) }

// activityExample has all hours of a day, of which the last has run.
var activityExample = func() v1.Activity {
	out := v1.Activity{MaxInFlight: 100, Space: 10 << 40}
	for i := range activeHours {
		out.Hours = append(out.Hours, v1.ActivityHour{Begin: fmt.Sprintf("2026-11-22T%02d:00:00Z", i), Measured: true})
	}
	last := &out.Hours[activeHours-1]
	last.Completed, last.Failed, last.Bytes, last.Waited, last.Running, last.Space = 151, 4, 73<<30, 360, 87, 5<<40
	return out
}()

var reindexReportExample = v1.ReindexReport{Done: 2048, Total: 4096, Objects: 1000, Changed: 2, Failed: 1,
	Failures: []v1.NotReindexed{{Stored: "0a1/2b3/4c5/ark", Why: "it is no inventory"}}}

var restoresExample = v1.Restores{Table: "archivist-table", Looked: 12, Items: []v1.RestoredTable{
	{Name: "archivist-restored", Status: "ACTIVE", Source: "archivist-table",
		Moment: "2026-11-22T09:30:00Z", Begun: timeExample, Rows: 120_000, Bytes: 96_000_000,
		Lacks: []v1.TableLack{{What: "protection",
			Says: "whoever may delete tables can delete it at once",
			Command: "aws dynamodb update-table --table-name archivist-restored " +
				"--deletion-protection-enabled"}}}}}

var settingsExample = v1.Settings{Version: "v1.4.0", Go: "go1.26.0", Items: []v1.Setting{
	{Group: "queue", Name: "maxInFlight", Value: "20", Unit: "jobs", Default: "100",
		Says: "jobs that run at once (slots)"},
	{Group: "mail", Name: "mailFrom", Says: "sender of reports"},
	{Group: "mail", Name: "alarmMail", Unknown: true, Says: "address that gets alarms"},
}}

var jobCountsExample = v1.JobCounts{
	Collections: []v1.CollectionJobs{{Collection: "maps", Places: placesExample}},
	All:         placesExample,
	Batches:     []v1.BatchJobs{{Batch: batchID, Collection: "maps", Places: placesExample}},
}

var placesExample = []v1.PlaceJobs{{Place: "pending", Jobs: 343, Bytes: 73 << 30}, {Place: "provisioning"},
	{Place: "parked"}, {Place: "running", Jobs: 20, Bytes: 5 << 40}, {Place: "held"}, {Place: "failed", Jobs: 4}}
