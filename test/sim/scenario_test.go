package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"archivist/pkg/ingest"
	"archivist/test/adversary"
)

// Settings that every seed shares. They are small, so that jobs wait.
const (
	capacity = 100 // bytes of work space
	reserve  = 25  // jobs of unknown size wait while less is free

	collections = 3 // c0, c1, c2
)

// retention of a completed batch's rows: longer than all other waits of a run.
const retention = 30 * 24 * time.Hour

// scenario is what happens in the run of a seed. It is drawn once, from the seed alone.
type scenario struct {
	plans  [][]plan // of each batch, its jobs
	rounds int      // of each actor, with faults

	slots    int
	share    int // of the gates' settings; most seeds have none
	patience time.Duration
	aging    time.Duration

	rate    int           // percentage of calls with a fault
	late    bool          // few faults until a job is at Storing, then many
	skew    time.Duration // at most, of each actor's clock
	latency time.Duration // of a call, at most; mostly calls take no time
	cutOff  bool          // a function is ended at its time-out, as in Lambda
	stormy  int           // rounds of settling in which faults continue

	keepFailed time.Duration // for which failed jobs keep their work files
	again      time.Duration // after it, failed jobs are requeued once everything rests; 0: never
	stopAfter  int           // failures of a batch after which it is cancelled; 0: never
	plain      bool          // the admins mostly requeue and fail: jobs get far
	tight      bool          // jobs share few ids, need much and fail often: holders of space wait for others
	mails      bool          // mails are sent
	unswept    bool          // once the faults have stopped, no tick is asked to sweep
	refuses    refusal       // which dependency refuses all the time

	throttling adversary.Throttling
}

// refusal names a dependency that refuses every call.
type refusal string

const (
	refusesClean    refusal = "clean"    // removing work files
	refusesStep     refusal = "step"     // what one job's stage needs
	refusesReport   refusal = "report"   // where reports go
	refusesUnpack   refusal = "unpack"   // what unpacking needs, after the first rows
	refusesMail     refusal = "mail"     // one recipient's mail server
	refusesRows     refusal = "rows"     // the rows of one job: its partition is throttled
	refusesStart    refusal = "start"    // starting executions of jobs, for refusing
	refusesDescribe refusal = "describe" // describing executions, for refusing
)

// tighten makes a scenario in which jobs wait for each other over ids and space.
func (s *scenario) tighten(rng *rand.Rand) {
	s.tight, s.again, s.keepFailed, s.share = true, time.Hour, 30*day, 0
	for _, jobs := range s.plans {
		for i := range jobs {
			p := &jobs[i]
			p.collection, p.ids, p.inside, p.ark = "c0", nil, nil, ""
			for n := range 3 {
				if rng.IntN(2) == 0 {
					p.ids = append(p.ids, fmt.Sprint("tight", n))
				}
			}
			p.size, p.known = int64(30+rng.IntN(40)), true
		}
	}
}

var refusals = []refusal{refusesClean, refusesStep, refusesReport, refusesUnpack, refusesMail, refusesRows,
	refusesStart, refusesDescribe}

// refusing is for how long, from the beginning, a temporary refusal lasts.
const refusing = 3 * time.Hour

// plan is the plan of one job: what the depositor sends, and what the stages find.
type plan struct {
	collection string
	priority   int
	ids        []string // local ids of the submission
	inside     []string // local ids that Process finds in the package
	ark        string   // that the depositor gave
	size       int64    // as Estimate sees it
	known      bool
	grows      int64  // what Download finds beyond size
	parts      int    // rounds of Download
	refused    string // the stage that can never be done
}

// partitions can be throttled.
var partitions = []string{"JOB#", "SLOT", "SPACE", "LOCK#", "LEASE#", "BATCH#", "pending", "provisioning", "due#"}

func draw(rng *rand.Rand) scenario {
	s := scenario{rounds: 7, rate: 12}
	one := func(n int) bool { return rng.IntN(n) == 0 }
	s.slots = 2 + rng.IntN(3)
	if one(4) {
		s.share = 1 + rng.IntN(2)
	}
	if one(3) {
		s.patience = 10 * time.Minute
	}
	if one(3) {
		s.aging = time.Minute
	}
	if one(6) {
		s.rate, s.late = 25, true
	}
	if one(3) {
		s.skew = 2 * time.Second
	}
	if one(4) {
		s.latency = time.Second
	}
	s.cutOff = one(3)
	if one(5) {
		s.stormy = 4
	}
	if one(12) {
		s.throttling = adversary.Throttling{Of: partitions[rng.IntN(len(partitions))], From: 50 + rng.IntN(200),
			For: 60}
	}
	s.keepFailed = []time.Duration{time.Hour, time.Hour, 3 * time.Minute, 30 * 24 * time.Hour}[rng.IntN(4)]
	if one(4) {
		s.again = time.Duration(1+rng.IntN(3)) * time.Hour
	}
	s.mails, s.unswept, s.plain = one(4), one(4), one(3)
	if one(6) {
		s.refuses = refusals[rng.IntN(len(refusals))]
	}
	if one(6) {
		s.stopAfter = 1 + rng.IntN(2)
	}
	s.plan(rng)
	s.mails = s.mails || s.refuses == refusesMail
	if one(8) {
		s.tighten(rng)
	}
	if s.refuses == refusesRows && s.keepFailed > day {
		s.keepFailed = time.Hour // early clean-ups begin with the oldest job, and wait while its row cannot be read
	}
	if p := &s.plans[0][0]; s.refuses == refusesStep {
		p.refused = []string{"estimate", "download", "process", "store", "record", "notify"}[rng.IntN(6)]
	}
	return s
}

// plan draws the batches and their jobs.
func (s *scenario) plan(rng *rand.Rand) {
	one := func(n int) bool { return rng.IntN(n) == 0 }
	submitted, rows := 1+rng.IntN(2), 3
	if one(12) {
		submitted, rows, s.rounds = 2+rng.IntN(3), 6, 12
	}
	ids := 3
	if one(12) {
		ids = ingest.MaxLocalIDs
	}
	for b := range submitted {
		collection := fmt.Sprint("c", rng.IntN(collections))
		var jobs []plan
		for range 1 + rng.IntN(rows) {
			jobs = append(jobs, drawJob(rng, collection, ids))
		}
		if len(jobs[0].ids) == 0 && b > 0 {
			jobs[0].ids, jobs[0].collection = []string{"id00"}, "c0"
		}
		s.plans = append(s.plans, jobs)
	}
}

func drawJob(rng *rand.Rand, collection string, most int) plan {
	one := func(n int) bool { return rng.IntN(n) == 0 }
	p := plan{collection: collection, priority: rng.IntN(4) * 3, size: int64(10 + rng.IntN(50)), known: !one(6),
		parts: rng.IntN(3) / 2}
	if !p.known {
		p.size = 0
	}
	p.grows = int64(rng.IntN(31) - 10)
	if !p.known {
		p.grows += 30
	}
	draw := func(n int) (ids []string) {
		for range n {
			if id := fmt.Sprintf("id%02d", rng.IntN(most*2)); !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
		return ids
	}
	if one(2) {
		p.collection = "c0" // most share their ids
		p.ids = draw(1 + rng.IntN(most))
	}
	if one(3) {
		p.collection = "c0"
		p.inside = draw(1 + rng.IntN(2))
	}
	if one(30) {
		p.size, p.known = capacity+1, true // it can never be admitted
	}
	if one(30) {
		p.grows = capacity // and is admitted all the same
	}
	if one(40) {
		p.ids = []string{"no;id"}
	}
	if one(12) {
		p.ark = "ark:/99999/given"
	}
	return p
}

// failing is the number of steps of a stage of which one fails.
func (s *scenario) failing(stage string) int {
	switch {
	case s.tight:
		return 4
	case stage == "record" || stage == "notify": // few jobs get so far with an admin left to requeue them
		return 7
	}
	return 20
}

// of finds a job's plan.
func (s *scenario) of(j *ingest.Job) plan {
	var b, row int
	fmt.Sscanf(j.Filename, "plan-%d-%d", &b, &row)
	return s.plans[b][row]
}

// job is the job that Unpack makes of row of the batch that was submitted as b.
func (s *scenario) job(b, row int) ingest.Job {
	p := s.plans[b][row]
	return ingest.Job{Collection: p.collection, Priority: p.priority, Mode: "add", LocalIDs: p.ids, Primary: p.ark,
		Payload: ingest.Payload{Filename: fmt.Sprintf("plan-%d-%d", b, row)}}
}

// identify gives a batch of one object its identifiers, unless they would be refused: then its row has them, as the
// row of a manifest could.
func (s *scenario) identify(b *ingest.Batch, n int) {
	if len(s.plans[n]) > 1 {
		return
	}
	j := s.job(n, 0)
	if ingest.CheckSubmission(&j.Primary, &j.LocalIDs, j.Payload) == nil {
		b.Primary, b.LocalIDs = j.Primary, j.LocalIDs
	}
}
