package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"archivist/localstack"
)

// errDown says what to do when nothing is up.
var errDown = errors.New("no local Archivist is up; start one with: make run")

// targetsFile has the ARNs of the functions that consumers may call: the setting consumerTargets of
// the stack that is up.
func targetsFile(s *localstack.Stack) string { return s.State("consumer-targets") }

// targets are the ARNs in that file.
func targets(s *localstack.Stack) ([]string, error) {
	data, err := os.ReadFile(targetsFile(s))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return strings.Fields(string(data)), err
}

// function makes the Go program in a folder a function on the local AWS, named as the folder, and lets
// consumers call it.
func function(ctx context.Context, s *localstack.Stack, folder string) error {
	if folder == "" {
		return errors.New("no folder was named; use: make function FOLDER=path")
	}
	o, err := s.Load()
	if err != nil {
		return errDown
	}
	folder, err = filepath.Abs(folder)
	if err != nil {
		return err
	}
	name := filepath.Base(folder)
	s.Say("building the function %s …", name)
	arn, err := s.Function(ctx, name, folder, map[string]string{"ARCHIVIST_API": strings.TrimSuffix(o.APIURL, "/")})
	if err != nil {
		return err
	}
	if err := admit(ctx, s, arn); err != nil {
		return err
	}
	fmt.Printf("Consumers and components can call the function %s:\n  %s\n", name, arn)
	return nil
}

// admit adds a function to those that consumers may call, as a deployment to AWS does: by the
// setting consumerTargets.
func admit(ctx context.Context, s *localstack.Stack, arn string) error {
	known, err := targets(s)
	if err != nil || slices.Contains(known, arn) {
		return err
	}
	known = append(known, arn)
	s.Context["consumerTargets"] = strings.Join(known, ",")
	o, err := s.Deploy(ctx)
	if err != nil {
		return err
	}
	o.SampleURL = sourcesURL(s)
	if err := publish(s, o); err != nil {
		return err
	}
	return os.WriteFile(targetsFile(s), []byte(strings.Join(known, "\n")+"\n"), 0o644)
}

// patience is how long logs waits for the first line: a consumer may be on its way to the function.
const patience = 30 * time.Second

// logs prints what a function has logged.
func logs(ctx context.Context, s *localstack.Stack, name string) error {
	if name == "" {
		return errors.New("no function was named; use: make logs FUNCTION=name")
	}
	if _, err := s.Load(); err != nil {
		return errDown
	}
	before := 0
	for until := time.Now().Add(patience); ; {
		lines, err := s.Logs(ctx, name)
		if err != nil {
			return err
		}
		if len(lines) > 0 && len(lines) == before { // several calls can be under way at once
			fmt.Println(strings.Join(lines, "\n"))
			return nil
		}
		before = len(lines)
		if before == 0 && time.Now().After(until) {
			return fmt.Errorf("%s has logged nothing; was it called? See: dist/archivist consumer list", name)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second):
		}
	}
}
