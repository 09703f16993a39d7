package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/terminal"
)

// machine is a command's interface to the computer that it runs on. A test uses buffers, a
// clock that it controls, and its own environment.
type machine struct {
	in       io.Reader
	out, err terminal.Stream
	getenv   func(string) string
	http     *http.Client
	now      func() time.Time
	wait     func(context.Context, time.Duration) error
}

// screen is a stream for people. It has colours if it is a terminal that supports them
// and NO_COLOR is not set (no-color.org).
func (m machine) screen(to terminal.Stream) io.Writer {
	colours := to.Width > 0 && m.getenv("NO_COLOR") == "" && m.getenv("TERM") != "dumb"
	return terminal.NewScreen(to, colours)
}

// app is what every command gets.
type app struct {
	machine
	ctx      context.Context
	client   *v1.Client
	settings settings
	parser   *kong.Kong
	args     []string // the command line, without the name of the program
	json     []string // fields to print as JSON; none: text
	screen   io.Writer
	errors   io.Writer
}

// offline is a command that needs no API: it runs even if none is set.
type offline interface{ offline() }

// printer is a command that prints a value, or a list of values, of one type. It returns
// an empty value, from which --json takes the fields before the command runs.
type printer interface{ prints() any }

// run runs a command and returns its exit code.
func run(ctx context.Context, m machine, args []string) int {
	if len(args) > 0 && args[0] == completeArg {
		return complete(m, args[1:])
	}

	var c cli
	exited := -1
	parser := parserOf(&c, m, func(code int) { exited = code })
	args, names := askForNames(args)
	if len(args) == 0 {
		args = []string{"--help"}
	}
	k, err := parser.Parse(args)
	if exited >= 0 {
		return exited // --help or --version
	}

	a := &app{machine: m, ctx: ctx, parser: parser, args: args, screen: m.screen(m.out), errors: m.screen(m.err)}
	if names {
		return a.listFields(k, err)
	}
	if err == nil {
		err = a.prepare(&c, k)
	}
	if err == nil {
		err = k.Run(a)
	}
	return a.end(err)
}

// parserOf makes the parser of the commands. It calls exit after --help and --version.
func parserOf(c *cli, m machine, exit func(int)) *kong.Kong {
	return kong.Must(c,
		kong.Name("archivist"),
		kong.Description(description),
		kong.Writers(m.screen(m.out), m.screen(m.err)),
		kong.Exit(exit),
		kong.ConfigureHelp(kong.HelpOptions{
			Compact:             true,
			NoExpandSubcommands: true,
			WrapUpperBound:      terminal.UsualWidth,
		}),
		kong.Vars{
			"version": "archivist " + buildVersion(),
			"topics":  strings.Join(topics(), ", "),
		},
		flagHelp)
}

// description is the beginning of the help.
const description = "Archivist preserves content: submit it by URL, follow it, and get it back.\n\n" +
	"  archivist submit https://example.org/map.tif -c maps --watch"

// buildVersion is the version of the build, with the commit if it is not a release.
func buildVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	out := info.Main.Version
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && !strings.Contains(out, s.Value[:12]) {
			out += " (" + s.Value[:12] + ")"
		}
	}
	return strings.TrimSpace(out)
}

// userAgent identifies this program to the API (RFC 9110, section 10.1.5).
func userAgent() string { return "archivist/" + strings.ReplaceAll(buildVersion(), " ", "-") }

// user is the name of the person, for events. A name that cannot be in a header is left out.
func (a *app) user() string {
	name := a.getenv("USER")
	notPlain := func(r rune) bool { return r <= ' ' || r > '~' }
	if len(name) > 100 || strings.ContainsFunc(name, notPlain) {
		return ""
	}
	return name
}

// prepare determines the API and the output format.
func (a *app) prepare(c *cli, k *kong.Context) error {
	command := target(k)
	if err := a.chooseFields(c.JSON, command); err != nil {
		return err
	}
	_, needsNone := command.(offline)
	_, isConfig := command.(*configCmd)
	if needsNone && !isConfig {
		return nil // errors in the settings do not concern it
	}

	var err error
	a.settings, err = settle(c, a.machine)
	if err != nil {
		return err
	}
	for _, warning := range a.settings.warnings {
		a.warn("%s", warning)
	}
	a.client = &v1.Client{URL: a.settings.API, Key: a.settings.key, HTTP: a.http, UserAgent: userAgent(),
		User: a.user()}
	if a.settings.API == "" && !isConfig {
		return usage("no API is set: run in the folder of `make run`, or set ARCHIVIST_API (archivist help config)")
	}
	return nil
}

// warn prints a warning; the command continues.
func (a *app) warn(format string, args ...any) {
	text := terminal.Printable(fmt.Sprintf(format, args...))
	fmt.Fprintln(a.errors, "archivist: "+terminal.Yellow.Of("warning")+": "+text)
}

// statusTo makes a status line on the terminal of the errors, so that what a command
// prints can go elsewhere; without a terminal it writes to lines.
func (a *app) statusTo(lines io.Writer) *terminal.Status {
	return &terminal.Status{Terminal: a.err, Lines: lines, Now: a.now}
}

// target is the command that was chosen, as a pointer to its struct.
func target(k *kong.Context) any {
	if k == nil || k.Selected() == nil {
		return nil
	}
	return k.Selected().Target.Addr().Interface()
}
