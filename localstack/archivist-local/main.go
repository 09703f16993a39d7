// Command archivist-local runs the system on this machine: it starts it with the
// sample, runs functions of your own beside it, stops it, and runs a command with a local DynamoDB.
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
	"strconv"
	"strings"
	"time"

	"archivist/infra/toolchain"
	"archivist/localstack"
)

// usualPort is where the local AWS listens on loopback. Another is chosen by the environment variable PORT; a
// stack that is up keeps its own.
const usualPort = 4566

// main runs a command in the root of the checkout.
func main() { toolchain.Main(command) }

// command runs one of the commands. Each has a number of arguments, at least and at most; a command line that
// fits none gets the usage.
func command(ctx context.Context, root string, args []string) error {
	s, err := theStack(root)
	if err != nil {
		return err
	}

	for _, c := range []struct {
		name        string
		least, most int // arguments
		run         func(args []string) error
	}{
		{"run", 0, 0, func([]string) error { return run(ctx, s) }},
		{"stop", 0, 0, func([]string) error { return down(ctx, s) }},
		{"function", 1, 1, func(args []string) error { return function(ctx, s, args[0]) }},
		{"logs", 1, 1, func(args []string) error { return logs(ctx, s, args[0]) }},
		{"research", 0, 0, func([]string) error { return research(ctx, root) }},
		{"revisions", 0, 0, func([]string) error { return revisions(ctx, s) }},
		{"sources", 2, 2, func(args []string) error { return sources(args[0], args[1]) }},
		{"issuer", 2, 2, func(args []string) error { return serveIssuer(args[0], args[1]) }},
		{"with", 2, 1000, func(args []string) error { return with(ctx, root, args[0], args[1:]) }},
	} {
		if n := len(args) - 1; n >= c.least && n <= c.most && args[0] == c.name {
			return c.run(args[1:])
		}
	}
	return errors.New("usage: archivist-local run | stop | function FOLDER | logs FUNCTION | " +
		"research | revisions | with dynamodb|ministack COMMAND…")
}

// down stops the demo that is up, and what make run left up. Both are tried, whatever the first says.
func down(ctx context.Context, s *localstack.Stack) error {
	o, err := localstack.Published(s.Root)
	if err != nil {
		return err
	}
	if o.Control != "" {
		// It withdraws what it has published itself; Withdraw below is for one that has died.
		err = localstack.Control(o.Control).Stop(ctx)
	}
	return errors.Join(err, o.Withdraw(s.Root), s.Stop(ctx))
}

// theStack is the stack that make run leaves up. Its port is that of the stack that is up, else PORT, else the
// usual one: ports of what belongs to it are counted from it. It demands tokens unless TOKENS is off; one that is up
// keeps to what it has demanded.
func theStack(root string) (*localstack.Stack, error) {
	checkout := toolchain.Checkout{Root: root, Log: &stopwatch{to: os.Stdout, started: time.Now()}}
	s := &localstack.Stack{
		Checkout: checkout,
		Name:     "run",
		Port:     usualPort,
		Enforce:  true,
		Context: map[string]string{"timing": "quick",
			"maxInFlight":      strconv.Itoa(localstack.MaxInFlight),
			"researchProjects": localstack.ResearchProject,
			"researchTimes":    localstack.ResearchTimes,
			"revisionQueue":    "true"},
	}

	// What was admitted before stays so when the app is deployed again.
	known, err := targets(s)
	if err != nil {
		return nil, err
	}

	s.Context["consumerTargets"] = strings.Join(known, ",")
	// A stack that is up is used on its port, whatever PORT says now.
	text, demands := os.Getenv("PORT"), os.Getenv("TOKENS") != tokensOff
	if o, err := s.Load(); err == nil {
		demands = o.ClientID != ""
		if u, err := url.Parse(o.EndpointURL); err == nil {
			text = u.Port()
		}
	}

	if text != "" {
		s.Port, err = strconv.Atoi(text)
		if err != nil || s.Port < 1024 || s.Port > 65000 {
			return nil, fmt.Errorf("PORT is %q; expected a number from 1024 to 65000", text)
		}
	}
	if demands {
		demand(s)
	}
	return s, nil
}

// stopwatch writes lines with the seconds since the start before them, so that one sees which step takes long.
type stopwatch struct {
	to      io.Writer
	started time.Time
}

func (w *stopwatch) Write(line []byte) (int, error) {
	_, err := fmt.Fprintf(w.to, "%4d s  %s", int(time.Since(w.started).Seconds()), line)
	return len(line), err
}

// with runs a command with a DynamoDB of its own beside it, whose URL is in ARCHIVIST_TEST_DYNAMODB, and stops
// that also if the command fails or is interrupted. The ports are not those of make run, so both can be up.
func with(ctx context.Context, root, kind string, argv []string) error {
	s := &localstack.Stack{Checkout: toolchain.Checkout{Root: root, Log: os.Stderr}, Name: "with-" +
		kind}
	var endpoint string
	var err error
	switch kind {
	case "dynamodb":
		s.Port = 14801
		endpoint, err = s.DynamoDB(ctx)
	case "ministack":
		s.Port = 14802
		err = startMiniStack(ctx, s)
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
	// An interrupt must not keep the emulator from being stopped.
	return errors.Join(cmd.Run(), s.Stop(context.WithoutCancel(ctx)))
}

// startMiniStack installs and starts MiniStack alone: nothing is deployed to it.
func startMiniStack(ctx context.Context, s *localstack.Stack) error {
	err := s.InstallPython(ctx)
	if err != nil {
		return err
	}
	return s.Start(ctx)
}
