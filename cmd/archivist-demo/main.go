// Command archivist-demo runs the whole of Archivist in one process, for trying it and for tests of what works with
// it. The command line runs it: archivist demo.
//
//	archivist demo --port 4666 --empty
//	archivist demo function words ./words
//	archivist demo stop
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"archivist/localstack"
	"archivist/localstack/demo"
)

// cli is every command.
type cli struct {
	Start    startCmd    `cmd:"" default:"withargs" help:"Start a demo; it runs until Ctrl-C. This is the default."`
	Function functionCmd `cmd:"" help:"Run a program as a Lambda function of the demo that runs."`
	Stop     stopCmd     `cmd:"" help:"End the demo that runs."`
}

// startCmd starts a demo. It is the command that runs if none is named, with its flags.
type startCmd struct {
	Port     int      `default:"4566" env:"PORT" help:"${help_port}"`
	Empty    bool     `help:"Start without the sample."`
	Keep     string   `placeholder:"FOLDER" help:"${help_keep}"`
	Issuer   bool     `help:"${help_issuer}"`
	Accounts string   `placeholder:"FILE" help:"${help_accounts}"`
	Origins  []string `name:"cors-origin" placeholder:"ORIGIN" help:"${help_origins}"`
	Function []string `placeholder:"NAME=COMMAND" sep:"none" help:"${help_function}"`
	Verbose  bool     `short:"v" help:"Show what the system and the functions log."`
}

// Run runs the demo until it is interrupted, or told to end by `archivist demo stop`. An interrupt while it
// starts is no error.
func (c *startCmd) Run(ctx context.Context) error {
	started := time.Now()
	here, err := os.Getwd()
	if err != nil {
		return err
	}

	o := demo.Options{
		Port:     c.Port,
		Empty:    c.Empty,
		Keep:     c.Keep,
		Issuer:   c.Issuer || c.Accounts != "",
		Accounts: c.Accounts,
		Origins:  c.Origins,
		Verbose:  c.Verbose,
		Folder:   here,
		Out:      os.Stdout,
	}

	for _, f := range c.Function {
		name, command, ok := strings.Cut(f, "=")
		if !ok {
			return fmt.Errorf("--function %s: expected NAME=COMMAND", f)
		}
		o.Functions = append(o.Functions, localstack.UserFunction{
			Name:    name,
			Command: command,
			Dir:     here,
		})
	}

	d, err := demo.Start(ctx, o)
	if ctx.Err() != nil {
		return nil
	}

	if err != nil {
		return err
	}

	d.Hint(time.Since(started))
	// Whichever comes first: an interrupt here, or a request to stop.
	select {
	case <-ctx.Done():
	case <-d.Stopped:
	}
	return d.Close()
}

// functionCmd adds a function to the demo that runs, by its socket.
type functionCmd struct {
	Name    string `arg:"" help:"Name of the function. One of this name is replaced."`
	Command string `arg:"" help:"A command, or the folder of a Go program, which is built."`
}

// Run tells the demo that runs in this folder, and prints the function's ARN, by which consumers and components
// name it. A command runs in the folder of this process, not in that of the demo.
func (c *functionCmd) Run(ctx context.Context) error {
	o, err := running()
	if err != nil {
		return err
	}

	here, err := os.Getwd()
	if err != nil {
		return err
	}

	arn, err := localstack.Control(o.Control).AddFunction(ctx,
		localstack.UserFunction{Name: c.Name, Command: c.Command, Dir: here})
	if err != nil {
		return err
	}
	fmt.Printf("Consumers and components can call the function %s:\n  %s\n", c.Name, arn)
	return nil
}

// stopCmd ends the demo that runs in this folder, from any terminal.
type stopCmd struct{}

// Run ends it, and waits for that.
func (stopCmd) Run(ctx context.Context) error {
	o, err := running()
	if err != nil {
		return err
	}
	return localstack.Control(o.Control).Stop(ctx)
}

// running is the demo that runs in this folder, by what it has published there. What make run has started is
// none, since it has no socket.
func running() (localstack.Outputs, error) {
	o, err := localstack.Published(".")
	if err != nil {
		return o, err
	}

	if o.Control == "" {
		return o, errors.New("no demo runs in this folder; start one with: archivist demo")
	}
	return o, nil
}

// main runs a command. Any error ends it with exit code 1 and a line on the standard error.
func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second interrupt ends the process at once
	var c cli
	texts := kong.Vars{
		"help_port": "Port of the API. Local content is served on this port + 14, S3 on + 1.",
		"help_keep": "Keep the state in a folder, to go on later. Only for trying: it is one copy.",
		"help_issuer": "Demand tokens, and start an issuer on the port + 15 that signs in everybody " +
			"without a password.",
		"help_accounts": "Who can sign in at the issuer: a file of JSON. It implies --issuer.",
		"help_origins": "Let scripts of web pages of an origin call the API and send files, e.g. " +
			"http://localhost:3000. Can be repeated.",
		"help_function": "Run a program, or the Go program in a folder, as a Lambda function. Can be repeated.",
	}

	k := kong.Parse(&c, kong.Name("archivist demo"), texts,
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Description("Archivist in one process, in memory: the API, the sample, all applications."))

	err := k.Run()
	if err != nil {
		fmt.Fprintln(os.Stderr, "archivist demo: "+err.Error())
		os.Exit(1)
	}
}
