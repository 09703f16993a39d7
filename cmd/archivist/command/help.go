package command

import (
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// HelpCmd is --help, and help on topics that concern all commands.
type HelpCmd struct {
	Topic []string `arg:"" optional:"" help:"A command, e.g. job list, or one of the topics ${topics}."`
}

// Offline marks it as a command that needs no API.
func (HelpCmd) Offline() {}

// Run prints a topic, or the help of a command. A topic has precedence over a command of its name.
func (c *HelpCmd) Run(a *App) error {
	if len(c.Topic) == 1 && slices.Contains(a.program.topicNames(), c.Topic[0]) {
		text, err := a.program.Topics.ReadFile("topics/" + c.Topic[0] + ".txt")
		if err != nil {
			return err
		}
		_, err = a.Screen.Write(text)
		return err
	}

	// Trace, not Parse: required arguments of the command may be missing.
	k, err := kong.Trace(a.parser, c.Topic)
	if err != nil || k.Error != nil {
		return Usage("there is no command or topic %q; topics: %s; run archivist --help for the commands",
			strings.Join(c.Topic, " "), strings.Join(a.program.topicNames(), ", "))
	}
	return k.PrintUsage(false)
}
