package command

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/terminal"
)

// Machine is the interface of a command to the computer that it runs on. Besides it, commands use only files,
// and the researcher the name of the computer and its signals. A test uses buffers, a clock that it controls,
// and its own environment (commandtest).
type Machine struct {
	In io.Reader
	// Streams with a width are terminals, for people; without, they are pipes and files, for programs. The two
	// can differ: a list can go to a file while its progress is on the terminal.
	Out, Err terminal.Stream
	// Getenv reads the environment, "" for what is not set.
	Getenv func(string) string
	// HTTP makes all requests: those to the API, and others such as for a manifest.
	HTTP *http.Client
	// Browse opens a URL in the browser of the user; an error says that there is none. nil: there is none.
	Browse func(url string) error
	// Now is the clock for what is shown and for times that are relative, such as --until 2h.
	Now func() time.Time
	// Wait waits between two looks at something, and before a repeat. It returns the error of the context if
	// that ends first.
	Wait func(context.Context, time.Duration) error
}

// screen is a stream for people. It has colours if it is a terminal that supports them
// and NO_COLOR is not set (no-color.org).
func (m Machine) screen(to terminal.Stream) io.Writer {
	colours := to.Width > 0 && m.Getenv("NO_COLOR") == "" && m.Getenv("TERM") != "dumb"
	return terminal.NewScreen(to, colours)
}

// App is what the method Run of every command gets. It is made for one command line and lives as long as the
// command.
type App struct {
	Machine
	// Ctx ends when the user presses ^C. A command passes it to every call of the API, and returns its error
	// then.
	Ctx context.Context
	// Client calls the API that the settings name. It is nil in a command that is offline.
	Client *v1.Client
	// settings are those of the API; they are not known to a command that is offline, but for config.
	settings settings
	parser   *kong.Kong
	program  Program
	// Args is the command line without the name of the program, as it was given. No flag has a secret.
	Args []string
	// JSON has the names of the fields that are printed, in the requested order; nil: text is printed.
	JSON []string
	// Screen and Errors are the streams Out and Err with colours, if they can show them. What is not printed by
	// Print or terminal has to pass terminal.Printable, because texts of the archive come from strangers.
	Screen io.Writer
	Errors io.Writer
	told   map[string]bool // warnings that were shown
}

// settings are the API to use and the source of that setting, as archivist config prints them. The token belongs
// to them but is never printed, because people paste this output into mails.
type settings struct {
	API  string `json:"api"`
	From string `json:"from"` // where API was found
	// TokenFrom says by which variable or command there is a token; "" = there is none.
	TokenFrom string   `json:"tokenFrom"`
	Profile   string   `json:"profile"`
	File      string   `json:"configFile"`
	Profiles  []string `json:"profiles"`

	// Not exported, so that no choice of fields for --json can print them.
	token    string
	started  started // zero: the API is another one
	warnings []string
}

// offline is a command that needs no API: it runs even if none is set, and if the config file cannot be read,
// which would otherwise also hinder the command that explains the file (archivist help config).
type offline interface{ Offline() }

// printer is a command that prints a value, or a list of values, of one type. It returns an empty value of this
// type before the command runs: so a wrong name of a field is refused before any request, and completion knows
// the names. A command without it prints no JSON. What it returns may depend on the flags of the command.
type printer interface{ Prints() any }

// user is the name of the person, from USER, for the header Archivist-User and so for events; nobody verifies
// it. A name that cannot be in a header (a blank, a control character, not ASCII, more than 100 characters) is
// left out: the request is more important than the name.
func (a *App) user() string {
	name := a.Getenv("USER")
	notPlain := func(r rune) bool { return r <= ' ' || r > '~' }
	if len(name) > 100 || strings.ContainsFunc(name, notPlain) {
		return ""
	}
	return name
}

// Told says that the user knows of a warning: Warn does not show it.
func (a *App) Told(text string) {
	if a.told == nil {
		a.told = map[string]bool{}
	}
	a.told[text] = true
}

// Warn prints a warning in one line on the standard error; the command continues, and its exit code does not
// change. What was told already is not told again.
func (a *App) Warn(format string, args ...any) {
	text := terminal.Printable(fmt.Sprintf(format, args...))
	if a.told[text] {
		return
	}
	a.Told(text)
	fmt.Fprintln(a.Errors, "archivist: "+terminal.Yellow.Of("warning")+": "+text)
}

// StatusTo makes a status line on the terminal of the errors, so that what a command prints can go elsewhere.
// Without a terminal it writes a line to lines when something new is shown, and at most every terminal.Pace
// otherwise; nil for lines: nothing then.
func (a *App) StatusTo(lines io.Writer) *terminal.Status {
	return &terminal.Status{Terminal: a.Err, Lines: lines, Now: a.Now}
}
