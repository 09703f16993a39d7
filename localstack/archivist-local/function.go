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
var errDown = errors.New("no local Archivist is up; start one with: make run, or make demo")

// targetsFile has the ARNs of the functions that consumers may call, one per line: the setting consumerTargets
// of the stack that is up. It is forgotten with the stack.
func targetsFile(s *localstack.Stack) string { return s.State("consumer-targets") }

// targets are the ARNs in that file; none if no function was admitted yet.
func targets(s *localstack.Stack) ([]string, error) {
	data, err := os.ReadFile(targetsFile(s))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return strings.Fields(string(data)), err
}

// up is what is up: what make run started, or a demo. Nothing is an error that says what to do.
func up(root string) (localstack.Outputs, error) {
	o, err := localstack.Published(root)
	if err != nil {
		return o, err
	}

	if o.APIURL == "" {
		return o, errDown
	}
	return o, nil
}

// function makes the Go program in a folder a function on what is up, named as the folder, and lets consumers
// call it. Repeated, it replaces the code.
func function(ctx context.Context, s *localstack.Stack, folder string) error {
	if folder == "" {
		return errors.New("no folder was named; use: make function FOLDER=path")
	}

	o, err := up(s.Root)
	if err != nil {
		return err
	}

	folder, err = filepath.Abs(folder)
	if err != nil {
		return err
	}

	// The folder names the function: CheckFunctionName says if it cannot.
	name := filepath.Base(folder)
	s.Say("building the function %s …", name)
	var arn string
	if o.Control != "" {
		arn, err = localstack.Control(o.Control).AddFunction(ctx,
			localstack.UserFunction{Name: name, Command: folder})
	} else {
		arn, err = deployFunction(ctx, s, o, name, folder)
	}

	if err != nil {
		return err
	}

	fmt.Printf("Consumers and components can call the function %s:\n  %s\n", name, arn)
	return nil
}

// deployFunction makes the program a function of the local AWS, which finds the API and a token to read there by its
// environment, and admits it.
func deployFunction(ctx context.Context, s *localstack.Stack, o localstack.Outputs, name,
	folder string) (arn string,
	err error) {
	token, err := tokenFor(ctx, s, o, "functions", "viewer")
	if err != nil {
		return "", err
	}
	arn, err = s.Function(ctx, name, folder,
		map[string]string{"ARCHIVIST_API": strings.TrimSuffix(o.APIURL, "/"), "ARCHIVIST_TOKEN": token})
	if err != nil {
		return "", err
	}
	return arn, admit(ctx, s, arn)
}

// admit adds a function to those that consumers may call, as a deployment to AWS does: by the setting
// consumerTargets. The file is written last: if the deployment fails, a repeat deploys again.
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

	// The deployment knows nothing of it.
	o.SampleURL = sourcesURL(s)
	if err := startIssuer(ctx, s, &o); err != nil {
		return err
	}
	if err := publish(s, o); err != nil {
		return err
	}
	return os.WriteFile(targetsFile(s), []byte(strings.Join(known, "\n")+"\n"), 0o644)
}

// patience is how long logs waits for the first line: a consumer may be on its way to the function.
const patience = 30 * time.Second

// logs prints what a function has logged, once no more comes within a second; nothing within patience is an
// error.
func logs(ctx context.Context, s *localstack.Stack, name string) error {
	if name == "" {
		return errors.New("no function was named; use: make logs FUNCTION=name")
	}

	o, err := up(s.Root)
	if err != nil {
		return err
	}

	before := 0
	for until := time.Now().Add(patience); ; {
		lines, err := linesOf(ctx, s, o, name)
		if err != nil {
			return err
		}

		if len(lines) > 0 && len(lines) == before { // several calls can be under way at once
			fmt.Println(strings.Join(lines, "\n"))
			return nil
		}

		before = len(lines)
		// Only the first line is waited for so long.
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

// linesOf is what a function has logged: on a demo its file, on the local AWS its log group.
func linesOf(ctx context.Context, s *localstack.Stack, o localstack.Outputs,
	name string) ([]string, error) {
	if o.Control != "" {
		return localstack.DemoLogs(o, name)
	}
	return s.Logs(ctx, name)
}
