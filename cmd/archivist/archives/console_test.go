package archives

import (
	"testing"

	"archivist/cmd/archivist/command"
	"archivist/cmd/archivist/command/commandtest"
)

// with makes a console for the API at a URL, with the commands of this package.
func with(t *testing.T, url string) *commandtest.Console {
	return commandtest.New(t, url, func() command.Program {
		var c struct {
			command.Flags
			Archive Cmd `cmd:""`
		}
		return command.Program{Commands: &c, Flags: &c.Flags}
	})
}
