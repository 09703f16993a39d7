package objects

import (
	"fmt"

	"archivist/cmd/archivist/command"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/terminal"
)

// in is which files of an object are meant.
func in(inCopy bool) string {
	if inCopy {
		return v1.InCopy
	}
	return v1.InStorage
}

// objectRepairCmd plans a repair, and with a token does it: two steps, so that a person sees the digests of the
// file and of its copy before content is replaced.
type objectRepairCmd struct {
	named
	File    string `arg:"" optional:"" help:"To plan a repair: key of the file, as object fixity shows it."`
	Reason  string `required:"" help:"The reason. It is kept in the events." placeholder:"TEXT"`
	InCopy  bool   `help:"To plan a repair of the copy in the second bucket, from the stored file."`
	Confirm string `help:"Token of a plan, as object repairs shows it: the repair is done." placeholder:"TOKEN"`
}

func (objectRepairCmd) Prints() any { return v1.Repair{} }

// Run makes one request: the plan and the repair themselves take their time in the archive, which object repairs
// shows. Exactly one of a file and a token is given.
func (c *objectRepairCmd) Run(a *command.App) error {
	id, err := c.ark(a)
	if err != nil {
		return err
	}

	if (c.File == "") == (c.Confirm == "") {
		return fault.New(fault.Invalid,
			"give either the key of a file, to plan its repair, or --confirm TOKEN, "+
				"to do it")
	}

	var r v1.Repair
	if c.Confirm != "" {
		r, err = c.confirm(a, id)
	} else {
		r, err = a.Client.ProposeRepair(a.Ctx, id, v1.RepairRequest{In: in(c.InCopy), File: c.File, Reason: c.Reason})
	}

	if err != nil {
		return err
	}
	return a.Print(r, func(p terminal.Page) {
		p.Fields("repair", r.ID, "state", r.State, "in", r.In, "key", r.Key)
		fmt.Fprintf(p, "\nWhat became of it: archivist object repairs %s\n", id)
	})
}

// confirm confirms the plan that has the token. The token stands for this plan and no other, so that what a
// person has looked at is what is done.
func (c *objectRepairCmd) confirm(a *command.App, id string) (v1.Repair, error) {
	all, err := a.Client.Repairs(a.Ctx, id)
	if err != nil {
		return v1.Repair{}, err
	}

	for _, r := range all {
		// A token is that of one plan of this object.
		if r.Token == c.Confirm {
			return a.Client.ConfirmRepair(a.Ctx, id, r.ID,
				v1.RepairConfirmation{Token: r.Token, Reason: c.Reason})
		}
	}
	return v1.Repair{}, fault.New(fault.NotFound, "%s has no plan with the token %s", id, c.Confirm)
}

// objectRepairsCmd lists plans with their tokens, and what became of them.
type objectRepairsCmd struct {
	named
}

func (objectRepairsCmd) Prints() any { return v1.Repair{} }

// Run lists the oldest first.
func (c *objectRepairsCmd) Run(a *command.App) error {
	id, err := c.ark(a)
	if err != nil {
		return err
	}
	all, err := a.Client.Repairs(a.Ctx, id)
	if err != nil {
		return err
	}
	return a.Print(all, func(p terminal.Page) { terminal.Table(p, all, repairColumns...) })
}

// repairColumns have the digests for programs: that which the file must have, that which it has, and that of the
// file from which it is repaired.
var repairColumns = []terminal.Column[v1.Repair]{
	{Title: "state", Text: func(r v1.Repair) string { return r.State }},
	{Title: "token", Text: func(r v1.Repair) string { return r.Token }},
	{Title: "key", Text: func(r v1.Repair) string { return r.Key }, Share: 1},
	{Title: "problem", Text: func(r v1.Repair) string { return r.Problem }, Share: 1},
	{Text: func(r v1.Repair) string { return r.Expected }},
	{Text: func(r v1.Repair) string { return r.Found }},
	{Text: func(r v1.Repair) string { return r.Source }},
	{Title: "in", Text: func(r v1.Repair) string { return r.In }},
}
