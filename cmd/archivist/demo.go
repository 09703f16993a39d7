package main

import (
	"os"
	"path/filepath"
	"syscall"

	"archivist/cmd/archivist/command"
)

// demoCmd runs the program of the demo, which is beside this one: it has all of Archivist, and three times its
// size. Everything after `demo` is passed on as it is, flags too.
type demoCmd struct {
	Args []string `arg:"" optional:"" help:"${help_demo}"`
}

// demoHelp is the text of its argument.
var demoHelp = command.Texts{
	"help_demo": "Passed to the demo; archivist demo --help lists its commands and flags.",
}

func (demoCmd) Offline() {}

// demoProgram is the name of the demo's program.
const demoProgram = "archivist-demo"

// Run replaces this process by the demo's, so that signals and the exit code are its own. It returns only an
// error.
func (c *demoCmd) Run(*command.App) error {
	here, err := os.Executable()
	if err != nil {
		return err
	}

	program := filepath.Join(filepath.Dir(here), demoProgram)
	_, err = os.Stat(program)
	if err != nil {
		return command.Usage("the demo is a program of its own, %s, which is not beside this one; in a clone of the "+
			"repository, make demo builds it, too", demoProgram)
	}
	return syscall.Exec(program, append([]string{program}, c.Args...), os.Environ())
}
