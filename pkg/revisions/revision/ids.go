package revision

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"archivist/pkg/kernel/definition"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/revisions/workflow"
)

// maxID is how long the id of an instance can be, in bytes: an archive, an epoch, a revision, a
// task and a run have less together. It bounds what is parsed and put into keys.
const maxID = 200

// ID names an archive in an epoch, a revision of it, or an instance. ParseID and String are
// inverse: an id has one form, so that it can be compared as text.
type ID struct {
	// The archive in its epoch, e.g. "maps" or "maps@2".
	Ref string

	// The revision; 0: the archive is named.
	N int64

	// "": the revision is named.
	Task string

	// The run by hand or by schedule; 0: the instance that the revision planned.
	Run int64
}

// MaxRevision: the number has twelve digits in keys, so that they sort as numbers do.
const MaxRevision = 999_999_999_999

// Names are the names of archives. They are part of keys, of names of executions and of paths. They
// have no "@", "/" or "#", which separate the parts of ids and keys, and no "~", which sorts behind
// all of them.
var Names = regexp.MustCompile(`^[a-z][a-z0-9-]{0,39}$`)

// ParseID reads the id of an archive ("maps"), of a revision ("maps/12") or of an instance
// ("maps/12/index", "maps/12/index/3"). All else is an Invalid, also what names the same in another
// form ("maps@1", "maps/012").
func ParseID(text string) (ID, error) {
	part := strings.Split(text, "/")
	id := ID{Ref: part[0]}
	if len(part) > 1 {
		id.N = parse(part[1])
	}

	if len(part) > 2 {
		id.Task = part[2]
	}

	if len(part) > 3 {
		id.Run = parse(part[3])
	}

	if len(text) > maxID || !id.valid() || id.String() != text {
		return ID{}, fault.New(fault.Invalid, "id: found %q; expected ARCHIVE, ARCHIVE/REVISION, "+
			"ARCHIVE/REVISION/TASK or ARCHIVE/REVISION/TASK/RUN", definition.Clip(text, 100))
	}
	return id, nil
}

// valid reports whether the parts can be parts of keys. That text is only the id, without more
// parts, is known by comparing it with String.
func (id ID) valid() bool {
	name, _, _ := strings.Cut(id.Ref, "@")
	return Names.MatchString(name) && ref(name, epochOf(id.Ref)) == id.Ref && id.N >= 0 &&
		id.N <= MaxRevision &&
		(id.Task == "" || workflow.TaskName.MatchString(id.Task)) && id.Run >= 0
}

// String is the id as text.
func (id ID) String() string {
	switch {
	case id.N == 0:
		return id.Ref
	case id.Task == "":
		return revisionID(id.Ref, id.N)
	}
	return instanceID(id.Ref, id.N, id.Task, id.Run)
}

// ref names an archive in an epoch. The first has no number, so that the ids of an archive that was
// never replaced are short.
func ref(archive string, epoch int64) string {
	if epoch <= 1 {
		return archive
	}
	return fmt.Sprintf("%s@%d", archive, epoch)
}

// epochOf is the epoch of a ref.
func epochOf(ref string) int64 {
	_, epoch, _ := strings.Cut(ref, "@")
	return max(parse(epoch), 1)
}

// archiveOf is the archive of a ref or of an id that begins with one.
func archiveOf(id string) string {
	if i := strings.IndexAny(id, "@/"); i >= 0 {
		return id[:i]
	}
	return id
}

// revisionID is the id of a revision.
func revisionID(ref string, n int64) string { return fmt.Sprintf("%s/%d", ref, n) }

// splitRevision is the ref and the number of the id of a revision.
func splitRevision(id string) (ref string, n int64) {
	i := strings.LastIndex(id, "/")
	if i < 0 {
		return id, 0
	}
	return id[:i], parse(id[i+1:])
}

// instanceID is the id of an instance. run is 0 for the one that the revision planned.
func instanceID(ref string, n int64, task string, run int64) string {
	if run == 0 {
		return fmt.Sprintf("%s/%d/%s", ref, n, task)
	}
	return fmt.Sprintf("%s/%d/%s/%d", ref, n, task, run)
}

// order is the place of an instance among those of its archive: by revision, topological place,
// name, run. Keys of lines end with it, so lines are in the order in which instances may go on:
// whatever waits for another is behind it. Numbers have leading zeros, to be compared as text.
func order(n int64, place int, task string, run int64) string {
	return fmt.Sprintf("%012d#%03d#%s#%06d", n, place, task, run)
}

// before begins the orders of no revision below n: as the lower end of a query it includes revision
// n, as the upper end it excludes it, since each order of n is longer.
func before(n int64) string { return fmt.Sprintf("%012d", n) }

// last sorts behind all that follows in a key: no id has the character.
const last = "~"

// placeOfCommit sorts COMMIT before the tasks of its revision.
const placeOfCommit = 0

// placeOf is the place of a task, behind that of COMMIT. A task has a higher place than those of
// its revision that it waits for.
func placeOf(t *workflow.Task) int { return t.Place + 1 }

// text is the time of a key, in milliseconds since 1970: thirteen digits are enough until the year
// 2286.
func text(ms int64) string { return fmt.Sprintf("%013d", ms) }

// parse is a number of a key or an id; 0 for what is none. Callers that take text from others
// compare the result with what was given.
func parse(ms string) int64 {
	n, _ := strconv.ParseInt(ms, 10, 64)
	return n
}

func millis(t time.Time) int64 { return t.UnixMilli() }

// at is a time in milliseconds.
func at(ms int64) time.Time { return time.UnixMilli(ms).UTC() }
