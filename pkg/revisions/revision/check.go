package revision

import (
	"strings"
	"unicode"

	"archivist/pkg/kernel/definition"
	"archivist/pkg/kernel/fault"
)

// Notice says that a revision was committed: all that a hook says. Notices may be repeated, and
// come in any order.
type Notice struct {
	Revision int64

	// Which revision it is, "" if the hook does not know. Then the archive is asked when it is
	// planned.
	Transaction string

	// Of the run that made it, "" for none. A token that is not one of the archive's runs is
	// refused.
	Token string

	// The object whose version it is, "" for a revision of whatever the archive is.
	Object string
}

// Check returns an Invalid if the notice cannot be kept. Whether the transaction has the form of
// its kind of archive is checked by archive.Location.CheckTransaction.
func (n Notice) Check() error {
	switch {
	case n.Revision < 1 || n.Revision > MaxRevision:
		return fault.New(fault.Invalid, "revision: found %d; expected 1 to %d", n.Revision,
			int64(MaxRevision))
	case len(n.Transaction) > MaxTransaction || strings.ContainsFunc(n.Transaction, isSpace):
		return fault.New(fault.Invalid,
			"transaction: found %q; expected at most %d bytes without blanks",
			definition.Clip(n.Transaction, 60), MaxTransaction)
	}
	return nil
}

// isSpace reports whether a character would not be seen in a message: blanks, control characters,
// and what is no UTF-8.
func isSpace(r rune) bool {
	return unicode.IsSpace(r) || unicode.IsControl(r) || r == unicode.ReplacementChar
}

// Check returns an Invalid if the settings cannot be used. What the location says is checked by
// package archive. More often than once a minute is not worth asking an archive: gaps are asked for
// by themselves.
func (s Settings) Check() error {
	switch {
	case s.Baseline < 0 || s.Baseline > MaxRevision:
		return fault.New(fault.Invalid, "baseline: found %d; expected 1 to %d, or none", s.Baseline,
			int64(MaxRevision))
	case s.Reconcile < -1 || s.Reconcile > 0 && s.Reconcile < 60_000 ||
		s.Reconcile > MaxReconcile:
		return fault.New(fault.Invalid,
			"reconcile: found %d ms; expected a minute to 30 days, or -1 for never",
			s.Reconcile)
	case s.Running < 0 || s.Running > MostRunning:
		return fault.New(fault.Invalid, "running: found %d; expected 1 to %d", s.Running,
			MostRunning)
	case len(s.Title) > MaxTitle || strings.ContainsFunc(s.Title, isControl):
		return fault.New(fault.Invalid, "title: expected at most %d bytes in one line", MaxTitle)
	}
	return nil
}

// checkReason returns an Invalid for a reason that cannot be kept or shown in one line. None is
// accepted here.
func checkReason(by By) error {
	if by.Reason == "" {
		return nil
	}
	return by.Check()
}

// checkTask returns an Invalid for what cannot be the name of a task: such a text could be part of
// another key or id. Names that no definition has are accepted, since older definitions may have
// had them.
func checkTask(name string) error {
	if len(name) > 60 || strings.ContainsAny(name, "/#:") || name == "" {
		return fault.New(fault.Invalid, "task: found %q; expected the name of a task",
			definition.Clip(name, 60))
	}
	return nil
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f }
