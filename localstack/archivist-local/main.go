// Command archivist-local runs the system on this machine: up with the sample,
// down, or a command with a local DynamoDB beside it.
package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"archivist/localstack"
)

// Ports on loopback of what make run leaves up.
const (
	port       = 4566
	samplePort = 4580
)

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
	s := &localstack.Stack{Root: root, Name: "run", Port: port, Log: os.Stdout, Enforce: true, Context: map[string]string{"timing": "quick", "maxInFlight": "20"}}
	switch {
	case len(args) == 1 && args[0] == "run":
		return run(ctx, s)
	case len(args) == 1 && args[0] == "stop":
		_ = os.Remove(filepath.Join(root, ".local", "outputs.json"))
		return s.Stop(ctx)
	case len(args) == 1 && args[0] == "sample":
		return serve()
	case len(args) == 1 && args[0] == "build":
		return s.Build(ctx, "arm64")
	case len(args) == 1 && args[0] == "lint":
		return s.Lint(ctx)
	case len(args) > 0 && args[0] == "deploy":
		return s.DeployToAWS(ctx, args[1:])
	case len(args) > 2 && args[0] == "with":
		return with(ctx, root, args[1], args[2:])
	}
	return errors.New("usage: archivist-local run | stop | sample | build | lint | deploy [-c NAME=VALUE…] | with dynamodb|ministack COMMAND…")
}

// with runs a command with a DynamoDB of its own beside it.
func with(ctx context.Context, root, kind string, argv []string) error {
	s := &localstack.Stack{Root: root, Name: "with-" + kind, Log: os.Stderr}
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

func serve() error {
	handler, err := localstack.SampleHandler()
	if err != nil {
		return err
	}
	return (&http.Server{Addr: fmt.Sprintf("127.0.0.1:%d", samplePort), Handler: handler, ReadHeaderTimeout: 10 * time.Second}).ListenAndServe()
}

// run brings everything up, submits the sample and shows it until it ends.
func run(ctx context.Context, s *localstack.Stack) error {
	started := time.Now()
	o, err := s.Up(ctx, runtime.GOARCH)
	if err != nil {
		return err
	}
	o.SampleURL = fmt.Sprintf("http://127.0.0.1:%d", samplePort)
	if err := s.Save(o); err != nil {
		return err
	}
	if err := link(s); err != nil {
		return err
	}
	if err := sampleServer(ctx, s, o.SampleURL); err != nil {
		return err
	}
	ids, err := submit(ctx, s, o)
	if err != nil {
		return err
	}
	fmt.Println("watching …")
	watch := append([]string{"--url", o.APIURL, "batch", "watch"}, ids...)
	cmd := exec.CommandContext(ctx, filepath.Join(s.Root, "dist", "archivist"), watch...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return err
	}
	if err := stored(ctx, o, ids); err != nil {
		return err
	}
	fmt.Printf(`
Up, after %s. Look further:
  %s/docs
  %s/openapi.json
  dist/archivist object list -c %s        dist/archivist queue        dist/archivist --help
  .local/outputs.json                     make stop
`, time.Since(started).Round(time.Second), o.APIURL, o.APIURL, o.SampleCollection)
	return nil
}

// link puts the outputs where the command line and people look for them.
func link(s *localstack.Stack) error {
	data, err := os.ReadFile(s.State("outputs.json"))
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(s.Root, ".local", "outputs.json"), data, 0o644)
}

func sampleServer(ctx context.Context, s *localstack.Stack, url string) error {
	up := func() bool {
		resp, err := http.Get(url + "/manifests/maps.checkm?round=0")
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	}
	if up() {
		return nil
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	copied := filepath.Join(s.Root, "dist", "archivist-local") // go run deletes its own program at its end
	data, err := os.ReadFile(self)
	if err != nil {
		return err
	}
	if err := os.WriteFile(copied, data, 0o755); err != nil {
		return err
	}
	if err := s.Detach("sample", os.Environ(), copied, "sample"); err != nil {
		return err
	}
	for range 100 {
		if up() {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
	return fmt.Errorf("the sample's server does not come up; its log is in %s", s.State("sample.log"))
}

func names(objects []localstack.SampleObject) string {
	var out []string
	for _, o := range objects {
		out = append(out, o.LocalID)
	}
	return strings.Join(out, ", ")
}
