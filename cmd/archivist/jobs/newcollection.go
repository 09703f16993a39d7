package jobs

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"archivist/cmd/archivist/command"
	"archivist/pkg/ingest"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/terminal"
)

// beginning is the flag of commands that can begin a collection by naming it.
type beginning struct {
	NewCollection bool `help:"Mean the collection even if it has never been used; do not ask."`
}

// longestAnswer is how much of an answer is read.
const longestAnswer = 100

// known asks whether a collection is meant that has never been used: its name may be misspelt. Without a terminal that
// is an error. A depositor of one collection may not read its profile, and needs no question: the collection is named
// by an administrator.
func (b *beginning) known(a *command.App, name string, dryRun bool) error {
	if b.NewCollection {
		return nil
	}
	c, err := a.Client.Collection(a.Ctx, name)
	switch {
	case fault.Is(err, fault.Denied) || fault.Is(err, fault.NotFound) || err == nil && !c.New:
		return nil
	case err != nil:
		return err
	}

	why := ingest.Unused(name, c.Near)
	switch {
	case dryRun:
		a.Warn("%s", why)
		return nil
	case a.Err.Width == 0:
		return fault.New(fault.Invalid, "%s; --new-collection says that it is meant", why)
	}

	fmt.Fprintf(a.Errors, "%s. Is it meant? [y/N] ", terminal.Printable(why))
	answer, _ := bufio.NewReader(io.LimitReader(a.In, longestAnswer)).ReadString('\n')
	if a.Ctx.Err() != nil {
		return a.Ctx.Err()
	}
	if text := strings.ToLower(strings.TrimSpace(answer)); text != "y" && text != "yes" {
		return fault.New(fault.Invalid, "nothing was done; with --new-collection it is not asked")
	}
	b.NewCollection = true
	return nil
}
