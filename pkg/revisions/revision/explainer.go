package revision

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"archivist/pkg/kernel/explain"
)

// explainer explains one thing in an archive. a is the archive as it was read at first; ref is the
// epoch that was asked for. It writes nothing.
type explainer struct {
	*Store
	ctx context.Context
	a   *archiveRow
	ref string
}

// clock is a time as people read it.
func clock(ms int64) string {
	return time.UnixMilli(ms).UTC().Format("2006-01-02 15:04:05") +
		" UTC"
}

// held says in st why the archive plans and starts nothing, and reports whether it does not.
func (e *explainer) held(st *explain.Part) bool {
	a := e.a.Archive
	resume := explain.Step{What: "Resume the archive", Command: "archivist archive resume " + a.Name + " --reason TEXT"}
	switch a.Mode {
	case Active:
		return false
	case Deleting, Deleted:
		st.Waits, st.Why = explain.Delete, fmt.Sprintf("the archive %s is %s", a.Name, a.Mode)
		return true
	case Paused:
		st.Waits = explain.Hold
	case Stopped:
		st.Waits = explain.Person
		resume.What = "Resume it as it is, or with --restart N if its history is another one"
	}
	st.Why = fmt.Sprintf("the archive %s is %s: %s", a.Name, a.Mode, cmp.Or(a.Why, "no reason was given"))
	st.Do = append(st.Do, resume)
	return true
}
