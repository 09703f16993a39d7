// Package research hands out research: every clip is looked for in every episode of a project, by
// researchers that come and go (source: the requirement "TBTL Archivist").
//
// Each pair of an episode and a clip is a unit of research. A pair is due unless its result is recorded (a problem is
// none; with a quorum, there are as many as it says) or a live lease covers it. The assigner (Pass) makes work items
// of pairs that are due: a lease, and a message on the queue of pending work. A researcher accepts a work item, and
// reports the result of each clip at once. Record stores results, whatever became of their lease.
//
// All changes of episodes, clips, leases and results go through Store.change (but for the note that a work item was
// sent, see publish): rows, places in the line, counts and events are written in one transaction, on the condition
// that nothing of what was read has changed.
//
// The rows of a project (rows.go, line.go, counts.go, catalog.go):
//
//	RESEARCHPROJECT#name      the project, the number of its catalog, the generation of its analysis
//	EPISODE#project/key       an episode: what is researched, the leases on it, its place in the line
//	CLIP#project/key          a clip, and its number in bitmaps
//	CLIPS#project             the catalog: one row for each clip, by the number of its last change
//	RESEARCHLINE#project      the line: episodes by rank, ends of leases and deferrals by time
//	RESEARCHLEASE#id          a lease, which is a work item
//	RESULTS#project/key       the results of an episode
//	RESEARCHCOUNTS#project    counts of episodes, pairs and results, in shards
//	RESEARCHWALK#project      how far the assigner has looked at episodes; samples of the rate
//
// These invariants hold after each transaction, whatever crashed before:
//
//   - A pair is under at most one live lease of the present analysis: a lease is made by the
//     transaction that writes the row of its episode, which lists all leases on it.
//   - A pair of a live episode and a live clip is never lost: it is due unless the clip's number is
//     in the bitmap of the episode, or a lease that has not ended covers it.
//   - An episode is at "closed" only if it had no pair that is due by the catalog whose number the
//     transaction required, or has the most leases. If the catalog has grown since, the assigner
//     looks again.
//   - Messages and wake-ups carry no state. One that is lost, late or doubled costs time only.
//
// The files stand in layers: definitions and rows at the bottom, then reads, then changes, then the
// assigner, the researchers' requests and the doctor's rules, and the views on top.
package research

import (
	"regexp"

	"archivist/pkg/kernel/registry"
)

// Limits, each with its reason.
const (
	MaxClips      = 100_000 // clips of a project: a process keeps the list of them in memory
	MaxMaxClips   = 100     // of a work item: a lease names them all, one request reads them
	MaxPriority   = 999_999 // either sign; Media.order has seven digits for it
	MaxLeases     = 100     // live leases on one episode: they are part of its row
	MaxHits       = 1000    // of one result: it is one row
	MaxName       = 300     // characters of a source, of a stable id and of a title
	MaxURL        = 2048    // bytes of the address of a recording
	MaxReason     = 500     // bytes of the reason of a problem
	MaxAnalyses   = 100     // that a project has had
	MaxFeeds      = 50      // of a project: each is looked at by its own request
	MaxWorkers    = 64      // work items at once of one researcher
	MaxResearcher = 100     // bytes of a researcher's name
	maxTries      = 20      // of a change that meets others
	countShards   = 16      // of the counts of a project: transactions on one row conflict
	failuresADay  = 3       // of the media of an episode or clip; then it is quarantined
)

// Names are the names of projects. They are part of names of queues, and of keys of rows, in which
// "/" and "#" separate.
var Names = regexp.MustCompile(`^[a-z][a-z0-9-]{0,39}$`)

// By is who changes something, and why. It goes into the event of the change. Persons give a reason, parts of the
// system none.
type By = registry.By
