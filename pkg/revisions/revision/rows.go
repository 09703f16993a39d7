package revision

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"archivist/pkg/events/event"
	"archivist/pkg/kernel/definition"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/registry"
	"archivist/pkg/kernel/table"
	"archivist/pkg/revisions/archive"
	"archivist/pkg/revisions/workflow"
)

// Mode says what an archive does. It is an attribute of the archive's row by itself (archive_mode),
// so that a transaction can be conditioned on it without reading the row.
type Mode string

// The modes.
const (
	Active   Mode = "active"
	Paused   Mode = "paused"   // nothing is planned or started; what runs goes on
	Stopped  Mode = "stopped"  // likewise: a revision has become another, and a person decides
	Deleting Mode = "deleting" // what has not ended is cancelled
	Deleted  Mode = "deleted"
)

// Settings are what people decide about an archive. Check says which values are accepted.
type Settings struct {
	Location archive.Location `json:"location"`

	// For people; at most 300 bytes in one line.
	Title string `json:"title,omitempty"`

	// The first revision that is planned. 0: the first that is notified, or, for an object, its
	// newest version when it is registered.
	Baseline int64 `json:"baseline,omitempty"`

	// Milliseconds between two looks at the head. 0: as the deployment says (Times.Reconcile); -1:
	// never, unless a gap or a failed look needs one.
	Reconcile int64 `json:"reconcileMs,omitempty"`

	// Instances that are dispatched or run at once. 0: MaxRunning.
	Running int `json:"running,omitempty"`
}

// Archive is an archive: the JSON of its row. Times are milliseconds since 1970, 0 if there is
// none.
type Archive struct {
	Name string `json:"name"`
	Settings
	Mode Mode `json:"mode"`

	// Of a mode other than active: the reason of who changed it, or what stopped it. It may be
	// empty.
	Why string `json:"why,omitempty"`

	// From 1. It rises when the archive is registered again after a deletion, and when it begins
	// anew because its revisions were replaced. So ids of one epoch never name what is in another.
	Epoch int64 `json:"epoch"`

	// The first revision that is planned, 0: not known yet. Until it is being planned, a notice of
	// an earlier revision moves it. Only a back-fill plans what is before.
	First int64 `json:"first"`

	// All from First to here are planned, and nothing behind is, but parts of the next one that are
	// not visible. It is First-1 if none is planned.
	Watermark int64 `json:"watermark"`
	Created   int64 `json:"created"`

	// The hash of the definition of the last revision that has tasks: that of Schedules.
	Definition string `json:"definition,omitempty"`

	// That revision: schedules run its tasks. It rises with each committed revision, also if the
	// definition stays the same.
	Defined int64 `json:"defined,omitempty"`

	// Of all tasks of Definition, in its order.
	Schedules []schedule `json:"schedules,omitempty"`

	// The epochs up to which all has ended. A pass clears those between this and the present one,
	// and the present one, too, when the archive is deleted.
	Cleared int64 `json:"cleared,omitempty"`

	// When its head was looked at last, also in vain. 0: not since the settings were changed.
	Looked int64 `json:"looked,omitempty"`

	// The looks in a row that have failed: the next one waits twice as long.
	Missed int `json:"missed,omitempty"`

	// The looks in a row that found fewer revisions than are planned: see shrunkLooks.
	Short int `json:"short,omitempty"`

	// The planned revision of which a notice has said that it is another one, until the archive was asked; 0: none.
	Doubt int64 `json:"doubt,omitempty"`

	// Its head at the last look that succeeded.
	Newest int64 `json:"newest,omitempty"`

	// Why the next revision, or the next one of a back-fill, is not planned; nil if it can be read.
	Trouble  *Trouble  `json:"trouble,omitempty"`
	Backfill *backfill `json:"backfill,omitempty"`
}

// Ref is the archive in its epoch. It begins the ids of its revisions and instances, and is part of
// most keys: nothing of an epoch is found under that of another.
func (a *Archive) Ref() string { return ref(a.Name, a.Epoch) }

// Trouble is why an archive cannot be read. It is kept in the archive's row, so that people see it
// and the tries become rarer, and goes when the revision is planned or skipped. Times are
// milliseconds since 1970.
type Trouble struct {
	Revision int64  `json:"revision"`
	Reason   string `json:"reason"`
	Since    int64  `json:"since"`
	Tries    int    `json:"tries"`

	// When it is tried again: a minute after the first try, and then twice as long, up to an hour.
	Next int64 `json:"next"`
}

// schedule is one schedule of a task, and when it fires next, in milliseconds since 1970. Next is
// raised in the transaction that starts the run: so one occurrence is fired once, and a missed
// stretch once.
type schedule struct {
	Task string `json:"task"`
	workflow.Schedule
	Next int64 `json:"next"`
}

// backfill plans revisions before the first, in their order. It does not use what is known of tasks
// (nameRow), which is of later revisions: the nearest earlier revision with a task is kept here,
// for the revisions that this back-fill has planned.
type backfill struct {
	Next, To int64

	// By task, COMMIT too, the last revision of this back-fill that has planned it.
	Latest map[string]int64
}

// archiveRow is the row of an archive. Text is the Archive; Mode and FirstN are parts of it again,
// for conditions of transactions. saveArchive sets all three, so they cannot differ.
type archiveRow struct {
	table.Head
	Number int64  `dynamo:"version"` // of its events
	Text   string `dynamo:"archive_json"`
	Mode   string `dynamo:"archive_mode"`

	// First: a notice that found a revision before or behind it depends on that.
	FirstN int64 `dynamo:"first_n"`

	Requests registry.Requests `dynamo:"requests,omitempty"`

	Archive `dynamo:"-"`
}

// wakeRow says when an archive is to be looked at: by its place in the index work, the partition
// archivePlace, sorted by time. Without a place nothing is to be done.
//
// Raised is unique to who wrote it last. A pass that has found nothing more to do writes the next
// time only if Raised is as it was when it began: else it would overwrite the request of somebody
// whose change it has not seen.
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

// Revision is a revision: the JSON of its row. Times are milliseconds since 1970, 0 if not known.
type Revision struct {
	Archive string `json:"archive"` // the ref
	Number  int64  `json:"number"`
	State   string `json:"state"`

	// Which revision it is, as package archive says: "" until a notice or the archive has said so.
	// Another one under the same number stops the archive, if that says so itself.
	Transaction string `json:"transaction,omitempty"`
	Notified    int64  `json:"notified"`
	Planned     int64  `json:"planned,omitempty"`
	Author      string `json:"author,omitempty"`
	Message     string `json:"message,omitempty"`

	// Of the commit, as the archive says: it can be any.
	Time int64 `json:"time,omitempty"`

	// The hash of its definition. "" if it is invalid, was skipped, or is not planned yet.
	Definition string `json:"definition,omitempty"`

	// Of an invalid definition: the first ones. See keptProblems.
	Problems []workflow.Problem `json:"problems,omitempty"`

	// Of a skip, by the person; or why a token was not accepted.
	Reason string `json:"reason,omitempty"`

	// The instance whose run made it, "" if no token said so.
	MadeBy string `json:"madeBy,omitempty"`

	// The tasks that led to it, the nearest last: at most MaxChain. See loop for what it is for.
	Chain []string `json:"chain,omitempty"`

	// The states in which its instances have ended, by task, once they are in the bucket: so that
	// PREV is resolved without reading an object. nil before that; it has only what the commit has
	// planned, no runs.
	Ends map[string]string `json:"ends,omitempty"`

	// By task, the first run by hand or by schedule at this revision that has succeeded.
	Healed map[string]string `json:"healed,omitempty"`

	// By task, the newest run at this revision that is to be followed by its dependents.
	Again map[string]string `json:"again,omitempty"`
}

// revisionRow is the row of a revision. The numbers are of its instances, runs included. They are
// changed by Count, without reading the row: instances of one revision that end at the same time
// must not disturb each other.
type revisionRow struct {
	table.Head
	Number int64  `dynamo:"version"` // of its events
	Text   string `dynamo:"revision_json"`

	// Instances that were planned or started.
	All int64 `dynamo:"all_n"`

	// Of these, those that have ended. When it equals All, nothing of the revision goes on.
	Over int64 `dynamo:"over_n"`

	// Of these, those that are in the bucket and not in the table.
	InBucket int64 `dynamo:"kept_n,omitempty"`

	Revision `dynamo:"-"`
}

// nameRow is what is known of the instances of a task, in one epoch. It is written by the pass when
// it plans and starts, and by whoever ends an instance; each write is conditioned on its rev.
// Without it, planning and starting would have to search through all earlier revisions. Numbers are
// revisions, 0: none, but for InRow and Runs.
type nameRow struct {
	table.Head
	Owner string `dynamo:"owned_by"`

	// The last revision that planned it. With Before it answers what PREV is also when the plan of
	// the last revision is made again after a crash.
	Latest int64 `dynamo:"latest_n"`
	Before int64 `dynamo:"before_n"` // the last one before that

	// The highest in which it has started, also under its new name if it was renamed. A latest-only
	// instance of a lower one does not start any more.
	Started int64 `dynamo:"started_n"`

	// The instance that has: of several in one revision, the first.
	Starter string `dynamo:"starter_id,omitempty"`

	// The highest revision in which it has succeeded, and the instance that has: of several, the newest.
	Succeeded int64  `dynamo:"succeeded_n"`
	Succeeder string `dynamo:"succeeder_id,omitempty"`

	// Instances that were superseded since the last success: see workflow.Bound.
	InRow int `dynamo:"in_row_n"`

	// The number of the last run by hand or by schedule, in all revisions: runs of a task are
	// numbered without gaps.
	Runs int64 `dynamo:"runs_n"`
}

// started adds that an instance of the task has started, and reports whether that was not known. Of
// one revision, only the first start is kept.
func (n *nameRow) started(in *Instance) bool {
	if in.Revision < n.Started || in.Revision == n.Started && n.Starter != "" {
		return false
	}
	n.Started, n.Starter = in.Revision, in.ID
	return true
}

// succeeded adds that an instance of the task has succeeded.
func (n *nameRow) succeeded(in *Instance) {
	if in.Revision >= n.Succeeded {
		n.Succeeded, n.Succeeder = in.Revision, in.ID
	}
}

// lockRow is a lock. Its rev rises with every change of its line: an instance that joins it, and
// the end of one, write the row. So a start that has read the line, and is conditioned on the rev,
// fails if somebody has come before it meanwhile.
type lockRow struct {
	table.Head

	// The instance that has it, from its first start to its end: also between its attempts. "" if
	// nobody has.
	Holder string `dynamo:"holder_id,omitempty"`
}

// lineRow is a row of a line: its key is the place, Owner who is at it (an id).
type lineRow = table.Owned

// workflowRow is a definition, as JSON. Its key has the hash of that, so it is never changed, and
// shared by all revisions with the same tasks.
type workflowRow struct {
	table.Head
	Text string `dynamo:"workflow_json"`
}

func archiveSubject(name string) event.Subject {
	return event.Subject{Type: event.Archive,
		ID: name}
}
func revisionSubject(id string) event.Subject {
	return event.Subject{Type: event.Revision,
		ID: id}
}
func taskSubject(id string) event.Subject { return event.Subject{Type: event.Task, ID: id} }

func headOf(k table.Key) table.Head { return table.Head{PK: k.PK, SK: k.SK} }

// get reads a row whose state is JSON: text is the attribute that has it, into where it goes; both
// nil for a row without. One that does not exist has the rev 0, and into stays as the caller has
// filled it.
func (s *Store) get(ctx context.Context, k table.Key, row table.Row, text *string, into any) error {
	err := s.Table.Get(ctx, k, row)
	if fault.Is(err, fault.NotFound) {
		return nil
	}

	if err != nil {
		return fmt.Errorf("the row %s: %w", k, err)
	}

	if text == nil {
		return nil
	}

	err = json.Unmarshal([]byte(*text), into)
	if err != nil {
		return fmt.Errorf("the row %s: %w", k, err)
	}
	return nil
}

// decode reads a row whose state is JSON, as a list has found it: text is the attribute that has
// it.
func decode(raw table.Raw, row any, text *string, into any) error {
	err := raw.Decode(row)
	if err != nil {
		return err
	}
	return json.Unmarshal([]byte(*text), into)
}

// archiveRow reads an archive. One that does not exist has the rev 0 and only its name. All functions
// that read one row return a row also beside an error, so that callers may return parts of it.
func (s *Store) archiveRow(ctx context.Context, name string) (*archiveRow, error) {
	k := archiveSubject(name).Key()
	r := &archiveRow{Head: headOf(k), Archive: Archive{Name: name}}
	return r, s.get(ctx, k, r, &r.Text, &r.Archive)
}

// known reads an archive; one that does not exist, or that was deleted, is a NotFound. One that is
// being deleted is known. The row is there also beside the error.
func (s *Store) known(ctx context.Context, name string) (*archiveRow, error) {
	r, err := s.archiveRow(ctx, name)
	if err != nil {
		return r, err
	}
	return r, r.exists(name)
}

// exists returns a NotFound if the row is that of no archive, or of one that was deleted.
func (r *archiveRow) exists(name string) error {
	if r.Rev == 0 || r.Archive.Mode == Deleted {
		return fault.New(fault.NotFound, "there is no archive %q", definition.Clip(name, 60))
	}
	return nil
}

// locate finds an archive, also one that was deleted, and the ref of an epoch of it: "maps" is the
// present one, "maps@1" the first. An archive or an epoch that does not exist is a NotFound.
func (s *Store) locate(ctx context.Context, text string) (*archiveRow, string, error) {
	name, epoch, named := strings.Cut(text, "@")
	a, err := s.archiveRow(ctx, name)
	if err != nil {
		return nil, "", err
	}

	n := a.Epoch
	if named {
		n = parse(epoch)
	}

	if a.Rev == 0 || n < 1 || n > a.Epoch {
		return nil, "", fault.New(fault.NotFound, "there is no archive %q",
			definition.Clip(text, 60))
	}
	return a, ref(name, n), nil
}

// revisionRow reads a revision of an archive in its epoch. One that does not exist has the rev 0, and
// its keys in the index list, so that it can be written.
func (s *Store) revisionRow(ctx context.Context, ref string, n int64) (*revisionRow, error) {
	k := revisionSubject(revisionID(ref, n)).Key()
	r := &revisionRow{Head: headOf(k), Revision: Revision{Archive: ref, Number: n}}
	r.ListPK, r.ListSK = "REVISIONS#"+ref, fmt.Sprintf("%012d", n)
	return r, s.get(ctx, k, r, &r.Text, &r.Revision)
}

// instanceRow reads an instance that is in the table. One that does not exist, or that is in the
// bucket, has the rev 0 and an empty state; found also looks into the bucket.
func (s *Store) instanceRow(ctx context.Context, id string) (*instanceRow, error) {
	k := taskSubject(id).Key()
	r := &instanceRow{Head: headOf(k), Instance: Instance{ID: id}}
	return r, s.get(ctx, k, r, &r.Text, &r.Instance)
}

func nameKey(ref, task string) table.Key { return table.Key{PK: "TASKNAMES#" + ref, SK: task} }

// nameRow reads what is known of a task. For a task that has no instances all numbers are 0.
func (s *Store) nameRow(ctx context.Context, ref, task string) (*nameRow, error) {
	k := nameKey(ref, task)
	r := &nameRow{Head: headOf(k), Owner: ref}
	return r, s.get(ctx, k, r, nil, nil)
}

func lockKey(ref, lock string) table.Key {
	return table.Key{PK: "TASKLOCK#" + ref + "#" + lock, SK: "LOCK"}
}

// lockRow reads a lock. One that nobody has ever needed has the rev 0.
func (s *Store) lockRow(ctx context.Context, ref, lock string) (*lockRow, error) {
	k := lockKey(ref, lock)
	r := &lockRow{Head: headOf(k)}
	return r, s.get(ctx, k, r, nil, nil)
}

func workflowKey(archive, hash string) table.Key {
	return table.Key{PK: "WORKFLOW#" + archive, SK: hash}
}

// Definition reads a definition by its hash. One that is missing is a NotFound: revisions name it,
// so it is lost.
func (s *Store) Definition(ctx context.Context, archive,
	hash string) (*workflow.Definition, error) {
	var r workflowRow
	var d workflow.Definition
	err := s.Table.Get(ctx, workflowKey(archive, hash), &r)
	if err != nil {
		return &d, err
	}

	err = json.Unmarshal([]byte(r.Text), &d)
	return &d, err
}

// put writes a row that may be new. In both cases the transaction fails if another has written the
// row since it was read.
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

// saveArchive puts an archive into a transaction, with the attributes that conditions look at.
func saveArchive(tx *table.Tx, r *archiveRow) (err error) {
	r.Text, err = pack(r.Archive)
	r.Mode, r.FirstN = string(r.Archive.Mode), r.First
	r.ListPK, r.ListSK = "ARCHIVES", r.Name
	put(tx, r, r.Rev)
	return err
}

// saveRevision puts a revision into a transaction. A change of its numbers since it was read lets
// it fail, too: Count raises the rev.
func saveRevision(tx *table.Tx, r *revisionRow) (err error) {
	r.Text, err = pack(r.Revision)
	put(tx, r, r.Rev)
	return err
}
