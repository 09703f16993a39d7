package objects

import (
	"crypto/rand"

	"archivist/cmd/archivist/command"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/terminal"
)

// objectCorrectCmd corrects what is said of an object, without its content.
type objectCorrectCmd struct {
	named
	Who  string `help:"Creator. A code withdraws the value, e.g. (:unkn) for unknown." placeholder:"TEXT"`
	What string `help:"Title." placeholder:"TEXT"`
	When string `help:"Date." placeholder:"TEXT"`
	// sep is none: a local id can have commas.
	Add       []string `name:"add-local-id" help:"Local id that the object gets." placeholder:"ID" sep:"none"`
	Withdraw  []string `name:"withdraw-local-id" help:"Local id that it loses." placeholder:"ID" sep:"none"`
	IfVersion int      `help:"Expected newest version; the job fails if it is another one." placeholder:"N"`
	Reason    string   `required:"" help:"The reason. It is the message of the new version." placeholder:"TEXT"`
	Key       string   `name:"idempotency-key" help:"The same key gives the same correction." placeholder:"KEY"`
}

func (objectCorrectCmd) Prints() any { return v1.Accepted{} }

// Run submits the correction: a job makes the new version, in the order of the object's other jobs.
func (c *objectCorrectCmd) Run(a *command.App) error {
	return correct(a, c.named, c.Key, v1.CorrectionRequest{
		Who:           c.Who,
		What:          c.What,
		When:          c.When,
		AddLocal:      c.Add,
		WithdrawLocal: c.Withdraw,
		IfVersion:     c.IfVersion,
		Reason:        c.Reason,
	})
}

// decision is a version without other changes, which decides something about an object. Commands embed it.
type decision struct {
	named
	Reason string `required:"" help:"The reason. It is shown, and is the message of the version." placeholder:"TEXT"`
}

func (decision) Prints() any { return v1.Accepted{} }

func (d decision) submit(a *command.App, in v1.CorrectionRequest) error {
	in.Reason = d.Reason
	return correct(a, d.named, "", in)
}

// objectWithdrawCmd withdraws an object from access.
type objectWithdrawCmd struct{ decision }

// Run submits a version which says that the object is withdrawn.
func (c *objectWithdrawCmd) Run(a *command.App) error {
	return c.submit(a, v1.CorrectionRequest{Access: "withdraw"})
}

// objectReinstateCmd ends a withdrawal.
type objectReinstateCmd struct{ decision }

// Run submits a version which is not withdrawn.
func (c *objectReinstateCmd) Run(a *command.App) error {
	return c.submit(a, v1.CorrectionRequest{Access: "reinstate"})
}

// legalHoldCmd is about the legal hold of an object, which is apart from the holds of jobs: those stop work.
type legalHoldCmd struct {
	Place legalHoldPlaceCmd `cmd:"" help:"Place a legal hold: no content of the object may be deleted."`
	Lift  legalHoldLiftCmd  `cmd:"" help:"Lift the legal hold of an object."`
}

// legalHoldPlaceCmd places a legal hold.
type legalHoldPlaceCmd struct{ decision }

// Run submits a version which says that the object is under a legal hold.
func (c *legalHoldPlaceCmd) Run(a *command.App) error {
	return c.submit(a, v1.CorrectionRequest{LegalHold: "place"})
}

// legalHoldLiftCmd ends a legal hold.
type legalHoldLiftCmd struct{ decision }

// Run submits a version which is under no legal hold.
func (c *legalHoldLiftCmd) Run(a *command.App) error {
	return c.submit(a, v1.CorrectionRequest{LegalHold: "lift"})
}

// objectRetainCmd retains the content of an object until a day.
type objectRetainCmd struct {
	decision
	Until string `required:"" help:"Last day (UTC). It can be made later, not earlier." placeholder:"YYYY-MM-DD"`
}

// Run submits a version which says until when the object is retained.
func (c *objectRetainCmd) Run(a *command.App) error {
	return c.submit(a, v1.CorrectionRequest{RetainUntil: c.Until})
}

// objectEmbargoCmd places an embargo on the files of an object, or lifts it.
type objectEmbargoCmd struct {
	decision
	Until string `required:"" help:"Last day (UTC), or none to lift the embargo." placeholder:"YYYY-MM-DD"`
}

// Run submits a version which says until when the files are not given out.
func (c *objectEmbargoCmd) Run(a *command.App) error {
	return c.submit(a, v1.CorrectionRequest{EmbargoUntil: c.Until})
}

// correct submits a correction, with a key of its own if none is given.
func correct(a *command.App, of named, key string, in v1.CorrectionRequest) error {
	id, err := of.ark(a)
	if err != nil {
		return err
	}

	if key == "" {
		key = rand.Text() // so that a request repeated by the network does not make a second correction
	}

	accepted, err := a.Client.Correct(a.Ctx, id, in, key)
	if err != nil {
		return err
	}
	return a.Print(accepted, func(p terminal.Page) {
		p.Fields("batch", accepted.ID, "state", accepted.State, "follow it",
			"archivist batch show "+accepted.ID+" --watch")
	})
}
