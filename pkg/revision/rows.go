package revision

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"archivist/pkg/archive"
	"archivist/pkg/definition"
	"archivist/pkg/event"
	"archivist/pkg/fault"
	"archivist/pkg/table"
	"archivist/pkg/workflow"
)

// Mode says what an archive does.
type Mode string

// The modes.
const (
	Active   Mode = "active"
	Paused   Mode = "paused"   // nothing is planned or started; what runs goes on
	Stopped  Mode = "stopped"  // likewise: a revision has become another, and a person decides
	Deleting Mode = "deleting" // what has not ended is cancelled
	Deleted  Mode = "deleted"
)

// Settings are what people decide about an archive.
type Settings struct {
	Location  archive.Location `json:"location"`
	Title     string           `json:"title,omitempty"`
	Baseline  int64            `json:"baseline,omitempty"`    // the first revision; 0: the first that is notified
	Reconcile int64            `json:"reconcileMs,omitempty"` // between two looks at the head; 0: as usual, -1: never
	Running   int              `json:"running,omitempty"`     // instances at once; 0: MaxRunning
}

// Archive is an archive.
type Archive struct {
	Name string `json:"name"`
	Settings
	Mode      Mode   `json:"mode"`
	Why       string `json:"why,omitempty"` // of a mode other than active
	Epoch     int64  `json:"epoch"`
	First     int64  `json:"first"`     // the first revision that is planned, 0: not known yet
	Watermark int64  `json:"watermark"` // all from First to here are planned
	Created   int64  `json:"created"`

	Definition string     `json:"definition,omitempty"` // of the last revision that has tasks
	Defined    int64      `json:"defined,omitempty"`    // that revision: schedules run its tasks
	Schedules  []schedule `json:"schedules,omitempty"`

	Cleared  int64     `json:"cleared,omitempty"` // the epochs up to which all has ended
	Looked   int64     `json:"looked,omitempty"`  // when its head was looked at last
	Missed   int       `json:"missed,omitempty"`  // the looks in a row that have failed
	Newest   int64     `json:"newest,omitempty"`  // its head at the last look
	Trouble  *Trouble  `json:"trouble,omitempty"` // why the next revision is not planned
	Backfill *backfill `json:"backfill,omitempty"`
}

// Ref is the archive in its epoch.
func (a *Archive) Ref() string { return ref(a.Name, a.Epoch) }

// Trouble is why an archive cannot be read.
type Trouble struct {
	Revision int64  `json:"revision"`
	Reason   string `json:"reason"`
	Since    int64  `json:"since"`
	Tries    int    `json:"tries"`
	Next     int64  `json:"next"` // when it is tried again
}

// schedule is one schedule of a task, and when it fires next.
type schedule struct {
	Task string `json:"task"`
	workflow.Schedule
	Next int64 `json:"next"`
}

// backfill plans revisions before the first, in their order.
type backfill struct {
	Next, To int64
	Latest   map[string]int64 // by task, in the back-fill
}

// archiveRow is the row of an archive.
type archiveRow struct {
	table.Head
	Number int64  `dynamo:"version"` // of its events
	Text   string `dynamo:"archive_json"`
	Mode   string `dynamo:"archive_mode"`
	FirstN int64  `dynamo:"first_n"` // First, for conditions

	Archive `dynamo:"-"`
}

// wakeRow says when an archive is to be looked at. Raised is unique to who wrote it last.
type wakeRow struct {
	table.Head
	Raised string `dynamo:"raised_by"`
}

// The states of a revision.
const (
	Notified  = "notified"
	Planning  = "planning" // its definition is fixed, its instances are being written
	Committed = "committed"
	Invalid   = "invalid" // its definition is; only COMMIT was planned
	SkippedBy = "skipped" // a person decided so; likewise
	Before    = "before"  // it is before the first revision: only a back-fill plans it
)

// Revision is a revision.
type Revision struct {
	Archive     string             `json:"archive"` // the ref
	Number      int64              `json:"number"`
	State       string             `json:"state"`
	Transaction string             `json:"transaction,omitempty"`
	Notified    int64              `json:"notified"`
	Planned     int64              `json:"planned,omitempty"`
	Author      string             `json:"author,omitempty"`
	Message     string             `json:"message,omitempty"`
	Time        int64              `json:"time,omitempty"` // of the commit
	Definition  string             `json:"definition,omitempty"`
	Problems    []workflow.Problem `json:"problems,omitempty"`
	Reason      string             `json:"reason,omitempty"` // of a skip, or why a token was not accepted
	MadeBy      string             `json:"madeBy,omitempty"` // the instance that made it
	Chain       []string           `json:"chain,omitempty"`  // the tasks that led to it, the nearest last
	Ends        map[string]string  `json:"ends,omitempty"`   // of its instances, when they are in the bucket
}

// revisionRow is the row of a revision. The numbers are of its instances.
type revisionRow struct {
	table.Head
	Number int64  `dynamo:"version"` // of its events
	Text   string `dynamo:"revision_json"`
	All    int64  `dynamo:"all_n"`
	Over   int64  `dynamo:"over_n"`
	Kept   int64  `dynamo:"kept_n,omitempty"` // that are in the bucket, and not in the table

	Revision `dynamo:"-"`
}

// nameRow is what is known of the instances of a task.
type nameRow struct {
	table.Head
	Owner     string `dynamo:"owned_by"`
	Latest    int64  `dynamo:"latest_n"`             // the last revision that planned it
	Before    int64  `dynamo:"before_n"`             // the last one before that
	Started   int64  `dynamo:"started_n"`            // the highest in which it has started, also renamed
	Starter   string `dynamo:"starter_id,omitempty"` // the instance that has
	Succeeded int64  `dynamo:"succeeded_n"`          // the highest revision in which it has succeeded
	InRow     int    `dynamo:"in_row_n"`             // superseded since the last success
	Runs      int64  `dynamo:"runs_n"`               // by hand and by schedule: the number of the last
}

// started adds that an instance of the task has started, and reports whether that was not known.
func (n *nameRow) started(in *Instance) bool {
	if in.Revision < n.Started || in.Revision == n.Started && n.Starter != "" {
		return false
	}
	n.Started, n.Starter = in.Revision, in.ID
	return true
}

// lockRow is a lock. Its rev rises with every change of its line.
type lockRow struct {
	table.Head
	Holder string `dynamo:"holder_id,omitempty"` // the instance that has it
}

// lineRow is a row of a line. Only its owner moves it.
type lineRow struct {
	table.Head
	Owner string `dynamo:"owned_by"`
}

// workflowRow is a definition.
type workflowRow struct {
	table.Head
	Text string `dynamo:"workflow_json"`
}

// Awaits is an edge of an instance, and what became of it.
type Awaits struct {
	workflow.Edge
	ID      string           `json:"id,omitempty"` // the awaited instance; "" for none
	Verdict workflow.Verdict `json:"verdict,omitempty"`
	End     workflow.State   `json:"end,omitempty"` // of the awaited instance
}

// What started an instance.
const (
	ByCommit   = "commit"
	ByHand     = "manual"
	BySchedule = "schedule"
)

// Instance is a task in a revision, or one run of it. Times are milliseconds since 1970.
type Instance struct {
	ID         string         `json:"id"`
	Archive    string         `json:"archive"` // the ref
	Revision   int64          `json:"revision"`
	Task       string         `json:"task"`
	Run        int64          `json:"run,omitempty"`
	Trigger    string         `json:"trigger"`
	Definition string         `json:"definition,omitempty"`
	Order      string         `json:"order"` // its place in lines
	State      workflow.State `json:"state"`
	Created    int64          `json:"created"`
	Since      int64          `json:"since"` // it is in this state
	Reason     string         `json:"reason,omitempty"`
	Root       string         `json:"root,omitempty"` // the instance whose end is the cause of this end
	By         string         `json:"by,omitempty"`   // who superseded or cancelled it
	Edges      []Awaits       `json:"edges,omitempty"`
	Lock       string         `json:"lock,omitempty"`
	Cancels    []string       `json:"cancels,omitempty"`
	LatestOnly bool           `json:"latestOnly,omitempty"`
	Was        string         `json:"was,omitempty"` // the name of the task in earlier revisions
	Follow     bool           `json:"follow,omitempty"`
	Fixed      bool           `json:"uninterruptible,omitempty"`
	Filtered   bool           `json:"filtered,omitempty"` // it has a filter of paths that was not asked yet
	Force      bool           `json:"force,omitempty"`
	Replaces   []string       `json:"replaces,omitempty"` // runs that a run by schedule takes the place of
	Chain      []string       `json:"chain,omitempty"`    // the tasks that led to its revision

	Attempt int    `json:"attempt,omitempty"`
	Exec    string `json:"exec,omitempty"` // of the execution that may record
	Secret  string `json:"secret,omitempty"`
	Until   int64  `json:"until,omitempty"`  // when the pass looks at it again
	Latest  int64  `json:"latest,omitempty"` // by when it has begun
	Starts  int    `json:"starts,omitempty"` // executions that ended before they began
	Told    string `json:"told,omitempty"`   // the state that it is to end in
	Parked  bool   `json:"parked,omitempty"` // it is not its turn of the lock
	Victim  string `json:"victim,omitempty"` // the instance for whose end it waits, of those that it supersedes
	Base    int64  `json:"base,omitempty"`
	Last    *Tried `json:"last,omitempty"` // the newest attempt that ended
	Settled bool   `json:"settled,omitempty"`
}

// Tried is an attempt that has ended.
type Tried struct {
	Attempt int      `json:"attempt"`
	End     string   `json:"end"` // as in package runner
	Exit    int      `json:"exit"`
	Reason  string   `json:"reason,omitempty"`
	Started int64    `json:"started,omitempty"`
	Ended   int64    `json:"ended,omitempty"`
	Outputs []Output `json:"outputs,omitempty"` // the first ones
	Kept    int      `json:"kept,omitempty"`    // of all
}

// Output is a file that a run has left.
type Output struct {
	Path   string `json:"path"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// instanceRow is the row of an instance.
type instanceRow struct {
	table.Head
	Number int64  `dynamo:"version"` // of its events
	Text   string `dynamo:"instance_json"`
	Over   int64  `dynamo:"over_ms,omitempty"` // when it ended

	Instance `dynamo:"-"`
}

func archiveSubject(name string) event.Subject { return event.Subject{Type: event.Archive, ID: name} }
func revisionSubject(id string) event.Subject  { return event.Subject{Type: event.Revision, ID: id} }
func taskSubject(id string) event.Subject      { return event.Subject{Type: event.Task, ID: id} }

func headOf(k table.Key) table.Head { return table.Head{PK: k.PK, SK: k.SK} }

// get reads a row whose state is JSON. One that there is not has the rev 0.
func (s *Store) get(ctx context.Context, k table.Key, row table.Row, text *string, into any) error {
	err := s.Table.Get(ctx, k, row)
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	if err == nil && text != nil {
		err = json.Unmarshal([]byte(*text), into)
	}
	if err != nil {
		return fmt.Errorf("the row %s: %w", k, err)
	}
	return nil
}

func (s *Store) archiveRow(ctx context.Context, name string) (*archiveRow, error) {
	k := archiveSubject(name).Key()
	r := &archiveRow{Head: headOf(k), Archive: Archive{Name: name}}
	return r, s.get(ctx, k, r, &r.Text, &r.Archive)
}

// known reads an archive; one that there is not, or that was deleted, is a NotFound.
func (s *Store) known(ctx context.Context, name string) (*archiveRow, error) {
	r, err := s.archiveRow(ctx, name)
	if err == nil && (r.Rev == 0 || r.Archive.Mode == Deleted) {
		err = fault.New(fault.NotFound, "there is no archive %q", definition.Clip(name, 60))
	}
	return r, err
}

func (s *Store) revisionRow(ctx context.Context, ref string, n int64) (*revisionRow, error) {
	k := revisionSubject(revisionID(ref, n)).Key()
	r := &revisionRow{Head: headOf(k), Revision: Revision{Archive: ref, Number: n}}
	r.ListPK, r.ListSK = "REVISIONS#"+ref, fmt.Sprintf("%012d", n)
	return r, s.get(ctx, k, r, &r.Text, &r.Revision)
}

func (s *Store) instanceRow(ctx context.Context, id string) (*instanceRow, error) {
	k := taskSubject(id).Key()
	r := &instanceRow{Head: headOf(k), Instance: Instance{ID: id}}
	return r, s.get(ctx, k, r, &r.Text, &r.Instance)
}

func nameKey(ref, task string) table.Key { return table.Key{PK: "TASKNAMES#" + ref, SK: task} }

func (s *Store) nameRow(ctx context.Context, ref, task string) (*nameRow, error) {
	k := nameKey(ref, task)
	r := &nameRow{Head: headOf(k), Owner: ref}
	return r, s.get(ctx, k, r, nil, nil)
}

func lockKey(ref, lock string) table.Key {
	return table.Key{PK: "TASKLOCK#" + ref + "#" + lock, SK: "LOCK"}
}

func (s *Store) lockRow(ctx context.Context, ref, lock string) (*lockRow, error) {
	k := lockKey(ref, lock)
	r := &lockRow{Head: headOf(k)}
	return r, s.get(ctx, k, r, nil, nil)
}

func workflowKey(archive, hash string) table.Key {
	return table.Key{PK: "WORKFLOW#" + archive, SK: hash}
}

// Definition reads a definition by its hash.
func (s *Store) Definition(ctx context.Context, archive, hash string) (*workflow.Definition, error) {
	var r workflowRow
	var d workflow.Definition
	err := s.Table.Get(ctx, workflowKey(archive, hash), &r)
	if err == nil {
		err = json.Unmarshal([]byte(r.Text), &d)
	}
	return &d, err
}

// put writes a row that may be new.
func put(tx *table.Tx, row table.Row, rev int64) {
	if rev == 0 {
		tx.Insert(row)
	} else {
		tx.Save(row)
	}
}

// pack makes the JSON of a row.
func pack(v any) (string, error) {
	data, err := json.Marshal(v)
	return string(data), err
}

// saveArchive puts an archive into a transaction.
func saveArchive(tx *table.Tx, r *archiveRow) (err error) {
	r.Text, err = pack(r.Archive)
	r.Mode, r.FirstN = string(r.Archive.Mode), r.First
	r.ListPK, r.ListSK = "ARCHIVES", r.Name
	put(tx, r, r.Rev)
	return err
}

// saveRevision puts a revision into a transaction.
func saveRevision(tx *table.Tx, r *revisionRow) (err error) {
	r.Text, err = pack(r.Revision)
	put(tx, r, r.Rev)
	return err
}

// text is the time of a key.
func text(ms int64) string { return fmt.Sprintf("%013d", ms) }

// at is a time in milliseconds.
func at(ms int64) time.Time { return time.UnixMilli(ms).UTC() }
