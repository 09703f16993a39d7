package console

import (
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/access"
)

// correction is a deed on an object that makes a version of its own: the field of the request says what it changes.
func correction(d deed, change asking) deed {
	d.Role, d.Path, d.To = access.Administrator, "/v1/objects/{0}/{1}/corrections", "batches/{id}"
	d.Done = "A version of the object is being made. This is its batch."
	d.Fields = []asking{change}
	return d
}

// onObjects is what can be done to an object. The parts of its id are those of its ARK. Its states are those of
// statesOf.
var onObjects = deedKind{Page: "objects/{0}/{1}", Deeds: []deed{
	{Name: "check", Title: "Check its files now", Role: access.Operator, States: []string{"checked"},
		Path: "/v1/item/actions?id=ark:/{0}/{1}", Done: "Its files will be checked again.",
		Means:   "The last check counts no longer: the component fixity-check reads all its stored files again, soon.",
		Fields:  []asking{{Name: "action", Value: "revoke"}, {Name: "events", Value: "Fixity_checked", List: true}},
		Command: "archivist component item revoke ark:/{0}/{1} Fixity_checked"},
	correction(deed{Name: "withdraw", Title: "Withdraw from access", States: []string{"open"},
		Means:   "Its files are not given out any more. They stay stored, and it can be reinstated.",
		Command: "archivist object withdraw ark:/{0}/{1}"},
		asking{Name: "access", Value: "withdraw"}),
	correction(deed{Name: "reinstate", Title: "Reinstate", States: []string{"withdrawn"},
		Means:   "Its files are given out again.",
		Command: "archivist object reinstate ark:/{0}/{1}"},
		asking{Name: "access", Value: "reinstate"}),
	correction(deed{Name: "embargo", Title: "Place an embargo",
		Means:   "Its files are not given out before that day has ended. They stay stored.",
		Command: "archivist object embargo ark:/{0}/{1}"},
		asking{Name: "embargoUntil", Label: "Last day, in UTC", Form: "day", Option: "--until", Required: true}),
	correction(deed{Name: "lift-embargo", Title: "Lift the embargo", States: []string{"embargoed"},
		Means:   "Its files are given out again.",
		Command: "archivist object embargo ark:/{0}/{1} --until none"},
		asking{Name: "embargoUntil", Value: "none"}),
	correction(deed{Name: "place-legal-hold", Title: "Place a legal hold", States: []string{"deletable"},
		Means:   "Nothing of its content may be deleted until the hold is lifted.",
		Command: "archivist object legal-hold place ark:/{0}/{1}"},
		asking{Name: "legalHold", Value: "place"}),
	correction(deed{Name: "lift-legal-hold", Title: "Lift the legal hold", States: []string{"kept"},
		Means:   "The legal hold ends. What else keeps its content, stays.",
		Command: "archivist object legal-hold lift ark:/{0}/{1}"},
		asking{Name: "legalHold", Value: "lift"}),
	correction(deed{Name: "retain", Title: "Retain until a day", Loses: true,
		Means: "Nothing of its content may be deleted before that day has ended. The day can be made later, not " +
			"earlier.",
		Command: "archivist object retain ark:/{0}/{1}"},
		asking{Name: "retainUntil", Label: "Last day, in UTC", Form: "day", Option: "--until", Required: true}),
}}

// statesOf are the states of an object that decide what can be done to it.
func statesOf(o v1.Object) (states []string) {
	has := func(is bool, yes, no string) {
		if is {
			states = append(states, yes)
		} else {
			states = append(states, no)
		}
	}
	held := false
	for _, k := range o.Kept {
		held = held || k.Kind == "legal-hold" && k.Of == "object"
	}
	has(o.Withdrawn != nil, "withdrawn", "open")
	has(o.Embargo != nil, "embargoed", "free")
	has(held, "kept", "deletable")
	has(o.FixityChecked != "", "checked", "unchecked")
	return states
}
