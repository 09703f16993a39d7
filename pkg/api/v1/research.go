package v1

// ResearchAnalysis is what researchers do with a pair of an episode and a clip.
type ResearchAnalysis struct {
	// The name: lower-case letters, digits and hyphens.
	Name string `json:"name" example:"correlation"`
	// The version. Another name or version makes all pairs due again; the earlier results stay.
	Version string `json:"version" example:"1"`
	// The settings, as the analysis has them. Those of a version never change.
	Settings map[string]any `json:"settings,omitempty"`
}

// String names the analysis, as results do: "name@version".
func (a ResearchAnalysis) String() string { return a.Name + "@" + a.Version }

// ResearchFeed is a podcast feed whose entries are episodes or clips.
type ResearchFeed struct {
	// The address of the feed: RSS or Atom.
	URL string `json:"url" example:"https://example.org/feed.xml"`
	// The source of its entries. It is part of their identity.
	Source string `json:"source" example:"radio"`
	// What its entries are.
	Kind string `json:"kind" enum:"episode,clip" example:"episode"`
	// How often it is looked at: 5 to 10,080 minutes. By default 60.
	EveryMinutes int `json:"everyMinutes,omitempty" minimum:"0" example:"60"`
}

// ResearchDefinition is a research project as it is configured. A field that is left out has its default.
type ResearchDefinition struct {
	// The name of the project. In a request it may be left out: the path has it.
	Name string `json:"name,omitempty" example:"jingles"`
	// What the project is for.
	Description string `json:"description,omitempty" maxLength:"1000" example:"Where jingles were played."`
	// What researchers do with each pair.
	Analysis ResearchAnalysis `json:"analysis"`
	// The number of clips of a work item, at most: 1 to 100. By default 100.
	MaxClips int `json:"maxClips,omitempty" minimum:"0" example:"100"`
	// How many researchers, of different names, have to find the same in a pair: 1 to 5. By default 1. It is of the
	// analysis: another number needs another version of that.
	Quorum int `json:"quorum,omitempty" minimum:"0" example:"2"`
	// Whether a person accepts or rejects each place that is found, before it is exported. It is of
	// the analysis, as the quorum is.
	Review bool `json:"review,omitempty" example:"true"`
	// Feeds whose entries are episodes or clips.
	Feeds []ResearchFeed `json:"feeds,omitempty" maxItems:"50"`
}

// ResearchProject is a research project as it stands.
type ResearchProject struct {
	ResearchDefinition
	// The number of analyses that the project has had. Each has pairs of its own.
	Round int64 `json:"round" example:"1"`
	// Why no work is assigned. Absent: it is.
	Paused string `json:"paused,omitempty" example:"an operator: The store is being moved."`
}

// ResearchAction is a request to act on a research project.
type ResearchAction struct {
	// pause: no more work is assigned; what is assigned goes on. resume: work is assigned again.
	Action string `json:"action" enum:"pause,resume" example:"pause"`
	// For resume: only this researcher, which is paused because others do not have its problems.
	Researcher string `json:"researcher,omitempty" maxLength:"100" example:"bench-3"`
	// The reason. It is kept in the events.
	Reason string `json:"reason" minLength:"1" maxLength:"500" example:"The store is being moved."`
}

// ResearchPause is a researcher that gets no work items for a while.
type ResearchPause struct {
	// The name of the researcher.
	Researcher string `json:"researcher" example:"bench-3"`
	// The end of the pause.
	Until string `json:"until" format:"date-time" example:"2026-11-22T09:41:10Z"`
	// Its last problem.
	Reason string `json:"reason" example:"the address 10.0.0.7 is not allowed"`
}

// ResearchRetry is a request to research an episode or a clip again that was set aside or deferred.
type ResearchRetry struct {
	// Retry is the only action.
	Action string `json:"action" enum:"retry" example:"retry"`
	// The reason. It is kept in the events.
	Reason string `json:"reason" minLength:"1" maxLength:"500" example:"The recording was replaced."`
}

// ResearchRevocation is a request to end a lease.
type ResearchRevocation struct {
	// Revoke is the only action.
	Action string `json:"action" enum:"revoke" example:"revoke"`
	// The reason. It is kept in the events.
	Reason string `json:"reason" minLength:"1" maxLength:"500" example:"The researcher hangs."`
}

// ResearchRecord says what a curator knows of an episode or a clip. Source and id identify it.
type ResearchRecord struct {
	// Who gives the id. Required.
	Source string `json:"source,omitempty" example:"radio"`
	// An id that is stable within the source. Required.
	ID string `json:"id,omitempty" example:"2026-11-22-morning"`
	// The title. It is no identity.
	Title string `json:"title,omitempty" example:"The morning show"`
	// The address of the recording: http or https. Required.
	URL string `json:"url,omitempty" example:"https://example.org/2026-11-22.mp3"`
	// The size of the recording in bytes, if it is known.
	Size int64 `json:"size,omitempty" example:"52428800"`
	// The SHA-256 digest of the recording, if it is known.
	SHA256 string `json:"sha256,omitempty"`
	// Whether it is to be researched no more. Its results stay.
	Withdrawn bool `json:"withdrawn,omitempty"`
	// Higher is earlier: -999,999 to 999,999. Absent: it stays as it is, at first 0.
	Priority *int `json:"priority,omitempty" example:"5"`
	// When the curator said this, e.g. 2026-11-22T09:30:00Z. The newest record counts, in whatever order they come.
	// Absent: now.
	Curated string `json:"curated,omitempty" example:"2026-11-22T09:30:00Z"`
	// When it was curated first. Absent: as curated. Of several, the earliest counts.
	Initial string `json:"initial,omitempty" example:"2026-11-22T09:30:00Z"`
}

// ResearchRecords is a request to add records.
type ResearchRecords struct {
	// The records.
	Records []ResearchRecord `json:"records" minItems:"1" maxItems:"100"`
}

// ResearchRecorded says what became of a record.
type ResearchRecorded struct {
	// The key of the episode or clip. Absent if the record was refused.
	Key string `json:"key,omitempty" example:"mfrggzdfmztwq2lknnwg23tp"`
	// Why the record was refused. Absent if it was not.
	Problem string `json:"problem,omitempty" example:"url: found \"\"; expected an http or https address"`
	// The field that is wrong.
	Field string `json:"field,omitempty" example:"url"`
	// Whether the same record may be accepted later.
	Retry bool `json:"retry,omitempty"`
}

// ResearchMedia is an episode or a clip as it stands.
type ResearchMedia struct {
	// The key: 24 characters that follow from source and id.
	Key string `json:"key" example:"mfrggzdfmztwq2lknnwg23tp"`
	// Who gives the id.
	Source string `json:"source" example:"radio"`
	// The id that is stable within the source.
	ID string `json:"id" example:"2026-11-22-morning"`
	// The title.
	Title string `json:"title,omitempty" example:"The morning show"`
	// The address of the recording.
	URL string `json:"url" example:"https://example.org/2026-11-22.mp3"`
	// The size of the recording in bytes, if it is known.
	Size int64 `json:"size,omitempty" example:"52428800"`
	// The SHA-256 digest of the recording, if it is known.
	SHA256 string `json:"sha256,omitempty"`
	// Higher is earlier.
	Priority int `json:"priority" example:"5"`
	// The earliest date of curation.
	Initial string `json:"initial" format:"date-time" example:"2026-11-22T09:30:00Z"`
	// The latest date of curation.
	Latest string `json:"latest" format:"date-time" example:"2026-11-22T09:30:00Z"`
	// Of an episode: ready (it has a pair that is due) or closed; of a clip: live. Of both: set-aside, deferred or
	// withdrawn.
	State string `json:"state" enum:"ready,closed,live,set-aside,deferred,withdrawn" example:"ready"`
	// Whether its row is missing, so that only its key is known: archivist doctor. Absent if it is there.
	Missing bool `json:"missing,omitempty"`
	// Why it is set aside or deferred; or why no more work is assigned of an episode with open pairs that is closed.
	Reason string `json:"reason,omitempty" example:"404 Not Found"`
	// When a deferral ends.
	Until string `json:"until,omitempty" format:"date-time" example:"2026-11-22T09:40:00Z"`
	// Of an episode.
	Coverage *ResearchCoverage `json:"coverage,omitempty"`
	// How an episode sounds, if a researcher has told it. Lists do not have it.
	Waveform *ResearchWaveform `json:"waveform,omitempty"`
}

// ResearchCoverage counts pairs of episodes and clips that are neither withdrawn, set aside nor deferred. Each pair is
// in one of the states: their numbers add up to all.
type ResearchCoverage struct {
	// All.
	Pairs int64 `json:"pairs" example:"1000"`
	// Those that are researched.
	Researched int64 `json:"researched" example:"640"`
	// Those under a lease that are neither researched nor differ.
	Leased int64 `json:"leased" example:"100"`
	// In a project with a quorum: those that have a result, need that of another researcher, and are
	// under no lease.
	Waiting int64 `json:"waiting,omitempty" example:"12"`
	// In a project with a quorum: those whose results differ, so that a person has to decide.
	Differing int64 `json:"differing,omitempty" example:"1"`
	// The others.
	Open int64 `json:"open" example:"260"`
}

// ResearchEpisodes counts episodes.
type ResearchEpisodes struct {
	// Those that have a pair that is due.
	Ready int64 `json:"ready" example:"3"`
	// Those of which each pair is researched, under a lease, or waits for another researcher or a person; and those
	// with 100 leases, the most that are possible.
	Closed int64 `json:"closed" example:"7"`
	// Those that are withdrawn, set aside or deferred.
	Away int64 `json:"away" example:"0"`
}

// ResearchDifference is a pair whose results differ: a person has to decide.
type ResearchDifference struct {
	// The key of the episode.
	Episode string `json:"episode" example:"mfrggzdfmztwq2lknnwg23tp"`
	// The key of the clip.
	Clip string `json:"clip" example:"nbswy3dpnbswy3dpnbswy3dp"`
	// Since when.
	Since string `json:"since,omitempty" format:"date-time" example:"2026-11-22T09:41:10Z"`
	// The newest result of each researcher.
	Results []ResearchResult `json:"results"`
	// Why they cannot be shown: damage, which the doctor finds, too. Then there are no results, and
	// perhaps since when is not known. Absent: all is well.
	Damage string `json:"damage,omitempty"`
}

// ResearchDecision is a request to end the wait of a pair for a person, or for another researcher.
type ResearchDecision struct {
	// Decide is the only action.
	Action string `json:"action" enum:"decide" example:"decide"`
	// The key of the episode.
	Episode string `json:"episode" minLength:"1" maxLength:"40" example:"mfrggzdfmztwq2lknnwg23tp"`
	// The key of the clip.
	Clip string `json:"clip" minLength:"1" maxLength:"40" example:"nbswy3dpnbswy3dpnbswy3dp"`
	// The lease whose result counts.
	Lease string `json:"lease,omitempty" maxLength:"64" example:"01M7ZBMEYHBB62YP6RY21T1GQ8"`
	// In place of that: one more researcher is asked.
	Another bool `json:"another,omitempty"`
	// The reason. It is kept in the events.
	Reason string `json:"reason" minLength:"1" maxLength:"500" example:"The second hit is an echo."`
}

// ResearchClips counts clips.
type ResearchClips struct {
	// Those that are researched.
	Live int64 `json:"live" example:"100"`
	// Those that are withdrawn, set aside or deferred.
	Away int64 `json:"away" example:"0"`
}

// ResearchTrouble is an episode or a clip that is set aside or deferred.
type ResearchTrouble struct {
	// Which of the two it is.
	Kind string `json:"kind" enum:"episode,clip" example:"episode"`
	// The episode or the clip.
	Media ResearchMedia `json:"media"`
}

// ResearchStatus says how far a project is.
type ResearchStatus struct {
	// The name of the project.
	Project string `json:"project" example:"jingles"`
	// The analysis: its name and version.
	Analysis string `json:"analysis" example:"correlation@1"`
	// Why no work is assigned. Absent: it is.
	Paused string `json:"paused,omitempty" example:"an operator: The store is being moved."`
	// Episodes.
	Episodes ResearchEpisodes `json:"episodes"`
	// Clips.
	Clips ResearchClips `json:"clips"`
	// Pairs.
	Coverage ResearchCoverage `json:"coverage"`
	// Whether pairs are being counted again, after a clip was added, changed or brought back: the numbers may be out
	// of date.
	Recounting bool `json:"recounting,omitempty"`
	// The number of leases that have not ended.
	Leases int `json:"leases" example:"2"`
	// The oldest of them.
	OldestLease *ResearchLease `json:"oldestLease,omitempty"`
	// The number of work items in the queue that nobody has accepted.
	Waiting int `json:"waiting" example:"1"`
	// The number of researchers that are present.
	Researchers int `json:"researchers" example:"2"`
	// The number of work items that they take at once.
	Capacity int `json:"capacity" example:"2"`
	// The number of places that wait for a person to accept or reject them. Absent: none, or the
	// project has no review.
	Unreviewed int64 `json:"unreviewed,omitempty" example:"4"`
	// The number of results of the analysis, problems included.
	Results int64 `json:"results" example:"652"`
	// How many pairs were researched in the last hour, within some minutes.
	LastHour int64 `json:"lastHour" example:"180"`
	// The time until all pairs are researched, at the rate of the last hour. Absent: not known.
	RemainingSeconds int64 `json:"remainingSeconds,omitempty" example:"7200"`
	// What is set aside or deferred: of each kind and state the first 20.
	Trouble []ResearchTrouble `json:"trouble"`
	// Pairs whose results differ, so that a person has to decide: the first 50.
	Differences []ResearchDifference `json:"differences,omitempty"`
	// Whether there are more of these.
	MoreDifferences bool `json:"moreDifferences,omitempty"`
	// Researchers that get no work items for a while, because others do not have their problems.
	Pauses []ResearchPause `json:"pauses,omitempty"`
	// Whether there is more of that; the lists of episodes and clips have all.
	More bool `json:"more,omitempty"`
}

// ResearchLease is a work item: pairs of an episode with clips that one researcher may research.
type ResearchLease struct {
	// The id of the lease.
	ID string `json:"id" example:"01M7ZBMEYHBB62YP6RY21T1GQ8"`
	// The project.
	Project string `json:"project" example:"jingles"`
	// The key of the episode.
	Episode string `json:"episode" example:"mfrggzdfmztwq2lknnwg23tp"`
	// The keys of the clips, in the order of research.
	Clips []string `json:"clips" example:"[\"nbswy3dpnbswy3dpnbswy3dp\"]"`
	// The analysis: its name and version.
	Analysis string `json:"analysis" example:"correlation@1"`
	// When it was made.
	Created string `json:"created" format:"date-time" example:"2026-11-22T09:30:00Z"`
	// When it ends, if no result extends it.
	Until string `json:"until" format:"date-time" example:"2026-11-22T11:30:00Z"`
	// When its message leaves the queue, if nobody accepts it.
	QueueEnd string `json:"queueEnd" format:"date-time" example:"2026-11-22T10:00:00Z"`
	// When it was accepted.
	Accepted string `json:"accepted,omitempty" format:"date-time" example:"2026-11-22T09:30:02Z"`
	// Who accepted it.
	Researcher string `json:"researcher,omitempty" example:"bench-3"`
	// The number of its results that are stored.
	Stored int `json:"stored" example:"12"`
	// When the newest of them came.
	Last string `json:"last,omitempty" format:"date-time" example:"2026-11-22T09:41:10Z"`
	// When it ended.
	Ended string `json:"ended,omitempty" format:"date-time" example:"2026-11-22T10:02:00Z"`
	// Why it ended.
	Why string `json:"why,omitempty" enum:"final,expired,revoked" example:"final"`
}

// ResearchResult is a stored result: what a researcher reported of a pair, and when it was stored.
type ResearchResult struct {
	ResearchReport
	// When it was stored.
	At string `json:"at" format:"date-time" example:"2026-11-22T09:41:10Z"`
	// Of each hit, in their order: waits, accepted or rejected. Absent: the project asks for no
	// review, or another result of the pair counts.
	Reviews []string `json:"reviews,omitempty" example:"[\"accepted\"]"`
	// What has become of the pair, in a project with a quorum or a review. counts: it is researched, by
	// this result. researched: by another one. differs: a person has to decide. waits: it needs the
	// result of another researcher. Absent: the result is of an earlier analysis, or a problem.
	Pair string `json:"pair,omitempty" enum:"counts,researched,differs,waits" example:"counts"`
}

// ResearchUnreviewed is a pair with places that wait for a person: the result that counts.
type ResearchUnreviewed struct {
	// Since when.
	Since string `json:"since" format:"date-time" example:"2026-11-22T09:41:10Z"`
	// The number of places that wait.
	Waiting int `json:"waiting" example:"1"`
	// Why the result cannot be shown: its row is missing or damaged, and a person restores it. Then only
	// the episode, the clip and the lease are known.
	Damage string `json:"damage,omitempty"`
	ResearchResult
}

// ResearchReview is a request to accept or reject places of a pair.
type ResearchReview struct {
	// accept: they are exported. reject: they are not.
	Action string `json:"action" enum:"accept,reject" example:"accept"`
	// The key of the episode.
	Episode string `json:"episode" minLength:"1" maxLength:"40" example:"mfrggzdfmztwq2lknnwg23tp"`
	// The key of the clip.
	Clip string `json:"clip" minLength:"1" maxLength:"40" example:"nbswy3dpnbswy3dpnbswy3dp"`
	// The lease of the result that was looked at. If another result counts by now, nothing is
	// changed.
	Lease string `json:"lease" minLength:"1" maxLength:"64" example:"01M7ZBMEYHBB62YP6RY21T1GQ8"`
	// The number of the place among the hits of the result, from 1. Absent: all that wait.
	Hit int `json:"hit,omitempty" minimum:"1" example:"1"`
	// Whether it also holds for what was decided otherwise before.
	Change bool `json:"change,omitempty"`
	// The reason. It is kept in the events.
	Reason string `json:"reason" minLength:"1" maxLength:"500" example:"I have listened to it."`
}

// ResearchMatrix is a part of the pairs of a project: some episodes, with some of the clips that
// are live.
type ResearchMatrix struct {
	// The clips from the one that was asked for on, at most 40, in the order of research.
	Clips []ResearchMedia `json:"clips"`
	// The number of the first of them, from 0.
	Clip int `json:"clip" example:"40"`
	// The number of the clip of the first character of each row.
	Begin int `json:"begin" example:"0"`
	// The number of clips that are live.
	Total int `json:"total" example:"128"`
	// Episodes, at most 50.
	Rows []ResearchMatrixRow `json:"rows"`
	// Whether not all pairs with places that wait for a person are marked as such.
	More bool `json:"more,omitempty"`
	// The cursor of the next episodes. Absent: there are none.
	Cursor string `json:"cursor,omitempty"`
}

// ResearchMatrixRow is an episode with what is known of its pairs.
type ResearchMatrixRow struct {
	// The episode.
	Episode ResearchMedia `json:"episode"`
	// A character for each clip, at most 400. A digit: researched, with so many places; +: with
	// ten or more; x: researched, how many places is in its results only; !: researched, and its
	// row cannot be read, which the doctor tells; d: the results differ; q: another researcher is
	// needed; w: under a lease; a dot: none of these.
	Pairs string `json:"pairs" example:"0030w..."`
	// The numbers of characters, from 0, whose pairs have places that wait for a person.
	Unreviewed []int `json:"unreviewed,omitempty" example:"[2]"`
}

// ResearchOffsets is a page of places where clips occur.
type ResearchOffsets struct {
	List[ResearchOffset]
	// The number of places that are left out of this page because they wait for a person. Absent:
	// none.
	Waiting int `json:"waiting,omitempty" example:"3"`
}

// ResearchOffset is a place where a clip occurs in an episode.
type ResearchOffset struct {
	// The key of the episode.
	Episode string `json:"episode" example:"mfrggzdfmztwq2lknnwg23tp"`
	// The key of the clip.
	Clip string `json:"clip" example:"nbswy3dpnbswy3dpnbswy3dp"`
	// The title of the clip.
	Title string `json:"title,omitempty" example:"The jingle"`
	ResearchHit
	// When it was stored.
	At string `json:"at" format:"date-time" example:"2026-11-22T09:41:10Z"`
}
