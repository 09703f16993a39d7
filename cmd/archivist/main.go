// Command archivist is the command line of the archive: submit, watch, look,
// act, and get content back.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"time"

	"github.com/alecthomas/kong"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/fault"
)

// cli is every command.
type cli struct {
	URL  string `help:"URL of the API." env:"ARCHIVIST_API" placeholder:"URL"`
	Key  string `help:"API key." env:"ARCHIVIST_API_KEY" placeholder:"KEY"`
	JSON bool   `help:"Print JSON instead of text." name:"json"`

	Submit     submitCmd     `cmd:"" help:"Submit content by its URL."`
	Batch      batchCmd      `cmd:"" help:"Look at batches."`
	Job        jobCmd        `cmd:"" help:"Look at jobs and act on them."`
	Object     objectCmd     `cmd:"" help:"Look at preserved objects and get their content."`
	Collection collectionCmd `cmd:"" help:"Look at collections' profiles and change them."`
	Manifest   manifestCmd   `cmd:"" help:"Check manifests."`
	Queue      queueCmd      `cmd:"" help:"The queue at a glance."`
	Explain    explainCmd    `cmd:"" help:"Say the one thing that a batch or job waits for."`
}

// app is what every command gets.
type app struct {
	ctx    context.Context
	client *v1.Client
	json   bool
	out    io.Writer // a screen, unless JSON is printed
	err    io.Writer // a screen
	bars   io.Writer // where progress bars are drawn; nil: nowhere, it is no terminal
	wait   func(context.Context, time.Duration) error
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	context.AfterFunc(ctx, stop) // a second interrupt ends the process at once
	var c cli
	k := kong.Parse(&c, kong.Name("archivist"), kong.UsageOnError(), kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.Description("The command line of the Archivist. Exit codes: 0 done, 2 invalid input, 3 not found, 4 conflict, 5 held, 6 lost, 7 unavailable, 8 got under other names, 130 interrupted, 1 anything else."))
	if c.URL == "" {
		c.URL = localURL()
	}
	a := &app{ctx: ctx, client: &v1.Client{URL: c.URL, Key: c.Key, HTTP: http.DefaultClient}, json: c.JSON,
		out: &screen{to: os.Stdout}, err: &screen{to: os.Stderr}, wait: wait}
	if a.json {
		a.out = os.Stdout
	}
	if info, err := os.Stderr.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
		a.bars = os.Stderr
	}
	err := k.Run(a)
	if err == nil {
		return
	}
	if !errors.Is(err, errRejected) && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(a.err, "archivist: "+err.Error())
	}
	if ctx.Err() != nil {
		os.Exit(exitInterrupted)
	}
	os.Exit(exitCode(err))
}

// exitInterrupted is the exit code of a command that ^C ended, as shells have it.
const exitInterrupted = 130

// exitCode is the code of an error: that of its kind, or exitRenamed.
func exitCode(err error) int {
	if _, all := err.(*renamedError); all {
		return exitRenamed
	}
	return fault.At(err).Exit
}

// localURL is the API of the stack that `make run` left up here, if any.
func localURL() string {
	data, err := os.ReadFile(".local/outputs.json")
	var o struct{ APIURL string }
	if err != nil || json.Unmarshal(data, &o) != nil {
		return ""
	}
	return o.APIURL
}

// print prints v as JSON, or calls text.
func (a *app) print(v any, text func(w io.Writer)) error {
	if !a.json {
		text(a.out)
		return nil
	}
	enc := json.NewEncoder(a.out)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
