package components

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"

	"archivist/cmd/archivist/command"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/terminal"
)

// itemActing are the argument and the flags of every action on an item.
type itemActing struct {
	itemID
	Reason string `required:"" help:"Why. It is kept in the events." placeholder:"TEXT"`
	Key    string `name:"idempotency-key" help:"${help_action_key}" placeholder:"KEY"`
}

func (itemActing) Prints() any { return v1.ItemOutcome{} }

// itemShape are the flags that say what an item is. On `component item change` they replace all of it: what is left
// out is gone.
type itemShape struct {
	Types       []string `name:"type" help:"A type. Can be repeated." placeholder:"TYPE"`
	Parents     []string `name:"parent" help:"What it belongs to, e.g. Collection:maps; repeatable." placeholder:"T:ID"`
	Identifiers []string `name:"identifier" help:"Another id by which it is known. Can be repeated." placeholder:"ID"`
}

// shape is the request of the flags. A parent without a type is a wrong command line. The id is what follows the
// first colon, so that ARKs can be parents.
func (s itemShape) shape() (out v1.ItemShape, err error) {
	out = v1.ItemShape{Types: s.Types, Identifiers: s.Identifiers}
	for _, p := range s.Parents {
		kind, id, ok := strings.Cut(p, ":")
		if !ok {
			return out, command.Usage("--parent: found %q; expected a type, a colon and an id, "+
				"e.g. Collection:maps", p)
		}
		out.Parents = append(out.Parents, v1.EventRef{Type: kind, ID: id})
	}
	return out, nil
}

// itemCreateCmd creates an item.
type itemCreateCmd struct {
	itemActing
	itemShape
}

// Run adds the kind to an id that has none, so that `component item create delivery-17` does what is meant. Creating
// the same item again changes nothing.
func (c *itemCreateCmd) Run(a *command.App) error {
	shape, err := c.shape()
	if err != nil {
		return err
	}

	id := c.ID
	if !strings.HasPrefix(id, "item:") {
		id = "item:" + id
	}

	return command.Show(a, showOutcome)(
		a.Client.CreateItem(a.Ctx, v1.ItemRequest{ID: id, ItemShape: shape, Reason: c.Reason},
			cmp.Or(c.Key, rand.Text())))
}

// showOutcome prints what an action did, and where the item is in the lines after it.
func showOutcome(p terminal.Page, r v1.ItemOutcome) {
	heading := "done"
	if !r.Changed {
		heading = "unchanged"
	}
	p.Fields(heading, r.Summary, "lines", linesText(r.Item))
}

// actOnItem does the action that the command is named after. An item that is already as the action wants it is
// unchanged, which is no failure.
func actOnItem(a *command.App, k *kong.Context, c itemActing, in v1.ItemAction) error {
	in.Action, in.Reason = k.Selected().Name, c.Reason
	return command.Show(a, showOutcome)(a.Client.ActOnItem(a.Ctx, c.ID, in, cmp.Or(c.Key, rand.Text())))
}

// itemActCmd is an action that has no more than a reason.
type itemActCmd struct{ itemActing }

// Run does the action that the command is named after.
func (c *itemActCmd) Run(a *command.App, k *kong.Context) error {
	return actOnItem(a, k, c.itemActing, v1.ItemAction{})
}

// itemChangeCmd changes what an item is. Only one that was made by hand can be changed; the others follow what
// they are of.
type itemChangeCmd struct {
	itemActing
	itemShape
}

// Run replaces what the item is.
func (c *itemChangeCmd) Run(a *command.App, k *kong.Context) error {
	shape, err := c.shape()
	if err != nil {
		return err
	}
	return actOnItem(a, k, c.itemActing, v1.ItemAction{Shape: &shape})
}

// itemEventCmd records an event by hand. If it is that of a component, its work counts as done.
type itemEventCmd struct {
	itemActing
	Event   string `arg:"" help:"Name of the event, e.g. Received, or that of a component's event, to force it."`
	Outcome string `enum:"success,failure" default:"success" help:"${enum}."`
}

// Run records the event.
func (c *itemEventCmd) Run(a *command.App, k *kong.Context) error {
	return actOnItem(a, k, c.itemActing, v1.ItemAction{Event: c.Event, Outcome: c.Outcome})
}

// itemRevokeCmd revokes events by their names: they count no longer, so that components whose conditions they
// were may work again. They stay in the history.
type itemRevokeCmd struct {
	itemActing
	Events []string `arg:"" name:"event" help:"Names of events."`
}

// Run revokes them.
func (c *itemRevokeCmd) Run(a *command.App, k *kong.Context) error {
	return actOnItem(a, k, c.itemActing, v1.ItemAction{Events: c.Events})
}

// itemRestartCmd begins again: all events from one on count no longer, so that the work after it is repeated.
type itemRestartCmd struct {
	itemActing
	FirstEvent string `help:"The first event that counts no longer; by default the first failure." placeholder:"EVENT"`
}

// Run revokes the events from that one on.
func (c *itemRestartCmd) Run(a *command.App, k *kong.Context) error {
	return actOnItem(a, k, c.itemActing, v1.ItemAction{From: c.FirstEvent})
}

// itemPrioritizeCmd moves an item in the lines. Here 9 is first, unlike the priorities of jobs, of which 0 is
// first.
type itemPrioritizeCmd struct {
	itemActing
	Priority int `required:"" help:"From 1 to 9; components work on items of priority 9 first." placeholder:"N"`
}

// Run gives the item the priority.
func (c *itemPrioritizeCmd) Run(a *command.App, k *kong.Context) error {
	return actOnItem(a, k, c.itemActing, v1.ItemAction{Priority: c.Priority})
}

// itemReleaseCmd ends a lease, e.g. of a worker that hangs: what it still does is not recorded.
type itemReleaseCmd struct {
	itemActing
	Component string `arg:"" help:"Name of the component that has the lease."`
}

// Run ends the lease.
func (c *itemReleaseCmd) Run(a *command.App, k *kong.Context) error {
	return actOnItem(a, k, c.itemActing, v1.ItemAction{Component: c.Component})
}

// itemImportCmd imports events.
type itemImportCmd struct {
	itemID
	File        string `arg:"" help:"PREMIS document, of version 2 or 3; - reads the standard input."`
	Reason      string `required:"" help:"Why. It is kept in the events." placeholder:"TEXT"`
	Zone        string `help:"Time zone of dates that state none, e.g. Europe/Copenhagen." placeholder:"ZONE"`
	SkipRefused bool   `help:"Import the rest if events cannot be imported. By default nothing is imported then."`
	DryRun      bool   `help:"Show what would be imported, but change nothing."`
}

func (itemImportCmd) Prints() any { return v1.PREMISImported{} }

// maxDocument is the size in bytes of a document, at most: a request has no room for more. A larger document can
// be imported in parts.
const maxDocument = 1 << 20

// Run fails if nothing was imported because events were refused: all or nothing, unless --skip-refused. The same
// document again changes nothing: its events are there already.
func (c *itemImportCmd) Run(a *command.App) error {
	// The document is sent as text within JSON. One byte more than the limit is read, to see that it is too
	// large.
	in, err := a.Open(c.File)
	if err != nil {
		return err
	}

	defer in.Close()
	text, err := io.ReadAll(io.LimitReader(in, maxDocument+1))
	if err != nil {
		return fault.New(fault.Invalid, "%s: %w", c.File, err)
	}

	if len(text) > maxDocument {
		return fault.New(fault.Invalid, "%s has more than %d bytes; import it in parts", c.File,
			maxDocument)
	}

	r, err := a.Client.ImportPREMIS(a.Ctx, c.ID, v1.PREMISImport{
		Document:    string(text),
		Zone:        c.Zone,
		SkipRefused: c.SkipRefused,
		DryRun:      c.DryRun,
		Reason:      c.Reason,
	})
	if err != nil {
		return err
	}

	if err := a.Print(r, func(p terminal.Page) { c.show(p, r) }); err != nil {
		return err
	}

	if len(r.Refused) == 0 || c.SkipRefused {
		return nil
	}
	return fault.New(fault.Invalid,
		"nothing is imported: %s refused; correct the document, or import the rest with "+
			"--skip-refused", terminal.Count(len(r.Refused), "event"))
}

// show prints how many events came, how many were there, and why others were refused.
func (c *itemImportCmd) show(p terminal.Page, r v1.PREMISImported) {
	imported := "imported"
	if c.DryRun {
		imported = "would be imported"
	}
	p.Fields("item", r.Item, imported, terminal.Count(len(r.Imported), "event"),
		"there already", terminal.Count(len(r.Present), "event"))
	for _, f := range r.Refused {
		fmt.Fprintf(p, "\n%s  %s\n", terminal.Red.Of("refused"), terminal.Printable(f.Identifier))
		p.Lines("  ", f.Reason)
	}
}
