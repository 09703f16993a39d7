package v1

import "context"

// CorrectionRequest corrects what is said of an object. At least one of its fields but the last two is given.
type CorrectionRequest struct {
	// The creator. A code that says why there is none, e.g. (:unkn), withdraws the earlier value.
	Who string `json:"who,omitempty" maxLength:"4000" example:"Blunt, John"`
	// The title.
	What string `json:"what,omitempty" maxLength:"4000" example:"Map of the harbour"`
	// The date.
	When string `json:"when,omitempty" maxLength:"4000" example:"1851"`
	// Local ids that the object gets.
	AddLocal []string `json:"addLocal,omitempty" maxItems:"20" example:"[\"map-1851\"]"`
	// Local ids that are not the object's: they become free, and stay in its history as withdrawn.
	WithdrawLocal []string `json:"withdrawLocal,omitempty" maxItems:"20" example:"[\"map-1815\"]"`
	// withdraw: the files are not given out any more, and the object gets no other files. They stay stored.
	// reinstate: they are given out again. A version of its own, without other corrections.
	Access string `json:"access,omitempty" enum:"withdraw,reinstate"`
	// place: no content of the object may be deleted before the legal hold is lifted. A version of its own.
	LegalHold string `json:"legalHold,omitempty" enum:"place,lift"`
	// The last day (UTC) on which no content of the object may be deleted. It can be made later, not earlier. A version
	// of its own.
	RetainUntil string `json:"retainUntil,omitempty" format:"date" example:"2036-12-31"`
	// The last day (UTC) on which the files of the object are not given out, or none to lift the embargo. A version of
	// its own.
	EmbargoUntil string `json:"embargoUntil,omitempty" pattern:"^(none|[0-9]{4}-[0-9]{2}-[0-9]{2})$" example:"none"`
	// The expected newest version of the object. The job fails if the object is at another version.
	IfVersion int `json:"ifVersion,omitempty" minimum:"1" example:"1"`
	// The reason. It is the message of the new version.
	Reason string `json:"reason" minLength:"1" maxLength:"1000" example:"The year in the id was wrong."`
}

// Correct makes a batch of one job that corrects an object. The same key with the same request gives the same batch.
func (c *Client) Correct(ctx context.Context, ark string, in CorrectionRequest,
	key string) (Accepted, error) {
	return post[Accepted](ctx, c, ObjectPath(ark)+"/corrections", in, key)
}
