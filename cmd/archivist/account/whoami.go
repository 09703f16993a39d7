package account

import (
	"strings"

	"archivist/cmd/archivist/command"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/terminal"
)

// WhoamiCmd shows who the API takes the caller for.
type WhoamiCmd struct{}

// Prints is an empty value of what it prints.
func (WhoamiCmd) Prints() any { return v1.Caller{} }

// Run asks the API.
func (WhoamiCmd) Run(a *command.App) error {
	return command.Show(a, showCaller)(a.Client.WhoAmI(a.Ctx))
}

// showCaller shows a caller. Without a subject, a key or nothing says who calls.
func showCaller(p terminal.Page, c v1.Caller) {
	grants := strings.Join(c.Grants, ", ")
	if grants == "" {
		grants = "none"
	}
	p.Fields("subject", c.Subject, "name", c.Name, "roles", grants, "until", c.Expires)
}
