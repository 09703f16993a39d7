package api

import (
	"maps"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/access"
)

const (
	episodeKey = "mfrggzdfmztwq2lknnwg23tp"
	clipKey    = "nbswy3dpnbswy3dpnbswy3dp"
	jingles    = "jingles"
)

var (
	analysisExample = v1.ResearchAnalysis{Name: "correlation", Version: "1"}

	researchDefinition = v1.ResearchDefinition{Description: "Where jingles were played.",
		Analysis: analysisExample,
		MaxClips: 100}

	projectExample = v1.ResearchProject{Round: 1,
		ResearchDefinition: v1.ResearchDefinition{Name: jingles,
			Description: "Where jingles were played.", Analysis: analysisExample, MaxClips: 100}}

	recordExample = v1.ResearchRecord{Source: "radio", ID: "2026-11-22-morning",
		Title: "The morning show",
		URL:   "https://example.org/2026-11-22.mp3", Priority: &priority,
		Curated: "2026-11-22T07:30:00Z"}

	episodeExample = v1.ResearchMedia{Key: episodeKey, Source: "radio", ID: "2026-11-22-morning",
		Title: "The morning show", URL: "https://example.org/2026-11-22.mp3", Priority: 5,
		Initial: "2026-11-22T07:30:00Z", Latest: "2026-11-22T07:30:00Z", State: "ready",
		Coverage: &v1.ResearchCoverage{Pairs: 100, Researched: 12, Leased: 50, Open: 38}}

	clipExample = v1.ResearchMedia{Key: clipKey, Source: "radio", ID: "jingle-4",
		Title: "The jingle",
		URL:   "https://example.org/jingle-4.wav", Initial: "2026-11-20T07:30:00Z",
		Latest: "2026-11-20T07:30:00Z",
		State:  "live"}

	silent = v1.ResearchMedia{Key: clipKey, Source: "radio", ID: "jingle-4", Title: "The jingle",
		URL: "https://example.org/jingle-4.wav", Initial: "2026-11-20T07:30:00Z",
		Latest: "2026-11-20T07:30:00Z",
		State:  "set-aside", Reason: "the recording is silent"}

	leaseExample = v1.ResearchLease{ID: operationID, Project: jingles, Episode: episodeKey,
		Clips:    []string{clipKey},
		Analysis: "correlation@1", Created: "2026-11-22T09:30:00Z", Until: "2026-11-22T11:30:00Z",
		QueueEnd: "2026-11-22T10:00:00Z", Accepted: "2026-11-22T09:30:02Z", Researcher: "bench-3"}

	researchReport = v1.ResearchReport{Project: jingles, Lease: operationID, Researcher: "bench-3",
		Analysis: "correlation@1", Episode: episodeKey, Sequence: 1, Clip: clipKey, Millis: 2100,
		Hits:  []v1.ResearchHit{{Offset: 61_500_000_000, Length: 4_200_000_000, Score: 0.93}},
		Final: true, Count: 1}

	resultExample = v1.ResearchResult{ResearchReport: researchReport, At: timeExample}

	statusExample = v1.ResearchStatus{Project: jingles, Analysis: "correlation@1",
		Episodes:    v1.ResearchEpisodes{Ready: 3, Closed: 7},
		Clips:       v1.ResearchClips{Live: 99, Away: 1},
		Coverage:    v1.ResearchCoverage{Pairs: 990, Researched: 640, Leased: 90, Open: 260},
		Leases:      2,
		OldestLease: &leaseExample, Waiting: 1, Researchers: 2, Capacity: 2, Results: 652,
		LastHour:         180,
		RemainingSeconds: 7000, Trouble: []v1.ResearchTrouble{{Kind: "clip", Media: silent}}}

	nextExample = v1.ResearchNext{Researcher: "bench-3", Token: "01M7ZBMEYHBB62YP6RY21T1GQ9"}

	workExample = v1.ResearchWork{Lease: leaseExample, Analysis: analysisExample,
		Episode: v1.ResearchRecording{Key: episodeKey, Title: "The morning show",
			URL: "https://example.org/2026-11-22.mp3"},
		Clips: []v1.ResearchRecording{{Key: clipKey, Title: "The jingle",
			URL: "https://example.org/jingle-4.wav"}}}
)

// researchOperations describe the routes of research.
var researchOperations = map[string]about{
	"listResearchProjects": {tag: "Research", role: viewer, answer: listOf(projectExample),
		description: "The research projects of the deployment that are configured, by name."},
	"getResearchProject": {tag: "Research", role: viewer, refusals: []problemType{notFound},
		answer:      projectExample,
		description: "The definition of the project, and whether it is paused."},
	"putResearchProject": {tag: "Research", role: administrator, refusals: []problemType{notFound,
		conflict, changed},
		request: researchDefinition, answer: projectExample,
		description: "Replaces the whole definition. The same definition again changes nothing. The deployment names " +
			"the projects that there can be, because each has a queue. Another name or version of the analysis makes " +
			"all pairs due again; its settings cannot be changed without that."},
	"actOnResearchProject": {tag: "Research", role: operator, refusals: []problemType{notFound,
		conflict, changed},
		request: v1.ResearchAction{Action: "pause", Reason: "The store is being moved."},
		answer:  projectExample,
		description: "A paused project assigns no work; what is assigned goes on. If the project is already as the " +
			"action wants it, nothing is changed. With an `Idempotency-Key` the action is done once."},
	"listResearchProjectEvents": {tag: "Research", role: viewer, refusals: []problemType{notFound},
		answer: events(v1.EventProjectPaused, "ResearchProject",
			`{"reason": "The store is being moved."}`),
		description: "The changes of the project by persons, oldest first."},
	"getResearchStatus": {tag: "Research", role: viewer, refusals: []problemType{notFound},
		answer:      statusExample,
		description: "How much is researched, who is at work, and what is set aside or deferred, with the reasons."},
	"getResearchMatrix": {tag: "Research", role: viewer, refusals: []problemType{notFound},
		description: "Episodes are in the order of their list: by state, priority and date. With each are up to 400 " +
			"clips, in the order of research; 40 of them are named, from `clip` on. A lease whose time is over may " +
			"still be shown.",
		answer: v1.ResearchMatrix{Clips: []v1.ResearchMedia{clipExample}, Total: 1,
			Rows: []v1.ResearchMatrixRow{{Episode: episodeExample, Pairs: "3"}}}},
	"listDifferences": {tag: "Research", role: viewer, refusals: []problemType{notFound},
		answer: listOf(v1.ResearchDifference{Episode: episodeKey, Clip: clipKey, Since: timeExample,
			Results: []v1.ResearchResult{}}),
		description: "Of a project with a quorum: as many researchers as that have a result, and they are not the " +
			"same. By episode and clip; a page may be empty and not be the last."},
	"decidePair": {tag: "Research", role: operator, refusals: []problemType{notFound, conflict,
		changed},
		request: v1.ResearchDecision{Action: "decide", Episode: episodeKey, Clip: clipKey, Lease: operationID,
			Reason: "The second hit is an echo."},
		answer: v1.Explanation{
			ExplainedLink: v1.ExplainedLink{Kind: "Episode", ID: "jingles/" + episodeKey, WaitsFor: "nothing",
				Why: "it is researched: by bench-3 at 2026-11-22T09:41:10Z, lease " + operationID},
			Chain: []v1.ExplainedLink{}, Do: []v1.ExplainedStep{}, Facts: []v1.ExplainedFact{}},
		description: "With `lease`, the result of that lease counts, also if the pair only waits for another " +
			"researcher. With `another`, one more researcher is asked, who may agree with enough others, or not."},
	"listReviews": {tag: "Research", role: viewer, refusals: []problemType{notFound},
		answer: listOf(v1.ResearchUnreviewed{Since: timeExample, Waiting: 1,
			ResearchResult: resultExample}),
		description: "Of a project with a review: the result of each pair that counts and " +
			"has places that nobody has accepted or rejected. By episode and clip; a page may " +
			"be empty and not be the last."},
	"reviewPair": {tag: "Research", role: operator, refusals: []problemType{notFound, conflict,
		changed},
		request: v1.ResearchReview{Action: "accept", Episode: episodeKey, Clip: clipKey,
			Lease: operationID,
			Hit:   1, Reason: "I have listened to it."},
		answer: v1.Explanation{
			ExplainedLink: v1.ExplainedLink{Kind: "Episode", ID: "jingles/" + episodeKey,
				WaitsFor: "nothing",
				Why: "it is researched: by bench-3 at 2026-11-22T09:41:10Z, lease " + operationID + "; 1 of its 1 " +
					"places are accepted, last decided by ann at 2026-11-22T09:50:00Z"},
			Chain: []v1.ExplainedLink{}, Do: []v1.ExplainedStep{}, Facts: []v1.ExplainedFact{}},
		description: "Of a project with a review. What is accepted is exported. The same " +
			"again changes nothing; what was decided otherwise before is a conflict, unless the " +
			"request says `change`, and so is the result of a lease that does not count any " +
			"more. With an `Idempotency-Key` it is done once."},
	"listLeases": {tag: "Research", role: viewer, refusals: []problemType{notFound},
		answer:      listOf(leaseExample),
		description: "The oldest first, 100 to a page."},
	"getLease": {tag: "Research", role: viewer, also: access.Researcher,
		refusals:    []problemType{notFound},
		answer:      leaseExample,
		description: "A lease that has ended is kept for 30 days."},
	"listLeaseEvents": {tag: "Research", role: viewer, refusals: []problemType{notFound},
		answer:      events(v1.EventLeaseAccepted, "ResearchLease", `{"researcher": "bench-3"}`),
		description: "What happened to the lease, oldest first."},
	"revokeLease": {tag: "Research", role: operator, refusals: []problemType{notFound, conflict,
		changed},
		request:     v1.ResearchRevocation{Action: "revoke", Reason: "The researcher hangs."},
		answer:      leaseExample,
		description: "Pairs without a result are assigned again. What the researcher still reports is stored."},
	"listResearchers": {tag: "Research", role: viewer, refusals: []problemType{notFound},
		answer: listOf(v1.Researcher{Name: "bench-3", Capacity: 1, Host: "bench-3.example.org",
			Software: "archivist v1.4.0", Since: "2026-11-22T09:00:00Z",
			Until: "2026-11-22T09:31:30Z"}),
		description: "Those who have said within the last 90 seconds that they are there, by name."},
	"listOffsets": {tag: "Research", role: viewer, refusals: []problemType{notFound},
		answer: listOf(v1.ResearchOffset{Episode: episodeKey, Clip: clipKey, Title: "The jingle",
			At:          timeExample,
			ResearchHit: researchReport.Hits[0]}),
		description: "Where clips occur by the present analysis: in an episode, or in all. As JSON or CSV in pages " +
			"(for CSV, the header `Link` has the URL of the next page); as WebVTT or labels of Audacity at once, for " +
			"an episode. A page may be empty and not be the last. Of a project with a review: what is accepted; " +
			"`waiting` and the header `Places-Waiting` say how many places are left out because they wait."},

	"helloResearcher": {tag: "Research", role: administrator, also: access.Researcher,
		refusals: []problemType{notFound},
		request: v1.ResearchHello{Researcher: "bench-3", Capacity: 1, Host: "bench-3.example.org",
			Software: "archivist v1.4.0"},
		answer: v1.ResearchWelcome{Until: "2026-11-22T09:31:30Z", RenewSeconds: 30},
		description: "So much work is assigned as the researchers who are present take at once. A researcher says " +
			"this again every `renewSeconds`."},
	"byeResearcher": {tag: "Research", role: administrator, also: access.Researcher,
		refusals:    []problemType{notFound},
		request:     v1.ResearchBye{Researcher: "bench-3"},
		description: "The researcher is absent at once. Its work items stay its own until they end."},
	"nextWork": {tag: "Research", role: administrator, also: access.Researcher,
		refusals: []problemType{notFound, conflict, held},
		request:  nextExample,
		answer:   workExample,
		description: "Receives a work item from the queue and accepts it. 204: none waits; ask again after 3 " +
			"seconds, and then less and less often, up to 30. The same request again gives the same work item. " +
			"It is a conflict if its lease has ended: ask with another token."},
	"acceptWork": {tag: "Research", role: administrator, also: access.Researcher,
		refusals: []problemType{notFound, conflict, held},
		request:  v1.ResearchAccept{ResearchNext: nextExample, Lease: operationID},
		answer:   workExample,
		description: "For a researcher that receives from the queue itself. A conflict or a lease that there is not " +
			"means that the message is no longer valid: delete it. 423 means that another researcher has to take it: " +
			"leave it. The same request again gives the same work item."},
	"reportWork": {tag: "Research", role: administrator, also: access.Researcher,
		refusals: []problemType{notFound},
		request:  v1.ResearchReports{Reports: []v1.ResearchReport{researchReport}},
		answer:   v1.ResearchReceived{Reports: 1},
		description: "The reports are put on the queue of completed work. A report is stored once, however often it " +
			"is sent, and whatever has become of its lease."},
}

// ofMedia describes the routes of episodes or clips.
func ofMedia(name string, example v1.ResearchMedia, states []string,
	results string) map[string]about {
	curated := map[string]string{"Episode": v1.EventEpisodeCurated,
		"Clip": v1.EventClipCurated}[name]
	return map[string]about{
		"put" + name + "s": {tag: "Research", role: administrator,
			refusals: []problemType{notFound},
			request:  v1.ResearchRecords{Records: []v1.ResearchRecord{recordExample}},
			answer:   listOf(v1.ResearchRecorded{Key: example.Key}),
			description: "Each record is answered by itself, in the order of the request: with its key, or with what " +
				"is wrong. Records may come in any order and more than once: what is known afterwards is the same."},
		"list" + name + "s": {tag: "Research", role: viewer, refusals: []problemType{notFound},
			answer: listOf(example),
			states: states,
			description: "In the order of research, then those that are set aside, deferred or withdrawn, at most " +
				"100 to a page. What changes its state meanwhile may be missing, or come twice."},
		"get" + name: {tag: "Research", role: viewer, refusals: []problemType{notFound},
			answer:      example,
			description: "What is known, and what becomes of it."},
		"retry" + name: {tag: "Research", role: operator, refusals: []problemType{notFound,
			conflict, changed},
			request:     v1.ResearchRetry{Action: "retry", Reason: "The recording was replaced."},
			answer:      example,
			description: "For what is set aside or deferred; otherwise it is a conflict."},
		"list" + name + "Events": {tag: "Research", role: viewer, refusals: []problemType{notFound},
			answer: events(curated, name, `{"media": {"source": "radio", "id": "`+example.ID+
				`", "url": "`+
				example.URL+
				`", "priority": 0, "initial": 1795332600000, "latest": 1795332600000}}`),
			description: "What happened to it, oldest first."},
		"list" + name + "Results": {tag: "Research", role: viewer,
			refusals:    []problemType{notFound},
			answer:      listOf(resultExample),
			description: results},
	}
}

// researchParameters describe the parameters of the routes of research.
var researchParameters = map[string]parameter{
	"project":             {"The name of the research project.", jingles},
	"key":                 {"The key of the episode or the clip.", episodeKey},
	"lease":               {"The id of the lease.", operationID},
	"episode":             {"The key of the episode.", episodeKey},
	"clip":                {"The key of the clip.", clipKey},
	"format":              {"The format. The last two are for one episode.", "json"},
	"listOffsets episode": {"Only this episode. Omit it for all.", episodeKey},
	"listEpisodes state":  {"Only those in this state.", "ready"},
	"listClips state":     {"Only those in this state.", "set-aside"},
}

func init() {
	maps.Copy(operations, researchOperations)
	maps.Copy(operations,
		ofMedia("Episode", episodeExample, []string{"ready", "closed", "set-aside",
			"deferred", "withdrawn"},
			"All results of the episode, by analysis and clip, 100 to a page."))
	maps.Copy(operations,
		ofMedia("Clip", clipExample, []string{"live", "set-aside", "deferred", "withdrawn"},
			"The results of the clip that have hits or a problem, by analysis and episode, 100 to a page."))
	maps.Copy(parameters, researchParameters)
}
