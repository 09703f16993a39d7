// Package revision runs automations on archives, in the order of their revisions (source: the
// requirement "Ark Queue"). The rules are in package workflow; here are the rows and the changes of
// them.
//
// A revision that was notified is planned when all before it are. Its plan is an instance for each
// task that its files define. Each instance waits for its edges, for its turn of its lock and for
// those that it supersedes, is then run by an execution of the state machine task-run, and ends
// once.
//
//	ARCHIVE#{archive}          ARCHIVE        settings, and up to which revision all are planned
//	ARCHIVE#{archive}          WAKE           when the archive is to be looked at: in the index work
//	ARCHIVEOF#{ark}            {archive}      an object that is an archive: its versions are notified
//	REVISION#{ref}/{n}         REVISION       a revision, its plan and the numbers of its instances
//	TASK#{instance}            TASK           an instance
//	TASK#{instance}            WAITER#{id}    an instance that waits for it
//	WORKFLOW#{archive}         {hash}         a definition
//	TASKNAMES#{ref}            {task}         what is known of all instances of a task
//	TASKLIVE#{ref}#{task}      {order}        its instances that have not ended
//	TASKTIMED#{ref}#{task}     {order}        likewise, those by schedule
//	TASKCANCEL#{ref}#{task}    {order}        instances that await the ends of those that they supersede
//	TASKLOCK#{ref}#{lock}      LOCK, {order}  who has the lock, and who waits for it
//	TASKRUNS#{archive}         {key}          which run a request by hand has made: for some days
//	TASKLINE#{archive}         …              what is to be done: see the keys in line.go
//
// A ref is an archive in one of its epochs: "maps", or "maps@2" after its revisions were replaced.
// Pass does what is to be done in one archive, under a lease: only it plans, lets go on and starts.
// Notifications, the ends of runs and the actions of people only change rows, and ask for a pass.
//
// What holds after each transaction, whatever crashed before it:
//
//   - The rows of an instance in lines are a function of its row (Instance.places), and change with
//     it. So what is to be done is found by listing a line, never by looking at all instances.
//   - An instance is written once per change, on the condition that its row is as it was read. Two
//     that change it at once cannot both succeed; the second one reads again and decides again.
//   - Every change of a state has its event in the same transaction, with a number that has no
//     gaps.
//   - What a pass writes has the fence of its lease. A pass that was overtaken by another writes
//     nothing more.
//   - A plan is not visible before its COMMIT is written, in the transaction that raises the
//     watermark: all instances of a revision wait for COMMIT.
//   - Calls to the outside (Start, Stop, Tell, Wake) follow the commit, and can be lost or
//     repeated. What repairs each is said where it is called.
//
// The doctor checks these and others with Rules, which compute from scratch what rows should say.
//
// What has ended long ago goes into a bucket, from which it is shown as before: see bucket.go and
// tobucket.go. The rows of revisions stay.
//
// The files, from the lowest: ids.go, instance.go, rows.go, events.go, line.go (keys and rows);
// change.go (one change of an instance); notify.go, archives.go, runs.go (what others ask for);
// plan.go, insertplan.go, settle.go, cancel.go, start.go, schedules.go, reconcile.go, tobucket.go
// (the steps of a pass); round.go (their order); view.go, explain.go, graph.go (what is shown); exam.go,
// examine*.go and rules.go (the doctor's rules).
package revision

import (
	"context"
	"log/slog"
	"time"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/lease"
	"archivist/pkg/kernel/registry"
	"archivist/pkg/kernel/table"
	"archivist/pkg/revisions/archive"
)

// Limits, each with its reason.
const (
	// In bytes: the longest is a digest with its name. It is part of the revision's row and of
	// events.
	MaxTransaction = 200

	// Of an archive, in bytes.
	MaxTitle = 300

	// Between two looks at an archive, in milliseconds: 30 days.
	MaxReconcile = 30 * 24 * 3600_000

	// Instances of an archive that run at once, unless it sets another limit.
	MaxRunning = 20

	// The limit that an archive can set: a pass lists all that run before it starts another.
	MostRunning = 500

	// Causes that an instance names. More than workflow.MaxDepth of them stop a loop, so the rest
	// only informs.
	MaxChain = 20

	// How often the end of a plan is tried that meets others, before it is an Unavailable. Other changes are made
	// again by table.Table.Again.
	maxTries = 20

	// Rows of a transaction that writes a plan: of the 100 that DynamoDB accepts, so that its event
	// and the fence have room.
	txRows = 90

	// Problems of an invalid definition that are kept: they are part of the revision's row, of 400
	// KB.
	problemsKept = 50

	// Outputs that an instance's row names; the rest is in the run's result.
	outputsKept = 100

	// Missing revisions that one look notifies: each is a transaction. The next round of the pass
	// goes on with the rest.
	reconcileMost = 1000
)

// Times are the durations of a deployment. Check says which of them go together.
type Times struct {
	// The lease of one pass. The time-out of its function is shorter, so that a function that still
	// works has its lease. It is not renewed: after a crash, nothing is done in the archive for
	// that long.
	Pass time.Duration

	// Until an execution that has not begun is started again. Starting the same one again does
	// nothing if it goes on, so this may be short.
	Resend time.Duration

	// The longest time in which an execution begins: it prepares the files, which takes minutes for
	// a large repository. After that another execution takes its place.
	Begin time.Duration

	// In which a run begins, once its attempt has: then it has its time-out. An attempt of which
	// nothing was heard for its time-out, this and runner.Margin is lost.
	Margin time.Duration

	// In which a run that was told to stop can end by itself. Then it is ended, whatever it does.
	// It is longer than runner.Grace, so that a runner that hears of it ends first.
	Grace time.Duration

	// Until the archive is asked for a revision that nobody notified. Notices of hooks come in any
	// order within seconds; asking at once would read the repository for nothing.
	Gap time.Duration

	// Between two looks at the head of an archive, unless it sets another time. It finds a last
	// notice that was lost, behind which there is no gap.
	Reconcile time.Duration

	// After which what has ended goes into the bucket: a revision, or a run.
	Keep time.Duration
}

// Default are the times of a deployment that sets none.
var Default = Times{
	Pass:      90 * time.Second,
	Resend:    time.Minute,
	Begin:     15 * time.Minute,
	Margin:    2 * time.Minute,
	Grace:     time.Minute,
	Gap:       time.Minute,
	Reconcile: time.Hour,
	Keep:      30 * 24 * time.Hour,
}

// Quick are the times of a local stack, in which people watch and tests wait.
var Quick = Times{
	Pass:      30 * time.Second,
	Resend:    15 * time.Second,
	Begin:     3 * time.Minute,
	Margin:    20 * time.Second,
	Grace:     15 * time.Second,
	Gap:       5 * time.Second,
	Reconcile: time.Minute,
	Keep:      30 * 24 * time.Hour,
}

// Check returns an Invalid if the times do not go together. If Begin were not longer than Resend,
// the first resend would already replace an execution that only takes its time.
func (t Times) Check() error {
	switch {
	case min(t.Pass, t.Resend, t.Begin, t.Margin, t.Grace, t.Gap, t.Reconcile, t.Keep) <= 0:
		return fault.New(fault.Invalid, "every time of the revision queue must be positive")
	case t.Begin <= t.Resend:
		return fault.New(fault.Invalid,
			"the time to begin (%s) must be longer than that to the next start (%s)",
			t.Begin, t.Resend)
	}
	return nil
}

// By is who changes something, and why. Actor is "" for the revision queue itself. What a person does to an archive
// needs a reason; of tasks it may be empty.
type By = registry.By

// The time-outs of the functions of task-run: the first reads a repository and packs its files, and
// the second can run as long as Lambda lets it.
const (
	ControlTime = 5 * time.Minute
	RunnerTime  = 15 * time.Minute
)

// Store keeps archives, revisions and instances. Its methods may be called at the same time, in any
// number of processes: what they agree on is in the table. Fields that are functions are needed
// only by what calls them: each says whether it may be nil.
type Store struct {
	Table  *table.Table
	Leases *lease.Store
	Now    func() time.Time

	// Unique ids, of transactions and of executions.
	NewID func() string

	// The secret part of the token of an instance's runs: random, not to be guessed.
	Secret func() string
	Times  Times

	// Open opens an archive for reading. Its errors are those of archive.Source. It is nil in
	// functions that read no archive, because the code that reads repositories is large; there is
	// no pass in them, and Preview is an Unavailable.
	Open func(ctx context.Context, l archive.Location) (archive.Source, error)

	// Start starts an execution. If the same one runs already it does nothing; if it has ended
	// already it returns a Conflict. Any other error may be of a start that has succeeded: the same
	// one is started again when it is due.
	//
	// Stop stops one, if it runs; it may be nil. It may fail: what the execution records later is
	// refused.
	Start func(ctx context.Context, e Execution) error
	Stop  func(ctx context.Context, e Execution, reason string) error

	// Tell asks a run to end: it sees that in its folder, which prefix begins. nil: nobody is told.
	// A request that is lost is repaired by the end of the grace.
	Tell func(ctx context.Context, prefix, reason string) error

	// Wake starts a pass soon; it may be nil. A wake-up that is lost costs time: the schedule
	// starts one within a minute, since each transaction that needs a pass has raised the archive's
	// row WAKE.
	Wake func(ctx context.Context, archive string) error

	// Bucket, if it is set, gets what has ended long ago. Without it, all rows stay in the table.
	Bucket Objects

	// Metric, if it is set, counts what an operator should see. Log gets what is tried again.
	Metric func(name string, value float64)
	Log    *slog.Logger
}

// Objects is where revisions and runs go that have ended long ago. An error without a kind is taken
// for one that may pass.
type Objects interface {
	// Write writes an object as a whole. To write the same again is no error.
	Write(ctx context.Context, key string, data []byte) error
	Read(ctx context.Context, key string) ([]byte, error) // a missing one is a NotFound
	// List lists keys below a prefix behind one ("": from the first on), in their order, and
	// whether there are more.
	List(ctx context.Context, prefix, after string) (keys []string, more bool, err error)
}

// now is the time in milliseconds since 1970, as rows have it.
func (s *Store) now() int64 { return millis(s.Now()) }

func (s *Store) count(metric string, n float64) {
	if s.Metric != nil && n > 0 {
		s.Metric(metric, n)
	}
}

func (s *Store) warn(text string, args ...any) {
	if s.Log != nil {
		s.Log.Warn(text, args...)
	}
}

// wake asks for a pass. It follows the commit, so its failure must not fail the call: the caller
// would repeat what was done. The schedule repairs what is lost.
func (s *Store) wake(ctx context.Context, archive string) {
	if s.Wake == nil {
		return
	}
	err := s.Wake(ctx, archive)
	if err != nil {
		s.warn("the revision queue was not woken; the schedule starts it", "archive", archive,
			"error", err)
	}
}
