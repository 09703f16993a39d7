package inventory

import "time"

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
