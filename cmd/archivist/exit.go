package main

import (
	"errors"
	"fmt"

	"github.com/alecthomas/kong"

	"archivist/pkg/fault"
	"archivist/pkg/terminal"
)

// Exit codes in addition to those of the kinds of errors (fault.Edges).
const (
	exitUsage       = 2
	exitOtherNames  = 8
	exitInterrupted = 130 // as in shells
)

// A command reports an error in one line on the standard error, with what to do about it,
// and exits with the code of the kind of error. The topic exit-codes lists the codes.

// usageError is a command line that cannot be run.
type usageError struct{ message string }

// Error returns the message.
func (e *usageError) Error() string { return e.message }

// usage makes a usageError.
func usage(format string, args ...any) error { return &usageError{fmt.Sprintf(format, args...)} }

// end prints an error in one line and returns the exit code.
func (a *app) end(err error) int {
	var wrong *kong.ParseError
	switch {
	case err == nil:
		return 0
	case a.ctx.Err() != nil:
		return exitInterrupted // the user pressed ^C: no message is needed
	case errors.Is(err, errRejected): // each problem has been printed
	case errors.As(err, &wrong):
		help := lastCommand(wrong.Context) + " --help"
		fmt.Fprintf(a.errors, "archivist: %s; run %s\n", terminal.Printable(err.Error()), help)
	default:
		fmt.Fprintln(a.errors, "archivist: "+err.Error())
	}
	return exitCode(err)
}

// lastCommand is the last valid command that a command line names.
func lastCommand(k *kong.Context) string {
	path := "archivist"
	for _, p := range k.Path {
		if p.Command != nil {
			path = p.Command.FullPath()
		}
	}
	return path
}

// exitCode is the code of an error.
func exitCode(err error) int {
	var parse *kong.ParseError
	var wrong *usageError
	var others *otherNamesError
	switch {
	case errors.As(err, &parse), errors.As(err, &wrong):
		return exitUsage
	case errors.As(err, &others):
		return exitOtherNames
	}
	return fault.At(err).Exit
}
