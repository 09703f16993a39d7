package command

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// chooseFields selects the fields to print as JSON: "" for none, all, or names separated by commas. An unknown
// name is refused before any request to the API, so that an action is not done whose result then cannot be
// printed.
func (a *App) chooseFields(given string, command any) error {
	if given == "" {
		return nil
	}

	p, is := command.(printer)
	if !is {
		return Usage("this command prints no JSON")
	}

	names := FieldNames(reflect.TypeOf(p.Prints()))
	if given == "all" {
		a.JSON = names
		return nil
	}

	for name := range strings.SplitSeq(given, ",") {
		name = strings.TrimSpace(name)
		if !slices.Contains(names, name) {
			return Usage("--json: there is no field %q; expected some of %s", name,
				strings.Join(names, ", "))
		}
		a.JSON = append(a.JSON, name)
	}
	return nil
}

// askForNames removes a --json without a value, which requests the names of the fields, and reports whether
// there was one. kong requires the value of a flag of text. What follows -- is never a flag.
func askForNames(args []string) ([]string, bool) {
	for i, arg := range args {
		last := i == len(args)-1
		if arg == "--" {
			break
		}
		if arg == "--json=" || arg == "--json" && (last || strings.HasPrefix(args[i+1], "-")) {
			return slices.Delete(slices.Clone(args), i, i+1), true
		}
	}
	return args, false
}

// listFields lists the fields of a command, even if its other arguments are missing: err is that of the parser,
// which knows how far it came. The list is on the standard error, with the exit code of a wrong command line, so
// that a script that has forgotten the names does not take it for the output.
func (a *App) listFields(k *kong.Context, err error) int {
	var wrong *kong.ParseError
	if errors.As(err, &wrong) {
		k = wrong.Context
	}

	// An action without JSON says so, whatever the rest of the command line is.
	p, is := target(k).(printer)
	if !is {
		return a.end(Usage("this command prints no JSON"))
	}

	fmt.Fprintln(a.Errors, "Specify fields for --json, separated by commas, or all:")
	for _, name := range FieldNames(reflect.TypeOf(p.Prints())) {
		fmt.Fprintln(a.Errors, "  "+name)
	}
	return ExitUsage
}
