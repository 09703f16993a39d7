package collection

import (
	"strings"
	"time"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/policy"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/objects/inventory"
)

// after is the profile as it follows another one. A legal hold that is in force is repeated or lifted, and a retention
// that lasts is repeated or made later; else the error is a Conflict.
func (p Profile) after(before Profile, name string, now time.Time) (Profile, error) {
	if p.LegalHold != nil {
		hold := strings.TrimSpace(*p.LegalHold)
		if hold == "" && *p.LegalHold != "" {
			return p, fault.New(fault.Invalid, `legalHold: found only blanks; give the reason, or "" to lift the hold`)
		}
		p.LegalHold = &hold
	}

	if err := p.checkHold(before, name); err != nil {
		return p, err
	}

	if p.Policy().LegalHold == "" {
		p.LegalHold = nil
	}
	return p, p.checkRetention(before, name, now)
}

// checkHold refuses to lift a legal hold by leaving it out, which an older copy of the profile would do, and to replace
// it.
func (p Profile) checkHold(before Profile, name string) error {
	given, inForce := p.Policy().LegalHold, before.Policy().LegalHold
	switch {
	case inForce == "":
		return ingest.CheckText("legalHold", given, ingest.MaxNote)
	case p.LegalHold == nil:
		return fault.New(fault.Conflict, `legalHold: collection %s is under a legal hold: %s. Repeat it in the profile, `+
			`or lift it with "legalHold": ""`, name, inForce)
	case given != "" && given != inForce:
		return fault.New(fault.Conflict,
			"legalHold: collection %s is under a legal hold already: %s. %s", name,
			inForce, policy.OneHold)
	}
	return nil
}

// checkRetention refuses a retention that is in the past, or earlier than the one that lasts.
func (p Profile) checkRetention(before Profile, name string, now time.Time) error {
	if p.RetainUntil == before.RetainUntil {
		return nil
	}

	if p.RetainUntil != "" {
		if err := ingest.CheckDay("retainUntil", p.RetainUntil, now); err != nil {
			return err
		}
	}

	if p.RetainUntil < before.RetainUntil && inventory.Lasts(before.RetainUntil, now) {
		return fault.New(fault.Conflict,
			"retainUntil: collection %s is retained until %s. %s", name,
			before.RetainUntil, policy.NotEarlier)
	}
	return nil
}
