package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"archivist/pkg/ingest"
)

// Settings that every seed shares. They are small, so that jobs wait.
const (
	maxInFlight = 2
	capacity    = 100 // bytes of work space
	reserve     = 25  // jobs of unknown size wait while less is free
)

// retention of a completed batch's rows: longer than all that happens before.
const retention = 30 * 24 * time.Hour

// scenario is what a seed plays. It is drawn once, from the seed alone.
type scenario struct {
	plans  [][]plan // of each batch, its jobs
	rounds int      // of each actor, with faults

	share    int // of the gates' settings; most seeds have none
	patience time.Duration
	aging    time.Duration

	rate    int           // of 100 calls so many meet a fault
	late    bool          // few faults until a job is at Storing, then many
	skew    time.Duration // at most, of each actor's clock
	latency time.Duration // of a call, at most; mostly calls take no time
	cutOff  bool          // a function ends at its time-out, as Lambda does it
	stormy  int           // rounds of settling in which faults go on

	keepFailed time.Duration // for which failed jobs keep their work files
	again      time.Duration // after it, failed jobs are requeued once everything rests; 0: never
	refuses    refusal       // which dependency refuses all the time

	throttled string // a prefix of partitions that are throttled for a while
	from, to  int    // calls between which they are
}

// refusal names a dependency that refuses whatever is asked of it.
type refusal string

const (
	refusesClean    refusal = "clean"    // removing work files
	refusesStep     refusal = "step"     // what one job's stage needs
	refusesReport   refusal = "report"   // where reports go
	refusesStart    refusal = "start"    // starting executions of jobs, for refusing
	refusesDescribe refusal = "describe" // describing executions, for refusing
)

// refusing is for how long from the beginning what refuses for a time does so.
const refusing = 3 * time.Hour

// plan is what becomes of one job: what the depositor sends, and what the
// stages find.
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

func draw(rng *rand.Rand) scenario {
	s := scenario{rounds: 7, rate: 12}
	one := func(n int) bool { return rng.IntN(n) == 0 }
	if one(4) {
		s.share = 1
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
		s.throttled = []string{"JOB#", "SLOT", "SPACE", "LOCK#", "LEASE#", "BATCH#", "pending", "provisioning", "due#"}[rng.IntN(9)]
		s.from = 50 + rng.IntN(200)
		s.to = s.from + 60
	}
	s.keepFailed = []time.Duration{time.Hour, time.Hour, 3 * time.Minute, 30 * 24 * time.Hour}[rng.IntN(keeps)]
	if one(4) {
		s.again = time.Duration(1+rng.IntN(3)) * time.Hour
	}
	if one(6) {
		s.refuses = []refusal{refusesClean, refusesStep, refusesReport, refusesStart, refusesDescribe}[rng.IntN(5)]
	}
	submitted, rows := 1+rng.IntN(2), 3
	if one(12) {
		submitted, rows, s.rounds = 2+rng.IntN(3), 6, 12
	}
	ids := 3
	if one(12) {
		ids = ingest.MaxLocalIDs
	}
	for b := range submitted {
		collection := fmt.Sprint("c", rng.IntN(3))
		var jobs []plan
		for range 1 + rng.IntN(rows) {
			jobs = append(jobs, drawJob(rng, collection, ids))
		}
		if len(jobs[0].ids) == 0 && b > 0 {
			jobs[0].ids, jobs[0].collection = []string{"id00"}, "c0"
		}
		s.plans = append(s.plans, jobs)
	}
	if p := &s.plans[0][0]; s.refuses == refusesStep {
		p.refused = []string{"estimate", "download", "process", "store", "record", "notify"}[rng.IntN(6)]
	}
	return s
}

// keeps is how many of the times to keep failed jobs' files are drawn from.
const keeps = 3

func drawJob(rng *rand.Rand, collection string, most int) plan {
	one := func(n int) bool { return rng.IntN(n) == 0 }
	p := plan{collection: collection, priority: rng.IntN(4) * 3, size: int64(10 + rng.IntN(50)), known: !one(6), parts: rng.IntN(3) / 2}
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
	if one(4) {
		p.inside = draw(1 + rng.IntN(2))
	}
	if one(12) {
		p.ark = "ark:/99999/given"
	}
	return p
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
