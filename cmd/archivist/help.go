package main

import (
	"embed"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

//go:embed topics/*.txt
var topicFiles embed.FS

// topics are the help topics in addition to the commands.
func topics() (names []string) {
	entries, _ := topicFiles.ReadDir("topics")
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".txt"))
	}
	return names
}

// helpCmd is --help, and help on topics that concern all commands.
type helpCmd struct {
	Topic []string `arg:"" optional:"" help:"A command, e.g. job list, or one of the topics ${topics}."`
}

func (helpCmd) offline() {}

// Run prints a topic, or the help of a command.
func (c *helpCmd) Run(a *app) error {
	if len(c.Topic) == 1 && slices.Contains(topics(), c.Topic[0]) {
		text, err := topicFiles.ReadFile("topics/" + c.Topic[0] + ".txt")
		if err == nil {
			_, err = a.screen.Write(text)
		}
		return err
	}
	k, err := kong.Trace(a.parser, c.Topic)
	if err == nil && k.Error == nil {
		return k.PrintUsage(false)
	}
	return usage("there is no command or topic %q; topics: %s; run archivist --help for the commands",
		strings.Join(c.Topic, " "), strings.Join(topics(), ", "))
}
