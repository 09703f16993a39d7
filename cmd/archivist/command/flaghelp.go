package command

import (
	"strings"

	"github.com/alecthomas/kong"
)

// Texts are the help of flags and arguments that is too long for the tag of their field, by the names by which the
// tag names it, as in help:"${help_json}". They are no variables of kong, which looks through the texts of all
// variables for each flag: that took three quarters of the time in which the program starts.
type Texts map[string]string

// flagHelp are the texts of the flags of all commands, and of flags that commands of several packages have.
var flagHelp = Texts{
	"help_json": "Print these fields as JSON, separated by commas; all prints every field, no value lists their " +
		"names.",
	"help_profile":    "Deployment to use, by its name in the config file.",
	"help_action_key": "Repeating the same action with the same key does nothing more and gives the same result.",
}

// longHelp is an option that gives each command, flag and argument whose help is the name of a text, as in
// ${help_json}, that text. kong refuses other names.
func longHelp(all []Texts) kong.Option {
	expand := func(help *string) {
		for _, some := range append([]Texts{flagHelp}, all...) {
			if text, ok := some[strings.Trim(*help, "${}")]; ok {
				*help = text
				return
			}
		}
	}
	return kong.PostBuild(func(k *kong.Kong) error {
		return kong.Visit(k.Model, func(node kong.Visitable, next kong.Next) error {
			switch node := node.(type) {
			case *kong.Node:
				expand(&node.Help)
			case *kong.Value:
				expand(&node.Help)
			}
			return next(nil)
		})
	})
}
