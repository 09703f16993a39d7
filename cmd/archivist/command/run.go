package command

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	v1 "archivist/pkg/api/v1"
)

// Run runs a command line and returns its exit code. args are without the name of the program. Everything that
// is wrong is reported in one line on the standard error. It can be called again
// with a new program.
func Run(ctx context.Context, p Program, m Machine, args []string) int {
	if len(args) > 0 && args[0] == completeArg {
		return complete(p, m, args[1:])
	}

	// kong calls exit where it has printed help or the version. It must not end the process here, so the code is
	// kept, and Parse goes on: what it returns then does not matter.
	exited := -1
	parser := p.Parser(m, func(code int) { exited = code })
	args, names := askForNames(args)
	if len(args) == 0 {
		args = []string{"--help"}
	}

	k, err := parser.Parse(args)
	if exited >= 0 {
		return exited // --help or --version
	}

	a := &App{
		Machine: m,
		Ctx:     ctx,
		parser:  parser,
		program: p,
		Args:    args,
		Screen:  m.screen(m.Out),
		Errors:  m.screen(m.Err),
	}

	// Before err is looked at: the names of the fields are listed even if the command line has no arguments yet.
	if names {
		return a.listFields(k, err)
	}

	if err != nil {
		return a.end(cmp.Or(p.renamed(parser.Model.Node, args), err))
	}

	err = a.prepare(k)
	if err != nil {
		return a.end(err)
	}
	return a.end(k.Run(a))
}

// renamed is the error that names the command that has come in place of the one in args; nil if there is none.
// Flags may stand before it.
func (p Program) renamed(root *kong.Node, args []string) error {
	var words []string
	for i := 0; i < len(args); i++ {
		f := flagOf(root, args[i])
		switch {
		case f != nil && !f.IsBool():
			i++ // its value
		case !strings.HasPrefix(args[i], "-"):
			words = append(words, args[i])
		}
	}

	for n := min(2, len(words)); n > 0; n-- {
		old := strings.Join(words[:n], " ")
		now := p.Renamed[old]
		if now == "" {
			continue
		}

		// Of a group, the commands below it have their names still.
		group, _, _ := follow(root, strings.Fields(now))
		isBelow := func(c *kong.Node) bool { return n < len(words) && c.Name == words[n] }
		if slices.ContainsFunc(group.Children, isBelow) {
			old, now = old+" "+words[n], now+" "+words[n]
		}
		return Usage("archivist %s is now: archivist %s", old, now)
	}
	return nil
}

// userAgent identifies this program to the API (RFC 9110, section 10.1.5).
func userAgent() string { return "archivist/" + strings.ReplaceAll(buildVersion(), " ", "-") }

// prepare determines the API and the output format of the chosen command, before it runs. Its errors are those
// of the user: a wrong name of a field, a config file that cannot be used, no API.
func (a *App) prepare(k *kong.Context) error {
	command := target(k)
	if err := a.chooseFields(a.program.Flags.JSON, command); err != nil {
		return err
	}

	_, needsNone := command.(offline)
	_, isConfig := command.(*ConfigCmd)
	// The order is: first the fields, which need nothing, then the settings. `config` is the exception among
	// offline commands: it shows the settings, so it must have read them.
	if needsNone && !isConfig {
		return nil // errors in the settings do not concern it
	}

	var err error
	a.settings, err = settle(a.program.Flags, a.Machine)
	if err != nil {
		return err
	}

	for _, warning := range a.settings.warnings {
		a.Warn("%s", warning)
	}

	a.Client = &v1.Client{
		URL:       a.settings.API,
		HTTP:      a.HTTP,
		UserAgent: userAgent(),
		User:      a.user(),
	}

	a.Client.Bearer, err = a.bearer()
	if err != nil {
		return err
	}

	if a.settings.API == "" && !isConfig {
		return Usage("no API is set: run in the folder of `make run` or `make demo`, or set ARCHIVIST_API " +
			"(archivist help config)")
	}
	return nil
}
