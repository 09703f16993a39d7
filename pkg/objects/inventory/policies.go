package inventory

import (
	"time"

	"archivist/pkg/kernel/fault"
)

// Policies are what the newest version of an object says that was decided about it. Each is a system file of
// the version, and later versions repeat it. The files of the object stay stored, whatever was decided.
type Policies struct {
	Withdrawal *Decision `dynamo:"withdrawal,omitempty"` // why the files are not given out; nil: they are
	LegalHold  *Decision `dynamo:"legal_hold,omitempty"` // no content may be deleted before it is lifted; nil: none
	Retention  *Decision `dynamo:"retention,omitempty"`  // no content may be deleted before its day has ended
	Embargo    *Decision `dynamo:"embargo,omitempty"`    // the files are not given out before its day has ended
}

// Decision is what was decided about an object. The names of the attributes are those of the withdrawal, which
// was the first: rows have them.
type Decision struct {
	Reason string `dynamo:"reason"`
	By     string `dynamo:"withdrawn_by,omitempty"`
	At     string `dynamo:"withdrawn_at"`        // ISO 8601 in UTC
	Until  string `dynamo:"until_day,omitempty"` // of a retention or an embargo: the last day, YYYY-MM-DD in UTC
}

// String describes the decision in a part of a sentence: since when, by whom and why.
func (d *Decision) String() string {
	text := "since " + d.At
	if d.By != "" {
		text += ", by " + d.By
	}
	return text + ": " + d.Reason
}

// Lasts reports whether a day, as a retention or an embargo has it, has not ended at a time. A text that is no day
// lasts for ever: other software may have written it, and nothing may be deleted by mistake.
func Lasts(day string, now time.Time) bool {
	last, err := time.Parse(time.DateOnly, day)
	return err != nil || now.Before(last.AddDate(0, 0, 1))
}

// Open returns a Denied if the object is withdrawn, or under an embargo at a time: none of its files is given out.
func (o *Object) Open(now time.Time) error {
	switch until := o.EmbargoUntil(now); {
	case o.Withdrawal != nil:
		return fault.New(fault.Denied, "%s is withdrawn since %s: %s", o.ARK, o.Withdrawal.At, o.Withdrawal.Reason)
	case until != "":
		return fault.New(fault.Denied, "%s is under an embargo until %s: %s", o.ARK, until, o.Embargo.Reason)
	}
	return nil
}

// EmbargoUntil is the last day of the embargo that an object is under at a time, "" if there is none.
func (o *Object) EmbargoUntil(now time.Time) string {
	if o.Embargo == nil || !Lasts(o.Embargo.Until, now) {
		return ""
	}
	return o.Embargo.Until
}
