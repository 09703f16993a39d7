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
			"have the most. A depositor gets the jobs of the own collections."},
	"getSettings": {tag: "Operation", role: operator, answer: settingsExample,
		description: "The release of the software, and all settings of the deployment with their " +
			"values, units, defaults and meanings. No secret is among them. What the API cannot " +
			"know is marked."},
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
