// Package components has the commands on components, their runs, and the items that they work on.
//
// A component is defined by a file that replaces the whole definition. Before it is changed, a dry run lists the
// items that would be ready. What it works on is its line: items are ready, later, running, failed or done, and
// explain says for one item why it is where it is.
//
// Actions on items are events of the item itself (itemact.go): none removes anything from its history. The same
// action with the same key is done once.
package components
