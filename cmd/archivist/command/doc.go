// Package command is what all commands of the command line stand on: how a command line is run, which API it
// uses, how values and lists are printed, how something is followed until it ends, and with which exit code a
// failure ends. It knows no other command than those about the program itself: config, completion and help.
//
// A command is a struct. Its fields are its flags and arguments, by the tags of kong
// (github.com/alecthomas/kong); its method Run does the work with an App, and its method Prints says which
// fields --json can choose:
//
//	type showCmd struct {
//		Name string `arg:"" help:"Name of a collection."`
//	}
//
//	func (showCmd) Prints() any { return v1.Collection{} }
//
//	func (c *showCmd) Run(a *command.App) error {
//		return command.Show(a, showCollection)(a.Client.Collection(a.Ctx, c.Name))
//	}
//
//	func showCollection(p terminal.Page, got v1.Collection) { p.Fields("collection", got.Name) }
//
// Run (run.go) parses the command line (program.go, parser.go), chooses the fields, settles the API (config.go),
// and runs the command. These rules hold for all of them: what was asked for is on the standard output and
// nothing else is; what goes on, what is missing and what is wrong is on the standard error; an error is one line
// there that says what to do; a program gets rows separated by tabs, whose columns keep their places, or JSON
// with the names of the API; a text of the archive cannot move the cursor of a terminal.
//
// The program (Program) is a list of commands, which a package above makes. Completion and help follow from it,
// so a new command needs neither.
package command
