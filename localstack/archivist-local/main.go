// Command archivist-local runs the system on this machine: it starts it with the
// sample, serves folders to submit, stops it, and runs a command with a local DynamoDB.
// The Makefile calls it.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"time"

	"archivist/infra/toolchain"
	"archivist/localstack"
)

// usualPort is where the local AWS listens on loopback. Another is chosen by the
// environment variable PORT; a stack that is up keeps its own.
const usualPort = 4566

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := command(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func command(ctx context.Context, args []string) error {
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	s, err := theStack(root)
	if err != nil {
		return err
	}
	switch {
	case len(args) == 1 && args[0] == "run":
		return run(ctx, s)
	case len(args) == 1 && args[0] == "stop":
		_ = os.Remove(filepath.Join(root, ".local", "outputs.json"))
		return s.Stop(ctx)
	case len(args) == 2 && args[0] == "serve":
		return serve(s, args[1])
	case len(args) == 3 && args[0] == "sources":
		return sources(args[1], args[2])
	case len(args) > 2 && args[0] == "with":
		return with(ctx, root, args[1], args[2:])
	}
	return errors.New("usage: archivist-local run | stop | serve FOLDER | " +
		"with dynamodb|ministack COMMAND…")
}

// theStack is the stack that make run leaves up.
func theStack(root string) (*localstack.Stack, error) {
	checkout := toolchain.Checkout{Root: root, Log: &stopwatch{to: os.Stdout, started: time.Now()}}
	s := &localstack.Stack{Checkout: checkout, Name: "run", Port: usualPort, Enforce: true,
		Context: map[string]string{"timing": "quick", "maxInFlight": "20"}}
	text := os.Getenv("PORT")
	if o, err := s.Load(); err == nil {
		if u, err := url.Parse(o.EndpointURL); err == nil {
			text = u.Port()
		}
	}
	if text == "" {
		return s, nil
	}
	port, err := strconv.Atoi(text)
	if err != nil || port < 1024 || port > 65000 {
		return nil, fmt.Errorf("PORT is %q; expected a number from 1024 to 65000", text)
	}
	s.Port = port
	return s, nil
}

// stopwatch writes lines with the seconds since the start before them.
type stopwatch struct {
	to      io.Writer
	started time.Time
}

func (w *stopwatch) Write(line []byte) (int, error) {
	_, err := fmt.Fprintf(w.to, "%4d s  %s", int(time.Since(w.started).Seconds()), line)
	return len(line), err
}

// with runs a command with a DynamoDB of its own beside it.
func with(ctx context.Context, root, kind string, argv []string) error {
	s := &localstack.Stack{Checkout: toolchain.Checkout{Root: root, Log: os.Stderr}, Name: "with-" + kind}
	var endpoint string
	var err error
	switch kind {
	case "dynamodb":
		s.Port = 14801
		endpoint, err = s.DynamoDB(ctx)
	case "ministack":
		s.Port = 14802
		if err = s.InstallPython(ctx); err == nil {
			err = s.Start(ctx)
		}
		endpoint = s.Endpoint()
	default:
		return fmt.Errorf("there is no local DynamoDB %q; dynamodb and ministack are known", kind)
	}
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), "ARCHIVIST_TEST_DYNAMODB="+endpoint)
	return errors.Join(cmd.Run(), s.Stop(context.WithoutCancel(ctx)))
}
