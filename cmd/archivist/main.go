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
	"net/http"
	"os"
	"os/signal"
	"time"

	"github.com/alecthomas/kong"
	"golang.org/x/term"

	"archivist/pkg/terminal"
)

// cli is every command, with the flags that all of them have.
type cli struct {
	API     string `help:"URL of the API." name:"api" placeholder:"URL" group:"Flags of every command:"`
	APIKey  string `help:"Key of the API." name:"api-key" placeholder:"KEY" group:"Flags of every command:"`
	Profile string `help:"${help_profile}" placeholder:"NAME" group:"Flags of every command:"`
	JSON    string `help:"${help_json}" name:"json" placeholder:"FIELDS" group:"Flags of every command:"`

	Version kong.VersionFlag `help:"Print the version and exit." group:"Flags of every command:"`

	Submit     submitCmd     `cmd:"" help:"Submit a file or a manifest, by its URL."`
	Batch      batchCmd      `cmd:"" help:"List and follow batches, and read their reports."`
	Job        jobCmd        `cmd:"" help:"List and follow jobs, and act on them."`
	Object     objectCmd     `cmd:"" help:"List preserved objects, and get their content."`
	Statistics statisticsCmd `cmd:"" help:"Show what was ingested and downloaded in each collection."`
	Collection collectionCmd `cmd:"" help:"Show and set the profiles of collections."`
	Manifest   manifestCmd   `cmd:"" help:"Check manifests."`
	Queue      queueCmd      `cmd:"" help:"Show what runs and what waits; pause and resume it."`
	Storage    storageCmd    `cmd:"" help:"Pause and resume the storage."`
	Hold       holdCmd       `cmd:"" help:"List pauses and holds."`
	Operation  operationCmd  `cmd:"" help:"List and follow bulk operations; interrupt and continue them."`
	Event      eventCmd      `cmd:"" help:"List and follow what has happened; explain what became of it."`
	Consumer   consumerCmd   `cmd:"" help:"List and define what reacts to events; act on it."`
	Component  componentCmd  `cmd:"" help:"List and define what works on items; run it, and see its line."`
	Item       itemCmd       `cmd:"" help:"List, create and follow items; act on them by hand."`
	Research   researchCmd   `cmd:"" help:"Find clips in recordings: projects, their progress, and what is found."`
	Researcher researcherCmd `cmd:"" help:"Look for clips in episodes, on this computer."`
	Workflow   workflowCmd   `cmd:"" help:"Check the tasks that an archive defines, and see what they wait for."`
	Archive    archiveCmd    `cmd:"" help:"List and register archives with revisions; pause and resume them."`
	Revision   revisionCmd   `cmd:"" help:"List, follow and notify the revisions of archives."`
	Task       taskCmd       `cmd:"" help:"List and follow the tasks of archives; run and cancel them."`
	Replay     replayCmd     `cmd:"" help:"Follow, list or cancel replays of events."`
	Doctor     doctorCmd     `cmd:"" help:"Check that all rows and files of the system agree; repair them."`
	Explain    explainCmd    `cmd:"" help:"Explain what a batch or a job waits for, and what to do."`
	Config     configCmd     `cmd:"" help:"Show which API is used, and why."`
	Completion completionCmd `cmd:"" help:"Print the completion script of a shell."`
	Help       helpCmd       `cmd:"" help:"Show help on a command or a topic: ${topics}."`
}

// main runs a command on this computer.
func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	context.AfterFunc(ctx, stop) // a second interrupt ends the process at once

	code := run(ctx, machine{in: os.Stdin, out: streamOf(os.Stdout), err: streamOf(os.Stderr), getenv: os.Getenv,
		http: http.DefaultClient, now: time.Now, wait: wait}, os.Args[1:])
	stop()
	os.Exit(code)
}

// streamOf detects whether a file is a terminal, and its width.
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

// wait waits for a time, or until the context ends.
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
