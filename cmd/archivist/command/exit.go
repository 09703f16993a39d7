package command

import (
	"errors"
	"fmt"
	"regexp"

	"github.com/alecthomas/kong"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/terminal"
)

// Exit codes in addition to those of the kinds of errors (fault.Edges).
const (
	// The same as that of fault.Invalid: for a script both are mistakes of its own.
	ExitUsage = 2
	// All files are there, so it is no failure, but a script that expects a name does not find it.
	ExitOtherNames = 8
	// 128 + SIGINT, as shells report it.
	ExitInterrupted = 130
)

// A command reports an error in one line on the standard error, with what to do about it,
// and exits with the code of the kind of error. The topic exit-codes lists the codes.

// ErrReported is the error of a command that has printed already what is wrong. Its exit code is 1, and no line
// is added.
var ErrReported = errors.New("reported")

// codedError is an error with an exit code of its own, which is not that of the kind of an error.
type codedError struct {
	code    int
	message string
}

// Error returns the message.
func (e *codedError) Error() string { return e.message }

// Usage is the error of a command line that cannot be run: what is wrong, and what is expected. A text from
// outside is quoted with %q, so that a terminal does not obey it.
func Usage(format string, args ...any) error {
	return &codedError{ExitUsage, fmt.Sprintf(format, args...)}
}

// UnderOtherNames is the error of a download that is complete, but has files under other names than their own:
// it has an exit code of its own, since nothing is missing.
func UnderOtherNames(format string, args ...any) error {
	return &codedError{ExitOtherNames, fmt.Sprintf(format, args...)}
}

// end prints an error in one line on the standard error and returns the exit code. An error of a kind says what
// to do in its message (package fault); for one of the parser, the help of the command is named.
func (a *App) end(err error) int {
	var wrong *kong.ParseError
	switch {
	case err == nil:
		return 0
	case a.Ctx.Err() != nil:
		return ExitInterrupted // the user pressed ^C: no message is needed
	case errors.Is(err, ErrReported): // each problem has been printed
	case errors.As(err, &wrong):
		help := lastCommand(wrong.Context) + " --help"
		text := withoutValue.ReplaceAllString(err.Error(), "a value is missing")
		fmt.Fprintf(a.Errors, "archivist: %s; run %s\n", terminal.Printable(text), help)
	default:
		fmt.Fprintln(a.Errors, "archivist: "+err.Error())
	}
	return exitCode(err)
}

// withoutValue is how the parser says that a flag stands at the end, without its value.
var withoutValue = regexp.MustCompile(`expected \w+ value but got "EOL" \(<EOL>\)`)

// lastCommand is the last valid command that a command line names, e.g. "archivist job list": the one whose help
// says what is wrong.
func lastCommand(k *kong.Context) string {
	path := "archivist"
	for _, p := range k.Path {
		if p.Command != nil {
			path = p.Command.FullPath()
		}
	}
	return path
}

// exitCode is the code of an error. An error of no kind, which is a defect of the program or of its computer,
// has 1.
func exitCode(err error) int {
	var parse *kong.ParseError
	var coded *codedError
	switch {
	case errors.As(err, &parse):
		return ExitUsage
	case errors.As(err, &coded):
		return coded.code
	}
	return fault.At(err).Exit
}
