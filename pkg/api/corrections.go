package api

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/description"
	"archivist/pkg/ingest/policy"
	"archivist/pkg/ingest/systemfile"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/objects/inventory"
)

// Correct is a request to correct what is said of an object.
type Correct struct {
	ARKInput
	Acting
	Body v1.CorrectionRequest
}

// corrections registers the route of corrections.
func (a *API) corrections(h huma.API) {
	huma.Register(h, huma.Operation{
		Method:        http.MethodPost,
		Path:          "/v1/objects/{naan}/{name}/corrections",
		Summary:       "Correct what is said of an object, or decide about it",
		OperationID:   "correctObject",
		DefaultStatus: http.StatusAccepted,
	}, func(ctx context.Context, in *Correct) (*Accepted, error) {
		out, err := a.correct(ctx, in)
		if err != nil {
			return nil, a.problem(err)
		}
		return out, nil
	})
}

// correct makes a batch of one job without content, which is in the line of the object's other jobs. Its version
// has the files of the version before.
func (a *API) correct(ctx context.Context, in *Correct) (*Accepted, error) {
	by, err := in.by(in.Body.Reason)
	if err != nil {
		return nil, err
	}

	b, err := correctionOf(in.Body)
	if err != nil {
		return nil, err
	}

	o, err := a.Inventory.Object(ctx, in.ark())
	if err != nil {
		return nil, err
	}

	b.Primary, b.Collection, b.Submitter = o.ARK, o.Collection, by.Actor
	if err := said(&b); err != nil {
		return nil, err
	}

	meaning, err := json.Marshal(struct {
		ARK  string
		Body v1.CorrectionRequest
	}{o.ARK, in.Body})
	if err != nil {
		return nil, err
	}

	row, err := a.Queue.Submitted(ctx, by.Request, meaning)
	if err == nil && row == nil {
		err = a.possible(ctx, o, &b)
	}

	if err == nil && row == nil {
		row, err = a.Queue.Submit(ctx, b, by.Request, meaning, by.Actor)
	}

	if err != nil {
		return nil, err
	}
	return &Accepted{http.StatusAccepted, "../../../batches/" + row.Batch.ID,
		v1.Accepted{ID: row.Batch.ID, State: string(row.State)}}, nil
}

// correctionOf converts a request and makes the checks that its schema cannot express. An Invalid error names the
// field.
func correctionOf(in v1.CorrectionRequest) (b ingest.Batch, err error) {
	b = ingest.Batch{
		Mode:      "add",
		Payload:   ingest.Payload{Type: ingest.TypeCorrection},
		IfVersion: in.IfVersion,
		Note:      strings.TrimSpace(in.Reason),
	}

	if b.Note == "" {
		return b, fault.New(fault.Invalid, "reason: found only blanks; say why the object is corrected")
	}

	if err := ingest.CheckText("reason", b.Note, ingest.MaxNote); err != nil {
		return b, err
	}

	b.Metadata, err = ingest.Metadata{Who: in.Who, What: in.What, When: in.When}.Clean(
		[4]string{"who", "what", "when", ""})
	if err != nil {
		return b, err
	}

	if b.LocalIDs, err = ingest.CleanLocalIDs(in.AddLocal); err != nil {
		return b, fault.New(fault.Invalid, "addLocal: %w", err)
	}

	if b.Withdrawn, err = ingest.CleanLocalIDs(in.WithdrawLocal); err != nil {
		return b, fault.New(fault.Invalid, "withdrawLocal: %w", err)
	}

	for _, id := range b.Withdrawn {
		if slices.Contains(b.LocalIDs, id) {
			return b, fault.New(fault.Invalid, "the local id %q is in addLocal and in withdrawLocal; leave one out", id)
		}
	}
	return b, decide(&b, in)
}

// decide sets the policy that a request decides. A request corrects something else, or decides one policy: an Invalid
// refuses others.
func decide(b *ingest.Batch, in v1.CorrectionRequest) error {
	var names []string
	for _, of := range []struct {
		name, given string
		policy      ingest.Policy
	}{
		{"access", in.Access, ingest.Policy(in.Access)},
		{"legalHold", in.LegalHold, holds[in.LegalHold]},
		{"retainUntil", in.RetainUntil, ingest.Retain},
		{"embargoUntil", in.EmbargoUntil, embargoes[in.EmbargoUntil == systemfile.NoEmbargo]},
	} {
		if of.given != "" {
			names = append(names, of.name)
			b.Policy = of.policy
		}
	}

	b.LastDay = cmp.Or(in.RetainUntil, strings.TrimPrefix(in.EmbargoUntil, systemfile.NoEmbargo))
	switch n := len(b.LocalIDs) + len(b.Withdrawn); {
	case n > ingest.MaxLocalIDs:
		return fault.New(fault.Invalid, "addLocal and withdrawLocal have %d ids together; at most %d are "+
			"allowed. Make two corrections", n, ingest.MaxLocalIDs)
	case len(names) == 0 && n == 0 && b.Metadata == (ingest.Metadata{}):
		return fault.New(fault.Invalid, "nothing is corrected; give at least one of who, what, when, addLocal, "+
			"withdrawLocal, access, legalHold, retainUntil and embargoUntil")
	case len(names) > 0 && (n > 0 || b.Metadata != (ingest.Metadata{})):
		return fault.New(fault.Invalid, "%s: what is decided about an object is a version of its own, with its own "+
			"reason; correct the description separately", names[0])
	case len(names) > 1:
		return fault.New(fault.Invalid, "%s: each is a version of its own, with its own reason; make two corrections",
			strings.Join(names, " and "))
	}
	return nil
}

// holds are the policies by the values of legalHold.
var holds = map[string]ingest.Policy{"place": ingest.PlaceHold, "lift": ingest.LiftHold}

// embargoes are the policies by whether embargoUntil is none.
var embargoes = map[bool]ingest.Policy{true: ingest.LiftEmbargo, false: ingest.Embargo}

// said checks that the version can be written as a correction says it: its later steps would refuse it.
func said(b *ingest.Batch) error {
	d, _, err := description.Settle(nil, b.Metadata) // without files there is nothing that contradicts
	if err != nil {
		return err
	}

	for _, of := range []struct {
		name, given string
		values      []string
	}{{"who", b.Who, d.Who}, {"what", b.What, d.What}, {"when", b.When, d.When}} {
		if of.given != "" && len(of.values) == 0 {
			return fault.New(fault.Invalid, "%s: %q says that there is no value yet, which corrects nothing. To "+
				"withdraw a value, say why there is none, e.g. (:unkn)", of.name, of.given)
		}
	}

	first := b.First()
	first.Payload, first.Note, first.Submitter = b.Payload, b.Note, b.Submitter
	if why := systemfile.Refused(&first, d); why != "" {
		return fault.New(fault.Invalid, "%s", why)
	}
	return nil
}

// possible checks what the job of a new correction would refuse, as far as it is known now.
func (a *API) possible(ctx context.Context, o *inventory.Object, b *ingest.Batch) error {
	if b.LastDay != "" {
		name := map[ingest.Policy]string{ingest.Retain: "retainUntil", ingest.Embargo: "embargoUntil"}[b.Policy]
		if err := ingest.CheckDay(name, b.LastDay, a.Queue.Now()); err != nil {
			return err
		}
	}

	d := inventory.Decision{Reason: b.Note, Until: b.LastDay}
	if _, refused := policy.Next(b.Policy, d, o.Policies); refused != "" {
		return fault.New(fault.Conflict, "%s: %s", o.ARK, refused)
	}
	return a.owned(ctx, o, b)
}

// owned checks that the local ids that a correction adds are free, and that those that it withdraws are the
// object's.
func (a *API) owned(ctx context.Context, o *inventory.Object, b *ingest.Batch) error {
	for _, id := range b.LocalIDs {
		known, err := a.Inventory.ByLocalID(ctx, o.Collection, id)
		if err != nil {
			return err
		}
		if known != "" && known != o.ARK {
			return fault.New(fault.Conflict, "addLocal: the local id %q belongs to %s. If that is wrong, withdraw "+
				"it from that object first", id, known)
		}
	}

	for _, id := range b.Withdrawn {
		known, err := a.Inventory.ByLocalID(ctx, o.Collection, id)
		if err != nil {
			return err
		}
		if known != o.ARK {
			return fault.New(fault.Conflict, "withdrawLocal: %q is not a local id of %s", id, o.ARK)
		}
	}
	return nil
}
