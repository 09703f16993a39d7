package components

// Cmd is for what works on items. Its commands are in the order in which one gets to know a component: what
// there is, what it waits for, and what it does.
type Cmd struct {
	List    componentListCmd    `cmd:"" help:"List the components, and how many items each can work on."`
	Show    componentShowCmd    `cmd:"" help:"Show a component."`
	Apply   componentApplyCmd   `cmd:"" help:"Create a component, or change its definition."`
	Schema  componentSchemaCmd  `cmd:"" help:"Print the JSON Schema of a definition."`
	History componentHistoryCmd `cmd:"" help:"List the changes of a component."`
	Graph   componentGraphCmd   `cmd:"" help:"Print all components as a graph: the assembly line."`

	Line componentLineCmd `cmd:"" help:"List the items of a component: ready, later, running or failed."`

	Run       componentRunCmd  `cmd:"" help:"Run a component now."`
	Runs      componentRunsCmd `cmd:"" help:"List the runs of a component."`
	Interrupt componentActCmd  `cmd:"" help:"End the runs of a component now. Pause it first, or the next can begin."`
	Pause     componentActCmd  `cmd:"" help:"Begin no more runs, and no more items. Items wait."`
	Resume    componentActCmd  `cmd:"" help:"End the pause of a component."`
	Delete    componentActCmd  `cmd:"" help:"Remove a component. The events that it recorded stay."`

	Item itemCmd `cmd:"" help:"List, create and follow items; act on them by hand."`
}

// itemCmd is for what components work on. The first commands look at items and make them; the others are actions
// by hand, each of which is an event of the item.
type itemCmd struct {
	List    itemListCmd    `cmd:"" help:"List items."`
	Show    itemShowCmd    `cmd:"" help:"Show an item, its events that count, and where it is in the lines."`
	History itemHistoryCmd `cmd:"" help:"List what happened to an item, or export it as PREMIS."`
	Create  itemCreateCmd  `cmd:"" help:"Create an item, item:ID, for what is not ingested yet, e.g. a delivery."`
	Change  itemChangeCmd  `cmd:"" help:"Replace types, parents and identifiers of an item that was created by hand."`
	Forget  itemActCmd     `cmd:"" help:"Remove an item that was created by hand from all lines. Its history stays."`
	Import  itemImportCmd  `cmd:"" help:"Import the events of a PREMIS document into an item."`

	Event      itemEventCmd      `cmd:"" help:"Record an event by hand."`
	Revoke     itemRevokeCmd     `cmd:"" help:"Revoke events: they no longer count, and stay in the history."`
	Restart    itemRestartCmd    `cmd:"" help:"Begin again: from the first failure on, or from an event on."`
	Stop       itemActCmd        `cmd:"" help:"Let no component begin work, until Manually_stopped is revoked."`
	Prioritize itemPrioritizeCmd `cmd:"" help:"Give an item another priority."`
	Release    itemReleaseCmd    `cmd:"" help:"End the lease of a component on an item."`
}
