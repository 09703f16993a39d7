// Command archivist is the command line of the archive: submit content, follow it,
// look at what is preserved, act on jobs, and get content back.
//
//	archivist submit letters/ --collection maps --local-id letters-17 --watch
//	archivist job list --collection maps --state failed
//	archivist object get ark:/99999/fk4tq65d6k --dir ghent
//
// On a terminal lists are tables that fit it; in a pipe they are rows separated by
// tabs; with --json they are JSON. The exit code is the kind of the
// result (archivist help exit-codes).
package main

import (
	"context"
	"embed"
	"net/http"
	"os"
	"os/signal"
	"time"

	"golang.org/x/term"

	"archivist/cmd/archivist/account"
	"archivist/cmd/archivist/archives"
	"archivist/cmd/archivist/command"
	"archivist/cmd/archivist/components"
	"archivist/cmd/archivist/events"
	"archivist/cmd/archivist/jobs"
	"archivist/cmd/archivist/objects"
	"archivist/cmd/archivist/research"
	"archivist/pkg/kernel/terminal"
)

// cli is every command, with the flags that all of them have. The order of the fields is that of the help.
type cli struct {
	command.Flags

	Submit jobs.SubmitCmd `cmd:"" help:"Submit files or a folder of this computer, or content by its URL."`
	Batch  jobs.BatchCmd  `cmd:"" help:"List and follow batches, read their reports; check manifests and bags."`
	Job    jobs.Cmd       `cmd:"" help:"List and follow jobs, and act on them."`

	Object     objects.Cmd   `cmd:"" help:"List preserved objects, get their content, see how well they are preserved."`
	Collection collectionCmd `cmd:"" help:"Show and set the profiles of collections; show their statistics."`

	Status    jobs.StatusCmd    `cmd:"" help:"Show what needs a person, what waits and what runs, on one screen."`
	Queue     jobs.QueueCmd     `cmd:"" help:"Show what runs, what waits and what is held; pause and resume it."`
	Operation jobs.OperationCmd `cmd:"" help:"List and follow bulk operations; interrupt and continue them."`

	Event    events.Cmd         `cmd:"" help:"List and follow what has happened."`
	Consumer events.ConsumerCmd `cmd:"" help:"List and define what reacts to events; act on it."`

	Component components.Cmd `cmd:"" help:"List and define what works on items; run it, see its line and items."`
	Archive   archives.Cmd   `cmd:"" help:"List, register and follow archives, their revisions and their tasks."`
	Research  research.Cmd   `cmd:"" help:"Find clips in recordings: projects, their progress, and what is found."`

	Restore  jobs.RestoreCmd    `cmd:"" help:"Show how far a restore of the table is, and what it lacks."`
	Settings jobs.SettingsCmd   `cmd:"" help:"Show the release and the settings that the deployment runs with."`
	Doctor   jobs.DoctorCmd     `cmd:"" help:"Check that all rows and files of the system agree; repair them."`
	Explain  command.ExplainCmd `cmd:"" help:"Explain what anything waits for, and what to do."`

	Login  account.LoginCmd  `cmd:"" help:"Sign in, with the browser or a code."`
	Logout account.LogoutCmd `cmd:"" help:"Sign out."`
	Whoami account.WhoamiCmd `cmd:"" help:"Show who you are for the API, what you may do, and until when."`
	Token  account.TokenCmd  `cmd:"" help:"Create, list and revoke tokens for hooks and small programs."`

	Demo       demoCmd               `cmd:"" passthrough:"" help:"Run all of Archivist in one process, for trying."`
	Config     command.ConfigCmd     `cmd:"" help:"Show which API is used, and why."`
	Completion command.CompletionCmd `cmd:"" help:"Print the completion script of a shell."`
	Help       command.HelpCmd       `cmd:"" help:"Show help on a command or a topic: ${topics}."`
}

// collectionCmd joins what two packages have of collections: their profiles, and what is counted of them.
type collectionCmd struct {
	jobs.CollectionCmd
	Statistics objects.StatisticsCmd `cmd:"" help:"Show what was ingested and downloaded in each collection."`
	Formats    objects.FormatsCmd    `cmd:"" help:"Show the files and bytes of a collection by format."`
}

// description is the beginning of the help: what it is, and the first command to try.
const description = "Archivist preserves content: submit it, follow it, and get it back.\n\n" +
	"  archivist submit letters/ -c maps --what \"Letters\" --watch"

// topicFiles are the help topics that concern all commands.
//
//go:embed topics/*.txt
var topicFiles embed.FS

// renamed are the commands of the releases before, and what does the same now. An entry of one word stands for all
// commands that were below it.
var renamed = map[string]string{
	"preservation": "object preservation",
	"statistics":   "collection statistics",
	"item":         "component item",
	"revision":     "archive revision",
	"task":         "archive task",
	"workflow":     "archive workflow",
	"researcher":   "research work",
	"hold":         "queue holds",
	"storage":      "queue",
	"replay":       "consumer",
	"manifest":     "batch check-manifest FILE",
	"bag":          "batch check-bag PATH",

	"manifest check":   "batch check-manifest FILE",
	"bag check":        "batch check-bag PATH",
	"storage pause":    "queue pause-storage --reason TEXT",
	"storage resume":   "queue resume-storage --reason TEXT",
	"hold list":        "queue holds",
	"replay list":      "consumer replays CONSUMER",
	"replay show":      "consumer show-replay REPLAY",
	"replay watch":     "consumer show-replay REPLAY --watch",
	"replay cancel":    "consumer cancel-replay REPLAY --reason TEXT",
	"consumer dry-run": "consumer preview FILTER",
	"batch watch":      "batch show BATCH... --watch",
	"job watch":        "job show JOB --watch",
	"operation watch":  "operation show OPERATION --watch",
	"archive watch":    "archive show ARCHIVE --watch",

	"archive explain":   "explain ARCHIVE",
	"revision explain":  "explain ARCHIVE/REVISION",
	"task explain":      "explain ARCHIVE/REVISION/TASK",
	"component explain": "explain ITEM --component NAME",
	"event explain":     "explain SUBJECT --event NUMBER --consumer NAME",
	"research explain":  "explain PROJECT/EPISODE --clip KEY",
}

// newProgram returns all commands, without values: parsing a command line sets them, so each needs a new one.
func newProgram() command.Program {
	var c cli
	return command.Program{
		Commands:    &c,
		Flags:       &c.Flags,
		Description: description,
		Topics:      topicFiles,
		Texts:       []command.Texts{jobs.Texts, events.Texts, research.Texts, demoHelp},
		Vars:        jobs.Vars,
		Renamed:     renamed,
	}
}

// main runs a command on this computer. The first interrupt ends the context of the command; the second one ends
// the process at once.
func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	context.AfterFunc(ctx, stop) // a second interrupt ends the process at once

	// Files are sent by several requests at once: the connections are kept for the next ones.
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 32
	code := command.Run(ctx, newProgram(), command.Machine{
		In:     os.Stdin,
		Out:    streamOf(os.Stdout),
		Err:    streamOf(os.Stderr),
		Getenv: os.Getenv,
		HTTP:   &http.Client{Transport: transport},
		Browse: browse,
		Now:    time.Now,
		Wait:   wait,
	}, os.Args[1:])

	stop()
	os.Exit(code)
}

// streamOf detects whether a file is a terminal, and its width when the program starts: a window that is made
// wider later is not noticed.
func streamOf(f *os.File) terminal.Stream {
	if !term.IsTerminal(int(f.Fd())) {
		return terminal.Stream{Writer: f}
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil || width <= 0 {
		width = terminal.UsualWidth
	}
	return terminal.Stream{Writer: f, Width: width}
}

// wait waits for a time, or until the context ends, whose error it returns then.
func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
