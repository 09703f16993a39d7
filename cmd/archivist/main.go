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

	"github.com/alecthomas/kong"
	"github.com/jedib0t/go-pretty/v6/table"

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
	out    io.Writer
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var c cli
	k := kong.Parse(&c, kong.Name("archivist"), kong.UsageOnError(), kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.Description("The command line of the Archivist. Exit codes: 0 done, 2 invalid input, 3 not found, 4 conflict, 5 held, 6 lost, 7 unavailable, 8 got under other names, 1 anything else."))
	if c.URL == "" {
		c.URL = localURL()
	}
	err := k.Run(&app{ctx: ctx, client: &v1.Client{URL: c.URL, Key: c.Key, HTTP: http.DefaultClient}, json: c.JSON, out: os.Stdout})
	if err != nil {
		if !errors.Is(err, errRejected) {
			fmt.Fprintln(os.Stderr, "archivist: "+err.Error())
		}
		os.Exit(exitCode(err))
	}
}

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

// rows prints a table.
func rows(w io.Writer, header table.Row, body []table.Row) {
	t := table.NewWriter()
	t.SetOutputMirror(w)
	t.SetStyle(table.StyleLight)
	t.AppendHeader(header)
	t.AppendRows(body)
	t.Render()
}

// fields prints names with their values, leaving out what is empty.
func fields(w io.Writer, pairs ...any) {
	for i := 0; i+1 < len(pairs); i += 2 {
		if v := fmt.Sprint(pairs[i+1]); v != "" && v != "[]" {
			fmt.Fprintf(w, "%-14s %s\n", pairs[i], v)
		}
	}
}

// size writes bytes for people.
func size(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	f, u := float64(n), 0
	for f >= 1024 && u < len(units)-1 {
		f, u = f/1024, u+1
	}
	if u == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f %s", f, units[u])
}
