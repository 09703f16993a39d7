package command

import (
	"embed"
	"strings"

	"github.com/alecthomas/kong"
)

// Program is a command line: its commands, and what help says of them. It is used for one command line: parsing
// writes the flags into Commands.
type Program struct {
	// Commands is a pointer to a struct whose fields are the commands, by the tags of kong; it embeds Flags.
	Commands any
	// Flags are those of Commands.
	Flags       *Flags
	Description string
	// Topics has a file topics/NAME.txt for each topic of help.
	Topics embed.FS
	// Texts are those of flags that the tags name; those of Flags need not be there.
	Texts []Texts
	// Vars are values that tags name, e.g. those of an enum.
	Vars kong.Vars
	// Renamed are the commands of earlier releases, of one or two words, and the usage of what does the same now. What
	// was below a group has its name still.
	Renamed map[string]string
}

// Flags are those that all commands have. They are no settings yet: settle decides, with the environment and the
// config file.
type Flags struct {
	API     string `help:"URL of the API." name:"api" placeholder:"URL" group:"Flags of every command:"`
	APIKey  string `help:"Keys of the API have ended." name:"api-key" hidden:""`
	Profile string `help:"${help_profile}" placeholder:"NAME" group:"Flags of every command:"`
	JSON    string `help:"${help_json}" name:"json" placeholder:"FIELDS" group:"Flags of every command:"`

	Version kong.VersionFlag `help:"Print the version and exit." group:"Flags of every command:"`
}

// topicNames are the help topics in addition to the commands, sorted.
func (p Program) topicNames() (names []string) {
	entries, _ := p.Topics.ReadDir("topics")
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".txt"))
	}
	return names
}
