// Command archivist is the command line of the archive: submit content, follow it,
// look at what is preserved, act on jobs, and get content back.
//
//	archivist submit https://example.org/map.tif --collection maps --local-id map-17 --watch
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

	Submit jobs.SubmitCmd `cmd:"" help:"Submit a file or a manifest, by its URL."`
	Batch  jobs.BatchCmd  `cmd:"" help:"List and follow batches, and read their reports."`
	Job    jobs.Cmd       `cmd:"" help:"List and follow jobs, and act on them."`

	Object       objects.Cmd             `cmd:"" help:"List preserved objects, and get their content."`
	Preservation objects.PreservationCmd `cmd:"" help:"Show how well objects are preserved: their copies and checks."`
	Statistics   objects.StatisticsCmd   `cmd:"" help:"Show what was ingested and downloaded in each collection."`

	Collection jobs.CollectionCmd `cmd:"" help:"Show and set the profiles of collections."`
	Manifest   jobs.ManifestCmd   `cmd:"" help:"Check manifests."`
	Bag        jobs.BagCmd        `cmd:"" help:"Check bags (BagIt)."`

	Queue     jobs.QueueCmd     `cmd:"" help:"Show what runs and what waits; pause and resume it."`
	Storage   jobs.StorageCmd   `cmd:"" help:"Pause and resume the storage."`
	Hold      jobs.HoldCmd      `cmd:"" help:"List pauses and holds."`
	Operation jobs.OperationCmd `cmd:"" help:"List and follow bulk operations; interrupt and continue them."`

	Event    events.Cmd         `cmd:"" help:"List and follow what has happened."`
	Consumer events.ConsumerCmd `cmd:"" help:"List and define what reacts to events; act on it."`

	Component components.Cmd     `cmd:"" help:"List and define what works on items; run it, and see its line."`
	Item      components.ItemCmd `cmd:"" help:"List, create and follow items; act on them by hand."`

	Research research.Cmd `cmd:"" help:"Find clips in recordings: projects, their progress, and what is found."`

	Researcher research.ResearcherCmd `cmd:"" help:"Look for clips in episodes, on this computer."`

	Workflow archives.WorkflowCmd `cmd:"" help:"Check the tasks that an archive defines, and see what they wait for."`
	Archive  archives.Cmd         `cmd:"" help:"List and register archives with revisions; pause and resume them."`
	Revision archives.RevisionCmd `cmd:"" help:"List, follow and notify the revisions of archives."`
	Task     archives.TaskCmd     `cmd:"" help:"List and follow the tasks of archives; run and cancel them."`

	Replay events.ReplayCmd `cmd:"" help:"Follow, list or cancel replays of events."`

	Doctor  jobs.DoctorCmd     `cmd:"" help:"Check that all rows and files of the system agree; repair them."`
	Explain command.ExplainCmd `cmd:"" help:"Explain what anything waits for, and what to do."`

	Demo       demoCmd               `cmd:"" passthrough:"" help:"Run all of Archivist in one process, for trying."`
	Config     command.ConfigCmd     `cmd:"" help:"Show which API is used, and why."`
	Completion command.CompletionCmd `cmd:"" help:"Print the completion script of a shell."`
	Help       command.HelpCmd       `cmd:"" help:"Show help on a command or a topic: ${topics}."`
}

// description is the beginning of the help: what it is, and the first command to try.
const description = "Archivist preserves content: submit it by URL, follow it, and get it back.\n\n" +
	"  archivist submit https://example.org/map.tif -c maps --watch"

// topicFiles are the help topics that concern all commands.
//
//go:embed topics/*.txt
var topicFiles embed.FS

// renamed are the commands of the release before, and what does the same now.
var renamed = map[string]string{
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

	code := command.Run(ctx, newProgram(), command.Machine{
		In:     os.Stdin,
		Out:    streamOf(os.Stdout),
		Err:    streamOf(os.Stderr),
		Getenv: os.Getenv,
		HTTP:   http.DefaultClient,
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
