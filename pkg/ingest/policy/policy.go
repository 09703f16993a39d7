// Package policy has the rules of what may be decided about an object beside its description: access to its files, a
// legal hold, and how long its content is retained.
//
//	after, refused := policy.Next(ingest.Retain, inventory.Decision{Reason: "Grant 17", Until: "2036-12-31"}, before)
//	err := policy.Deletable(object, policy.Collection{RetainUntil: "2040-01-01"}, now)
//
// Nothing deletes stored content. A path that ever does has to ask Deletable first; what it answers is shown with each
// object.
package policy

import (
	"fmt"
	"strings"
	"time"

	"archivist/pkg/ingest"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/objects/inventory"
)

// Next are the policies of an object after one of them is decided. One that is in force already stays as it is. refused
// is why that cannot be decided, "" if it can: a legal hold is not replaced by another one, which would be lifted with
// it, and a retention is never made earlier.
func Next(p ingest.Policy, d inventory.Decision, before inventory.Policies) (after inventory.Policies, refused string) {
	after = before
	switch p {
	case ingest.Withdraw:
		if before.Withdrawal == nil {
			after.Withdrawal = &d
		}
	case ingest.Reinstate:
		after.Withdrawal = nil
	case ingest.Embargo:
		after.Embargo = until(before.Embargo, d)
	case ingest.LiftEmbargo:
		after.Embargo = nil
	case ingest.PlaceHold:
		if before.LegalHold == nil {
			after.LegalHold = &d
		} else if before.LegalHold.Reason != d.Reason {
			refused = "it is under a legal hold already, " + before.LegalHold.String() + ". " + OneHold
		}
	case ingest.LiftHold:
		after.LegalHold = nil
	case ingest.Retain:
		if before.Retention == nil || d.Until > before.Retention.Until {
			after.Retention = &d
		} else if d.Until < before.Retention.Until {
			refused = fmt.Sprintf("it is retained until %s, %s. %s", before.Retention.Until,
				before.Retention, NotEarlier)
		}
	}
	return after, refused
}

// until is the decision before if it lasts until the same day, else the new one.
func until(before *inventory.Decision, d inventory.Decision) *inventory.Decision {
	if before != nil && before.Until == d.Until {
		return before
	}
	return &d
}

// What refusals say, of an object and of a collection.
const (
	OneHold = "To add a reason, lift the hold, and place it again with all reasons: one hold with several reasons " +
		"cannot be lifted for one of them by mistake"
	NotEarlier = "A retention can be made later. It is never made earlier or removed, also not by an administrator, " +
		"so that others can rely on it"
)

// Collection is what the profile of a collection says of the content of all its objects.
type Collection struct {
	LegalHold   string // the reason; "": none
	RetainUntil string // the last day, YYYY-MM-DD in UTC; "": none
}

// Kinds of reasons, and where they are said.
const (
	LegalHold    = "legal-hold"
	Retention    = "retention"
	OfObject     = "object"
	OfCollection = "collection"
)

// Reason is why content of an object may not be deleted.
type Reason struct {
	Kind, Of string
	// Of a collection only the reason of a legal hold, and the last day of a retention, are known.
	inventory.Decision
}

// String names the reason as a part of a sentence.
func (r Reason) String() string {
	text := "legal hold"
	if r.Kind == Retention {
		text = "retained until " + r.Until
	}

	switch {
	case r.Of == OfObject:
		return text + " " + r.Decision.String()
	case r.Reason != "":
		text += ": " + r.Reason
	}
	return "its collection: " + text
}

// KeptError means that no content of an object may be deleted. It is a fault.Held.
type KeptError struct {
	ARK     string
	Reasons []Reason
}

// Error names the holds with their reasons, and the days.
func (e *KeptError) Error() string {
	texts := make([]string, len(e.Reasons))
	for i, r := range e.Reasons {
		texts[i] = r.String()
	}
	return fmt.Sprintf("no content of %s may be deleted: %s", e.ARK, strings.Join(texts, "; "))
}

// Unwrap gives the error its kind.
func (e *KeptError) Unwrap() error {
	return fault.New(fault.Held, "no content of %s may be deleted", e.ARK)
}

// Deletable returns a *KeptError with all reasons for which no content of an object may be deleted at a time: legal
// holds and retentions, its own and those of its collection. nil means that none of them forbids it, not that there is
// a way to do it.
func Deletable(o *inventory.Object, of Collection, now time.Time) error {
	var all []Reason
	add := func(kind, where string, d inventory.Decision) {
		if kind == LegalHold || inventory.Lasts(d.Until, now) {
			all = append(all, Reason{kind, where, d})
		}
	}

	if o.LegalHold != nil {
		add(LegalHold, OfObject, *o.LegalHold)
	}

	if o.Retention != nil {
		add(Retention, OfObject, *o.Retention)
	}

	if of.LegalHold != "" {
		add(LegalHold, OfCollection, inventory.Decision{Reason: of.LegalHold})
	}

	if of.RetainUntil != "" {
		add(Retention, OfCollection, inventory.Decision{Until: of.RetainUntil})
	}

	if len(all) == 0 {
		return nil
	}
	return &KeptError{o.ARK, all}
}
